"""What joins the core to a process: time, the log, requests, waking, faults."""

import asyncio
import json
import logging
import threading

import pytest

from broker import logs
from broker.config import LogSection
from broker.core.broker import Broker, BrokerOptions
from broker.core.effects import Acknowledge, Emit, Publish
from broker.core.messages import (
    CancelRequested,
    Payload,
    RequestRefused,
    SourceAdvertised,
    SpecificationSubmitted,
    Started,
    Woken,
)
from broker.core.recovery.durable_state import RestorableBroker
from broker.driver import requests as requesting
from broker.driver.requests import Requests
from broker.driver.runner import Runner, WallClock
from broker.network.effects import Note
from broker.rights.current import CurrentRights
from broker.rights.quotas import QuotaLedger
from broker.rights.table import RightsTable
from tests.broker.core.machine import HOT

PATIENCE_S = 10


class Clocks:
    """A wall clock and a steady one that a test sets."""

    def __init__(self):
        self.wall_s = 1_000.0
        self.steady_s = 5.0

    def clock(self):
        return WallClock(lambda: self.wall_s, lambda: self.steady_s, wait_s=60)

    def go(self, seconds):
        self.wall_s += seconds
        self.steady_s += seconds


def looked(clock):
    note = clock.look()
    return note and (note.event, note.fields.get("by_ms", note.fields.get("jumped_by_ms")))


def test_time_goes_by_the_steady_clock_whatever_the_wall_clock_does():
    """Silence and lateness are judged by it: a jump would make right events late."""
    clocks = Clocks()
    clock = clocks.clock()
    assert clock.now_ms() == 1_000_000
    clocks.go(1)
    assert clock.now_ms() == 1_001_000
    clocks.wall_s += 7_200
    assert clock.now_ms() == 1_001_000
    assert looked(clock) == ("clock_jumped", 7_200_000)
    clocks.go(2)
    assert looked(clock) is None
    assert (clock.now_ms(), clock.ahead_ms, clock.gap_ms) == (1_003_000, 0, 7_200_000)
    clocks.wall_s -= 7_200
    assert looked(clock) == ("clock_came_back", 7_200_000)
    assert (clock.now_ms(), clock.ahead_ms, clock.gap_ms, clock.jumps) == (1_003_000, 0, 0, 1)


@pytest.mark.parametrize("by_s", [7_200, -7_200])
def test_a_wall_clock_that_stays_where_it_jumped_to_is_believed(by_s):
    """Clocks are also put right: then readings are stamped rightly, and time goes on."""
    clocks = Clocks()
    clock = clocks.clock()
    clocks.wall_s += by_s
    assert looked(clock) == ("clock_jumped", by_s * 1000)
    clocks.go(59)
    assert looked(clock) is None
    clocks.go(2)
    assert looked(clock) == ("clock_followed", by_s * 1000)
    assert (clock.now_ms(), clock.ahead_ms) == (1_061_000, by_s * 1000)
    clocks.go(1)
    assert looked(clock) is None


def test_a_clock_that_jumps_to_and_fro_is_told_of_each_time_and_not_believed():
    clocks = Clocks()
    clock = clocks.clock()
    for by_s in (100, 100, -50):
        clocks.wall_s += by_s
        assert looked(clock)[0] == "clock_jumped"
        clocks.go(50)
        assert looked(clock) is None
    assert (clock.ahead_ms, clock.jumps) == (0, 3)


def test_small_corrections_are_followed_in_silence():
    clocks = Clocks()
    clock = clocks.clock()
    for _ in range(10):
        clocks.wall_s += 0.4
        clocks.go(1)
        assert looked(clock) is None
    assert (clock.ahead_ms, clock.jumps) == (4_000, 0)


def test_time_goes_on_from_where_an_ended_process_was():
    """At a start the wall clock is believed: no steady clock outlasts a process."""
    clocks = Clocks()
    clock = clocks.clock()
    clock.not_before(999_000)
    assert (clock.now_ms(), clock.ahead_ms) == (1_000_000, 0)
    clock.not_before(1_500_000)
    assert (clock.now_ms(), clock.ahead_ms) == (1_500_000, -500_000)
    clocks.go(2)
    assert looked(clock) is None
    assert (clock.now_ms(), clock.ahead_ms) == (1_502_000, -500_000)


