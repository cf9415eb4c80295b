"""A windowed definition's events recomputed naively, and histories to feed an agent with.

Every window is picked from the whole trace and every aggregate is taken with exact rational
numbers; nothing slides, nothing is kept. Nothing of the windows under test is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from hypothesis import strategies as st

from broker.engine.event.agent import WATERMARK_END
from broker.engine.event.event import Detected, Event, event_class
from broker.engine.window.agent import WindowAgent
from language import check_text
from language.taskgraph import Task

DECLARED = "x: float, i: int, s: text, g: text"
KINDS = {"x": "float", "i": "int", "s": "text", "g": "text"}
PRECISE = Context(prec=1500)

# --- values, exactly --------------------------------------------------------------------------


def nearest(exact: Fraction) -> float | None:
    """The float nearest to a rational number; None beyond a float's range."""
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return None


def nearest_root(exact: Fraction) -> float | None:
    """The float nearest to a square root, by decimals of many digits."""
    quotient = PRECISE.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    found = float(PRECISE.sqrt(quotient))
    return found if math.isfinite(found) else None


def deviation(values: Sequence[Any]) -> float | None:
    mean = sum(map(Fraction, values), Fraction(0)) / len(values)
    spread = sum(((Fraction(v) - mean) ** 2 for v in values), Fraction(0))
    return nearest_root(spread / len(values))


def quantile(values: Sequence[Any], q: str) -> float | None:
    ordered = sorted(map(Fraction, values))
    rank = (len(ordered) - 1) * Fraction(q)
    low = math.floor(rank)
    high = min(low + 1, len(ordered) - 1)
    return nearest(ordered[low] + (rank - low) * (ordered[high] - ordered[low]))


def total(values: Sequence[Any], kind: str) -> Any:
    exact = sum(map(Fraction, values), Fraction(0))
    if kind == "float":
        return nearest(exact)
    return int(exact) if -(2**63) <= exact < 2**63 else None


def plus_zero(value: Any) -> Any:
    return 0.0 if isinstance(value, float) and value == 0 else value


# attribute assigned -> (text, its type, the value from the non-null values of A's events in order)
AGGREGATES: dict[str, tuple[str, str, Callable[[list[Any]], Any]]] = {
    "nx": ("Count(A.x)", "int", len),
    "sx": ("Sum(A.x)", "float", lambda v: total(v, "float")),
    "ax": (
        "Avg(A.x)",
        "float",
        lambda v: nearest(sum(map(Fraction, v), Fraction(0)) / len(v)) if v else None,
    ),
    "dx": ("StdDev(A.x)", "float", lambda v: deviation(v) if v else None),
    "lx": ("Min(A.x)", "float", lambda v: plus_zero(min(v, default=None))),
    "hx": ("Max(A.x)", "float", lambda v: plus_zero(max(v, default=None))),
    "mx": ("Median(A.x)", "float", lambda v: quantile(v, "0.5") if v else None),
    "qx": ("Quantile(A.x, 0.1)", "float", lambda v: quantile(v, "0.1") if v else None),
    "fx": ("First(A.x)", "float", lambda v: v[0] if v else None),
    "zx": ("Last(A.x)", "float", lambda v: v[-1] if v else None),
    "cx": ("CountDistinct(A.x)", "int", lambda v: len(set(v))),
    "si": ("Sum(A.i)", "int", lambda v: total(v, "int")),
    "ai": (
        "Avg(A.i)",
        "float",
        lambda v: nearest(Fraction(sum(v), len(v))) if v else None,
    ),
    "di": ("StdDev(A.i)", "float", lambda v: deviation(v) if v else None),
    "mi": ("Median(A.i)", "float", lambda v: quantile(v, "0.5") if v else None),
    "hi": ("Max(A.i)", "int", lambda v: max(v, default=None)),
    "ls": ("Min(A.s)", "text", lambda v: min(v, default=None)),
    "zs": ("Last(A.s)", "text", lambda v: v[-1] if v else None),
    "ns": ("Count(A.s)", "int", len),
    "cs": ("CountDistinct(A.s)", "int", lambda v: len(set(v))),
}

