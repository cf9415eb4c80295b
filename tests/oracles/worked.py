"""The form of a worked case, and short ways to write traces and patterns.

Owns: how worked cases are written. Must not know: any matcher.
Invariant: what is expected is written by hand from the language's description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.oracles import spec as s

ATTRIBUTES: tuple[tuple[str, s.AttributeType], ...] = (
    ("n", "int"),
    ("m", "int"),
    ("v", "float"),
    ("tag", "text"),
)


@dataclass(frozen=True)
class Expected:
    """What one result must say; None leaves a part unsaid.

    `primitives`: alias -> ids of the primitive events in what is bound, in order; for an alias of
    a primitive type that is also what `events` must list.
    """

    primitives: Mapping[str, list[str]]
    subscription: str = "S"
    start: int | None = None
    end: int | None = None
    group: Mapping[str, Any] | None = None
    values: Mapping[str, Any] | None = None
    certainty: str | None = None


@dataclass(frozen=True)
class WorkedCase:
    """A specification as text and as data, a trace, and the results in order.

    `defined` names the aliases of defined types, whose `events` are ids that the product makes.
    """

    name: str
    text: str
    spec: s.Spec
    events: list[dict[str, Any]]
    expected: tuple[Expected, ...]
    defined: frozenset[str] = field(default_factory=frozenset)


def event(token: str, **more: Any) -> dict[str, Any]:
    """`b2` is a B at 2 s, `d1-3` a D from 1 s to 3 s; the token is its id."""
    letter, times = token[0], token[1:]
    made: dict[str, Any] = {"type": letter.upper(), "id": token, "source": "s1"}
    if "-" in times:
        start, end = times.split("-")
        made |= {"start": int(start) * 1000, "end": int(end) * 1000}
    else:
        made["timestamp"] = int(times) * 1000
    return made | more


def trace(tokens: str) -> list[dict[str, Any]]:
    """Events without attributes, written as tokens."""
    return [event(token) for token in tokens.split()]


def types(names: str) -> tuple[s.EventType, ...]:
    """Types that all have the same attributes."""
    return tuple(s.EventType(name, ATTRIBUTES) for name in names.split())


def head(names: str) -> str:
    """The declarations of `types` as text."""
    listed = ", ".join(f"{name}: {kind}" for name, kind in ATTRIBUTES)
    return "".join(f"event {name}({listed})\n" for name in names.split())


def single(
    name: str,
    detect: str,
    pattern: s.Pattern,
    events: list[dict[str, Any]],
    expected: tuple[Expected, ...],
    **more: Any,
) -> WorkedCase:
    """A case of one subscription S over the types A to D; `detect` is its text from there on.

    `more` goes to the `Case`, but `sets` and `regions` (with their text in `declared`) to the file.
    """
    declared = more.pop("declared", "")
    file = {key: more.pop(key) for key in ("sets", "regions") if key in more}
    case = s.Case(pattern, **more)
    spec = s.Spec(types("A B C D"), (s.Subscription("S", case),), **file)
    text = f"{head('A B C D')}{declared}subscription S from tester to out\n{detect}\n"
    return WorkedCase(name, text, spec, events, expected)


def found(*places: str, **more: Any) -> tuple[Expected, ...]:
    """One result per text such as `a1 b2`: the ids bound to the types of the letters."""
    return tuple(
        Expected({token[0].upper(): [token] for token in place.split()}, **more) for place in places
    )


def a(type_name: str, *conditions: s.Expr, alias: str | None = None) -> s.Atom:
    """An atom."""
    return s.Atom(type_name, conditions, alias)


def then(left: s.Pattern, right: s.Pattern, **more: Any) -> s.Pair:
    """`left then right`."""
    return s.Pair("then", left, right, **more)


def both(left: s.Pattern, right: s.Pattern, **more: Any) -> s.Pair:
    """`left and right`."""
    return s.Pair("and", left, right, **more)


def own(name: str) -> s.Ref:
    """A bare name."""
    return s.Ref(None, name)


def ref(dotted: str) -> s.Ref:
    """`alias.name`."""
    alias, name = dotted.split(".")
    return s.Ref(alias, name)


def compare(left: s.Expr, op: str, right: s.Expr) -> s.Compare:
    """One comparison."""
    return s.Compare((op,), (left, right))
