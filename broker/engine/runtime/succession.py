"""What a task takes over from the one of its name that it replaces.

Owns the comparison of two versions of a task, and the translation of the state of one into that of
the other. Must not know who submits texts, nor which version stays installed. Invariant: a task
that goes on reports from then on what it would have reported had it run from the beginning of the
other; where that is not so it begins anew.

Two versions are compared by meaning, as their canonical texts are: what a state depends on has to
be the same, and the rest may change. So what is detected, grouped and chosen stays; who gets it,
its `seq` and what is assigned may be others. Of what a changed definition detected before, its
users keep what they hold, as long as nothing that was assigned to it is assigned otherwise now:
an attribute that was added is null there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from broker.engine.pattern.agent.operand_states import KeptOperands, is_plain
from broker.engine.runtime.agents import input_name, output_name
from language.taskgraph import cases_of
from language.tree import Actor, Assignment, Case, Definition, Post, Subscription
from language.walk import bindings

if TYPE_CHECKING:
    from broker.engine.runtime.matcher import Matcher
    from broker.engine.window.code import Shape
    from language.taskgraph import Task

SPAN = frozenset(("timestamp", "start", "end"))
# What is known of every event: an operator above may ask for it in whatever text.
COMMON = SPAN | {"location", "source", "position"}
NO_ACTOR = Actor("")


@dataclass(frozen=True, slots=True)
class Heir:
    """A task that goes on where another one stopped.

    `classes` are the names under which the two know their inputs and outputs, those that differ.
    `parts`: where it begins anew but for some operands, the names of the atoms of each of these.
    """

    task: Task
    predecessor: Task
    classes: Mapping[str, str]
    parts: tuple[str, ...] = ()


def heirs_of(
    old: Iterable[Task], new: Iterable[Task], *, with_parts: bool = True
) -> dict[str, Heir]:
    """Return the heirs among the tasks of a changed text, by key; each stands behind its inputs.

    `old` are those of the text before. What has the same key in both is no heir: it stays.
    `with_parts`: also those that go on in part.
    """
    named = {(task.kind, task.name): task for task in old}
    alike: dict[str, str] = {}  # definitions of which users keep what was detected, to the new key
    heirs: dict[str, Heir] = {}
    for task in new:
        before = named.get((task.kind, task.name))
        if before is None or before.key == task.key or not _same_inputs(before, task, alike):
            continue
        classes = _renamed(before, task)
        if before.types.keys() == task.types.keys() and _held_alike(before, task):
            heirs[task.key] = Heir(task, before, classes)
            if _assigns_alike(before, task):
                alike[before.key] = task.key
        elif with_parts and (parts := _parts_alike(before, task)):
            heirs[task.key] = Heir(task, before, classes, parts)
    return heirs


def take_over(matcher: Matcher, heir: Heir, predecessor: str, name: str) -> None:
    """Have the instance `name` of an heir, just installed, go on with the state of another."""
    # Through the snapshot, as recovery does it every day: agents at work would have to know how
    # they are parted from what they report, and there would be two ways to be exact.
    states = [seat.agent.state() for seat in matcher.seats_of(predecessor)]
    matcher.restore({name: translated(states, heir)})


def translated(states: Sequence[Any], heir: Heir) -> list[Any]:
    """Return the states of the agents of a predecessor's cases as those of the heir's."""
    cases = zip(states, cases_of(heir.predecessor.node), cases_of(heir.task.node), strict=True)
    return [_translated(state, heir, before, case) for state, before, case in cases]


def _translated(state: Any, heir: Heir, before: Case, case: Case) -> Any:
    changed = _reclassed(state, heir.classes)
    if heir.parts:
        return _in_part(changed, KeptOperands(before, case))
    if "inner" in changed:
        changed["inner"] = _reclassed(changed["inner"], heir.classes)
    if "windows" in changed:
        windows = _reclassed(changed["windows"], heir.classes)
        changed["windows"] = _recounted(
            windows, _shape(heir.predecessor, before), _shape(heir.task, case), heir
        )
    return changed


def _in_part(state: Mapping[str, Any], kept: KeptOperands) -> dict[str, Any]:
    """Return the state of a pattern as that of another, which has some of its operands."""
    rows = []
    for group, begin, named, root, waiting, log, memory, *_ in state["partitions"]:
        # Nothing waits with its group, as all had been given to the operators; what may be
        # complete with what comes next has to be asked again. Marks are of the pattern before.
        root_by_now = kept.state(root) if root else []
        rows.append([group, begin, named, root_by_now, waiting, log, memory, [], []])
    # Whether it pays to let events wait was judged of another pattern.
    patience = None if state["patience"] is None else [0, 0]
    return {**state, "partitions": rows, "patience": patience}


def _reclassed(state: Mapping[str, Any], classes: Mapping[str, str]) -> dict[str, Any]:
    """Return a state with its events under the names of their classes by now."""
    events = [[classes.get(name, name), fields] for name, fields in state.get("events", ())]
    return {**state, "events": events} if "events" in state else dict(state)


# --- what has to be the same ------------------------------------------------------------------


def _same_inputs(before: Task, task: Task, alike: Mapping[str, str]) -> bool:
    """Return True where events of the inputs before may stand for those of the inputs now."""
    if before.wait_ms != task.wait_ms:
        return False
    for name, event_type in task.types.items():
        if name not in before.types:
            continue  # another pattern, which may have some operands of the one before
        key, earlier = task.needs.get(name), before.needs.get(name)
        if key == earlier is None:
            # A source may say more than before; what it said already stays as it was.
            if not before.types[name].attributes.items() <= event_type.attributes.items():
                return False
        elif key is None or earlier is None or key not in (earlier, alike.get(earlier)):
            return False
    return True


def _held_alike(before: Task, task: Task) -> bool:
    """Return True where both versions hold the same of the same events."""
    if _essence(before) != _essence(task):
        return False
    if not isinstance(task.node, Definition) or task.node.window is None:
        return True
    if not task.node.window.aggregated:  # events that were made already wait for a tick
        return _assigns_alike(before, task)
    cases = zip(cases_of(before.node), cases_of(task.node), strict=True)
    return all(
        _windows_alike(task.node, _shape(before, earlier), _shape(task, case))
        for earlier, case in cases
    )


def _parts_alike(before: Task, task: Task) -> tuple[str, ...]:
    """Return the operands of a pattern that go on, by the names of their atoms."""
    (earlier, *others), (case, *further) = cases_of(before.node), cases_of(task.node)
    if others or further:
        return ()
    if earlier.group_by != case.group_by or _times(earlier.assign) != _times(case.assign):
        return ()
    for node, its in ((before.node, earlier), (task.node, case)):
        windowed = isinstance(node, Definition) and node.window is not None
        subscription = node if isinstance(node, Subscription) else None
        if windowed or not is_plain(its, subscription):
            return ()
    return tuple(KeptOperands(earlier, case).names())


def _essence(task: Task) -> tuple[Any, ...]:
    """Return all of a task that its state depends on, but what windows keep for aggregates."""
    node: Subscription | Definition = task.node
    if isinstance(node, Subscription):
        # `until` only ends what is reported; `for` counts from when the task began, which it keeps.
        case = replace(node.case, assign=())
        node = replace(node, seq=0, actor=NO_ACTOR, case=case, until_ms=None)
    else:
        # Times that are assigned decide what is waited for.
        cases = [replace(case, assign=_times(case.assign)) for case in node.cases]
        post = None if node.post is None else Post(_times(node.post.assign))
        node = replace(node, attributes=(), cases=tuple(cases), post=post)
    return (node, bindings(node))


def _times(assigned: Sequence[Assignment]) -> tuple[Assignment, ...]:
    return tuple([item for item in assigned if item.name in SPAN])


def _assigns_alike(before: Task, task: Task) -> bool:
    """Return True where all that was assigned still is; only other attributes were added."""
    return all(
        _added_only(earlier, later)
        for earlier, later in zip(_assigned(before), _assigned(task), strict=True)
    )


def _assigned(task: Task) -> list[tuple[Assignment, ...]]:
    post = task.node.post if isinstance(task.node, Definition) else None
    return [case.assign for case in cases_of(task.node)] + ([post.assign] if post else [])


def _added_only(before: Sequence[Assignment], now: Sequence[Assignment]) -> bool:
    earlier = {item.name: item.value for item in before}
    added = [item for item in now if item.name not in earlier]
    kept = {item.name: item.value for item in now if item.name in earlier}
    same = kept == earlier and all(bindings(kept[name]) == bindings(earlier[name]) for name in kept)
    return same and not any(item.name in COMMON for item in added)


def _renamed(before: Task, task: Task) -> dict[str, str]:
    """Return the names of classes that differ: as the task before called them → as this one does.

    Those of the output are among them: events of it may wait for a tick.
    """
    shared = [name for name in task.types if name in before.types]
    names = {input_name(before, name): input_name(task, name) for name in shared}
    if task.output is not None:
        names[output_name(before)] = output_name(task)
    return {old: new for old, new in names.items() if old != new}


# --- windows ------------------------------------------------------------------------------------


def _shape(task: Task, case: Case) -> Shape:
    from broker.engine.window.code import Shape

    return Shape(task, case)


def _windows_alike(node: Definition, before: Shape, shape: Shape) -> bool:
    """Return True where a window goes on with what was kept of its events."""
    from broker.engine.window.agent import content_of
    from broker.engine.window.partials import Conversion

    assert node.window is not None
    content = content_of(node.window, shape)
    if content_of(node.window, before) != content:
        return False
    lacking = Conversion(before.aggregation, shape.aggregation).lacking
    if content == "events" or not lacking:
        return True
    # What `post` combines would go on as if a null were nothing to be combined; and where nothing
    # is known of what is asked for, a window that begins now knows more.
    return node.post is None and len(lacking) < len(shape.aggregation.calls)


def _recounted(windows: dict[str, Any], before: Shape, shape: Shape, heir: Heir) -> dict[str, Any]:
    """Return the state of open windows with what the aggregates keep that are assigned now."""
    from broker.engine.window.agent import content_of
    from broker.engine.window.partials import Conversion

    node = heir.task.node
    assert isinstance(node, Definition)
    assert node.window is not None
    content = content_of(node.window, shape)
    if content == "events":
        return windows
    conversion = Conversion(before.aggregation, shape.aggregation)

    def groups(rows: Sequence[Any]) -> list[Any]:
        return [[key, conversion.convert(shape, partial)] for key, partial in rows]

    if content == "partials":
        runs = [
            [key, span, conversion.convert(shape, partial), seen]
            for key, span, partial, seen in windows["windows"]
        ]
        return {**windows, "windows": runs}
    panes = [[pane, groups(rows)] for pane, rows in windows["panes"]]
    apart = [[pane, maker, groups(rows)] for pane, maker, rows in windows.get("apart", ())]
    return {**windows, "panes": panes, **({"apart": apart} if apart else {})}