# --- the log ----------------------------------------------------------------------------------


@pytest.fixture
def written(capsys):
    """The lines that a call writes, in the form given."""
    root = logging.getLogger()
    before = root.handlers[:], root.level

    def write(form, call, level="info"):
        logs.set_up(LogSection(format=form, level=level), "site-1")
        call()
        return capsys.readouterr().err.splitlines()

    yield write
    root.handlers[:], level = before[0], before[1]
    root.setLevel(level)


def test_a_line_tells_time_level_broker_event_and_particulars(written):
    note = Note(
        "warning", "late", {"source": "t7", "said": 'two words, "quoted"\nand more', "n": 3}
    )
    (line,) = written("text", lambda: logs.write(note))
    time, rest = line.split(" ", 1)
    assert len(time) == len("2026-01-02T03:04:05.678Z")
    assert time.endswith("Z")
    said = r'"two words, \"quoted\"\nand more"'
    assert rest == f"WARNING site-1 late source=t7 said={said} n=3"
    (line,) = written("json", lambda: logs.write(note))
    told = json.loads(line)
    assert told.pop("time").endswith("Z")
    assert told == {"level": "warning", "broker": "site-1", "event": "late", **note.fields}


def test_a_line_about_another_broker_is_still_told_by_this_one(written):
    """A search of the log by `broker` finds the lines of that broker, and no others."""
    note = Note("info", "waited_for", {"broker": "pi3", "time": 5, "count": 1})
    (line,) = written("json", lambda: logs.write(note))
    told = json.loads(line)
    assert told.pop("time").endswith("Z")
    assert told == {
        "level": "info",
        "broker": "site-1",
        "event": "waited_for",
        "about_broker": "pi3",
        "about_time": 5,
        "count": 1,
    }
    (line,) = written("text", lambda: logs.write(note))
    assert "site-1 waited_for broker=pi3" in line


def test_a_traceback_is_one_line_too(written):
    def fail():
        try:
            raise RuntimeError("planted")
        except RuntimeError:
            logging.getLogger("broker.mqtt.driver").exception("it failed")

    for form in ("text", "json"):
        (line,) = written(form, fail)
        assert "mqtt" in line
        assert "planted" in line


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_line_without_an_error_is_a_line_however_that_is_said(written, form):
    """`exc_info` is False for one library and None for another."""
    for said in (None, False, ()):
        log = logging.getLogger("broker.mqtt.driver")
        (line,) = written(form, lambda log=log, said=said: log.warning("closed", exc_info=said))
        assert "closed" in line
        assert "traceback" not in line.lower()


def test_lines_below_the_level_are_not_written_but_an_announcement_is(written):
    def say():
        logs.tell("info", "unimportant")
        logs.announce("ready", mqtt="127.0.0.1:1")

    lines = written("text", say, level="error")
    assert [line.split()[3:] for line in lines] == [["ready", "mqtt=127.0.0.1:1"]]


def test_a_library_repeats_itself_a_few_times_only(written):
    def say():
        for number in range(100):
            logging.getLogger("asyncio").warning("again %d", number)
        for _ in range(10):
            logs.tell("info", "installed")

    lines = written("text", say)
    assert sum("again" in line for line in lines) == logs.SAME_MAX
    assert sum("installed" in line for line in lines) == 10


# --- the runner -------------------------------------------------------------------------------


class Outside:
    """Keeps what it is to carry out."""

    def __init__(self):
        self.effects = []
        self.failed = []
        self.held = []
        self.replies = {}
        self.changed = asyncio.Event()

    def keep(self, effect):
        self.effects.append(effect)
        self.changed.set()

    async def until(self, condition):
        """Wait until it holds of the effects."""
        while not condition():
            self.changed.clear()
            await self.changed.wait()

    publish = emit = acknowledge = note = keep

    def reply(self, effect):
        self.effects.append(effect)
        self.replies[effect.request] = json.loads(effect.payload)
        if isinstance(effect.reply_to, asyncio.Event):
            effect.reply_to.set()

    def fail(self, tokens):
        self.failed += tokens

    def hold(self, *, on):
        self.held.append(on)

    def of(self, kind):
        return [effect for effect in self.effects if isinstance(effect, kind)]


