"""Which sources a task listens to, and what of a type's events several tasks want together.

Owns the judging of conditions that a source alone decides, and the contents: the parts of a type
that the same tasks want. Must not know rates of tasks or brokers' limits. Invariant: an event of a
source belongs to one content of its type at most, and each task that wants it has that content.

Where two tasks pass different parts of one source's events, the smaller part is taken to lie within
the larger (as with two thresholds): what both want travels once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from language import tree
from planner.problem import Number
from simulation.rehearsal.description import Described, Source

Judged = bool | None
"""None: the source alone does not decide it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One place of a task's pattern: the type, and all that must hold of an event there."""

    type: str
    conditions: tuple[tree.Expression, ...]


@dataclass
class Content:
    """A part of a type's events and who wants it; by origin: events and bytes a second."""

    id: str
    type: str
    wanted: tuple[str, ...]
    per_s: dict[str, Number] = field(default_factory=dict)
    bytes_per_s: dict[str, Number] = field(default_factory=dict)
    sources: dict[str, dict[str, Source]] = field(default_factory=dict)


def asked(item: tree.Definition | tree.Subscription) -> list[Asked]:
    """The places of all cases of an item."""
    cases = item.cases if isinstance(item, tree.Definition) else (item.case,)
    return [one for case in cases for one in _places(case.detect.pattern, ())]


def _places(pattern: tree.Node, held: tuple[tree.Expression, ...]) -> Iterator[Asked]:
    if isinstance(pattern, tree.Atom):
        yield Asked(pattern.type, (*pattern.conditions, *held))
        return
    if isinstance(pattern, tree.InRegion):
        name = "location" if _is_path(pattern.region) else "position"
        held = (*held, tree.Membership(tree.Name(name), pattern.region))
    for name in ("left", "right", "operand"):
        part = getattr(pattern, name, None)
        if isinstance(part, tree.Node):
            yield from _places(part, held)


def _is_path(region: object) -> bool:
    return isinstance(region, tree.RegionLiteral) and region.shape == "path"


def passes(places: Iterable[Asked], source: Source, event_type: str) -> tuple[bool, bool]:
    """Tell whether any place takes events of a source, and whether some take every one of them."""
    some = every = False
    for one in places:
        if one.type == event_type:
            judged = [_judge(condition, source) for condition in one.conditions]
            if False not in judged:
                some = True
                every = every or None not in judged
    return some, every


def _judge(condition: tree.Expression, source: Source) -> Judged:
    if isinstance(condition, tree.Logical):
        found = [_judge(part, source) for part in condition.operands]
        decided = condition.operator == "or"
        if decided in found:
            return decided
        return None if None in found else not decided
    if isinstance(condition, tree.Unary) and condition.operator == "not":
        inner = _judge(condition.operand, source)
        return None if inner is None else not inner
    if isinstance(condition, tree.Membership) and isinstance(condition.item, tree.Name):
        return _member(condition.item.name, condition.container, source)
    if isinstance(condition, tree.Comparison) and len(condition.operands) == 2:
        return _equal(condition, source)
    return None


def _value(name: str, source: Source) -> str | None:
    if name in {"source", "srcid"}:
        return source.id if source.count == 1 else None
    return source.location if name == "location" else None


def _member(name: str, container: tree.Node, source: Source) -> Judged:
    value = _value(name, source)
    if value is None:
        return None
    if isinstance(container, tree.SetLiteral):
        return any(member.value == value for member in container.members)
    if isinstance(container, tree.RegionLiteral) and container.shape == "path":
        return value == container.path or value.startswith(f"{container.path}/")
    return None


def _equal(condition: tree.Comparison, source: Source) -> Judged:
    left, right = condition.operands
    if isinstance(right, tree.Name):
        left, right = right, left
    if condition.operators[0] not in {"=", "!="}:
        return None
    if not (isinstance(left, tree.Name) and isinstance(right, tree.Constant)):
        return None
    value = _value(left.name, source)
    if value is None:
        return None
    return (value == right.value) == (condition.operators[0] == "=")


def contents_of(
    wants: Mapping[str, Sequence[Asked]], names: Mapping[str, str], network: Described
) -> list[Content]:
    """The contents of all declared types that the tasks want; `names` are the tasks' by key.

    A type that everybody wants whole is one content, called by the type's own name.
    """
    types = dict.fromkeys(one.type for places in wants.values() for one in places)
    found: list[Content] = []
    for event_type in types:
        parts: dict[tuple[str, ...], Content] = {}
        for source in network.sources:
            if event_type in source.types:
                for wanted, part in _parts(event_type, source, wants, names, network):
                    content = parts.setdefault(wanted, Content("", event_type, wanted))
                    _add(content, source, part)
        for number, content in enumerate(parts.values()):
            content.id = event_type if not number else f"{event_type}~{number + 1}"
        found += parts.values()
    return found


def _parts(
    event_type: str,
    source: Source,
    wants: Mapping[str, Sequence[Asked]],
    names: Mapping[str, str],
    network: Described,
) -> list[tuple[tuple[str, ...], Number]]:
    """The parts of a source's events by who wants them, the smallest part within the next."""
    shares: dict[str, Number] = {}
    for key, places in wants.items():
        some, every = passes(places, source, event_type)
        if some:
            estimate = network.estimates.get(names[key])
            told = None if estimate is None else estimate.only.get(event_type)
            shares[key] = 1 if every or told is None else told
    found: list[tuple[tuple[str, ...], Number]] = []
    before: Number = 0
    for share in sorted(set(shares.values())):
        wanted = tuple(key for key, own in shares.items() if own >= share)
        if share > before:
            found.append((wanted, share - before))
        before = share
    return found


def _add(content: Content, source: Source, part: Number) -> None:
    sending, origin = source.types[content.type], source.broker
    per_s = sending.per_s * source.count * part
    content.per_s[origin] = content.per_s.get(origin, 0) + per_s
    content.bytes_per_s[origin] = content.bytes_per_s.get(origin, 0) + per_s * sending.bytes
    content.sources.setdefault(origin, {})[source.id] = source
