"""A broker's core among others: positions, what is kept for hosts, and what a host takes once."""

import json
from random import Random

import msgspec
import pytest

from broker.core import messages
from broker.core.broker import BrokerOptions
from broker.core.effects import Append, Emit, Publish, Reply
from broker.core.recovery.durable import DurableBroker
from broker.core.recovery.records import Record
from broker.engine.ingest.event_bytes import packed, unpacked
from broker.engine.limits import Limits
from broker.network.frames import told

TEXT = "event Temp(val: float)\nsubscription S from x to y detect Temp(val > 3)"
PAIRS = (
    "event Temp(val: float)\nsubscription S from x to y\n"
    "detect[chronicle] Temp(val > 3) as a then Temp(val < 3) as b within 10 s\n"
)
WINDY = (
    "event Temp(val: float)\nevent Wind(val: float)\nsubscription S from x to y\n"
    "detect[recent] Temp as t and Wind as w within 30 ms where t.val > w.val\n"
)
TYPES = {"Temp": {"val": "float"}}


class Core:
    """A durable core with its journal, to be opened again."""

    def __init__(self, name, **limits):
        self.options = BrokerOptions(name=name, networked=True, lateness_ms=0)
        self.limits = Limits(**limits)
        self.records, self.results, self.replies, self.late = [], [], [], []
        self.open(1_000)

    def open(self, now, snapshot=None):
        self.core, effects = DurableBroker.recover(
            self.options, self.limits, snapshot, self.records, len(self.results), now
        )
        self.core.network.origin.spreads = True
        self.perform(effects)

    def perform(self, effects):
        for effect in effects:
            match effect:
                case Append(number, data):
                    self.records.append(Record(number, data))
                case Emit(results):
                    self.results += [json.loads(one.payload) for one in results]
                case Reply():
                    self.replies.append(json.loads(effect.payload))
                case Publish(publications):
                    self.late += [one for one in publications if one.topic.startswith("late/")]

    def tell(self, message, now):
        if not isinstance(message, messages.EventsReceived | messages.SpecificationSubmitted):
            message = messages.NetworkTold(message)
        self.perform(self.core.handle(message, now))
        self.core.check_invariants()

    def submit(self, text=TEXT, now=1_001):
        self.tell(messages.SpecificationSubmitted("c", "r", text), now)
        self.tell(told.Activated((("x", "S"),), apart=True), now)

    def event(self, name, time_ms, val=5.0, now=2_000, source="t1"):
        data = json.dumps({"id": name, "timestamp": time_ms, "val": val}).encode()
        self.tell(messages.EventsReceived((messages.Payload("Temp", source, data),)), now)

    def offer(self, after, upto=None, *, whole=False, watermarks=None):
        own = self.core.network.own
        upto = own.position if upto is None else upto
        rows = [row for row in own.since(after) if row[0] <= upto]
        return told.Forwarded(
            self.options.name,
            own.life,
            after,
            upto,
            [at for at, _ in rows],
            packed([event for _, event in rows]),
            self.core.network.origin.told if watermarks is None else watermarks,
            whole,
        )

    @property
    def found(self):
        return [one["events"] for one in self.results]


def remembered(network):
    """All that must outlast a process."""
    said = network.state()["network"]
    kept = packed(unpacked(said["own"].pop("events")))  # what is left out stands for the default
    return said, kept, network._intake.clock.state()["network"]


@pytest.fixture
def pair():
    origin, host = Core("a"), Core("h")
    host.submit()
    host.tell(told.OriginNamed("a", ("Temp",)), 1_002)
    origin.tell(told.HostInterested("h", host.core.network.wanted(), None), 1_003)
    host.tell(origin.offer(0, whole=True), 1_004)
    return origin, host


def test_an_event_comes_to_a_host_once_however_often_it_is_brought(pair):
    origin, host = pair
    after = origin.core.network.own.position
    origin.event("1", 1_500)
    origin.event("2", 1_600)
    for message in (origin.offer(after), origin.offer(after), origin.offer(0, whole=True)):
        host.tell(message, 2_100)
    assert host.found == [{"Temp": ["1"]}, {"Temp": ["2"]}]


def test_what_comes_behind_a_gap_is_left_until_the_gap_is_filled(pair):
    origin, host = pair
    after = origin.core.network.own.position
    origin.event("1", 1_500)
    middle = origin.core.network.own.position
    origin.event("2", 1_600)
    host.tell(origin.offer(middle), 2_100)
    assert host.found == []
    assert host.core.network.upstream["a"].position == after
    host.tell(origin.offer(after, whole=True), 2_200)
    assert len(host.found) == 2