# --- definitions ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Leaf:
    """An operand: its text, its type, and which events of the type are its own."""

    text: str
    event_type: str
    outer: bool = False
    own: Callable[[Any], bool] = lambda event: True
    distinct: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Defined:
    """A windowed definition under test, as text and as parts."""

    window: str
    every_ms: int | None
    range_ms: int | None
    leaves: tuple[Leaf, ...]
    group_by: tuple[str, ...] = ()
    assign: tuple[str, ...] = tuple(AGGREGATES)
    extra: tuple[str, ...] = ()  # assignments as they stand, of no interest to the model
    session: tuple[int, int | None] | None = None  # gap and maximum
    days: tuple[int, int | None, str] | None = None  # how many, range, zone

    @property
    def text(self) -> str:
        names = [*self.assign, *(one.split(" = ")[0] for one in self.extra)]
        values = [f"{name} = {AGGREGATES[name][0]}" for name in self.assign]
        group = f"\n  group by {', '.join(self.group_by)}" if self.group_by else ""
        return (
            f"event A({DECLARED})\nevent B({DECLARED})\n"
            f"define W({', '.join(names)}) aggr {self.window}\n"
            f"  detect {' and '.join(leaf.text for leaf in self.leaves)}\n"
            f"  assign {', '.join((*values, *self.extra))}{group}\n"
            "subscription S seq 1 from tester to out\ndetect W\n"
        )


@cache
def task_of(text: str, name: str = "W") -> Task:
    checked = check_text(text)
    assert checked.specification is not None, [d.message for d in checked.diagnostics]
    return next(t for t in checked.specification.graph.tasks.values() if t.name == name)


def agent_of(text: str, name: str = "W", **limits: int) -> WindowAgent:
    task = task_of(text, name)
    assert task.output is not None
    output = event_class(f"{name}@{task.key}", task.output.attributes, detected=True)
    return WindowAgent(task, task.node.cases[0], output, **limits)  # type: ignore[union-attr]


# --- the naive model --------------------------------------------------------------------------


Inside = tuple[Any, list[Event], int | None]


