"""A broker is what its journal says: handled again it has the same state, results and offsets."""

import json

import msgspec
import pytest

from broker.core.broker import BrokerOptions
from broker.core.effects import Acknowledge, Append, Emit, Enlist, Publish, Reply
from broker.core.messages import (
    CancelRequested,
    EventsReceived,
    Payload,
    RequestRefused,
    SourceAdvertised,
    SourceWithdrawn,
    SpecificationSubmitted,
    Started,
    Stopped,
    TopicRefused,
    Woken,
)
from broker.core.recovery.durable import CoreFaultError, DurableBroker, head_of
from broker.core.recovery.durable_listed import RecoveryError
from broker.core.recovery.records import Record
from broker.core.refusals import NOT_TEXT
from broker.engine.limits import Limits
from broker.engine.runtime.matcher import Matcher
from broker.network.effects import Note
from tests.broker.core.machine import DECLARED, HOT, NOW, event, subscription

PAIR = DECLARED + subscription(
    "Rise", "Temp(val < 10) as a then[..30 s] Temp(val > 30) as b", "anna"
)


class Disk:
    """A durable broker, and all that it had written down."""

    def __init__(self, **options):
        self.options = BrokerOptions(**{"lateness_ms": 0, **options})
        self.limits = Limits()
        self.records = []
        self.results = []
        self.listed = {}
        self.snapshot = None
        self.now = NOW
        self.start()

    def start(self, outbox_end=None, now=None, **options):
        if options:
            self.options = msgspec.structs.replace(self.options, **options)
        end = len(self.results) if outbox_end is None else outbox_end
        self.now = now or self.now
        self.broker, effects = DurableBroker.recover(
            self.options,
            self.limits,
            self.snapshot,
            self.records,
            end,
            self.now,
            list(self.listed.values()),
        )
        return self.carry_out(effects)

    def carry_out(self, effects):
        for effect in effects:
            if isinstance(effect, Append):
                assert effect.number == (self.records[-1].number if self.records else 0) + 1
                self.records.append(Record(effect.number, effect.data))
            elif isinstance(effect, Emit):
                for one in effect.results:
                    assert one.offset >= len(self.results) or one == self.results[one.offset]
                    if one.offset >= len(self.results):
                        assert one.offset == len(self.results)
                        self.results.append(one)
            elif isinstance(effect, Enlist):
                for key in (*effect.leaving, *(one.key for one in effect.coming)):
                    self.listed.pop(key, None)
                self.listed |= {one.key: one for one in effect.coming}
            if isinstance(effect, Emit | Acknowledge | Enlist | Reply):
                assert effect.after == (self.records[-1].number if self.records else 0)
        self.broker.check_invariants()
        return effects

    def tell(self, message):
        return self.carry_out(self.broker.handle(message, self.now))

    def send(self, *events, source="t1", token="token"):
        data = json.dumps(events).encode()
        return self.tell(EventsReceived((Payload("Temp", source, data, token),)))

    def submit(self, text, client="anna"):
        return self.tell(SpecificationSubmitted(client, "1", text, "here", "token"))

    def said(self):
        return [json.loads(one.payload) for one in self.results]


def kinds(effects):
    return [type(effect).__name__ for effect in effects]


def test_what_changes_something_is_written_down_first_and_promises_wait_for_it():
    disk = Disk()
    assert kinds(disk.submit(HOT)) == [
        "Append",
        "Enlist",
        "Reply",
        "Reply",
        "Acknowledge",
        "Note",
    ]
    assert kinds(disk.send(event(1, 31))) == ["Append", "Emit", "Acknowledge"]
    assert kinds(disk.send(event(2, 1))) == ["Append", "Acknowledge"]
    advertised = json.dumps({"source": "t1"}).encode()
    assert kinds(disk.tell(SourceAdvertised("t1", advertised)))[:2] == ["Append", "Publish"]
    assert kinds(disk.tell(Woken())) == ["Append"]
    cancelled = disk.tell(CancelRequested("anna", "2", "Hot", "here"))
    assert kinds(cancelled)[:3] == ["Append", "Enlist", "Reply"]