def test_events_are_kept_until_every_host_has_stored_them(pair):
    origin, _ = pair
    own = origin.core.network.own
    origin.tell(told.HostInterested("k", TYPES, None), 1_010)
    before = own.position
    origin.event("1", 1_500)
    origin.event("2", 1_600)
    assert len(own) == 2
    origin.tell(told.HostStored("h", own.position), 2_010)
    assert len(own) == 2
    first = own.since(before)[0][0]
    origin.tell(told.HostStored("k", first), 2_020)
    assert [event.id for _, event in own.since(0)] == ["2"]
    origin.tell(told.BrokerForgotten("k"), 2_030)
    assert len(own) == 0


def test_beyond_the_limit_the_oldest_go_and_the_host_is_told_the_gap():
    origin, host = Core("a", retained_events_max=3), Core("h")
    host.submit()
    host.tell(told.OriginNamed("a", ("Temp",)), 1_002)
    origin.tell(told.HostInterested("h", TYPES, None), 1_003)
    host.tell(origin.offer(0, whole=True), 1_004)
    for number in range(5):
        origin.event(str(number), 1_500 + number)
    own = origin.core.network.own
    assert len(own) == 3
    assert origin.core.ledger.notes["retained_lapsed"] == 2
    host.tell(origin.offer(own.floor, whole=True), 2_100)
    assert len(host.found) == 3
    assert host.core.network.upstream["a"].lost > 0
    assert host.core.ledger.notes["positions_lost"] == host.core.network.upstream["a"].lost


@pytest.mark.parametrize("snapshots", [False, True])
def test_a_restart_keeps_positions_watermarks_and_what_is_kept(pair, snapshots):
    origin, host = pair
    origin.event("1", 1_500)
    host.tell(origin.offer(host.core.network.upstream["a"].position), 2_100)
    for one in pair:
        before = remembered(one.core.network)
        one.open(3_000, one.core.snapshot() if snapshots else None)
        assert remembered(one.core.network) == before
    origin.event("2", 3_500, now=3_600)
    host.tell(origin.offer(host.core.network.upstream["a"].position), 3_700)
    assert host.found == [{"Temp": ["1"]}, {"Temp": ["2"]}]


def test_a_watermark_waits_for_every_origin_that_sends_the_type():
    origin, host = Core("a"), Core("h")
    host.submit(PAIRS)
    host.tell(told.OriginNamed("a", ("Temp",)), 1_002)
    host.event("own", 1_500)
    host.event("ahead", 9_000, val=1.0, now=9_000)
    origin.tell(told.HostInterested("h", TYPES, None), 1_003)
    origin.event("first", 1_300, val=3.0, now=9_000)
    host.tell(origin.offer(0, whole=True), 9_001)
    origin.event("afar", 1_400, now=9_000)
    origin.event("later", 9_500, val=9.0, now=9_500)
    assert host.found == []  # the origin may still have something earlier
    host.event("done", 9_600, val=3.0, now=9_600)
    assert host.found == []
    host.tell(origin.offer(host.core.network.upstream["a"].position), 9_601)
    assert host.found == [{"a": ["afar"], "b": ["ahead"]}]


def test_what_is_promised_to_others_rests_on_sources_here_alone():
    one, other = Core("a"), Core("b")
    for core, far in ((one, "b"), (other, "a")):
        core.submit(PAIRS)
        core.tell(told.OriginNamed(far, ("Temp",)), 1_002)
        core.tell(told.HostInterested(far, TYPES, None), 1_003)
    one.event("1", 1_500)
    other.event("2", 1_600, source="t2")
    assert one.core.network.origin.told == {"Temp": 1_499}
    assert other.core.network.origin.told == {"Temp": 1_599}


def test_an_event_behind_what_was_given_out_here_is_late(pair):
    origin, host = pair
    host.tell(told.BrokerForgotten("a"), 1_005)
    host.event("own", 9_000, now=9_000, source="t2")
    host.event("own 2", 9_500, now=9_500, source="t2")
    host.submit(PAIRS.replace("subscription S", "subscription T"), 9_501)
    host.event("own 3", 9_600, now=9_600, source="t2")
    host.tell(told.OriginNamed("a", ("Temp",)), 9_700)
    origin.event("old", 1_500)
    origin.event("new", 9_900, now=9_900)
    host.tell(origin.offer(0, whole=True), 9_901)
    assert {"Temp": ["new"]} in host.found
    assert {"Temp": ["old"]} not in host.found
    assert len(host.late) == 1


def test_a_subscription_is_active_when_that_is_told():
    host = Core("h")
    host.tell(messages.SpecificationSubmitted("c", "r", TEXT), 1_001)
    assert [one["state"] for one in host.replies] == ["accepted"]
    host.tell(told.Activated((("x", "S"),), apart=True), 1_002)
    assert [one["state"] for one in host.replies] == ["accepted", "active"]
    host.open(2_000)
    assert host.core.subscriptions[0].state == "active"


