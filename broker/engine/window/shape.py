"""One windowed case, compiled: what both kinds of windows share.

Owns the compiled functions of a case and the window's limits. Must not know when windows close.
Invariant: a shape holds no events; its agents may be restored from any snapshot of the same case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from broker.engine.event.expressions import attribute_code
from broker.engine.event.source import Constants, build
from broker.engine.window.aggregates import hashable
from broker.engine.window.code import (
    Fold,
    Slide,
    compile_fold,
    compile_slide,
    new_in_pane,
    new_sliding,
)
from broker.engine.window.ids import IDS_CROWDED, IDS_MAX
from broker.engine.window.plan import Aggregation, OperandNames
from language.taskgraph import Task
from language.tree import Case

GROUPS_MAX = 100_000  # open (window, group) pairs of one agent: some 100 MB of running sums
EVENTS_MAX = 1_000_000  # events, or values kept for quantiles and distinct counts, of one agent
DURATION_MAX_MS = 7 * 86_400_000  # how long an input event may last

GROUPS_OVERFLOW = "window_groups_overflow"
EVENTS_OVERFLOW = "window_events_overflow"
CLOSED = "window_closed"
IDS_CUT = "window_ids_cut"  # groups whose lists of ids were kept short: ties may go another way
INVERTED = "start_after_end"
OUTSIDE = "outside_window"  # an assigned time puts the event outside its window

GROWING = frozenset({"bag", "distinct", "ordered"})  # what is kept that grows with the events


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """What one agent may hold; new groups and new events beyond are refused, and counted."""

    groups_max: int = GROUPS_MAX
    events_max: int = EVENTS_MAX
    duration_max_ms: int = DURATION_MAX_MS

    def ids(self, groups: int) -> int:
        """How many events of each group are kept for the sake of order, so many being open."""
        return IDS_MAX if 2 * IDS_MAX * groups <= self.events_max else IDS_CROWDED


class Shape:
    """The operands, groups and aggregates of one windowed case."""

    def __init__(self, task: Task, case: Case) -> None:
        self.names = OperandNames(case, task.types)
        self.aggregation = Aggregation(case.assign, self.names)
        operands = self.names.operands
        self.leaves = range(len(operands))
        self._asked = tuple(leaf for leaf in self.leaves if not operands[leaf].outer)
        self._always = not self._asked or len(operands) == 1  # a group has an event
        self.distinct_keys = [_distinct_key(operand.distinct) for operand in operands]
        self.distinct = any(key is not None for key in self.distinct_keys)
        # Only detected events can be of less than full certainty.
        self.detected = [operand.event_type in task.needs for operand in operands]
        self.growing = [self._growing(leaf) for leaf in self.leaves]
        self.grows = any(self.growing)

    def folds(self) -> list[Fold | None]:
        """For each leaf, the function that takes a run of its events into what a pane keeps."""
        return [compile_fold(self.aggregation, self.names, leaf) for leaf in self.leaves]

    def slides(self, method: str) -> list[Slide]:
        """For each leaf, the function that adds an event to what slides, or removes it."""
        return [compile_slide(self.aggregation, self.names, leaf, method) for leaf in self.leaves]

    def new_in_pane(self) -> list[Any]:
        """What a pane keeps of a group, empty."""
        return [new_in_pane(keeping) for keeping in self.aggregation.keepings]

    def new_sliding(self) -> list[Any]:
        """What a sliding window keeps of a group, empty."""
        return [new_sliding(keeping) for keeping in self.aggregation.keepings]

    def stands(self, counts: list[int]) -> bool:
        """Whether every operand that is not `outer` has an event (if all are, then any has)."""
        return self._always or all(counts[leaf] for leaf in self._asked)

    def grown(self, counts: list[int]) -> int:
        """How many values are kept of so many events of each leaf."""
        if not self.grows:
            return 0
        pairs = zip(counts, self.growing, strict=True)
        return sum([count * growing for count, growing in pairs])

    def _growing(self, leaf: int) -> int:
        """How many values are kept for each event of a leaf."""
        return sum(
            what in GROWING
            for argument in self.aggregation.arguments
            if argument.leaf == leaf
            for what in argument.kept
        )


def _distinct_key(names: tuple[str, ...] | None) -> Callable[[Any], Any] | None:
    """A function of an event: its keys, None where one is null, which equals nothing."""
    if names is None:
        return None
    constants = Constants()
    constants.helper("hashable", hashable)
    lines = ["def key_of(e):"]
    for at, name in enumerate(names):
        code, nullable = attribute_code("e", name)
        lines.append(f"    k{at} = hashable({code})")
        if nullable:
            lines.append(f"    if k{at} is None: return None")
    parts = "".join(f"k{at}, " for at in range(len(names)))
    lines.append(f"    return {'k0' if len(names) == 1 else f'({parts})'}")
    return build("\n".join(lines) + "\n", "key_of", constants)