def test_what_changes_nothing_is_not_written_down_and_waits_for_what_was():
    disk = Disk()
    disk.submit(HOT)
    count = len(disk.records)
    assert "Reply" in kinds(disk.submit(HOT))
    assert "Reply" in kinds(disk.submit("nonsense"))
    disk.tell(CancelRequested("anna", "2", "Nobody's", "here"))
    disk.tell(RequestRefused("anna", "2", NOT_TEXT, "here"))
    disk.tell(TopicRefused("nowhere", b"", "token"))
    disk.tell(Started())
    disk.tell(Stopped())
    assert len(disk.records) == count


def test_offsets_ascend_by_one_from_0():
    disk = Disk()
    disk.submit(HOT)
    for at in range(1, 6):
        disk.send(*(event(10 * at + i, 31, id=f"{at}-{i}") for i in range(at)))
    assert [one.offset for one in disk.results] == list(range(15))


@pytest.mark.parametrize("with_snapshot", [False, True])
def test_a_process_goes_on_where_the_other_ended(with_snapshot):
    disk = Disk()
    disk.submit(PAIR)
    disk.send(event(1, 5, id="a"))
    if with_snapshot:
        disk.snapshot = disk.broker.snapshot()
    disk.start()
    disk.send(event(2, 31, id="b"))
    assert [one["events"] for one in disk.said()] == [{"a": ["a"], "b": ["b"]}]


@pytest.mark.parametrize("with_snapshot", [False, True])
def test_an_event_that_was_taken_in_is_known_after_a_crash(with_snapshot):
    disk = Disk(lateness_ms=1_000)
    disk.submit(HOT)
    disk.send(event(1, 31, id="a"))
    if with_snapshot:
        disk.snapshot = disk.broker.snapshot()
    disk.start()
    disk.send(event(1, 31, id="a"), event(2, 31, id="b"))
    assert [one["events"]["Temp"] for one in disk.said()] == [["a"], ["b"]]
    assert disk.broker.ledger.events.dropped == {"repeat": 1}


def test_results_that_the_outbox_lacks_come_again_as_they_were():
    disk = Disk()
    disk.submit(HOT)
    for at in range(1, 5):
        disk.send(event(at, 31, id=f"e{at}"))
    before, disk.results = disk.results, disk.results[:2]
    effects = disk.start()
    assert kinds(effects) == ["Append", "Emit"]
    assert disk.results == before


@pytest.mark.parametrize("of_before", [False, True])
def test_a_text_that_an_earlier_version_replaced_began_anew_and_does_so_again(of_before):
    """Else results come behind a crash that nobody got, under the offsets of others."""
    disk = Disk()
    disk.submit(PAIR)
    disk.send(event(1, 5, id="a"))
    disk.submit(PAIR.replace("seq 1", "seq 2"))
    if of_before:
        *fields, keeps_state, _, _, _ = msgspec.msgpack.decode(disk.records[-1].data)
        assert keeps_state is True
        disk.records[-1] = Record(disk.records[-1].number, msgspec.msgpack.encode(fields))
    disk.start()
    disk.send(event(2, 31, id="b"))
    whole = {"a": ["a"], "b": ["b"]}
    assert [one["events"] for one in disk.said()] == ([] if of_before else [whole])
    # What comes to this version goes on, and so it does when it is handled again.
    disk.send(event(40_000, 5, id="c"))
    disk.submit(PAIR.replace("seq 1", "seq 3"))
    disk.start()
    disk.send(event(41_000, 31, id="d"))
    assert [one["events"] for one in disk.said()[not of_before :]] == [{"a": ["c"], "b": ["d"]}]


def test_retained_advertisements_come_again_and_withdrawn_ones_do_not():
    disk = Disk()
    for source in ("t1", "t2"):
        disk.tell(SourceAdvertised(source, json.dumps({"source": source, "x": 1}).encode()))
    disk.snapshot = disk.broker.snapshot()
    disk.tell(SourceWithdrawn("t1"))
    _, publish = disk.start()
    assert isinstance(publish, Publish)
    (one,) = publish.publications
    assert (one.topic, one.payload, one.retain) == ("sources/t2", b'{"source": "t2", "x": 1}', True)