def test_an_origin_whose_disk_is_lost_is_taken_for_another(pair):
    origin, host = pair
    origin.event("1", 1_500)
    host.tell(origin.offer(host.core.network.upstream["a"].position), 2_100)
    again = Core("a")
    again.tell(told.HostInterested("h", TYPES, None), 3_000)
    again.event("2", 3_100, now=3_100)
    host.tell(again.offer(0), 3_200)
    assert len(host.found) == 1  # nothing is taken before it has answered
    host.tell(again.offer(0, whole=True), 3_300)
    assert host.found == [{"Temp": ["1"]}, {"Temp": ["2"]}]


def test_what_is_found_before_a_subscription_is_active_is_not_given_out():
    host = Core("h")
    text = TEXT.replace("Temp(val > 3)", "Temp(val > 3) as a then Temp(val < 3) as b")
    host.tell(messages.SpecificationSubmitted("c", "r", text), 1_001)
    host.event("1", 1_500)
    host.event("2", 1_600, val=1.0)
    assert host.found == []
    host.tell(told.Activated((("x", "S"),), apart=True), 2_001)
    host.event("3", 2_500, val=2.0, now=2_500)  # its partner would be from before
    host.event("4", 2_600, now=2_600)
    host.event("5", 2_700, val=2.0, now=2_700)
    assert host.found == [{"a": ["4"], "b": ["5"]}]


def test_a_broker_that_was_alone_goes_on_among_others():
    host = Core("h")
    host.options = BrokerOptions(name="h", lateness_ms=0)
    host.records.clear()
    host.core, effects = DurableBroker.recover(host.options, host.limits, None, [], 0, 1_000)
    host.perform(effects)
    host.tell(messages.SpecificationSubmitted("c", "r", TEXT), 1_001)
    host.event("1", 1_500)
    host.options = BrokerOptions(name="h", networked=True, lateness_ms=0)
    for snapshot in (None, host.core.snapshot()):
        host.open(3_000, snapshot)
        assert host.core.network.sources.by_name == {"t1": {"Temp": None}}
        assert host.core.network.activation.inactive() == []
    host.event("2", 3_500, now=3_600)
    assert host.found == [{"Temp": ["1"]}, {"Temp": ["2"]}]


def test_sources_that_are_invented_are_advertised_up_to_a_limit():
    origin = Core("a", sources_max=3)
    for number in range(6):
        origin.event("1", 1_500, source=f"t{number}")
    assert len(origin.core.network.sources.by_name) == 3
    assert origin.core.ledger.notes["sources_not_advertised"] == 3


# --- what may be forgotten --------------------------------------------------------------------


def spoken(draw, count):
    """Words of two origins, with events that came to both: a sensor went from one to the other."""
    kinds = ("Temp", "Wind")
    position, marks = dict.fromkeys("ab", 0), dict.fromkeys("ab", 0)
    said, words = [], []
    for _ in range(count):
        origin = draw.choice("ab")
        end = marks[origin] + draw.randint(1, 40)
        event = {"type": draw.choice(kinds), "id": f"e{draw.randint(0, 30)}", "source": "s"}
        event |= {"timestamp": end, "start": end, "val": end % 7 + 0.5}
        if said and draw.random() < 0.4:
            event = draw.choice(said[-12:])
        said.append(event)
        at = position[origin]
        position[origin] += 2
        events = msgspec.msgpack.encode([event])
        words.append(told.Forwarded(origin, 1, at, at + 1, [at + 1], events, {}))
        marks[origin] += draw.choice((0, 0, 5, 30))
        promise = dict.fromkeys(kinds, marks[origin])
        words.append(told.Forwarded(origin, 1, at + 1, at + 2, [], packed([]), promise))
    return words


@pytest.mark.parametrize("seed", range(20))
def test_results_do_not_depend_on_whether_what_is_late_is_remembered(seed):
    draw = Random(seed)
    words = spoken(draw, 150)
    hosts = []
    for forgets in (False, True):
        host = Core("h")
        host.submit(WINDY)
        for origin in "ab":
            host.tell(told.OriginNamed(origin, ("Temp", "Wind")), 1_002)
            host.tell(told.Forwarded(origin, 1, 0, 0, [], packed([]), {}, True), 1_003)
        for word in words:
            host.tell(word, 2_000)
            if forgets:
                host.core.network.forget_what_is_late()
        hosts.append(host)
    whole, small = hosts
    assert small.results == whole.results
    assert [one.payload for one in small.late] == [one.payload for one in whole.late]
    assert small.core.ledger.events.dropped == whole.core.ledger.events.dropped
    assert whole.core.ledger.events.dropped["repeat"] > 5
    assert len(whole.results) > 5
    assert small.core.remembered < whole.core.remembered / 2
