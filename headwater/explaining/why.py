"""Why a subscription has no result: how far its pattern got, and those of its definitions.

Owns the way from a task to what is told of it. Must not know files or output. Invariant: a
definition that detected nothing is told of once, beneath the first that needed it.
"""

from __future__ import annotations

from broker.engine.pattern.layout.operands import Count, Joint, operands
from broker.engine.pattern.layout.pattern import Layout, lay_out
from headwater.explaining.funnel import KEPT_MAX, Funnel, Walk
from headwater.explaining.pairs import PAIRS_MAX
from headwater.explaining.record import EVENTS_MAX, ReplayRecord
from headwater.explaining.words import counted
from language import Specification, Task
from language.tree import Case, Definition, Subscription


def how_far(
    specification: Specification, record: ReplayRecord, task: Task
) -> tuple[list[str], bool]:
    """Return lines about a task that gave nothing, and whether only a sample was seen."""
    seeker = _Seeker(specification, record)
    seeker.task(task, "")
    return seeker.lines, seeker.sampled


class _Seeker:
    """One explanation on its way."""

    def __init__(self, specification: Specification, record: ReplayRecord) -> None:
        self._graph = specification.graph
        self._record = record
        self._told: dict[str, None] = {}
        self.lines: list[str] = []
        self.sampled = False

    def task(self, task: Task, indent: str) -> None:
        """A task that gave nothing."""
        node = task.node
        cases = node.cases if isinstance(node, Definition) else (node.case,)
        for case in cases:
            inner = indent
            if len(cases) > 1:
                self.lines.append(f"{indent}case {case.number}:")
                inner = indent + "  "
            self._case(task, case, inner)
        for name, key in task.needs.items():
            if not self._record.events[name].count and key not in self._told:
                self._told[key] = None
                self.lines.append(f"{indent}{name} was never detected:")
                self.task(self._graph.tasks[key], indent + "  ")

    def _case(self, task: Task, case: Case, indent: str) -> None:
        layout = lay_out(case)
        types = dict.fromkeys(leaf.event_type for leaf in layout.leaves)
        seen = [self._record.events[name] for name in types]
        self.sampled = self.sampled or any(sample.count > len(sample.kept) for sample in seen)
        samples = {name: self._record.events[name].kept for name in types}
        walk = Walk(layout, case.group_by, samples, self._record.first)
        node = task.node
        window = node.window if isinstance(node, Definition) else None
        if window is not None and window.aggregated:
            funnel = walk.leaves()
            lines = [*funnel.lines, "no window had an event of each operand that is not `outer`"]
        else:
            funnel = walk.run()
            lines = [*funnel.lines, *self._choices(task, case, layout, funnel)]
        self.sampled = self.sampled or funnel.sampled
        self.lines += [indent + line for line in lines]

    def _choices(self, task: Task, case: Case, layout: Layout, funnel: Funnel) -> list[str]:
        """List what may have left nothing of the candidates that met all conditions."""
        if not funnel.left:
            return []
        choices = [
            f"`{joint.operator}[{joint.context.name}]`"
            for joint in operands(layout.root)
            if isinstance(joint, Joint) and joint.operator != "or" and joint.context.chooses
        ]
        choices += [
            f"`{word}`"
            for joint in operands(layout.root)
            if isinstance(joint, Joint)
            for word, asked in (("next", joint.next), (f"nth {joint.nth}", joint.nth is not None))
            if asked
        ]
        choices += ["`last`"] if layout.last else []
        choices += ["`first`"] if layout.first else []
        choices += ["`consuming`"] if case.consuming else []
        counts = [
            count for count in operands(layout.root) if isinstance(count, Count) and count.disjoint
        ]
        choices += [f"`{{{count.count}}}`, whose rows are disjoint" for count in counts]
        choices += ["`maybe drop`"] if case.detect.maybe_drop else []
        node = task.node
        if isinstance(node, Subscription):
            choices += ["its end (`for` or `until`)"] if node.for_ms or node.until_ms else []
        met = f"{counted(funnel.left, 'candidate')} met every condition that was looked at"
        if not choices:
            return [met]
        return [f"{met}; then {', '.join(dict.fromkeys(choices))} left none"]


def limits_text() -> str:
    """Return the sentence that says what a sample is."""
    return (
        f"this is of a sample: the first {EVENTS_MAX:,} events of each type, at most {KEPT_MAX:,}"
        f" occurrences of an operand in a group, and of the pairs of an operator {PAIRS_MAX:,},"
        " the nearest in time"
    )