def test_nothing_is_answered_a_second_time():
    disk = Disk()
    disk.submit(HOT)
    disk.send(event(1, 31))
    assert set(kinds(disk.start(outbox_end=0))) == {"Append", "Emit"}


def test_a_snapshot_tells_what_it_stands_for():
    disk = Disk()
    disk.submit(HOT)
    disk.send(event(1, 31))
    head = head_of(disk.broker.snapshot())
    assert (head.number, head.outbox_end) == (len(disk.records), 1)


def test_a_snapshot_needs_the_records_behind_it_alone():
    disk = Disk()
    disk.submit(PAIR)
    disk.send(event(1, 5, id="a"))
    disk.snapshot = disk.broker.snapshot()
    number = head_of(disk.snapshot).number
    disk.send(event(2, 31, id="b"))
    disk.records = [one for one in disk.records if one.number > number]
    disk.results.clear()
    disk.start()
    assert len(disk.results) == 1


def test_what_does_not_belong_together_is_refused_with_a_sentence():
    disk = Disk()
    disk.submit(HOT)
    for at in range(1, 4):
        disk.send(event(at, 31, id=f"e{at}"))
    with pytest.raises(RecoveryError, match="the outbox ends at 4"):
        disk.start(outbox_end=4)
    disk.snapshot = disk.broker.snapshot()
    with pytest.raises(RecoveryError, match="results before 3, and the outbox ends at 2"):
        disk.start(outbox_end=2)
    disk.snapshot = None
    whole = disk.records
    disk.records = whole[:2] + whole[3:]
    with pytest.raises(RecoveryError, match="record 4 of the journal was found where 3 is to come"):
        disk.start()
    disk.records = [*whole, Record(len(whole) + 1, b"\xc1")]
    with pytest.raises(RecoveryError, match="cannot be read"):
        disk.start()


def test_without_a_journal_results_go_on_behind_those_that_are_there():
    disk = Disk()
    disk.submit(HOT)
    disk.send(event(1, 31))
    disk.records, disk.listed = [], {}
    effects = disk.start()
    assert [one.event for one in effects if isinstance(one, Note)] == ["journal_missing"]
    disk.submit(HOT)
    disk.send(event(2, 31))
    assert [one.offset for one in disk.results] == [0, 1]


def test_a_newer_snapshot_is_refused_with_a_sentence(monkeypatch):
    disk = Disk()
    with monkeypatch.context() as newer:
        newer.setattr("broker.core.recovery.durable.SNAPSHOT_VERSION", 3)
        disk.snapshot = disk.broker.snapshot()
    with pytest.raises(RecoveryError, match="a newer one wrote it"):
        disk.start()
    disk.snapshot = b"\x93\x01\x02"
    with pytest.raises(RecoveryError, match="no snapshot"):
        disk.start()


def test_a_snapshot_of_the_release_before_is_read(monkeypatch):
    """Windows that were open go on: what is known of their events has not changed."""
    disk = Disk()
    disk.submit(
        DECLARED + "define Mean(mean) aggr every 10 s detect Temp assign mean = Avg(Temp.val)\n"
        "subscription Means from anna to log detect Mean"
    )
    disk.send(event(1_000, 10), event(2_000, 20))
    with monkeypatch.context() as older:
        older.setattr("broker.core.recovery.durable.SNAPSHOT_VERSION", 1)
        disk.snapshot = disk.broker.snapshot()
    disk.start()
    disk.send(event(12_000, 1))
    (found,) = disk.said()
    assert (found["start"] % 10_000, found["end"] % 10_000) == (9_999, 9_999)
    assert found["values"] == {"Mean": {"mean": 15}}


def test_other_settings_hold_from_the_process_on_that_has_them():
    disk = Disk(lateness_ms=0)
    disk.submit(HOT)
    disk.send(event(1_000, 31, id="a"))
    disk.send(event(500, 31, id="late"))
    disk.start(lateness_ms=2_000)
    disk.send(event(3_000, 1))
    disk.send(event(1_500, 31, id="in time"))
    disk.send(event(3_500, 1))
    assert [one["events"]["Temp"] for one in disk.said()] == [["a"], ["in time"]]
    results, disk.results = disk.results, []
    disk.start(lateness_ms=0)
    assert disk.results == results