def windows_of(defined: Defined, events: Sequence[Event]) -> Iterator[Inside]:
    """Each window that holds events of one group: its name, those events in order, and its last
    instant; None of a session, which happens as long as its events.
    """
    ordered = sorted(events, key=lambda e: e.order)
    every, reach = defined.every_ms, defined.range_ms
    if defined.session is not None:
        yield from sessions_of(ordered, *defined.session)
        return
    if defined.days is not None:
        yield from days_of(ordered, *defined.days)
        return
    if every is None:
        assert reach is not None
        for at, newest in enumerate(ordered):
            inside = [e for e in ordered[: at + 1] if e.end >= newest.end - reach]
            yield newest.id, inside, newest.end
        return
    ends = [e.end for e in events]
    for k in range(min(ends) // every - 1, (max(ends) + (reach or every)) // every + 2):
        low, high = (
            (k * every, (k + 1) * every) if reach is None else (k * every - reach, k * every)
        )
        inside = [e for e in ordered if low <= e.end < high]
        if inside:
            yield k, inside, high - 1


def sessions_of(ordered: Sequence[Event], gap: int, most: int | None) -> Iterator[Inside]:
    """Sessions, by the words of the language."""
    inside: list[Event] = []
    for event in ordered:
        joins = (
            bool(inside)
            and event.start - max(e.end for e in inside) <= gap
            and (most is None or event.end - min(e.start for e in inside) <= most)
        )
        if inside and not joins:
            yield inside[0].id, inside, None
            inside = []
        inside = [*inside, event]
    if inside:
        yield inside[0].id, inside, None


def days_of(ordered: Sequence[Event], every: int, reach: int | None, zone: str) -> Iterator[Inside]:
    """Windows of whole local days: each event's date is asked of the calendar."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)

    def day(event: Event) -> int:
        local = (epoch + timedelta(milliseconds=event.end)).astimezone(ZoneInfo(zone))
        return local.date().toordinal() - epoch.date().toordinal()

    numbered = [(day(event), event) for event in ordered]
    last = max(number for number, _ in numbered)
    for k in range(numbered[0][0] // every - 1, (last + (reach or every)) // every + 2):
        low, high = (
            (k * every, (k + 1) * every) if reach is None else (k * every - reach, k * every)
        )
        inside = [event for number, event in numbered if low <= number < high]
        if inside:
            yield k, inside, midnight(high, zone) - 1


def midnight(day: int, zone: str) -> int:
    """The first instant of a day that is counted from 1970-01-01."""
    date = datetime(1970, 1, 1) + timedelta(days=day)  # noqa: DTZ001  # a wall time
    return round(date.replace(tzinfo=ZoneInfo(zone)).timestamp()) * 1000


def counted(leaf: Leaf, events: Sequence[Event]) -> list[Event]:
    """The leaf's events in a window, in order, without those that `distinct` drops."""
    own = [e for e in events if e.event_type == leaf.event_type and leaf.own(e)]
    if leaf.distinct is None:
        return own
    kept: list[Event] = []
    for event in own:
        keys = [value_of(event, name) for name in leaf.distinct]
        earlier = [[value_of(one, name) for name in leaf.distinct] for one in kept]
        if None in keys or keys not in earlier:
            kept.append(event)
    return kept


def value_of(event: Event, name: str) -> Any:
    return getattr(event, name if name in ("location", "source", "end", "start") else f"a_{name}")


def expected(defined: Defined, events: Sequence[Event]) -> list[tuple[Any, ...]]:
    """(window, group, ids, span, uncertainty, values by name) of all that stands."""
    groups: dict[tuple[Any, ...], list[Event]] = {}
    for event in events:
        mine = any(
            leaf.event_type == event.event_type and leaf.own(event) for leaf in defined.leaves
        )
        key = tuple(value_of(event, name) for name in defined.group_by)
        if mine and None not in key:
            groups.setdefault(key, []).append(event)
    found = []
    for key, members in groups.items():
        for window, inside, last in windows_of(defined, members):
            by_leaf = [counted(leaf, inside) for leaf in defined.leaves]
            asked = [
                own for own, leaf in zip(by_leaf, defined.leaves, strict=True) if not leaf.outer
            ]
            if all(asked):
                bound = sorted((e for own in by_leaf for e in own), key=lambda e: e.order)
                found.append((window, key, *_summary(bound, last), _values(defined, by_leaf[0])))
    return found


def _summary(inside: list[Event], last: int | None) -> tuple[Any, ...]:
    if last is not None:
        return (tuple(e.id for e in inside), last, last, 0)
    span = (min(e.start for e in inside), max(e.end for e in inside))
    return (tuple(e.id for e in inside), *span, max(e.uncertainty for e in inside))


def _values(defined: Defined, events: list[Event]) -> dict[str, Any]:
    made = {}
    for name in defined.assign:
        text, _, value = AGGREGATES[name]
        attribute = text.split(".")[1][0]
        given = [getattr(e, f"a_{attribute}") for e in events]
        made[name] = value([v for v in given if v is not None])
    return made


# --- feeding ----------------------------------------------------------------------------------


@dataclass
class History:
    """How events arrive: batches, each with the watermark that holds after it."""

    batches: list[tuple[list[Event], int]] = field(default_factory=list)
    snapshots: frozenset[int] = frozenset()  # before these batches the agent is made anew


def run(defined: Defined, history: History, make: Callable[[], WindowAgent]) -> list[Detected]:
    """Feed an agent, hold it to its promises, and give all that it put out."""
    agent = make()
    made: list[Detected] = []
    promised = -(2**62)
    for at, (events, watermark) in enumerate(history.batches):
        if at in history.snapshots:
            agent = again(agent, make)
        batch = [
            (leaf, own)
            for leaf, operand in enumerate(defined.leaves)
            if (own := [e for e in events if e.event_type == operand.event_type and operand.own(e)])
        ]
        out = agent.feed(batch, watermark)
        assert [e.order for e in out] == sorted(e.order for e in out)
        assert all(e.end > promised for e in out), "it promised that nothing would end so early"
        made += out
        due = agent.next_due()
        assert due is None or due > watermark, "what is due has been reported"
        if due is not None and watermark < due - 1 < WATERMARK_END:
            assert agent.feed([], watermark) == []
        promised = max(promised, agent.watermark_out(watermark))
        assert promised <= watermark
    assert agent.next_due() is None, "with nothing to come, nothing stays open"
    return made


def again(agent: WindowAgent, make: Callable[[], WindowAgent]) -> WindowAgent:
    """Another agent with the state of this one, which went through bytes."""
    restored = make()
    restored.restore(msgspec.msgpack.decode(msgspec.msgpack.encode(agent.state())))
    return restored


def told(defined: Defined, made: Sequence[Detected]) -> list[tuple[Any, ...]]:
    """What the model tells, of the agent's events; the group is not carried, so it is left out."""
    return [
        (
            event.tie[2],
            tuple(event.ids),
            event.start,
            event.end,
            event.uncertainty,
            {name: getattr(event, f"a_{name}") for name in defined.assign},
        )
        for event in made
    ]


def alike(rows: Sequence[tuple[Any, ...]]) -> list[str]:
    """Rows as texts in one order: 1 is not 1.0 there, nor 0.0 the same as -0.0."""
    return sorted(repr(row) for row in rows)


# --- drawing ----------------------------------------------------------------------------------

CLASSES = {name: event_class(name, KINDS) for name in "AB"}

NASTY = [0.0, -0.0, 0.1, 0.2, 1.0, 1e16, -1e16, 5e-324, -5e-324, 2.2e-308, 1.7e308, -1.7e308, 1e-9]
floats = st.one_of(
    st.none(),
    st.sampled_from(NASTY),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-400, 400).map(lambda n: n / 10),
)
integers = st.one_of(
    st.none(),
    st.integers(-3, 3),
    st.sampled_from([2**63 - 1, -(2**63)]),
    st.integers(-(2**40), 2**40),
)


