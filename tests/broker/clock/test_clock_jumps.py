"""A wall clock that jumps makes no right event late, in the core and in a real process."""

import asyncio
import json
import os
import time
from random import Random

import pytest

from broker.core.broker import BrokerOptions
from broker.core.effects import Append, Emit, Publish
from broker.core.messages import ClockSet, EventsReceived, Payload, SpecificationSubmitted
from broker.core.recovery.durable import DurableBroker
from broker.core.recovery.records import Record
from broker.engine.limits import Limits
from tests.broker.running import CONFIG, PATIENCE_S, ROOT, RunningBroker, client

HOUR_MS = 3_600_000
NOW = 1_767_225_600_000
COUNTED = """
event Temp(val: float)
subscription Each from anna to alerts
detect Temp(val > 0)
"""

# Put in the way of a broker's process: its time of day is off by what a file says.
SHIFTED = """
import os, time
_time, _file = time.time, os.environ["CLOCK_FILE"]
def shifted():
    try:
        with open(_file) as file:
            return _time() + float(file.read() or 0)
    except OSError:
        return _time()
time.time = shifted
"""


class Core:
    """A durable core, what it wrote down, and what it told."""

    def __init__(self):
        self.records, self.results, self.late = [], [], 0
        self.core, effects = self.recovered(None, [], NOW)
        self.carry_out(effects)
        self.now = NOW

    @staticmethod
    def recovered(snapshot, records, now, outbox_end=0):
        options = BrokerOptions(lateness_ms=0, idle_timeout_ms=60_000)
        return DurableBroker.recover(options, Limits(), snapshot, records, outbox_end, now)

    def carry_out(self, effects):
        for effect in effects:
            match effect:
                case Append(number, data):
                    self.records.append(Record(number, data))
                case Emit(results):
                    self.results += [json.loads(one.payload) for one in results]
                case Publish(publications):
                    self.late += sum(one.topic.startswith("late/") for one in publications)

    def tell(self, message):
        self.carry_out(self.core.handle(message, self.now))

    def send(self, source="t1", **said):
        data = json.dumps({"val": 1, **said}).encode()
        self.tell(EventsReceived((Payload("Temp", source, data),)))


def test_readings_are_stamped_with_the_time_of_day_and_silence_goes_by_the_other():
    """A source that was heard a second ago is not idle because somebody set a clock."""
    one = Core()
    one.tell(SpecificationSubmitted("anna", "1", COUNTED, "here"))
    one.send(id="a", timestamp=NOW)
    one.now += 1_000
    one.tell(ClockSet(2 * HOUR_MS))
    one.send("t2", id="b")
    one.send(id="c", timestamp=NOW + 1)
    assert [result["end"] for result in one.results] == [NOW, NOW + 1_000 + 2 * HOUR_MS, NOW + 1]
    assert one.results[1]["detected_at"] == NOW + 1_000 + 2 * HOUR_MS
    assert one.late == 0


def test_what_lies_in_the_future_is_judged_by_the_time_of_day():
    """A broker that began before its clock was right takes what right sensors send."""
    one = Core()
    one.tell(SpecificationSubmitted("anna", "1", COUNTED, "here"))
    one.send(id="a", timestamp=NOW + HOUR_MS)
    assert one.results == []
    one.tell(ClockSet(HOUR_MS))
    one.send(id="a", timestamp=NOW + HOUR_MS)
    assert len(one.results) == 1


@pytest.mark.parametrize("seed", range(20))
def test_a_recovered_broker_has_the_time_of_day_that_it_had(seed):
    """How far the clocks are apart is a message like any other: handled again all is the same."""
    random = Random(seed)
    one = Core()
    one.tell(SpecificationSubmitted("anna", "1", COUNTED, "here"))
    snapshot, stored = None, 0
    for number in range(40):
        one.now += random.randrange(90_000)
        if random.random() < 0.2:
            one.tell(ClockSet(random.randrange(-HOUR_MS, HOUR_MS)))
        said = {} if random.random() < 0.5 else {"timestamp": one.now - random.randrange(500)}
        one.send(random.choice(["t1", "t2"]), id=str(number), **said)
        if random.random() < 0.1:
            snapshot, stored = one.core.snapshot(), len(one.results)
    again, effects = one.recovered(snapshot, one.records, one.now, stored)
    made = [each for effect in effects if isinstance(effect, Emit) for each in effect.results]
    assert [json.loads(each.payload) for each in made] == one.results[stored:]
    assert again.ledger.to_dict() == one.core.ledger.to_dict()
    assert again.core.state()["intake"]["ahead_ms"] == 0  # the next process tells its own


@pytest.fixture
def shifted(tmp_path):
    """The environment of a process with another time of day, and what sets how far it is off."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(SHIFTED)
    offset = tmp_path / "offset"
    path = os.pathsep.join([str(site), str(ROOT)])
    return {"CLOCK_FILE": str(offset), "PYTHONPATH": path}, offset.write_text


def test_a_process_whose_clock_jumps_and_comes_back_takes_all_right_events(tmp_path, shifted):
    """One source sends readings with a time and readings without; none of them may be late."""
    environ, shift_by = shifted
    flags = ["--set", f"broker.data_dir={tmp_path / 'data'}"]
    with RunningBroker(tmp_path, CONFIG, *flags, environ=environ) as running:
        assert running.get("/v1/subscriptions", "POST", COUNTED.encode())[0] in {200, 201}

        async def scene():
            async with client(running.port()) as one:
                for number in range(10):
                    if number == 3:
                        shift_by("7200")
                        await asyncio.to_thread(running.line, "clock_jumped")
                    if number == 6:
                        shift_by("0")
                        await asyncio.to_thread(running.line, "clock_came_back")
                    said = {"id": str(number), "val": 1}
                    if number % 2:
                        said["timestamp"] = int(time.time() * 1000)
                    await one.publish("headwater/events/Temp/t1", json.dumps(said), qos=1)

        asyncio.run(asyncio.wait_for(scene(), PATIENCE_S))
        status = running.get("/v1/status")[1]
        assert status["clock"] == {"ahead_ms": 0, "gap_ms": 0, "jumps": 1}
        assert (status["events"]["results"], status["events"]["dropped"]) == (10, {})
        assert "headwater_clock_jumps_total 1.0" in running.get("/metrics")[1]
        assert running.end() == 0


def test_a_clock_that_was_put_right_is_followed_by_a_process(tmp_path, shifted):
    """A board without a clock of its own begins in the past and hears the time later."""
    environ, shift_by = shifted
    shift_by("-86400")
    flags = ["--set", f"broker.data_dir={tmp_path / 'data'}", "--set", "intake.clock_wait_ms=500"]
    with RunningBroker(tmp_path, CONFIG, *flags, environ=environ) as running:
        shift_by("0")
        running.line("clock_jumped")
        a_day = pytest.approx(86_400_000, abs=2_000)
        assert running.line("clock_followed")["by_ms"] == a_day
        assert running.get("/v1/status")[1]["clock"]["ahead_ms"] == a_day
        assert running.end() == 0
