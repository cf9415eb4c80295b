"""A subscription that is over runs nothing, and stays until its subscriber cancels it."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from broker.core.broker import BrokerOptions
from broker.core.effects import Append, Emit, Reply
from broker.core.messages import (
    CancelRequested,
    EventsReceived,
    Message,
    NetworkTold,
    Payload,
    SourceWithdrawn,
    SpecificationSubmitted,
    Woken,
)
from broker.core.recovery.durable import DurableBroker
from broker.core.recovery.records import Record
from broker.engine.ingest.times import TIME_MAX_MS
from broker.engine.limits import Limits
from broker.network.frames import told
from tests.broker.core.generated_runs import Case, Pair, drawn
from tests.oracles import spec as s
from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE

NOW = 1_700_000_000_000
HEADER = """
event A(n: int) event B(n: int)
define Big(n) detect A(n > 5) assign n = A.n
"""
ENDING = HEADER + "subscription S seq 1 from x to y for 10 s detect Big as a then B as b"
OTHER = HEADER + "subscription T from x to y detect Big as a"


class Site:
    """A broker and what it wrote down."""

    def __init__(self, **options: Any) -> None:
        self.options = BrokerOptions(lateness_ms=0, idle_timeout_ms=5_000, **options)
        self.records: list[Record] = []
        self.results: list[Any] = []
        self.replies: list[dict[str, Any]] = []
        self.now = NOW
        self.broker = self.recovered(None)

    def recovered(self, snapshot: bytes | None) -> DurableBroker:
        """Another process, from a snapshot, or from all records."""
        known, self.records = list(self.records), [] if snapshot is None else self.records
        end = len(self.results)
        self.broker, effects = DurableBroker.recover(
            self.options, Limits(), snapshot, known, end, self.now
        )
        self.records = known
        self._carry_out(effects)
        return self.broker

    def tell(self, message: Message) -> None:
        self._carry_out(self.broker.handle(message, self.now))
        self.broker.check_invariants()

    def _carry_out(self, effects: list[Any]) -> None:
        for effect in effects:
            if isinstance(effect, Append):
                self.records.append(Record(effect.number, effect.data))
            elif isinstance(effect, Emit):
                self.results += effect.results
            elif isinstance(effect, Reply):
                self.replies.append(json.loads(effect.payload))

    def submit(self, text: str) -> bool:
        self.tell(SpecificationSubmitted("x", "1", text, "here"))
        return bool(self.replies[-1]["ok"])

    def send(self, kind: str, at_s: float, n: int = 9) -> None:
        at = NOW + int(at_s * 1000)
        self.now = max(self.now, at)
        data = json.dumps({"id": f"{kind}{at}", "timestamp": at, "n": n}).encode()
        self.tell(EventsReceived((Payload(kind, "s1", data),)))

    def wait(self, for_s: float) -> None:
        until = self.now + int(for_s * 1000)
        while (wake := self.broker.next_wake()) is not None and wake <= until:
            self.now = wake
            self.tell(Woken())
        self.now = until

    @property
    def states(self) -> dict[str, str]:
        return {one.name: one.state for one in self.broker.subscriptions}

    @property
    def running(self) -> int:
        return len(self.broker.core._matcher)


def ended() -> Site:
    site = Site()
    assert site.submit(ENDING)
    for at_s in (1, 9, 12):
        site.send("A", at_s)
        site.send("B", at_s + 0.5)
    return site


def test_what_has_ended_runs_nothing_and_is_listed() -> None:
    site = ended()
    assert len(site.results) == 3  # a1 b1, a1 b9, a9 b9
    assert site.states == {"S": "ended"}
    assert site.running == site.broker.held() == 0


def test_an_end_comes_by_time_alone() -> None:
    site = Site()
    assert site.submit(ENDING)
    site.send("A", 1)
    site.send("B", 2)
    site.wait(7)
    assert site.states == {"S": "active"}
    site.wait(3)
    assert site.states == {"S": "ended"}
    assert site.broker.next_wake() is None


def test_an_end_waits_for_what_may_still_be_a_result() -> None:
    site = Site()
    text = HEADER + "subscription S from x to y for 10 s detect A as a without[8 s] B as b"
    assert site.submit(text)
    site.send("A", 9)
    site.send("A", 11)  # a B may still come that began before 17 s
    assert (site.states, site.results) == ({"S": "active"}, [])
    site.send("A", 18)
    assert (site.states, len(site.results)) == ({"S": "ended"}, 1)


def test_a_withdrawn_source_takes_nothing_to_the_end() -> None:
    """A clock of its own that goes on is all that a type without a source has."""
    site = Site()
    assert site.submit(ENDING)
    site.send("A", 1)
    site.send("B", 1.5)
    site.tell(SourceWithdrawn("s1"))
    assert site.states == {"S": "active"}
    site.send("A", 3)
    site.send("B", 4)
    assert len(site.results) == 3


def test_definitions_that_others_need_go_on() -> None:
    site = Site()
    assert site.submit(ENDING)
    assert site.submit(OTHER)
    assert site.running == 3
    for at_s in (1, 12, 13):
        site.send("A", at_s)
        site.send("B", at_s)
    assert site.states == {"S": "ended", "T": "active"}
    assert site.running == 2
    site.send("A", 14)
    assert site.results[-1].subscription == "T"
    site.tell(CancelRequested("x", "2", "T", "here"))
    assert site.running == 0


def test_the_same_text_changes_nothing_and_a_higher_seq_begins_anew() -> None:
    site = ended()
    assert site.submit(ENDING)
    assert site.replies[-1]["state"] == "active"
    assert site.states == {"S": "ended"}
    assert site.running == 0
    assert not site.submit(ENDING.replace("detect Big as a", "detect Big as c"))
    assert site.submit(ENDING.replace("seq 1", "seq 2"))
    assert site.states == {"S": "active"}
    assert site.running == 2
    site.send("A", 13)
    site.send("B", 14)
    assert len(site.results) == 4


def test_its_subscriber_cancels_it() -> None:
    site = ended()
    site.tell(CancelRequested("x", "2", "S", "here"))
    assert site.replies[-1]["ok"]
    assert site.states == {}
    assert site.submit(ENDING)


@pytest.mark.parametrize("saves", [False, True])
def test_another_process_knows_of_the_end(saves: bool) -> None:
    site = ended()
    site.recovered(site.broker.snapshot() if saves else None)
    assert site.states == {"S": "ended"}
    assert site.running == 0
    site.broker.check_invariants()
    assert site.submit(ENDING)
    site.send("A", 20)
    assert len(site.results) == 3


def test_a_snapshot_in_which_it_still_runs_is_read_and_ends_it() -> None:
    """As those before ends were known of."""
    site = Site()
    stays = site.broker.core
    stays._end_over = lambda: None
    assert site.submit(ENDING)
    for at_s in (1, 12):
        site.send("A", at_s)
        site.send("B", at_s)
    snapshot = site.broker.snapshot()
    assert msgspec.msgpack.decode(snapshot)["state"]["tasks"]
    site.recovered(snapshot)
    assert site.broker.core is not stays
    assert site.states == {"S": "active"}
    site.wait(1)
    assert site.states == {"S": "ended"}
    assert site.running == 0


def test_readers_of_the_log_do_not_wait_for_what_has_ended() -> None:
    site = ended()
    assert site.broker.core.frontiers.reached["x", "S"] > NOW + 10**12


# --- among other brokers ----------------------------------------------------------------------


def activated(site: Site) -> None:
    site.tell(NetworkTold(told.Activated((("x", "S"),), apart=True)))


def test_what_is_not_active_yet_has_not_ended() -> None:
    site = Site(networked=True)
    assert site.submit(ENDING.replace("for 10 s", 'until "2023-11-14T22:13:30Z"'))
    for at_s in (1, 12):
        site.send("A", at_s)
        site.send("B", at_s)
    assert (site.states, site.running) == ({"S": "accepted"}, 2)
    activated(site)
    assert site.states == {"S": "active"}
    site.send("A", 13)
    site.send("B", 13)
    assert (site.states, site.running) == ({"S": "ended"}, 0)
    assert not site.results


def test_a_cell_goes_on_until_it_is_called_off_and_says_that_it_is_over() -> None:
    site = Site(networked=True, name="b0/1#1")
    assert site.submit(ENDING)
    activated(site)
    for at_s in (1, 12, 13):
        site.send("A", at_s)
        site.send("B", at_s)
    assert (site.states, site.running) == ({"S": "active"}, 2)
    assert site.broker.core.frontiers.reached["x", "S"] == TIME_MAX_MS
    assert site.broker.core.frontiers.ended == 1


# --- generated runs ---------------------------------------------------------------------------


def ending(seed: int, construct: str, context: s.Context) -> Case | None:
    """A generated run whose subscriptions end at some time in it."""
    case = drawn(seed, construct, context)
    draw = random.Random(f"ends in {case.name}")
    # What is submitted again after an end finds definitions begun anew, as after a cancellation.
    if case.changed or " to out\n" not in case.text:
        return None
    text = case.text
    for _ in range(text.count(" to out\n")):
        text = text.replace(" to out\n", f" to out for {draw.randint(2, 14)} s\n", 1)
    return _with_text(case, text)


def _with_text(case: Case, text: str) -> Case:
    case.messages = [(now, _retold(message, case.text, text)) for now, message in case.messages]
    case.text = text
    return case


def _retold(message: Message, before: str, text: str) -> Message:
    if isinstance(message, SpecificationSubmitted) and message.text == before:
        return msgspec.structs.replace(message, text=text)
    return message


def same_results(case: Case) -> Counter[str]:
    """One that ends again and again finds what one does in which nothing ever stops."""
    pair = Pair(case)
    stays = pair.whole
    stays.broker.core._end_over = lambda: None
    pair.run()
    ids = [[json.loads(one.payload)["id"] for one in site.results] for site in (stays, pair.ended)]
    assert sorted(ids[0]) == sorted(ids[1]), case.name
    states = Counter(one.state for one in pair.ended.broker.subscriptions)
    for one in pair.ended.broker.subscriptions:
        assert (one.task in pair.ended.broker.core._matcher) == (one.state != "ended")
    return Counter(runs=1, results=bool(ids[0]), ended=states["ended"], active=states["active"])


@pytest.mark.timeout(120)
@pytest.mark.parametrize("context", CONTEXTS_WHOLE)
def test_what_stops_would_have_found_nothing_more(context: s.Context) -> None:
    counts: Counter[str] = Counter()
    for number, construct in enumerate(CONSTRUCTS_WHOLE):
        if CONTEXTS_WHOLE[number % len(CONTEXTS_WHOLE)] == context:
            case = ending(1, construct, context)
            if case is not None:
                counts += same_results(case)
    assert counts["results"] > counts["runs"] / 4
    assert counts["ended"] > counts["runs"] / 2


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("context", CONTEXTS_WHOLE)
def test_what_stops_would_have_found_nothing_more_in_many_runs(
    context: s.Context, record_property: Callable[[str, object], None]
) -> None:
    for construct in CONSTRUCTS_WHOLE:
        counts: Counter[str] = Counter()
        for seed in range(2, 7):
            case = ending(seed, construct, context)
            if case is not None:
                counts += same_results(case)
        what = "runs of a broker whose subscriptions end"
        record_property("generated", [what, construct, context, counts["runs"], counts["results"]])
