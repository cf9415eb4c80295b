"""A task as steps: source, filter, stamp, detect, sink.

Owns the reading of a task's layout as a tree of steps. Must not know how steps are drawn.
Invariant: a step's inputs are in the order of the text; a suffix is told at the outermost step that
has it.

Per case of a task there is one tree. Its root is the sink; each leaf is a source. Between source
and operators stand the filter, which looks at the event alone, and the stamp, which gives it its
partition and its turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from broker.engine.pattern.layout import operands as ops
from broker.engine.pattern.layout.operands import Operand
from broker.engine.pattern.layout.pattern import Layout, lay_out
from broker.engine.window.plan import read_operands
from language import Specification, Task
from language.printing.expressions import (
    container_text,
    distance_text,
    duration_text,
    expression_text,
    name_text,
)
from language.printing.items import window_lengths
from language.printing.patterns import bound_text
from language.tree import Case, Definition, Subscription, Window

Kind = Literal["source", "filter", "stamp", "detect", "sink"]


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a plan: what it is, what it is told with, and where its input comes from."""

    kind: Kind
    title: str
    details: tuple[str, ...] = ()
    inputs: tuple[PlanStep, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As programs get it."""
        return {
            "kind": self.kind,
            "title": self.title,
            "details": list(self.details),
            "inputs": [step.to_dict() for step in self.inputs],
        }


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """The steps of one case of one task."""

    task: Task
    case: int
    heading: str
    root: PlanStep

    def to_dict(self) -> dict[str, Any]:
        """As programs get it."""
        return {
            "kind": self.task.kind,
            "name": self.task.name,
            "case": self.case,
            "steps": self.root.to_dict(),
        }


def plans_of(specification: Specification) -> list[TaskPlan]:
    """The plans of all that runs, definitions before their users; those that nobody needs last."""
    graph = specification.graph
    active = graph.active(graph.roots)
    idle = [key for key in graph.tasks if key not in {*active, *graph.roots}]
    users: dict[str, list[str]] = {}
    for key in (*active, *graph.roots):
        for need in graph.tasks[key].needs.values():
            users.setdefault(need, []).append(graph.tasks[key].name)
    plans = []
    for key in (*active, *graph.roots, *idle):
        task = graph.tasks[key]
        node = task.node
        cases = node.cases if isinstance(node, Definition) else (node.case,)
        for case in cases:
            heading = _heading(task, users.get(key, []))
            if len(cases) > 1:
                heading += f", case {case.number}"
            plans.append(TaskPlan(task, case.number, heading, _sink(task, case)))
    return plans


def _heading(task: Task, users: Sequence[str]) -> str:
    if isinstance(task.node, Subscription):
        return f"subscription {task.name} of {task.node.subscriber}"
    used = ", ".join(dict.fromkeys(users))
    return f"definition {task.name}, " + (f"needed by {used}" if used else "needed by nobody")


# --- the sink ---------------------------------------------------------------------------------


def _sink(task: Task, case: Case) -> PlanStep:
    node = task.node
    details = [
        f"{assignment.name} = {expression_text(assignment.value)}" for assignment in case.assign
    ]
    if case.consuming:
        details.append(f"consuming {', '.join(map(name_text, case.consuming))}")
    detect = case.detect
    details += ["maybe drop"] if detect.maybe_drop else []
    details += [detect.report] if detect.report != "all" else []
    if isinstance(node, Definition):
        body = _detected(task, case, node.window)
        title = f"event {name_text(task.name)}"
        if node.post is not None:
            details = [f"pre: {detail}" for detail in details]
            assigned = (
                f"{assignment.name} = {expression_text(assignment.value)}"
                for assignment in node.post.assign
            )
            details += [f"post: {assignment}" for assignment in assigned]
        return PlanStep("sink", title, tuple(details), (body,))
    if node.for_ms is not None:
        details.append(f"for {duration_text(node.for_ms)}")
    if node.until_ms is not None:
        details.append(f"until {node.until_ms}")
    if node.at_most is not None:
        details.append(f"at most {node.at_most.count} per {duration_text(node.at_most.per_ms)}")
    actor = node.actor
    title = f"actor {'nearest ' if actor.nearest else ''}{actor.name}"
    title += f" of group.{actor.group_key}" if actor.group_key is not None else ""
    return PlanStep("sink", title, tuple(details), (_pattern(task, case),))


def _detected(task: Task, case: Case, window: Window | None) -> PlanStep:
    if window is None:
        return _pattern(task, case)
    if window.aggregated:
        return _window(task, case, window)
    return PlanStep(
        "detect", _window_title(window), ("told at each tick",), (_pattern(task, case),)
    )


def _window_title(window: Window) -> str:
    parts = []
    if window.every_days is not None:
        parts.append(f"every {window.every_days} days in {window.zone}")
    return " ".join(parts + window_lengths(window))


def _window(task: Task, case: Case, window: Window) -> PlanStep:
    stamp = _stamp(case, "set aside until the window closes")
    inputs = []
    for operand in read_operands(case.detect.pattern):
        marks = ["outer"] if operand.outer else []
        if operand.distinct is not None:
            marks.append(f"distinct({', '.join(map(name_text, operand.distinct))})")
        tests = [expression_text(condition) for condition in operand.conditions]
        inputs.append(_chain(_source(task, operand.event_type, operand.name, marks), tests, stamp))
    return PlanStep("detect", f"window {_window_title(window)}", (), tuple(inputs))


# --- patterns ---------------------------------------------------------------------------------


def waits(task: Task, case: Case, layout: Layout) -> bool:
    """Tell whether the case's agent waits for the watermark; else it reports at once.

    At once is told what no event that is still to come can change.
    """
    if case.consuming or case.detect.report != "all" or layout.last or layout.first:
        return True
    node = task.node
    if isinstance(node, Subscription) and (node.at_most, node.for_ms, node.until_ms) != (None,) * 3:
        return True
    for operand in ops.operands(layout.root):
        if isinstance(operand, ops.Joint):
            chosen = operand.operator != "or" and operand.context.chooses
            if chosen or operand.next or operand.nth is not None:
                return True
        elif not isinstance(operand, ops.Leaf):
            return True
    return False


def _pattern(task: Task, case: Case) -> PlanStep:
    layout = lay_out(case)
    turn = "waits for its turn" if waits(task, case, layout) else "taken at once"
    step = _Pattern(task, layout, _stamp(case, turn)).step(layout.root, None)
    return step if step.kind == "detect" else PlanStep("detect", "each event", (), (step,))


def _stamp(case: Case, turn: str) -> PlanStep:
    keys = ", ".join(map(name_text, case.group_by))
    return PlanStep("stamp", f"by {keys}" if keys else "one partition", (turn,))


def _chain(source: PlanStep, tests: Sequence[str], stamp: PlanStep) -> PlanStep:
    """The way of a leaf's events: source, filter where there is one, stamp."""
    if tests:
        source = PlanStep("filter", tests[0], tuple(tests[1:]), (source,))
    return PlanStep("stamp", stamp.title, stamp.details, (source,))


def _source(task: Task, event_type: str, name: str, marks: Sequence[str] = ()) -> PlanStep:
    details = [f"as {name_text(name)}"] if name != event_type else []
    if event_type in task.needs:
        details.append("by its definition")
    return PlanStep("source", name_text(event_type), (*details, *marks))


class _Pattern:
    """Reads the operands of one layout."""

    def __init__(self, task: Task, layout: Layout, stamp: PlanStep) -> None:
        self._task = task
        self._layout = layout
        self._stamp = stamp
        self._names = {place: name for name, place in layout.places.items()}

    def step(self, operand: Operand, above: Operand | None) -> PlanStep:
        """The step of an operand; `above` is the operand around it, whose suffixes it shares."""
        if isinstance(operand, ops.Leaf):
            return self._leaf(operand, above)
        if isinstance(operand, ops.Padded):
            return self.step(operand.operand, above)
        title, details = title_of(operand)
        own = (*details, *self._suffixes(operand, above), *self._marks(operand))
        if isinstance(operand, ops.Gathered):
            return PlanStep("detect", title, own, self._gathered(operand))
        beneath = None if isinstance(operand, ops.Silence) else operand
        parts = [self.step(part, beneath) for part in operand.parts]
        return PlanStep("detect", title, own, tuple(parts))

    def _leaf(self, leaf: ops.Leaf, above: Operand | None) -> PlanStep:
        tests = [expression_text(condition) for condition in leaf.conditions]
        tests += [f"in {container_text(region)}" for region in leaf.regions]
        tests += self._suffixes(leaf, above)
        source = _source(self._task, leaf.event_type, leaf.name, self._marks(leaf))
        return _chain(source, tests, self._stamp)

    def _gathered(self, gathered: ops.Gathered) -> tuple[PlanStep, ...]:
        """The chain's other elements, then each list."""
        steps = [self.step(gathered.base, gathered)]
        for member in gathered.members:
            details = []
            for bound, side in ((member.after_bound, "before"), (member.before_bound, "after")):
                if bound is not None:
                    details.append(f"gap {side} it {bound_text(bound)}")
            details += [f"where {expression_text(conjunct)}" for conjunct in member.conjuncts]
            title = "list, perhaps none" if member.optional else "list, one or more"
            inner = self.step(member.operand, gathered)
            steps.append(PlanStep("detect", title, tuple(details), (inner,)))
        return tuple(steps)

    def _suffixes(self, operand: Operand, above: Operand | None) -> list[str]:
        """List what is asked of an operand beside its kind, without what is asked above it too."""
        suffixes = []
        if operand.within_ms is not None and not (above and above.within_ms == operand.within_ms):
            suffixes.append(f"within {duration_text(operand.within_ms)}")
        if operand.spread_m is not None and not (above and above.spread_m == operand.spread_m):
            suffixes.append(f"spread {distance_text(operand.spread_m)}")
        for place, within_ms in operand.anchors:
            if not (above and (place, within_ms) in above.anchors):
                suffixes.append(f"within {duration_text(within_ms)} from {self._names[place]}")
        return suffixes + [f"where {expression_text(conjunct)}" for conjunct in operand.conjuncts]

    def _marks(self, operand: Operand) -> list[str]:
        """`last` and `first`, which choose among whole occurrences."""
        where = (operand.low, operand.high)
        chosen = (("last", self._layout.last), ("first", self._layout.first))
        return [name for name, ranges in chosen if where in ranges]


def title_of(operand: Operand) -> tuple[str, list[str]]:
    """Return an operator's name with its options, and what else is asked of it."""
    if isinstance(operand, ops.Joint):
        options = [] if operand.bound is None else [bound_text(operand.bound)]
        options += ["next"] if operand.next else []
        options += [operand.context.name] if operand.context.chooses else []
        title = operand.operator + (f"[{', '.join(options)}]" if options else "")
        return title, [] if operand.nth is None else [f"nth {operand.nth} after its left"]
    if isinstance(operand, ops.Negation):
        window_ms = operand.window_ms
        return "without" + ("" if window_ms is None else f"[{duration_text(window_ms)}]"), []
    if isinstance(operand, ops.Silence):
        return f"absent for {duration_text(operand.for_ms)}", []
    if isinstance(operand, ops.Count):
        return f"{operand.count} in a row", ["disjoint"] if operand.disjoint else []
    if isinstance(operand, ops.Run):
        low, high = operand.gap_low_ms, operand.gap_high_ms
        texts = ["" if bound_ms is None else duration_text(bound_ms) for bound_ms in (low, high)]
        return f"longest run, gaps {'..'.join(texts)}", []
    if isinstance(operand, ops.Kth):
        return f"nth {operand.k}", []
    if isinstance(operand, ops.Distinct):
        keys = ", ".join(map(name_text, operand.keys))
        window = [f"among the last {duration_text(operand.window_ms)}"]
        return f"distinct({keys})" if keys else "distinct", window if operand.window_ms else []
    return "with lists", []
