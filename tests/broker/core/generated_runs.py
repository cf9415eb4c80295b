"""Runs of a durable broker over generated specifications, one that ends again and again beside it.

Owns how a run is drawn from a seed, and the two brokers that are told the same. Must not know what
must come out. Invariant: one seed, construct and context give one run for ever.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

import msgspec

from broker.core.broker import BrokerOptions
from broker.core.effects import Append, Effect, Emission, Emit, Enlist, Publish, Reply
from broker.core.messages import (
    CancelRequested,
    EventsReceived,
    Message,
    Payload,
    SourceAdvertised,
    SourceWithdrawn,
    SpecificationSubmitted,
    Woken,
)
from broker.core.recovery.durable import DurableBroker, head_of
from broker.core.recovery.records import Record
from broker.engine.event.own import Aggregate, Function
from broker.engine.limits import Limits
from tests.oracles import spec as s
from tests.oracles.draw import SeededDraw
from tests.oracles.generate import random_case
from tests.oracles.recipes_values import files_of
from tests.oracles.render import text_of
from tests.oracles.traces import Profile, trace
from tests.streams import Events, end_of

BEGIN_MS = 1_700_000_000_000
WAKES_MAX = 25  # between two messages: who wants more is woken for nothing
ENDS_SHARE = 0.2
WINDOWS_CHOSEN = "windows-chosen"
END_MS = 3_600_000  # after the last message: time decides what is still open
# As the language's own ones, so that any text may call them instead.
OWN = {
    "Size": Function(abs, "float", "1"),
    "Least": Aggregate(min, "float", "1"),
}
OWN_FOR = {"abs(": "Size(", "Min(": "Least("}


@dataclass
class Case:
    """What a run is given."""

    name: str
    text: str
    events: Events
    options: BrokerOptions
    functions: dict[str, Any]
    messages: list[tuple[int, Message]] = field(default_factory=list)
    changed: bool = False  # whether a subscription comes or goes in between


def drawn(seed: int, construct: str, context: s.Context) -> Case:
    """The run of a seed."""
    name = f"{construct}/{context}/{seed}"
    draw = random.Random(name)
    if construct == WINDOWS_CHOSEN:
        spec, (text, events) = None, _windows_chosen(draw, context)
    else:
        spec, events = random_case(seed, construct, context)
        text = text_of(spec)
    functions = OWN if draw.random() < 0.5 else {}
    for before, after in OWN_FOR.items() if functions else ():
        text = text.replace(before, after)
    options = BrokerOptions(
        lateness_ms=draw.choice((0, 0, 1_000, 4_000)),
        idle_timeout_ms=draw.choice((60_000, 60_000, 2_500)),
        drift_ppm=draw.choice((0, 0, 0, 100_000)),
        tables={} if spec is None else dict(files_of(spec)),
    )
    if draw.random() < 0.6:
        events = [_of_a_moment(one) for one in events]
    case = Case(name, text, _of_today(events), options, functions)
    _plan(case, draw)
    return case


def _windows_chosen(draw: random.Random, context: s.Context) -> tuple[str, Events]:
    """A choice among windows, and what it consumes: the reference matcher has no such construct."""
    kept = draw.choice(("Mean as y", "B as y", "last Mean as y"))
    group = draw.choice(("", "\n  group by source"))
    link = draw.choice(("and", "then"))
    within_ms = draw.choice((5_000, 9_000))
    lines = (
        *("event A(n: int, v: float)", "event B(n: int, v: float)"),
        (
            f"define Count(n, source) aggr every {draw.randint(1, 3)} s detect A"
            f" assign n = Count(A), source = Last(A.source){group}"
        ),
        (
            f"define Mean(n, source) aggr range {draw.randint(2, 5)} s detect B"
            f" assign n = Avg(B.n), source = Last(B.source){group}"
        ),
        "subscription S1 from tester to out",
        f"  detect last Count(n > 0) as x {link}[{context}] {kept} within {within_ms} ms",
        f"  consuming {draw.choice(('x', 'y', 'x, y'))}",
    )
    told = Profile(events_min=12, events_max=18, durative=0)
    return "\n".join(lines), trace(SeededDraw(str(draw.random())), ("A", "B"), told)


def _of_a_moment(event: dict[str, Any]) -> dict[str, Any]:
    """How long events last at most, a broker learns only from those that came before."""
    kept = {name: value for name, value in event.items() if name not in ("start", "end")}
    return {**kept, "timestamp": end_of(event)}


def _of_today(events: Events) -> Events:
    """Events with the same times between them, none of them so old that no broker would be there.

    Only where they are that old: windows of days keep their days.
    """
    if min((end_of(one) for one in events), default=BEGIN_MS) > BEGIN_MS // 2:
        return events
    keys = ("timestamp", "start", "end")
    return [
        {key: value + BEGIN_MS if key in keys else value for key, value in one.items()}
        for one in events
    ]


def _plan(case: Case, draw: random.Random) -> None:
    """Who says what, and when: sources have clocks of their own, and some events come late."""
    events, lateness_ms = case.events, case.options.lateness_ms
    sources = sorted({one["source"] for one in events})
    ahead_ms = {name: draw.choice((0, 0, 700, -1_300, 5_000)) for name in sources}
    late_share = draw.choice((0, 0, 0.15))

    def arrival_ms(event: dict[str, Any]) -> int:
        over_ms = draw.choice((2_500, 9_000)) if draw.random() < late_share else 0
        delay_ms = draw.randint(0, lateness_ms) + over_ms
        return end_of(event) + ahead_ms[event["source"]] + delay_ms

    rows = sorted([(arrival_ms(one), at, one) for at, one in enumerate(events)])
    begin_ms = min(at for at, *_ in rows) - 1_000
    said: list[tuple[int, Message]] = [(begin_ms, _submitted(case))]
    if draw.random() < 0.8:
        types = sorted({one["type"] for one in events if one["type"] != "Stranger"})
        said += [(begin_ms, _advertised(name, types)) for name in sources]
    while rows:
        count = draw.choice((1, 1, 1, 2, 4))
        part, rows = rows[:count], rows[count:]
        payloads = tuple([_payload(one, draw) for _, _, one in part])
        said.append((part[-1][0], EventsReceived(payloads)))
    if draw.random() < 0.3:
        case.changed = True
        _change(case, said, draw)
    end_ms = said[-1][0] + 1
    said += [(end_ms, SourceWithdrawn(name)) for name in sources]
    case.messages = said


def _submitted(case: Case) -> SpecificationSubmitted:
    return SpecificationSubmitted("tester", "1", case.text, "here", "token")


def _advertised(source: str, types: list[str]) -> SourceAdvertised:
    return SourceAdvertised(source, json.dumps({"source": source, "types": types}).encode())


def _payload(event: dict[str, Any], draw: random.Random) -> Payload:
    fields = {name: value for name, value in event.items() if name not in ("type", "source")}
    if draw.random() < 0.2:
        return Payload(event["type"], event["source"], msgspec.msgpack.encode(fields), 1, "msgpack")
    return Payload(event["type"], event["source"], json.dumps(fields).encode(), 1)


def _change(case: Case, said: list[tuple[int, Message]], draw: random.Random) -> None:
    """Have the subscription cancelled at some time, and submitted again perhaps."""
    at = draw.randint(2, len(said))
    now = said[at - 1][0]
    said.insert(at, (now, CancelRequested("tester", "2", "S1", "here")))
    if draw.random() < 0.8:
        again = draw.randint(at + 1, len(said))
        said.insert(again, (said[again - 1][0], _submitted(case)))


class Site:
    """One broker, and what is on its disk; `end` has another process go on."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.records: list[Record] = []
        self.results: list[Emission] = []
        self.listed: dict[Any, Any] = {}
        self.snapshot: bytes | None = None
        self.said: list[dict[str, Any]] = []  # answers to requests
        self.late: list[dict[str, Any]] = []
        self.repeated = 0  # results that came again after an end
        self._recover(0, self.case.messages[0][0])

    def _recover(self, outbox_end: int, now: int) -> None:
        before = head_of(self.snapshot).number if self.snapshot else 0
        self.broker, effects = DurableBroker.recover(
            self.case.options,
            Limits(),
            self.snapshot,
            [one for one in self.records if one.number > before],
            outbox_end,
            now,
            list(self.listed.values()),
            self.case.functions,
        )
        self._carry_out(effects)

    def end(self, draw: random.Random) -> None:
        """The process ends, with some of the last results not on the disk yet."""
        least = head_of(self.snapshot).outbox_end if self.snapshot else 0
        self._recover(draw.randint(least, len(self.results)), self.broker.now)

    def pause(self) -> None:
        """Have it count silence from now on, as a process does that begins."""
        self.broker.core.resume(self.broker.now)

    def save(self) -> None:
        """Take a snapshot."""
        self.snapshot = self.broker.snapshot()

    def tell(self, message: Message, now: int) -> None:
        """One message, at its time or when it is woken."""
        self._carry_out(self.broker.handle(message, now))
        self.broker.check_invariants()

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Append(number, data):
                    assert number == (self.records[-1].number if self.records else 0) + 1
                    self.records.append(Record(number, data))
                case Emit(results):
                    self._emitted(results)
                case Enlist():
                    for key in (*effect.leaving, *(one.key for one in effect.coming)):
                        self.listed.pop(key, None)
                    self.listed |= {one.key: one for one in effect.coming}
                case Reply():
                    self.said.append(json.loads(effect.payload))
                case Publish(publications):
                    late = [one for one in publications if one.topic.startswith("late/")]
                    self.late += [json.loads(one.payload) for one in late]

    def _emitted(self, results: tuple[Emission, ...]) -> None:
        for one in results:
            if one.offset < len(self.results):
                assert one == self.results[one.offset], "it is another result than before"
                self.repeated += 1
            else:
                assert one.offset == len(self.results)
                self.results.append(one)


