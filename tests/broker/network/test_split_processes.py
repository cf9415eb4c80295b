"""Real brokers that fold windows where events enter: who merges them may die under load."""

import asyncio

import pytest

import headwater
from tests.broker.network import test_planned_processes as planned
from tests.broker.network.fleet import NAMES
from tests.broker.network.test_planned_processes import (
    BETWEEN,
    HOME,
    SENSORS,
    Load,
    PlannedFleet,
    ready,
)

TEXT = """event Temp(val: float)
event Wind(val: float)
define Both(n, mean, top) aggr every 4 s range 10 s
detect outer Temp as t and outer Wind as w
assign n = Count(t) + Count(w), mean = Avg(t.val), top = Max(w.val)
subscription Apart from five to alerts
detect Both
"""


def said(results):
    """What counts of results: their ids and values."""
    return sorted((one["id"], str(one["values"])) for one in results)


def expected(load):
    """The same of what one engine finds."""
    events = [
        {"type": SENSORS[name][1], "source": name, **one}
        for name, some in load.sent.items()
        for one in some
    ]
    engine = headwater.Engine(TEXT)
    found = engine.push(sorted(events, key=lambda one: one["timestamp"])) + engine.finish()
    results = [one if isinstance(one, dict) else one.to_dict() for one in found]
    last_ms = planned.BEGIN_MS + 10**9  # whose own windows stay open
    return said(one for one in results if one["end"] < last_ms)


class SplitFleet(PlannedFleet):
    """Six brokers whose windows are split."""

    more = planned.COORDINATED + "split_windows = true\n"

    def parts(self):
        """Where events are folded."""
        tasks = self.plan()["tasks"]
        return tasks[0]["parts"] if tasks else []


@pytest.mark.long
@pytest.mark.timeout(300)
def test_windows_are_folded_at_their_sources_and_outlive_who_merges_them(tmp_path, monkeypatch):
    monkeypatch.setattr(planned, "TEXT", TEXT)

    async def scenario():
        fleet = SplitFleet(tmp_path)
        try:
            await fleet.start()
            await ready(fleet)
            await fleet.until(lambda: bool(fleet.serving()))
            load = Load(fleet, 1)
            publishing = [asyncio.create_task(load.publish(name)) for name in SENSORS]
            await fleet.until(lambda: fleet.parts() == ["b3", "b4"])
            await fleet.until(lambda: len(fleet.results(HOME)) > 5)
            if fleet.serving() != HOME:
                await fleet.kill(fleet.serving())
            await asyncio.sleep(2)
            await fleet.kill(BETWEEN)
            await asyncio.sleep(3)
            load.stopping.set()
            await asyncio.gather(*publishing)
            wanted = expected(load)
            assert len(wanted) > 20
            await fleet.until(lambda: len(fleet.results(HOME)) >= len(wanted))
            assert said(fleet.results(HOME)) == wanted
            # What came with the last readings, whose windows stay open.
            await fleet.until(lambda: sum(fleet.network(name)["retained"] for name in NAMES) < 100)
            assert sum(map(len, load.sent.values())) > 500
        finally:
            await fleet.stop()

    asyncio.run(scenario())
