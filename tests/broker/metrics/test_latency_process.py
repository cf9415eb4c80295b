"""Real brokers: what their histograms and lags say of results that were given out."""

import asyncio
import json
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.broker.network.fleet import Fleet
from tests.broker.running import ask, client

TEXT = """event Temp(val: float)
subscription Hot from anna to alerts
detect Temp(val > 30)
"""

OWED_S = 90.0


def samples(broker, name):
    _, text = broker.get("/metrics")
    families = {one.name: one for one in text_string_to_metric_families(text)}
    return {
        (one.name.removeprefix(name), *sorted(one.labels.items())): one.value
        for one in families[name].samples
    }


@pytest.mark.timeout(120)
def test_results_records_and_promises_are_measured_where_they_are(tmp_path):
    """Three results of readings at the other broker: one an hour old, two of now."""

    async def scene():
        fleet = await Fleet(tmp_path, {"b1": "b0"}).start()
        try:
            home, origin = fleet.brokers["b0"], fleet.brokers["b1"]
            async with client(home.port()) as one:
                assert (await ask(one, "submit", TEXT))["ok"]
            await fleet.until(lambda: fleet.subscribed("b0") == ["active"])
            now_ms = int(time.time() * 1000)
            async with client(origin.port()) as one:
                for number, time_ms in enumerate((now_ms - 3_600_000, now_ms, now_ms)):
                    said = {"id": f"r{number}", "timestamp": time_ms, "val": 31.0}
                    topic = f"headwater/events/Temp/t{number}"
                    await one.publish(topic, json.dumps(said), qos=1)
            await fleet.until(lambda: len(fleet.results("b0")) == 3)
            name = "headwater_detection_latency_seconds"
            await fleet.until(lambda: samples(home, name)["_count",] == 3)
            latency = samples(home, name)
            assert latency["_bucket", ("le", "60.0")] == 2
            assert 3_600 <= latency["_sum",] < 3_600 + 180
            assert samples(origin, name)["_count",] == 0
            for broker in (home, origin):
                waits = samples(broker, "headwater_journal_wait_seconds")
                assert waits["_count",] > 0
                assert 0 < waits["_sum",] < 60
            # No task waits for the origin's time, so that it may be owed for a minute.
            await fleet.until(lambda: samples(home, "headwater_lag_seconds"), OWED_S)
            lags = samples(home, "headwater_lag_seconds")
            ((_, *labels),) = lags
            assert labels == [("origin", "b1"), ("task", "anna/Hot")]
            assert 0 <= next(iter(lags.values())) < 3_700
        finally:
            await fleet.stop()

    asyncio.run(scene())
