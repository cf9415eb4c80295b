"""What is offered again is filtered as what comes for the first time."""

import pytest

from tests.simulation.network.town import LINE, Town

HOT = """
event Alarm(room: text)
subscription Hot from x to alerts
detect Alarm(room = "r0")
"""


@pytest.mark.parametrize("link", range(3))
def test_only_what_the_host_asks_for_is_offered_again(link):
    town = Town(1, LINE, text=HOT)
    town.start({})
    town.links[link].cut(20_000, lost=True)
    town.run(5_000)
    for _ in range(60):  # every second one is of the other room
        town.alarm("b3")
    town.run(60_000)
    assert len(town.found) == 30
    loads = [town.links[at].load(f"b{at + 1}").events for at in range(3)]
    assert loads == [30] * 3  # and not the other 30
