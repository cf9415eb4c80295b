"""A specification cut into what can run apart: parts that share no task, and each by its key.

Owns the inference of both, and to which shard an event goes. Must not know Spark. Invariant: shards
together find what the whole specification finds in the same events, each result in one of them.

    moves.hw ─┬─ Unpaid:    shelf, exit and counter agree in tagID ─▶ shard 0/0 … 0/15
              └─ Wandering: grouped by tagID ───────────────────────▶ shard 1/0 … 1/15

A key is a name by which all tasks of a part are grouped, or in which all events of a pattern have
to agree, so that no two events that differ in it ever meet. A detected event has to carry it on.
Its values are spread over a fixed number of shards, not one state a value: a shard's engine keeps
apart what it groups anyway, and loading the state of each of thousands of tags would cost more than
what is detected. How many partitions Spark has for them does not matter to what a shard holds.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from language import Specification, Task
from language.printing.items import item_text
from language.relations import UNRESTRICTED
from language.tree import (
    Atom,
    Attribute,
    Case,
    Comparison,
    Definition,
    Expression,
    Link,
    Logical,
    Pattern,
    Subscription,
    Where,
    Within,
)
from server.detection.program import DetectionProgram, specification_of

SHARDS: Final = 16  # of a part; in checkpoints, so it stays
JOINING: Final = frozenset({"then", "before", "and", "without"})


@dataclass(frozen=True)
class ProgramPart:
    """Subscriptions that share tasks, as a program; `key` None: all its events meet in one place.

    `types` are those of the events that come in.
    """

    program: DetectionProgram
    names: tuple[str, ...]
    key: str | None
    types: frozenset[str]

    def shard(self, event: Mapping[str, Any]) -> int | None:
        """Return where an event goes; None where it can be in no result."""
        if event.get("type") not in self.types:
            return None
        if self.key is None:
            return 0
        value = event.get(self.key)
        return None if value is None else zlib.crc32(_digest(value)) % SHARDS


def _digest(value: object) -> bytes:
    """Return the same for values that are equal: 1 and 1.0 are."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return repr(float(value)).encode()
        except OverflowError:
            pass
    return repr(value).encode()


@dataclass(frozen=True)
class Shards:
    """The parts of a program, as they run apart; plain data, so that it can be sent anywhere."""

    program: DetectionProgram
    parts: tuple[ProgramPart, ...]

    @property
    def worthwhile(self) -> bool:
        """Return whether anything runs apart."""
        return len(self.parts) > 1 or self.parts[0].key is not None

    @property
    def spread(self) -> bool:
        """Return whether no engine gets all of its part's events."""
        return all(part.key is not None for part in self.parts)

    def keys(self, event: Mapping[str, Any]) -> Iterator[str]:
        """Yield the keys of the shards to which an event goes."""
        for number, part in enumerate(self.parts):
            shard = part.shard(event)
            if shard is not None:
                yield f"{number}/{shard}"

    def program_of(self, key: str) -> DetectionProgram:
        """Return the program that runs under a key."""
        return self.parts[int(key.partition("/")[0])].program


def shards_of(program: DetectionProgram) -> Shards:
    """Return how a program runs apart."""
    return Shards(program, parts_of(program))


def parts_of(program: DetectionProgram) -> tuple[ProgramPart, ...]:
    """Return the parts of a program, in the order of its text."""
    specification = specification_of(program)
    parts = []
    for roots in _components(specification):
        tasks = _tasks(specification, roots)
        needed = {key for task in tasks for key in task.needs.values()}
        names = {task.name for task in tasks if task.key in roots}
        items = [
            item for item in specification.file.items
            if not isinstance(item, Subscription) or item.name in names
        ]  # fmt: skip
        text = "\n".join(item_text(item) for item in items) + "\n"
        keys = [_keys(task, needed=task.key in needed) for task in tasks]
        shared = [name for name in keys[0] if all(name in others for others in keys[1:])]
        types = {name for task in tasks for name in task.inputs if name not in task.needs}
        parts.append(
            ProgramPart(
                replace(program, text=text),
                tuple(task.name for task in tasks if task.key in roots),
                next(iter(shared), None),
                frozenset(types),
            )
        )
    return tuple(parts)


def _components(specification: Specification) -> list[list[str]]:
    """Return the subscriptions' tasks, those together that share a definition."""
    components: list[tuple[list[str], set[str]]] = []
    for root in specification.graph.roots:
        roots, needs = [root], set(specification.graph.active([root]))
        apart = []
        for others, needed in components:
            if needs & needed:
                roots, needs = others + roots, needs | needed
            else:
                apart.append((others, needed))
        components = [*apart, (roots, needs)]
    order = {root: place for place, root in enumerate(specification.graph.roots)}
    return sorted((roots for roots, _ in components), key=lambda roots: order[roots[0]])