def test_what_other_settings_let_be_decided_waits_for_no_further_event():
    pattern = "[recent] Temp(val < 10) as a and Temp(val > 30) as b within 30 s"
    disk = Disk(lateness_ms=60_000)
    disk.submit(DECLARED + subscription("Both", pattern))
    disk.send(event(1, 5, id="a"), event(2, 31, id="b"), event(30_000, 20, id="c"))
    assert disk.said() == []
    disk.start(lateness_ms=0)
    wake = disk.broker.next_wake()
    assert wake is not None
    disk.now = wake
    disk.tell(Woken())
    assert [one["events"] for one in disk.said()] == [{"a": ["a"], "b": ["b"]}]
    assert disk.broker.next_wake() is None or disk.broker.next_wake() > wake + 1


def test_a_subscription_means_what_its_table_said_when_it_was_submitted():
    tables = {"limits.csv": "place,top\nhall,30\n"}
    text = (
        DECLARED + 'table Limits from "limits.csv" key place\n'
        "subscription Over seq 1 from anna to alerts\n"
        "detect Temp as t where t.val > Limits[t.location].top\n"
    )
    disk = Disk(tables=tables)
    reply = next(one for one in disk.submit(text) if isinstance(one, Reply))
    if not json.loads(reply.payload)["ok"]:
        pytest.fail(reply.payload.decode())
    disk.start(tables={"limits.csv": "place,top\nhall,99\n"})
    disk.snapshot = disk.broker.snapshot()
    disk.start(tables={})
    disk.send(event(1, 31, id="a", location="hall"))
    assert [one["events"]["t"] for one in disk.said()] == [["a"]]


def test_the_time_without_a_process_is_no_silence():
    """A source that could not send for an hour is not taken to have gone on."""
    disk = Disk(idle_timeout_ms=5_000)
    disk.submit(HOT)
    disk.send(event(0, 1, id="a", source="t1"))
    disk.send(event(0, 1, id="b"), source="t2")
    disk.start(now=NOW + 3_600_000)
    disk.send(event(1, 31, id="c"), source="t2")
    disk.send(event(2, 31, id="d"))
    assert disk.broker.ledger.events.dropped == {}
    assert len(disk.results) == 2


def test_what_is_not_written_down_leaves_no_trace_in_a_snapshot():
    """Else a process from a snapshot would count silence from another time on than others."""
    disk = Disk(idle_timeout_ms=5_000)
    disk.submit(HOT)
    disk.send(event(0, 1))
    before = disk.broker.snapshot()
    disk.now += 60_000
    disk.submit(HOT)
    disk.tell(TopicRefused("nowhere", b""))
    disk.tell(Started())

    def plain(data):
        found = msgspec.msgpack.decode(data)
        del found["state"]["ledger"]["notes"]
        return found

    assert plain(disk.broker.snapshot()) == plain(before)


def test_a_clock_that_was_set_back_is_held():
    disk = Disk()
    disk.start(now=NOW - 5_000)
    disk.submit(HOT)
    disk.send(event(0, 31))
    assert disk.said()[0]["detected_at"] == NOW


def test_a_message_on_which_the_core_fails_fails_again(monkeypatch):
    disk = Disk()
    disk.submit(PAIR)
    disk.send(event(1, 5, id="a"))
    push = Matcher.push

    def failing(self, events, *given):
        results = yield from push(self, events, *given)
        if any(one.id == "poison" for one in events):
            raise ZeroDivisionError
        return results

    monkeypatch.setattr(Matcher, "push", failing)
    with pytest.raises(CoreFaultError) as caught:
        disk.send(event(2, 6, id="poison"))
    disk.carry_out(caught.value.effects)
    disk.send(event(3, 31, id="b"))
    results = list(disk.results)
    assert len(results) == 2
    disk.results.clear()
    disk.start()
    assert disk.results == results
