"""How much work it is to install a text, counted beforehand.

Owns the measure. Must not know who installs. Invariant: it grows with all that makes installing
take long, so that a limit on it is one on the time for which nothing else happens.

One unit is some 25 µs of a desktop's core. A case costs 10 and the square of the events that its
pattern binds (each operator compares those on its left with those on its right); besides, three
parts of a text's tree cost one, and so do three attributes of a declared type.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from language.tree import Atom, Definition
from language.walk import descendants

if TYPE_CHECKING:
    from language import EventType
    from language.taskgraph import Task
    from language.tree import Case

CASE = 10
PARTS = 3  # of a tree, or attributes, that cost one


def effort(tasks: Iterable[Task], types: Iterable[EventType]) -> int:
    """The units of installing these tasks and declaring these types."""
    attributes = sum([len(one.attributes) for one in types])
    cases = [case for task in tasks for case in _cases(task)]
    return attributes // PARTS + sum(map(_of_case, cases))


def _cases(task: Task) -> tuple[Case, ...]:
    node = task.node
    return tuple(node.cases) if isinstance(node, Definition) else (node.case,)


def _of_case(case: Case) -> int:
    places = parts = 0
    for node in descendants(case):
        parts += 1
        places += isinstance(node, Atom)
    return CASE + places**2 + parts // PARTS