def submitted(request, text, answered=None):
    return SpecificationSubmitted("me", request, text, answered or "here", f"token {request}")


def payload(number, val=31):
    data = json.dumps({"val": val, "id": str(number)}).encode()
    return Payload("Temp", "t1", data, number)


def test_payloads_of_one_flush_are_one_message_and_order_is_kept():
    async def scene():
        outside = Outside()
        runner = Runner(Broker(), outside)
        runner.handle(submitted("1", HOT))
        outside.effects.clear()
        for number in (1, 2):
            runner.add_payload(payload(number))
        runner.add(SourceAdvertised("t1", b"{}", 3))
        runner.add_payload(payload(4))
        assert outside.effects == []
        runner.flush()
        assert [one.tokens for one in outside.of(Acknowledge)] == [(1, 2), (3,), (4,)]
        assert [len(one.results) for one in outside.of(Emit)] == [2, 1]
        runner.close()

    asyncio.run(scene())


def test_what_is_put_is_handled_without_a_flush():
    async def scene():
        outside = Outside()
        runner = Runner(Broker(), outside)
        runner.put(Started())
        await asyncio.sleep(0)
        assert len(outside.of(Publish)) == 1
        runner.close()

    asyncio.run(scene())


def test_while_held_everything_waits_and_nobody_is_read():
    async def scene():
        outside = Outside()
        runner = Runner(Broker(), outside)
        runner.hold()
        runner.hold()
        runner.put(Started())
        runner.flush()
        runner.release()
        await asyncio.sleep(0)
        assert outside.effects == []
        runner.release()
        await asyncio.sleep(0)
        assert len(outside.of(Publish)) == 1
        assert outside.held[0] is True
        assert outside.held[-1] is False
        runner.close()

    asyncio.run(scene())


def test_while_paused_the_core_is_not_woken_and_then_at_once():
    async def scene():
        outside = Outside()
        runner = Runner(Broker(), outside)
        runner.handle(SourceAdvertised("t1", b'{"ttl_s": 0.01}', None))
        runner.pause()
        for _ in range(10):
            await asyncio.sleep(0.01)
        assert len(outside.of(Publish)) == 1
        runner.resume()
        async with asyncio.timeout(PATIENCE_S):
            await outside.until(lambda: len(outside.of(Publish)) == 2)
        runner.close()

    asyncio.run(scene())


def test_the_core_is_woken_when_it_wants():
    async def scene():
        outside = Outside()
        core = Broker()
        runner = Runner(core, outside)
        runner.handle(SourceAdvertised("t1", b'{"ttl_s": 0.05}', None))
        async with asyncio.timeout(PATIENCE_S):
            await outside.until(lambda: len(outside.of(Publish)) == 2)
        assert outside.of(Publish)[1].publications[0].payload == b""
        runner.close()

    asyncio.run(scene())


def test_a_fault_of_the_core_is_told_counted_and_survived(monkeypatch, caplog):
    async def scene():
        outside = Outside()
        core = Broker()
        runner = Runner(core, outside)
        work = core.work

        def failing(message, now):
            if isinstance(message, SpecificationSubmitted | Woken) or hasattr(message, "payloads"):
                raise RuntimeError("planted")
            return (yield from work(message, now))

        monkeypatch.setattr(core, "work", failing)
        runner.add_payload(payload(7))
        runner.flush()
        assert (runner.faults, outside.failed) == (1, [7])
        runner.handle(submitted("1", HOT))
        assert outside.replies["1"]["errors"][0]["code"] == "HW509"
        assert outside.failed == [7, "token 1"]
        runner.handle(Started())
        assert len(outside.of(Publish)) == 1
        runner.close()

    asyncio.run(scene())
    assert "planted" in caplog.text