@st.composite
def traces(draw: Any, most: int = 14) -> list[Event]:
    """Events of A and B around zero, some durative, some null, some uncertain, ends often tied."""
    made = []
    for at in range(draw(st.integers(1, most))):
        end = draw(st.integers(-45, 45))
        made.append(
            CLASSES[draw(st.sampled_from("AAAB"))](
                id=draw(st.sampled_from(["e", "f", "é"])) + str(at),
                start=end - draw(st.sampled_from([0, 0, 0, 0, 1, 30])),
                end=end,
                location=draw(st.sampled_from([None, "p", "p", "p", "q"])),
                uncertainty=draw(st.sampled_from([0, 0, 0, 2, 5])),
                a_x=draw(floats),
                a_i=draw(integers),
                a_s=draw(st.sampled_from([None, "", "a", "B", "é"])),
                a_g=draw(st.sampled_from([None, "u", "u", "v"])),
            )
        )
    return made


@st.composite
def histories(draw: Any, events: list[Event]) -> History:
    """The events in some order, in batches, with watermarks that hold, and snapshots."""
    order = draw(st.permutations(events))
    history = History()
    at = 0
    watermark = -(2**62)
    while at < len(order):
        size = draw(st.integers(1, 4))
        batch, rest = order[at : at + size], order[at + size :]
        at += size
        highest = min([e.end for e in rest], default=max(e.end for e in events) + 15) - 1
        if draw(st.booleans()):
            watermark = max(watermark, highest - draw(st.sampled_from([0, 0, 1, 7])))
        history.batches.append((batch, watermark))
    history.batches.append(([], WATERMARK_END))
    count = len(history.batches)
    history.snapshots = frozenset(draw(st.sets(st.integers(0, count), max_size=3)))
    return history
