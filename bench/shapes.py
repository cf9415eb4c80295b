"""The shapes that the engine is measured with: operator × context × window × aggregate, drawn.

Owns the drawing, as trees of the independent reference matcher. Must not know the engine.
Invariant: the same seed draws the same shapes, each operator, context, kind of window and aggregate
of the language's core stands in one of them, and none was chosen by how fast it is.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import get_args

from bench.workload import TYPES
from language.functions import AGGREGATES
from tests.oracles import spec as s

SEED = 22
RARE = ("Motion", "Door", "Humidity", "Light", "Carbon")
BY_ROOM = ("location",)
MINUTE_MS = 60_000
INTERVALS: dict[s.Relation, tuple[str, str]] = {
    # Of two detected events: P begins it, Q is the other.
    "before": ("MD", "DT"),
    "meets": ("MD", "DT"),
    "overlaps": ("MD", "HT"),
    "during": ("DT", "MX"),
    "contains": ("MX", "DT"),
    "starts": ("MD", "MX"),
    "finishes": ("DT", "MX"),
    "equals": ("MX", "MY"),
    "concat": ("MD", "DT"),
    "parallel": ("MD", "HT"),
}


@dataclass(frozen=True)
class Shape:
    """A text to be measured: what it is called, and its tree."""

    name: str
    spec: s.Spec


def _hot(alias: str | None = None, above: float = 28.0) -> s.Atom:
    above_it = s.Compare((">",), (s.Ref(None, "value"), s.Lit(above)))
    return s.Atom("Temperature", (above_it,), alias)


def _within(pattern: s.Pattern, ms: int = MINUTE_MS) -> s.Pattern:
    return s.Suffixed(pattern, (s.Within(ms),))


def _spec(case: s.Case, definitions: tuple[s.Definition, ...] = ()) -> s.Spec:
    types = tuple(s.EventType(name, (("value", "float"),)) for name in TYPES)
    return s.Spec(types, (s.Subscription("S", case),), definitions)


class Drawing:
    """The shapes of one seed."""

    def __init__(self, seed: int = SEED) -> None:
        self._random = random.Random(seed)

    def _types(self, count: int) -> list[s.Atom]:
        return [s.Atom(name) for name in self._random.sample(RARE, count)]

    def shapes(self) -> list[Shape]:
        """Return all of them, in the order in which they are drawn."""
        parts: tuple[Callable[[], Iterator[tuple[str, s.Spec]]], ...] = (
            *(self._contexts, self._relations, self._lists, self._denials),
            *(self._limits, self._thinned, self._windows, self._stacked),
        )
        return [Shape(name, spec) for part in parts for name, spec in part()]

    def _contexts(self) -> Iterator[tuple[str, s.Spec]]:
        for context in get_args(s.Context):
            first, second = self._types(2)
            pair = s.Pair("then", first, _hot(above=24.0), context=context)
            yield f"then[{context}]", _spec(s.Case(_within(pair), group_by=BY_ROOM))
            three = s.Pair("then", s.Pair("then", first, second), _hot())
            case = s.Case(_within(three), context, group_by=BY_ROOM)
            yield f"then then, {context}", _spec(case)
            if context not in {"latest", "first"}:
                both = s.Pair("and", first, _hot(above=24.0), context=context)
                case = s.Case(_within(both, 20_000), group_by=BY_ROOM)
                yield f"and[{context}]", _spec(case)
        first, second = self._types(2)
        mixed = s.Pair("then", s.Pair("then", first, second), _hot())
        yield (
            "then[first] list",
            _spec(
                s.Case(
                    _within(s.Pair("then", s.Pair("then", first, s.Listed(second)), _hot())),
                    "first",
                    group_by=BY_ROOM,
                )
            ),
        )
        yield "then then, no group", _spec(s.Case(_within(mixed, 2_000)))
        yield "or", _spec(s.Case(s.Or(first, _hot())))

    def _relations(self) -> Iterator[tuple[str, s.Spec]]:
        motion, door, humid = s.Atom("Motion"), s.Atom("Door"), s.Atom("Humidity")
        patterns = {
            "MD": s.Pair("then", motion, door),
            "DT": s.Pair("then", door, _hot()),
            "HT": s.Pair("then", humid, _hot(above=24.0)),
            "MX": s.Pair("then", motion, _hot()),
            "MY": s.Pair("and", motion, _hot()),
        }
        assign = (("location", s.Ref("group", "location")),)
        for relation, names in INTERVALS.items():
            definitions = tuple(
                s.Definition(name, (s.Case(_within(patterns[name]), None, assign, (), BY_ROOM),))
                for name in names
            )
            pair = s.Pair(relation, s.Atom(names[0]), s.Atom(names[1]))
            yield relation, _spec(s.Case(_within(pair), group_by=BY_ROOM), definitions)

    def _lists(self) -> Iterator[tuple[str, s.Spec]]:
        first, second = self._types(2)
        bound = s.Bound(0, 2_000)
        lists: dict[str, s.Pattern] = {
            "+": s.Pair("then", s.Pair("then", first, s.Listed(second)), _hot()),
            "*": s.Pair("then", s.Pair("then", first, s.Listed(second, True)), _hot()),
            "+ at the end": s.Pair("then", first, s.Listed(_hot())),
            "{3}": s.Times(_hot(above=20.0), 3),
            "+[..2 s]": s.Run(_hot(above=20.0), bound),
            "nth 2": s.Pair("then", first, s.Nth(2, _hot(above=20.0))),
            "last": s.Pair("then", s.Last(first), _hot(above=24.0)),
            "first": s.Pair("then", first, s.First(_hot(above=24.0))),
            "distinct": s.Pair("then", first, s.Distinct(_hot(above=24.0), ("value",))),
        }
        for name, pattern in lists.items():
            yield name, _spec(s.Case(_within(pattern), group_by=BY_ROOM))

    def _denials(self) -> Iterator[tuple[str, s.Spec]]:
        first, second = self._types(2)
        pair = s.Pair("then", first, _hot(above=24.0))
        yield "without", _spec(s.Case(_within(s.Without(pair, second)), group_by=BY_ROOM))
        whole = s.Without(first, second, 10_000)
        yield "without[10 s]", _spec(s.Case(whole, group_by=BY_ROOM))
        yield "absent", _spec(s.Case(s.Absent(_hot(above=20.0), 8_000), group_by=BY_ROOM))

    def _limits(self) -> Iterator[tuple[str, s.Spec]]:
        first, second = self._types(2)
        hotter = s.Compare((">",), (s.Ref("b", "value"), s.Ref("a", "value")))
        pair = s.Pair("then", _hot("a", 24.0), _hot("b", 24.0))
        yield (
            "where",
            _spec(s.Case(s.Suffixed(pair, (s.Within(20_000), s.Where(hotter))), group_by=BY_ROOM)),
        )
        bounded = s.Pair("then", first, _hot(above=24.0), s.Bound(1_000, 30_000))
        yield "then[1 s..30 s]", _spec(s.Case(bounded, group_by=BY_ROOM))
        gap = s.Pair("and", first, _hot(above=24.0), s.Bound(None, 10_000))
        yield "and[..10 s]", _spec(s.Case(gap, group_by=BY_ROOM))
        following = s.Pair("then", first, _hot(above=20.0), next=True)
        yield "then[next]", _spec(s.Case(_within(following), group_by=BY_ROOM))
        after = s.Suffixed(s.Pair("and", first, _hot(above=24.0)), (s.Within(20_000, first.name),))
        yield "within from", _spec(s.Case(after, group_by=BY_ROOM))
        three = s.Pair("and", s.Pair("and", first, second), _hot(above=20.0))
        yield "and and", _spec(s.Case(_within(three, 30_000), group_by=BY_ROOM))

    def _thinned(self) -> Iterator[tuple[str, s.Spec]]:
        first, _ = self._types(2)
        pair = _within(s.Pair("then", first, _hot(above=24.0)))
        yield "one", _spec(s.Case(pair, thin="one", group_by=BY_ROOM))
        yield "collect", _spec(s.Case(pair, thin="collect", group_by=BY_ROOM))
        yield "consuming", _spec(s.Case(pair, consuming=(first.name,), group_by=BY_ROOM))
        both = _within(s.Pair("and", first, _hot(above=24.0)), 20_000)
        yield "and, consuming", _spec(s.Case(both, consuming=("Temperature",), group_by=BY_ROOM))

    def _windows(self) -> Iterator[tuple[str, s.Spec]]:
        windows: dict[str, s.Window] = {
            "every 5 s": s.Every(5_000),
            "every 5 s range 30 s": s.Every(5_000, 30_000),
            "range 10 s": s.Trailing(10_000),
            "session 1 s": s.Session(1_000),
            "session 5 s max 20 s": s.Session(5_000, 20_000),
        }
        drawn = list(AGGREGATES)
        self._random.shuffle(drawn)
        for at, (name, window) in enumerate(windows.items()):
            for number, keys in enumerate((BY_ROOM, ())):
                aggregates = [drawn[(3 * at + 2 * number + more) % len(drawn)] for more in (0, 1)]
                atom = s.Atom("Temperature") if keys else self._types(1)[0]
                yield (
                    f"{name}, {' '.join(aggregates)}{'' if keys else ', no group'}",
                    self._over(window, atom, keys, aggregates),
                )
        distinct = s.Distinct(s.Atom("Temperature"), ("value",))
        yield "every 5 s, distinct", self._over(s.Every(5_000), distinct, BY_ROOM, ["Count"])
        outer = s.Pair("and", s.Outer(s.Atom("Door")), s.Outer(s.Atom("Light")))
        yield "every 5 s, outer", self._over(s.Every(5_000), outer, BY_ROOM, ["Count"], "Door")

    def _over(
        self,
        window: s.Window,
        operand: s.Pattern,
        keys: tuple[str, ...],
        aggregates: list[str],
        of: str = "",
    ) -> s.Spec:
        name = of or s.atoms_of(operand)[0].name
        assign: s.Assignments = tuple(
            (f"v{at}", s.Aggregate(one, name, "value", 0.9 if one == "Quantile" else None))
            for at, one in enumerate(aggregates)
        )
        if keys:
            assign += (("location", s.Ref("group", "location")),)
        made = s.Definition("W", (s.Case(operand, None, assign, (), keys),), window)
        return _spec(s.Case(s.Atom("W")), (made,))

    def _stacked(self) -> Iterator[tuple[str, s.Spec]]:
        room = (("location", s.Ref("group", "location")),)
        mean = (("mean", s.Aggregate("Avg", "Temperature", "value")), *room)
        hourly = s.Definition(
            "W", (s.Case(s.Atom("Temperature"), None, mean, (), BY_ROOM),), s.Every(5_000)
        )
        rises = s.Compare((">",), (s.Ref("b", "mean"), s.Ref("a", "mean")))
        pair = s.Pair("then", s.Atom("W", (), "a"), s.Atom("W", (), "b"), next=True)
        case = s.Case(s.Suffixed(pair, (s.Within(20_000), s.Where(rises))), group_by=BY_ROOM)
        yield "window then[next] window", _spec(case, (hourly,))
        first, _ = self._types(2)
        pattern = _within(s.Pair("then", first, _hot(above=20.0)))
        made = s.Definition("P", (s.Case(pattern, None, room, (), BY_ROOM),))
        count = (("n", s.Aggregate("Count", "P")), *room)
        counted = s.Definition(
            "W", (s.Case(s.Atom("P"), None, count, (), BY_ROOM),), s.Every(5_000)
        )
        yield "window over a sequence", _spec(s.Case(s.Atom("W")), (made, counted))
        partial = (("n", s.Aggregate("Count", "Temperature")), *room)
        post = s.Post((("n", s.Aggregate("Sum", None, "n")),))
        window = s.Definition(
            "W",
            (s.Case(s.Atom("Temperature"), None, partial, (), BY_ROOM),),
            s.Every(500),
            post,
        )
        yield "pre and post", _spec(s.Case(s.Atom("W")), (window,))
        yield (
            "definition then reading",
            _spec(
                s.Case(
                    _within(s.Pair("then", s.Atom("P"), _hot(above=28.0))),
                    "recent",
                    group_by=BY_ROOM,
                ),
                (made,),
            ),
        )
