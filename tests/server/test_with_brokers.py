"""The source's reader classes at real brokers, without a JVM: what is read is what was detected."""

import asyncio
import json
import time

import pytest

from headwater.demo.process import free_ports
from server.source.planning import LostError
from tests.broker.running import CONFIG, PATIENCE_S, RunningBroker, client
from tests.server.test_source import Stream, numbers

TEXT = """
event AirTemp(value: float)
subscription Frost from station-team to alerts
detect AirTemp as t where t.value < 0
assign value = t.value, location = t.location
"""
FIRST_MS = 1_700_000_000_000
# Event time goes faster than any clock: a source that was silent goes by the clock, and is late.
STEP_MS = 60_000


class Site:
    """A broker with a disk of its own: `url` is where it is at the moment."""

    def __init__(self, folder, name):
        self.folder, self.name = folder / name, name
        self.folder.mkdir()
        self.flags = ["--set", f"broker.data_dir={self.folder}/data"]
        self.sent = 0

    def __enter__(self):
        self.broker = RunningBroker(self.folder, CONFIG, *self.flags).__enter__()
        return self

    def __exit__(self, *_):
        self.broker.__exit__()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.broker.port('http')}"

    def staying(self):
        """Before it begins: at an address that stays the same whatever happens."""
        self.flags += ["--set", f"http.port={free_ports(1)[0]}"]
        return self

    def kill(self):
        """Kill it, and have it back with its disk."""
        self.broker.process.kill()
        self.broker.ended()
        self.__exit__()
        self.__enter__()

    def submit(self):
        path = "/v1/subscriptions?client=station-team"
        status, reply = self.broker.get(path, "POST", TEXT.encode())
        assert status == 200, reply

    def feed(self, count):
        """So many readings, every second of which is a result; wait until they are in the log."""

        async def publish():
            async with client(self.broker.port()) as one:
                for _ in range(count):
                    n = self.sent
                    self.sent += 1
                    reading = {"id": f"{self.name}-{n}", "timestamp": FIRST_MS + STEP_MS * n}
                    reading |= {"value": -1.0 - n if n % 2 else 1.0, "location": self.name}
                    topic = f"headwater/events/AirTemp/{self.name}"
                    await one.publish(topic, json.dumps(reading), qos=1)

        asyncio.run(publish())
        end = 0
        while self.count() < self.sent // 2:
            end = self.broker.get(f"/v1/log/offsets?after={end}&wait=5")[1]["end"]

    def count(self):
        return len(self.ids())

    def ids(self):
        """Of all results, as its log has them."""
        standing = self.broker.get("/v1/log/offsets")[1]
        path = f"/v1/log?from={standing['earliest']}&to={standing['end']}"
        return [row["result"]["id"] for row in self.broker.get(path)[1]["rows"]]


@pytest.mark.timeout(90)
def test_results_of_two_brokers_one_of_which_is_killed_on_the_way(tmp_path):
    with Site(tmp_path, "north") as north, Site(tmp_path, "south") as south:
        for site in (north, south):
            site.submit()
            site.feed(20)
        with Stream({"a": north, "b": south}, consumer="test") as stream:
            rows = stream.rest()
            stream.reader.commit(stream.offset)
        assert len(numbers(rows)) == 20
        values = sorted(json.loads(row["values"])["value"] for row in rows)
        assert values == sorted(2 * [-1.0 - n for n in range(1, 20, 2)])
        assert {row["location"] for row in rows} == {"north", "south"}
        assert {row["end"].timestamp() * 1000 - FIRST_MS for row in rows} == {
            STEP_MS * n for n in range(1, 20, 2)
        }
        consumers = north.broker.get("/v1/log/consumers")[1]["consumers"]
        assert [(one["consumer"], one["offset"]) for one in consumers] == [
            ("test", _next(stream.offset["a"]))
        ]
        offset, before = stream.offset, rows
        south.feed(10)
        south.broker.process.kill()
        south.broker.ended()
        south.__exit__()
        with south:  # the same disk, another port
            south.feed(10)
            with Stream({"a": north, "b": south}) as stream:
                stream.offset = offset
                rows = stream.rest()
            assert {row["broker"] for row in rows} == {"b"}
            assert len(rows) == 10
            with Stream({"a": north, "b": south}) as anew:
                everything = anew.rest()
            key = str
            assert sorted(map(key, everything)) == sorted(map(key, before + rows))


def _next(text):
    return int(text.split(":")[1])


@pytest.mark.timeout(60)
def test_retention_that_passed_a_reader_is_told_with_its_range(tmp_path):
    with Site(tmp_path, "north") as north:
        north.submit()
        north.feed(10)
        with Stream({"a": north}) as stream:
            stream.rest()
    north.flags += ["--set", "data.age_ms_max=1"]
    place = _next(stream.offset["a"])
    with north:
        deadline = time.monotonic() + PATIENCE_S
        while (standing := north.broker.get("/v1/log/offsets")[1])["earliest"] == 0:
            assert time.monotonic() < deadline, "nothing was taken"
        with Stream({"a": north}) as later:
            later.offset = {"a": f"{standing['epoch']}:0"}
            with pytest.raises(LostError, match=f"offsets 0 to {standing['earliest'] - 1} "):
                later.rest()
        assert place == standing["end"]
