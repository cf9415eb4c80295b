"""The most that each agent can hold, said beforehand from the text and the rates of its inputs.

Owns the statement: how many events and partial matches, of what kind the task is, and why. Must not
know agents at run time. Invariant: an agent whose inputs keep to their rates never holds more than
is stated here (`Agent.held`); what has no limit by its text is held to a named one, and says so.

A rate of r events a second means that in any closed interval of T ms at most r·T/1000 + 1 events
end. Inputs are readings: an event that lasts makes some tasks wait and keep longer, up to the limit
of durations (limits.event_duration_ms_max); what is detected may always last so long. Their times
are exact, or uncertain by so much at most as the inputs say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

import msgspec

from broker.engine.limits import Limits
from broker.engine.pattern.agent.chain_store import links_of
from broker.engine.pattern.agent.staged_partition import needs_stages
from broker.engine.pattern.bounds.hold import (
    Flow,
    Held,
    Operators,
    Passed,
    Terms,
    hold_for_choice,
    never,
    product,
    steady,
)
from broker.engine.pattern.layout.operands import types_that_last
from broker.engine.pattern.layout.pattern import Layout, lay_out
from broker.engine.pattern.stage.base import SWEEP_MS
from broker.engine.pattern.times.assigned import assigned_end, later_ms, types_begun_at_ends
from broker.engine.pattern.times.completion import Completion
from broker.engine.pattern.times.timing import KnownTimes, Timing, keep_ms, total
from broker.engine.window.assigners import DAY_MS
from broker.engine.window.code import Shape
from broker.engine.window.ranges import SWEEP_MS_MIN
from language.functions import MERGING, is_aggregate
from language.printing.expressions import duration_text
from language.taskgraph import Task, TaskGraph
from language.tree import Call, Case, Definition, Subscription, Window
from language.walk import descendants

Kind = Literal["single", "sharded", "aggregate"]

DAY_LONGEST_MS = DAY_MS + 3_600_000  # a day on which clocks go back


@dataclass(frozen=True, slots=True)
class Bound:
    """The most that the agent of one case of a task holds; None: no limit by its text.

    `events_each` and `matches_each` come in for each group, of which there are as many as there are
    keys; without `group by` there is one. `limit` is the one that holds in any case.
    """

    task: str
    case: int
    events: int | None
    matches: int | None
    events_each: int
    matches_each: int
    grouped: bool
    kind: Kind
    why: str
    reasons: tuple[str, ...]
    limit: tuple[str, int]
    lasting_ms: int = 0  # for so long it waits for events under way, if that matters much

    def most(self, groups: int = 1) -> int | None:
        """Events and partial matches together, given so many groups; None: no limit by its text."""
        each = (self.events_each + self.matches_each) * groups
        return total(self.events, self.matches, each)


@dataclass(frozen=True, slots=True)
class Inputs:
    """The input as far as it is known: events a second by type, and how late they come.

    A declared type that is not named sends `usual` events a second; how many a definition detects
    is worked out where it is not named.
    """

    per_s: Mapping[str, Fraction] = field(default_factory=dict)
    usual: Fraction = Fraction(1)
    lateness_ms: int = 0
    uncertainty_ms: int = 0  # the greatest ε

    @property
    def unsure_ms(self) -> int:
        """Return how far nominal times may miss a limit that is met; see verdicts.Doubt."""
        return 2 * self.uncertainty_ms + 1 if self.uncertainty_ms else 0

    def flow(self, event_type: str) -> Flow:
        """The flow of a declared type."""
        return steady(self.per_s.get(event_type, self.usual))


def bounds_of(
    graph: TaskGraph, inputs: Inputs, limits: Limits | None = None
) -> list[tuple[Task, Case, Bound]]:
    """The bounds of all tasks that run, definitions before their users."""
    limits = limits or Limits()
    made = _Bounds(graph, inputs, limits)
    of_readings = _Bounds(graph, inputs, msgspec.structs.replace(limits, event_duration_ms_max=0))
    bounds = []
    for key in (*graph.active(graph.roots), *graph.roots):
        task = graph.tasks[key]
        node = task.node
        cases = node.cases if isinstance(node, Definition) else (node.case,)
        for case in cases:
            bound = made.bound(task, case)
            # Two analyses a case: so it can be said that durations alone make the bound so large.
            if _far_more(bound.most(), of_readings.bound(task, case).most()):
                bound = replace(bound, lasting_ms=limits.event_duration_ms_max)
            bounds.append((task, case, bound))
    return bounds


def unbounded(graph: TaskGraph, limits: Limits | None = None) -> list[tuple[Task, str]]:
    """List the tasks of whose cases one has no limit by its text, each with the reasons."""
    reasons: dict[str, tuple[Task, str]] = {}
    for task, _, bound in bounds_of(graph, Inputs(), limits):
        if bound.most() is None:
            reasons.setdefault(task.key, (task, "; ".join(bound.reasons)))
    return list(reasons.values())


def _far_more(most: int | None, least: int | None) -> bool:
    return least is not None and (most is None or most > 2 * least)


class _Bounds:
    """The tasks of one graph, each after those that it needs."""

    def __init__(self, graph: TaskGraph, inputs: Inputs, limits: Limits) -> None:
        self._graph = graph
        self._inputs = inputs
        self._limits = limits
        self._passed: dict[str, list[Passed]] = {}  # by task: of its cases
        self._kinds: dict[str, Kind] = {}

    def bound(self, task: Task, case: Case) -> Bound:
        """The bound of one case; what it passes on is remembered for its users."""
        held = Held()
        node = task.node
        window = node.window if isinstance(node, Definition) else None
        if window is not None and window.aggregated:
            passed = self._window(task, case, held)
            limit = ("events_held_max", self._limits.events_held_max)
        else:
            passed = self._pattern(task, case, held)
            limit = ("occurrences_held_max", self._limits.occurrences_held_max)
            # `every T` without `aggr`: results wait for kT (LANGUAGE 2), on top of what finds them.
            if window is not None:
                passed = self._tick(node, passed, held)
        self._passed.setdefault(task.key, []).append(passed)
        kind, why = self._kind(task, case)
        self._kinds[task.key] = kind
        grouped = bool(case.group_by)
        return Bound(
            task.name,
            case.number,
            held.events,
            held.matches,
            held.events_each,
            held.matches_each,
            grouped,
            kind,
            why,
            tuple(held.reasons),
            limit,
        )

    # --- inputs --------------------------------------------------------------------------

    def _of(self, task: Task, event_type: str) -> Passed:
        """The flow of an input, and how far behind the newest reading its watermark is."""
        key = task.needs.get(event_type)
        if key is None:
            return Passed(self._inputs.flow(event_type), self._inputs.lateness_ms + 1)
        cases = self._passed[key]
        given = self._inputs.per_s.get(event_type)
        lags = [each.lag_ms for each in cases]
        times = [lag for lag in lags if lag is not None]
        lag_ms = max(times) if len(times) == len(lags) else None
        if given is not None:
            return Passed(steady(given), lag_ms)
        # Each case makes events of its own: their flows add up, and the slowest holds the
        # watermark.
        return Passed(lambda ms: total(*(each.flow(ms) for each in cases)), lag_ms)

    def _leaves(self, task: Task, types: list[str]) -> tuple[list[Flow], int | None]:
        """The flows of the leaves, and the lag of the watermark of all of them."""
        inputs = [self._of(task, name) for name in types]
        lags = [each.lag_ms for each in inputs]
        times = [lag for lag in lags if lag is not None]
        return [each.flow for each in inputs], max(times) if len(times) == len(lags) else None

    # --- agents --------------------------------------------------------------------------

    def _pattern(self, task: Task, case: Case, held: Held) -> Passed:
        layout = lay_out(case)
        # A type whose events were all readings is taken to have readings only (Durations), unless
        # none but events that last are of use.
        lasts = task.needs or types_that_last(layout.root)
        duration_ms = self._limits.event_duration_ms_max if lasts else 0
        leaves, lag_ms = self._leaves(task, [leaf.event_type for leaf in layout.leaves])
        if lag_ms is None:
            held.add(None, matches=False, reason="it waits for what may never be decided")
            return Passed(lambda _: None, None)
        slack_ms = max(SWEEP_MS, _horizon_ms(layout, duration_ms))
        unsure_ms = self._inputs.unsure_ms
        terms = Terms(layout, leaves, lag_ms, duration_ms, slack_ms, bool(case.group_by), unsure_ms)
        subscription = task.node if isinstance(task.node, Subscription) else None
        staged = needs_stages(case, layout, subscription) or bool(unsure_ms)
        chained = not staged and bool(self._limits.chain_events_max and links_of(case, layout))
        # A bounded store (paper 000) holds what it has room for: what operators would hold is not
        # counted, only what they pass on.
        operators = Operators(terms, Held() if chained else held)
        passed = operators.passed(layout.root)
        if chained:
            held.add(self._limits.chain_events_max, matches=False, reason="")
        # Sorting needs all that may still be preceded.
        if staged or chained or _ordered(case, layout):  # until the watermark has passed them
            for flow in leaves:
                held.add(flow(lag_ms), matches=False, reason="events come without limit")
        self._turns(case, layout, passed, held)
        if case.consuming:
            hold_for_choice(case, operators, passed, held, staged=staged)
        # Whatever the last event completes belongs to one result: it waits for the last of that.
        if case.detect.report == "collect":  # a group holds back what ends later
            after_ms = total(passed.lag_ms, Completion(layout.root).after_ms(), unsure_ms)
            passed = replace(passed, lag_ms=after_ms)
        place = assigned_end(case, layout)
        if place in {"an event", "within"}:
            passed = _shifted(passed, self._back_ms(case, layout, duration_ms))
        elif place == "last event":  # by nominal times another may end after it
            passed = _shifted(passed, unsure_ms)
        if case.assign:
            passed = _shifted(passed, later_ms(case.assign))
        return passed

    def _back_ms(self, case: Case, layout: Layout, duration_ms: int) -> int | None:
        """Return how long before its occurrence ends an event with an assigned time may end.

        Types whose beginnings are asked for are taken to last before any has (see promises.py).
        """
        begun = types_begun_at_ends(case, layout)
        longest_ms = self._limits.event_duration_ms_max
        unsure_ms = self._inputs.unsure_ms
        times = KnownTimes(
            lambda each: longest_ms if each in begun else duration_ms,
            lambda limit_ms: limit_ms + unsure_ms,
        )
        return Timing(times).span_ms(layout.root)

    def _turns(self, case: Case, layout: Layout, passed: Passed, held: Held) -> None:
        """Add what waits for its turn to be reported."""
        chosen = bool(layout.last or layout.first)
        if not chosen and not case.consuming and case.detect.report == "all":
            return
        wait_ms: int | None = 0
        if chosen:
            longest_ms, unsure_ms = self._limits.event_duration_ms_max, self._inputs.unsure_ms
            times = KnownTimes(lambda _: longest_ms, lambda limit_ms: limit_ms + 2 * unsure_ms)
            wait_ms = Timing(times).span_ms(layout.root)
        if case.detect.report == "collect":
            after_ms = Completion(layout.root).after_ms()
            wait_ms = total(wait_ms, after_ms, self._inputs.unsure_ms)
        # Twice: what came as long before as it may wait is still there when the next has come.
        count = None
        if wait_ms is not None and passed.lag_ms is not None:
            count = passed.flow(2 * wait_ms + passed.lag_ms + 1)
        held.add(count, matches=True, reason="what is found waits for others that may never come")

    def _tick(self, node: Definition | Subscription, passed: Passed, held: Held) -> Passed:
        """Add what is detected and waits for the next tick."""
        assert isinstance(node, Definition)
        window = node.window
        assert window is not None
        every_ms = window.every_ms or (window.every_days or 1) * DAY_LONGEST_MS
        count = None if passed.lag_ms is None else passed.flow(2 * every_ms + passed.lag_ms + 1)
        held.add(count, matches=True, reason="what is detected without limit waits for its tick")
        return replace(
            passed, lag_ms=None if passed.lag_ms is None else passed.lag_ms + 2 * every_ms
        )

    def _window(self, task: Task, case: Case, held: Held) -> Passed:
        assert isinstance(task.node, Definition)
        window = task.node.window
        assert window is not None
        shape = Shape(task, case)
        types = [operand.event_type for operand in shape.names.operands]
        leaves, lag_ms = self._leaves(task, types)
        passed = _window_passed(window, shape, leaves, lag_ms, held)
        assigned = case.assign if task.node.post is None else task.node.post.assign
        if any(item.name in {"timestamp", "start", "end"} for item in assigned):
            # It lies within its window: it ends no later than it would, and not long before.
            length_ms = window.range_ms or window.every_ms or 0
            if window.every_days is not None:
                length_ms = max(length_ms, window.every_days * DAY_LONGEST_MS)
            passed = _shifted(passed, max(length_ms, self._limits.event_duration_ms_max))
        return passed

    # --- kinds ---------------------------------------------------------------------------

    def _kind(self, task: Task, case: Case) -> tuple[Kind, str]:
        """Over how many brokers a task may be split without a difference, and why."""
        node = task.node
        window = node.window if isinstance(node, Definition) else None
        if window is None and self._stateless(task, case):
            return "sharded", "it looks at each event alone"
        # A source has one origin: its groups never meet those of another.
        if "source" in case.group_by:
            needed = [self._kinds[key] for key in task.needs.values()]
            if not needed:
                return "sharded", "each group is of one source, which has one origin"
            return "single", "it is grouped by source, but what it needs is detected elsewhere"
        if window is not None and window.aggregated and not window.runs:
            return self._split(task, case)
        if window is not None and window.aggregated:
            return "single", "a session may hold together events of several origins"
        return "single", "its partners may come from any origin"

    def _stateless(self, task: Task, case: Case) -> bool:
        layout = lay_out(case)
        subscription = task.node if isinstance(task.node, Subscription) else None
        return len(layout.leaves) == 1 and not needs_stages(case, layout, subscription)

    def _split(self, task: Task, case: Case) -> tuple[Kind, str]:
        assert isinstance(task.node, Definition)
        window = task.node.window
        assert window is not None
        # `range` alone moves with each event, so that no two brokers would close the same windows.
        if window.every_ms is None and window.every_days is None:
            return "single", "each event closes a window of its own"
        shape = Shape(task, case)
        used = [
            each.function
            for item in case.assign
            for each in descendants(item.value)
            if isinstance(each, Call) and is_aggregate(each)
        ]
        whole = [name for name in dict.fromkeys(used) if name not in MERGING]
        if shape.distinct:
            return "single", "`distinct` looks at all events of a window together"
        if whole:
            return "single", f"partial results of {' and '.join(whole)} cannot be merged"
        return "aggregate", "partial results of its aggregates merge to the same result"


def _shifted(passed: Passed, shift_ms: int | None) -> Passed:
    """Return what is passed on if each may end so much earlier, or later, and is waited for."""
    if shift_ms is None or passed.lag_ms is None:
        return Passed(never, None)
    flow = passed.flow
    return Passed(lambda ms: flow(ms + shift_ms), passed.lag_ms + shift_ms)


def _ordered(case: Case, layout: Layout) -> bool:
    """Return whether a pattern of joins alone takes its events in order."""
    recent = any(
        each.context.chooses and not each.context.spends and each.operator != "or"
        for each in layout.joints
    )
    return recent or bool(layout.last) or bool(case.consuming and layout.joints)


def _horizon_ms(layout: Layout, duration_max_ms: int) -> int:
    """Return how long the operator that keeps longest keeps, among those that forget."""
    kept = [each for joint in layout.joints for each in keep_ms(joint, duration_max_ms)]
    return max([each for each in kept if each is not None], default=0)


# --- windows -------------------------------------------------------------------------------------


def _window_passed(
    window: Window, shape: Shape, leaves: Sequence[Flow], lag_ms: int | None, held: Held
) -> Passed:
    """Return what a window passes on; what it holds is added to `held`.

    `leaves` are the flows of its operands, `lag_ms` how far the watermark lags behind.
    """
    if lag_ms is None:
        held.add(None, matches=False, reason="it waits for what may never be decided")
        return Passed(never, None)
    if window.runs:
        return _session(window, shape, leaves, lag_ms, held)
    every_ms = window.every_ms
    if window.every_days is not None:
        every_ms = window.every_days * DAY_LONGEST_MS
    range_ms = window.range_ms
    if every_ms is None:
        assert range_ms is not None
        return _moving(shape, leaves, range_ms, lag_ms, held)
    return _ticking(shape, leaves, (every_ms, range_ms), lag_ms, held)


def _events(leaves: Sequence[Flow], span_ms: int) -> int | None:
    return total(*(flow(span_ms) for flow in leaves))


def _values(shape: Shape, leaves: Sequence[Flow], span_ms: int) -> int | None:
    """The values that are kept of the events in so long a time."""
    counts = []
    for leaf, flow in enumerate(leaves):
        kept = shape.growing[leaf] + (shape.distinct_keys[leaf] is not None)
        counts.append(product(flow(span_ms), kept))
    return total(*counts)


def _ticking(
    shape: Shape,
    leaves: Sequence[Flow],
    times: tuple[int, int | None],
    lag_ms: int,
    held: Held,
) -> Passed:
    every_ms, range_ms = times
    # A window is open for its range and up to one pane more until its tick has come.
    reach_ms = (range_ms or every_ms) + every_ms
    span_ms = reach_ms + lag_ms + 1
    why = "events come without limit"
    panes = 2 * (span_ms // every_ms + 2)
    held.matches_each += panes
    held.add(_values(shape, leaves, span_ms), matches=False, reason=why)
    if range_ms is not None and (shape.distinct or any(shape.growing)):
        # Such windows are moved from tick to tick, with their events inside.
        held.add(_events(leaves, span_ms), matches=False, reason=why)
    if shape.distinct:
        held.add(_events(leaves, lag_ms + 1), matches=False, reason=why)
    # An event lies in range / every windows: of 10 s every 3 s in four, and one at the edge.
    shares = Fraction(range_ms or every_ms, every_ms).__ceil__() + 1

    def flow(ms: int) -> int | None:
        return product(_events(leaves, ms + reach_ms), shares)

    return Passed(flow, lag_ms + reach_ms + 1)


def _moving(shape: Shape, leaves: Sequence[Flow], range_ms: int, lag_ms: int, held: Held) -> Passed:
    why = "events come without limit"
    if shape.names.keys:
        # Silent groups are swept so often: up to then all lies in one stretch of time.
        inside_ms = range_ms + max(range_ms, SWEEP_MS_MIN) + lag_ms + 2
        held.add(_events(leaves, inside_ms), matches=False, reason=why)
    else:
        # What is inside ends with an event, what waits begins behind the watermark. The silence
        # between the two may be just what a single stretch would count.
        inside_ms = range_ms
        held.add(_events(leaves, inside_ms), matches=False, reason=why)
        held.add(_events(leaves, lag_ms), matches=False, reason=why)
    if any(shape.growing) or shape.distinct:
        held.add(_values(shape, leaves, inside_ms), matches=False, reason=why)
    return Passed(lambda ms: _events(leaves, ms), lag_ms + range_ms + 1)


def _session(
    window: Window, shape: Shape, leaves: Sequence[Flow], lag_ms: int, held: Held
) -> Passed:
    gap_ms = window.run_open_ms
    assert gap_ms is not None
    held.add(_events(leaves, lag_ms + 1), matches=False, reason="events come without limit")
    held.matches_each += lag_ms // gap_ms + 2
    longest_ms = window.run_max_ms
    if any(shape.growing) or shape.distinct:
        values = None
        if longest_ms is not None:
            values = _values(shape, leaves, longest_ms + gap_ms + lag_ms + 1)
        why = "a session without `max` may go on for ever, and values of all its events are kept"
        held.add(values, matches=False, reason=why)
    late_ms = gap_ms if longest_ms is None and not shape.distinct else longest_ms
    lag = None if late_ms is None else lag_ms + late_ms + gap_ms + 1
    return Passed(lambda ms: _events(leaves, ms + gap_ms), lag)


# --- in words ------------------------------------------------------------------------------------


def stated(bound: Bound, inputs: Inputs, groups: int | None = None) -> str:
    """The bound as a sentence: "at most 1,200 events and 300 partial matches …"."""
    name, limit = bound.limit
    per = f"at {_rates(inputs)}"
    if bound.events is None or bound.matches is None:
        return f"no limit by its text: {'; '.join(bound.reasons)}; held to {name}, {limit:,}"
    count = 1 if not bound.grouped else groups
    events, matches = bound.events, bound.matches
    if count is not None:
        events += bound.events_each * count
        matches += bound.matches_each * count
    text = f"at most {_counted(events, 'event')} and {_counted(matches, 'partial match')}"
    each = [
        _counted(number, word)
        for number, word in ((bound.events_each, "event"), (bound.matches_each, "partial match"))
        if number
    ]
    if count is None and each:
        text += f", with {' and '.join(each)} more in each group,"
    text += f" {per}"
    if bound.lasting_ms:
        text += f", as an event may last {duration_text(bound.lasting_ms)}"
    if (product(events + matches, 1) or 0) > limit:
        text += f"; held to {name}, {limit:,}"
    return text


def _rates(inputs: Inputs) -> str:
    usual = f"{_number(inputs.usual)} events/s"
    named = [f"{_number(rate)} {name}/s" for name, rate in inputs.per_s.items()]
    return (
        f"{', '.join(named)} and {usual} of each other type" if named else f"{usual} of each type"
    )


def _number(rate: Fraction) -> str:
    return f"{float(rate):,.10g}"


def _counted(count: int, word: str) -> str:
    many = "es" if word.endswith("ch") else "s"
    return f"{count:,} {word}{'' if count == 1 else many}"
