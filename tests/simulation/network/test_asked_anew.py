"""Who asks for something again, after nobody did for a while, is told of no loss."""

from broker.core.messages import CancelRequested, SpecificationSubmitted
from broker.network.neighbours.ways import Came
from tests.simulation.network.town import LINE, Town

TEXT = "event Alarm(room: text)\nsubscription Plain from x to alerts\ndetect Alarm\n"
ROUNDS = 3


def test_what_the_last_host_asks_for_anew_is_not_taken_for_lost(monkeypatch):
    """Neither at the broker on the way nor at the host: both counted frames before."""
    found = []
    goes_on = Came.goes_on

    def noted(came, after, serial):
        found.append(goes_on(came, after, serial))
        return found[-1]

    monkeypatch.setattr(Came, "goes_on", noted)
    town = Town(1, LINE[:2], text=TEXT)
    town.start({"alerts": "b0"})
    for _ in range(ROUNDS):
        send(town, 4)
        town.home.tell(CancelRequested("x", "2", "Plain"), {})
        send(town, 2)  # nobody wants these
        town.home.tell(SpecificationSubmitted("x", "3", TEXT), {})
        town.run(1_000)
    send(town, 4)
    assert len(town.found) == 4 * (ROUNDS + 1)
    assert len(found) >= 2 * len(town.found)
    assert all(found)


def send(town, count):
    town.run(1_000)
    for _ in range(count):
        town.alarm("b2")
        town.run(300)