class Pair:
    """A broker that goes on and one that ends again and again, told the same; `ends` counts."""

    def __init__(self, case: Case) -> None:
        self.whole, self.ended = Site(case), Site(case)
        self.ends = self.saves = 0
        self._case = case
        self._draw = random.Random(f"ends of {case.name}")
        self._each = self._draw.randint(1, 4)
        self._steps = 0

    def run(self) -> None:
        """All of it, woken whenever one of them wants to be."""
        last_ms = self._case.messages[-1][0] + END_MS
        for now, message in self._case.messages:
            self._wait(now)
            self._tell(message, now)
        self._wait(last_ms)

    def _wait(self, until: int) -> None:
        for _ in range(WAKES_MAX):
            # Of two sources that are behind, each may ask to be waited for first.
            wakes = [one.broker.next_wake() for one in (self.whole, self.ended)]
            due = min([until, *(wake for wake in wakes if wake is not None)])
            if due >= until:
                return
            self._tell(Woken(), due)
        raise AssertionError(f"{self._case.name} is woken for nothing, without end")

    def _tell(self, message: Message, now: int) -> None:
        self._steps += 1
        now = max(now, self.whole.broker.now)
        for one in (self.whole, self.ended):
            one.tell(message, now)
        if self._steps % self._each == 0:
            self.ended.save()
            self.saves += 1
        if self._draw.random() < ENDS_SHARE:
            self.ended.end(self._draw)
            self.whole.pause()
            self.ends += 1