def test_what_waits_behind_a_request_is_handled_though_the_core_cannot_even_refuse_it(monkeypatch):
    async def scene():
        outside = Outside()
        core = Broker()
        runner = Runner(core, outside)
        work = core.work

        def failing(message, now):
            if type(message) in (RequestRefused, SpecificationSubmitted):
                raise RuntimeError("planted")
            return (yield from work(message, now))

        monkeypatch.setattr(core, "work", failing)
        runner.add(submitted("1", HOT))
        runner.add(Started())
        runner.flush()
        assert (runner.faults, len(outside.of(Publish))) == (2, 1)
        runner.close()

    asyncio.run(scene())


# --- requests ---------------------------------------------------------------------------------


OPEN = CurrentRights(RightsTable(), "headwater")


def with_requests(scene):
    """Runs a scene with a runner and a line of requests that is served."""

    async def run():
        outside = Outside()
        runner = Runner(RestorableBroker(BrokerOptions()), outside)
        requests = Requests(runner, runner.core.limits, OPEN, QuotaLedger())
        serving = asyncio.create_task(requests.serve())
        try:
            async with asyncio.timeout(PATIENCE_S):
                await scene(outside, runner, requests)
        finally:
            runner.close()
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(run())


def test_while_paused_requests_wait_in_their_line():
    async def scene(outside, runner, requests):
        done = asyncio.Event()
        runner.pause()
        requests.put(submitted("1", HOT, done))
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert outside.replies == {}
        runner.resume()
        await done.wait()
        assert outside.replies["1"]["ok"] is True

    with_requests(scene)


def test_requests_are_answered_in_their_order_whatever_they_cost():
    async def scene(outside, runner, requests):
        done = asyncio.Event()
        requests.put(submitted("1", HOT))
        requests.put(CancelRequested("me", "2", "Hot", "here"))
        requests.put(submitted("3", "nonsense"))
        requests.put(CancelRequested("me", "4", "Hot", done))
        await done.wait()
        assert [outside.replies[r]["ok"] for r in "1234"] == [True, True, False, False]
        assert list(outside.replies) == ["1", "2", "3", "4"]

    with_requests(scene)


def test_who_finds_the_line_full_is_told(monkeypatch):
    monkeypatch.setattr(requesting, "WAITING_MAX", 2)

    async def scene(outside, runner, requests):
        done = asyncio.Event()
        for number in range(1, 3):
            requests.put(submitted(str(number), HOT))
        requests.put(submitted("3", HOT, done))
        await asyncio.sleep(0)
        requests.put(submitted("4", HOT))
        runner.settle()  # what is held is only held for a while
        assert outside.replies["3"]["errors"][0]["code"] == "HW508"
        assert outside.replies["4"]["errors"][0]["code"] == "HW508"

    with_requests(scene)


def test_a_long_text_does_not_hold_the_others_for_long(monkeypatch):
    """Events wait for it a little, then go on without."""
    monkeypatch.setattr(requesting, "HOLD_S_MAX", 0.05)
    checking, go_on = threading.Event(), threading.Event()
    check = requesting.check_text

    def slow(text, **tables):
        checking.set()
        assert go_on.wait(PATIENCE_S)
        return check(text, **tables)

    monkeypatch.setattr(requesting, "check_text", slow)

    async def scene(outside, runner, requests):
        done = asyncio.Event()
        requests.put(submitted("1", HOT, done))
        runner.put(Started())
        await asyncio.to_thread(checking.wait, PATIENCE_S)
        await outside.until(lambda: outside.of(Publish))
        assert outside.held == [True, False]
        assert outside.replies == {}
        go_on.set()
        await done.wait()
        assert outside.replies["1"]["ok"] is True
        assert outside.held == [True, False]

    try:
        with_requests(scene)
    finally:
        go_on.set()


def test_a_checker_that_fails_is_told_and_the_next_request_is_served(monkeypatch, caplog):
    check = requesting.check_text

    def failing(text, **tables):
        if "nonsense" in text:
            raise RuntimeError("planted")
        return check(text, **tables)

    monkeypatch.setattr(requesting, "check_text", failing)

    async def scene(outside, runner, requests):
        done = asyncio.Event()
        requests.put(submitted("1", "nonsense"))
        requests.put(submitted("2", HOT, done))
        await done.wait()
        assert outside.replies["1"]["errors"][0]["code"] == "HW509"
        assert outside.replies["2"]["ok"] is True

    with_requests(scene)
    assert "planted" in caplog.text
