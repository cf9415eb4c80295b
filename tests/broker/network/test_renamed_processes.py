"""A broker that gets another name and keeps its disk: nothing is lost and nothing doubled."""

import asyncio

import pytest

from headwater.cli import main
from tests.broker.network.fleet import FleetBroker
from tests.broker.network.test_rewound_processes import ids_of, linked, publish, stopped
from tests.broker.running import ask, client

COUNT = """event Dust(val: int)
define Many(count) aggr every 1 s detect Dust assign count = Count(Dust.val)
subscription Counted from one to alerts detect Many assign count = Many.count
"""


def heard(fleet):
    """What came of each event, and how many were counted in windows."""
    rows = fleet.results("b0")
    events = [row["events"]["Dust"][0] for row in rows if row["subscription"] == "Heard"]
    return events, sum(row["values"]["count"] for row in rows if row["subscription"] == "Counted")


async def renamed(folder):
    """It keeps events for its host when it is stopped, and hands them over under the new name."""
    fleet = await linked(folder, {"b1": "b0", "b2": "b0"})
    file = folder / "b1" / "broker.toml"
    words = ["broker", "rename", "kitchen", "--config", str(file)]
    try:
        async with client(fleet.brokers["b0"].port()) as one:
            assert (await ask(one, "submit", COUNT))["state"] == "active"
        await publish(fleet, 1, 20)
        await fleet.until(lambda: len(heard(fleet)[0]) == 20)
        fleet.gaps["b1"].cut()
        await publish(fleet, 21, 40)
        assert main(words) == 2, "it runs"
        await stopped(fleet, "b1")
        assert main(words) == 0
        fleet.gaps["b1"].mend()
        fleet.brokers["b1"] = FleetBroker(folder / "b1", file.read_text())
        await asyncio.to_thread(fleet.brokers["b1"].__enter__)
        await fleet.until(lambda: fleet.brokers["b1"].get("/readyz")[0] == 200)
        await publish(fleet, 41, 60)
        await fleet.until(lambda: fleet.network("b0")["known"] == ["b2", "kitchen"])
        await fleet.until(lambda: fleet.network("b2")["known"] == ["b0", "kitchen"])
        await publish(fleet, 61, 80)
        # The window in which the last one is may yet get others.
        await fleet.until(lambda: heard(fleet)[1] >= 79)
        await fleet.until(lambda: len(heard(fleet)[0]) >= 80)
        assert heard(fleet) == (ids_of(1, 80), 79)
        await fleet.until(lambda: (folder / "b1" / "data" / "broker.former").read_text() == "")
    finally:
        await fleet.stop()


@pytest.mark.timeout(120)
def test_a_renamed_broker_hands_over_what_it_kept_and_its_old_name_is_forgotten(tmp_path):
    asyncio.run(renamed(tmp_path))