def _tasks(specification: Specification, roots: list[str]) -> list[Task]:
    graph = specification.graph
    return [graph.tasks[key] for key in (*graph.active(roots), *roots)]


# --- keys ----------------------------------------------------------------------------------------


def _keys(task: Task, *, needed: bool) -> list[str]:
    """Return the names by which events of a task are kept apart, and that its results carry."""
    node = task.node
    if isinstance(node, Subscription):
        if node.for_ms is not None:  # it ends so long after its first event, whatever the key
            return []
        names = _case_keys(node.case)
        thinned = node.at_most is not None
        return [name for name in names if name in node.case.group_by or not thinned]
    keys = [_case_keys(case) if node.window is None else list(case.group_by) for case in node.cases]
    shared = [name for name in keys[0] if all(name in others for others in keys[1:])]
    if node.post is not None:
        shared = [name for name in shared if name in node.post.group_by]
    return [name for name in shared if not needed or _carries(node, name)]


def _case_keys(case: Case) -> list[str]:
    """Return what a case is grouped by, then what all events of its pattern agree in."""
    detect = case.detect
    agreed = _agreed(detect.pattern) if (
        detect.context == UNRESTRICTED.name and detect.report == "all" and not case.consuming
    ) else []  # fmt: skip
    return [*case.group_by, *(name for name in agreed if name not in case.group_by)]


def _agreed(pattern: Pattern) -> list[str]:
    """Return the names of attributes that conditions make equal for all events of a pattern.

    Nothing where events of other keys could decide what is chosen, as with `next` or lists.
    """
    aliases: list[str] = []
    conditions: list[Expression] = []
    if not _plain(pattern, aliases, conditions):
        return []
    pairs: dict[str, list[tuple[str, str]]] = {}
    for condition in conditions:
        for left, right in _equalities(condition):
            if left.name == right.name:
                pairs.setdefault(left.name, []).append((left.base, right.base))
    return [name for name, joined in pairs.items() if _all_joined(aliases, joined)]


def _plain(pattern: Pattern, aliases: list[str], conditions: list[Expression]) -> bool:
    """Collect aliases and conditions; False where the pattern has more than joined events."""
    if isinstance(pattern, Atom):
        aliases.append(pattern.alias or pattern.type)
        return True
    if isinstance(pattern, Where):
        conditions.append(pattern.condition)
        return _plain(pattern.operand, aliases, conditions)
    if isinstance(pattern, Within):
        return _plain(pattern.operand, aliases, conditions)
    if not isinstance(pattern, Link) or pattern.operator not in JOINING or pattern.next:
        return False
    if pattern.context not in {None, UNRESTRICTED.name}:
        return False
    sides = (pattern.left, pattern.right)
    return all(_plain(side, aliases, conditions) for side in sides)


def _equalities(condition: Expression) -> Iterator[tuple[Attribute, Attribute]]:
    """Yield the attributes that a condition makes equal wherever it holds."""
    if isinstance(condition, Logical) and condition.operator == "and":
        for operand in condition.operands:
            yield from _equalities(operand)
    elif isinstance(condition, Comparison) and set(condition.operators) == {"="}:
        attributes = [each for each in condition.operands if isinstance(each, Attribute)]
        if len(attributes) == len(condition.operands):
            yield from pairwise(attributes)


def _all_joined(aliases: Iterable[str], pairs: Iterable[tuple[str, str]]) -> bool:
    """Return whether all aliases are one by these pairs, directly or through others."""
    names = {alias: alias for alias in aliases}
    for left, right in pairs:
        if left in names and right in names:
            former, latter = names[left], names[right]
            names = {alias: latter if name == former else name for alias, name in names.items()}
    return len(set(names.values())) == 1


def _carries(node: Definition, key: str) -> bool:
    """Return whether what a definition makes has the key of what it was made of."""
    if node.post is not None:
        return _assigned(node.post.assign, key, {"group"})
    carried = []
    for case in node.cases:
        aliases: list[str] = []
        agreed = key not in case.group_by and _plain(case.detect.pattern, aliases, [])
        carried.append(_assigned(case.assign, key, {"group", *aliases} if agreed else {"group"}))
    return all(carried)


def _assigned(assignments: Iterable[Any], key: str, bases: set[str]) -> bool:
    values = {each.name: each.value for each in assignments}
    value = values.get(key)
    return isinstance(value, Attribute) and value.name == key and value.base in bases
