"""Tasks at one place: from events to what their agents report.

Owns the agents, the way from the filterer's contents to their leaves, and who is due when the
watermark moves. Must not know where events come from or where results go.
Invariant: agents are fed in the order of the task graph, each at most once for a push, so that a
detected event reaches its users within the push that completed it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from heapq import heappush
from typing import TYPE_CHECKING, Any

from broker.engine.clock_names import clock_name
from broker.engine.event.agent import WATERMARK_END, LeafEvents, Result
from broker.engine.event.event import ByClass, Event, doubtful, event_class
from broker.engine.filter.filterer import Filterer
from broker.engine.ledger import Ledger
from broker.engine.limits import Limits
from broker.engine.pattern.pattern import lay_out
from broker.engine.pattern.promises import reached_at
from broker.engine.runtime.agents import EXACT, Agents, input_name, output_name, weighed
from broker.engine.runtime.budget import TooMuchWorkError
from broker.engine.runtime.results import sort_results
from broker.engine.runtime.seats import (
    Direct,
    Domain,
    Domains,
    Endings,
    Seat,
    Suspensions,
    at_once,
    next_due,
    on_time,
    wake,
)
from broker.engine.runtime.slices import Slices
from language.tree import Case, Definition

if TYPE_CHECKING:
    from broker.engine.pattern.pattern import Layout
    from language.taskgraph import Task

Inboxes = list[dict[int, list[LeafEvents]]]  # of each level of definitions, by agent
WatermarkOf = Callable[[str], int]
Look = tuple[WatermarkOf, dict[Any, int]]  # at watermarks, with those that were asked for
DueOf = Callable[[Domain, Mapping[int, Seat]], int | None]


# `_routes`: content id to seats: the unique id of the matching content with which paper 003
# (3.3.1) passes an event to the agents.
# `install`: after the seats: a silence may begin with the task, and its agent must be there to be
# told.
# `_seat`: `next` looks at every event of the named types whatever its values, and a group begins
# with its first event of any type.
# `push`: an inbox for each level of the task graph: what a definition detects is put into inboxes
# of higher levels only, so one walk upwards feeds every agent once.
# `push`: in the order of installation, which is the same after a recovery, whatever order contents
# matched in.
# `push`: back to the filterer as from a source (paper 003, 3.3.2: outputs of definition tasks are
# pushed back); a subscription's leave.
class Matcher:
    """The tasks of one broker (or of one process)."""

    def __init__(
        self, limits: Limits | None = None, ledger: Ledger | None = None, *, strict: bool = True
    ) -> None:
        """`strict`: see stages.base.Durations."""
        self._limits = limits or Limits()
        self._ledger = ledger or Ledger()
        self.filterer = Filterer(self._limits, self._ledger)
        self._seats: dict[int, Seat] = {}
        self._by_task: dict[str, list[Seat]] = {}
        self._routes: dict[int, list[tuple[Seat, int]]] = {}
        self._domains = Domains()
        self.endings = Endings(self._seats)
        self._next_index = 0
        self._direct = Direct(self._routes, self.filterer)
        self._watermarks: dict[Any, int] = {}  # of what is asked for now
        self._agents = Agents(self._limits, strict=strict)
        self.budget = self._agents.budget
        self.suspensions = Suspensions(self._by_task, self._agents, self._direct)
        self.classes = self._agents.classes
        self.durations = self._agents.durations
        self.passed: WatermarkOf | None = None  # of clocks that have a wait; None: nobody waits

    # --- tasks ---------------------------------------------------------------------------

    def __contains__(self, key: str) -> bool:
        return key in self._by_task

    def __len__(self) -> int:
        return len(self._by_task)

    def install(self, task: Task, begin: int | None = None) -> None:
        """Run a task; the definitions that it needs must run already. Twice is once.

        It begins at the instant, where one is given (else see `begin`).
        Raises LimitReachedError; then nothing of the task is left.
        """
        if task.key in self._by_task:
            return
        for name, event_type in task.types.items():
            if name not in task.needs:
                self._agents.takes(name, event_type.attributes)
        output = None
        if task.output is not None:
            output = event_class(output_name(task), task.output.attributes, detected=True)
            self._agents.makes(task, output)
        node = task.node
        cases = node.cases if isinstance(node, Definition) else (node.case,)
        seats = self._by_task[task.key] = []
        try:
            for case in cases:
                self._seat(task, case, output, seats)
        except BaseException:
            self.remove(task.key)
            raise
        if begin is not None:
            self._agents.begin(task.key, begin)
        self.suspensions.installed(task)
        self.endings.note(seats)
        if task.key in self._agents.beginning:
            self.schedule(*seats)

    @property
    def has_beginnings(self) -> bool:
        """Tell whether it matters to a task when it began."""
        return bool(self._agents.beginning)

    def begin(self, instant: int) -> None:
        """The tasks that are installed, or will be, begin at the instant, if not before."""
        if self._agents.begin_all(instant):
            for key in self._agents.beginning:
                self.schedule(*self._by_task[key])  # a silence is due without any event

    def begins_from(self, floor: int) -> None:
        """No event to come begins before this time, nor does a task, if it has not begun before."""
        self._agents.begins_from(floor)

    def remove(self, key: str) -> None:
        """Stop a task; its state is gone."""
        self.suspensions.why.pop(key, None)
        for seat in self._by_task.pop(key, ()):
            if seat.task.output is not None:
                self._agents.makes_no_more(seat.task)
            del self._seats[seat.index]
            self._agents.forget(key)
            seat.domain.seats -= 1
            for content in seat.contents:
                # Two leaves of a case may want one content: the second finds nothing left of it.
                rest = [route for route in self._routes.pop(content, ()) if route[0] is not seat]
                if rest:
                    self._routes[content] = rest
                self._direct.changed(content)
                self.filterer.remove(content)
            if not seat.domain.seats:
                self._domains.drop(seat.domain)

    def _seat(self, task: Task, case: Case, output: type[Event] | None, seats: list[Seat]) -> None:
        layout = lay_out(case)
        agent = self._agents.maker.make(task, case, output)
        seat = Seat(self._next_index, task, agent, self._domain(task, layout), (), case)
        seat.at_once = at_once(seat)
        seat.weighs = layout.root.within_ms is not None or case.detect.maybe_drop
        self._next_index += 1
        self._seats[seat.index] = seat
        seats.append(seat)
        seat.domain.seats += 1
        wanted = [(leaf.event_type, leaf.conditions) for leaf in layout.leaves]
        # Without groups a silence begins with the input, of which agents are told as it is.
        if case.group_by or any(joint.next for joint in layout.joints):
            wanted += [(name, ()) for name in layout.named]
        for place, (event_type, conditions) in enumerate(wanted):
            content = self.filterer.add(input_name(task, event_type), conditions)
            seat.contents += (content,)
            self._routes[content] = [*self._routes.get(content, ()), (seat, place)]
            self._direct.changed(content)

    def doubt(self, drift: Fraction = EXACT, most_ms: int = 0) -> None:
        """From now on times may be uncertain; `drift` is the greatest of clocks, as a share.

        `most_ms` is the greatest uncertainty that is foreseen.
        Called by itself with the first event that is uncertain; a recording that has one is better
        told before its first event.
        """
        if self._agents.doubting:
            self._agents.doubt_up_to(most_ms)
            return
        self._agents.doubt(drift)
        self._agents.doubt_up_to(most_ms)
        for seat in self._seats.values():
            seat.agent = self._agents.maker.weighing(seat.task, seat.case, seat.agent)
            seat.at_once = at_once(seat)
            self.schedule(seat)
        self._direct.all_changed()

    def _domain(self, task: Task, layout: Layout) -> Domain:
        used = sorted({leaf.event_type for leaf in layout.leaves})
        wait_ms = None if self.passed is None else task.wait_ms
        types = tuple(clock_name(name, wait_ms) for name in used if name not in task.needs)
        definitions = tuple(task.needs[name] for name in used if name in task.needs)
        below = [seat.domain.level for key in definitions for seat in self._by_task[key]]
        return self._domains.of(types, definitions, 1 + max(below, default=-1))

    def tasks(self) -> dict[str, Task]:
        """The tasks that run, by key."""
        return {key: seats[0].task for key, seats in self._by_task.items() if seats}

    def seats_of(self, key: str) -> list[Seat]:
        """Return the seats of a task's cases; if what an agent holds changes, schedule its seat."""
        return self._by_task[key]

    def wanted(self) -> list[str]:
        """The primitive types that tasks wait for, in order."""
        return self._domains.types()

    # --- events --------------------------------------------------------------------------

    def push(
        self,
        events: Sequence[Event],
        watermark_of: WatermarkOf,
        foreseen: WatermarkOf | None = None,
        by_class: ByClass | None = None,
    ) -> Slices[list[Result]]:
        """Feed events and watermarks; what became known, in order and by place in the file.

        `watermark_of` gives the watermark of a primitive event type. `foreseen` gives it where it
        counts whether one was asked for, and is asked for those who then are not fed. `by_class`:
        the same events, by their class. Nothing is to be changed here before the last slice.
        """
        watermarks: dict[Any, int] = {}
        looked: Look = (watermark_of, watermarks) if foreseen is None else (foreseen, {})
        budget = self.budget
        budget.spent = 0
        active: Inboxes = list(map(dict, [()] * len(self._domains.levels)))
        results: list[Result] = []
        self._deliver(events, active, results, by_class)
        mixed = bool(results)  # what one agent alone reports is in order
        for level, inboxes in enumerate(active):
            for domain in self._domains.levels[level]:
                # An input that is only looked at never reaches the end.
                if domain.due and (foreseen is None or domain.due[0][0] < WATERMARK_END):
                    wake(domain, self._seats, self._watermark(domain, *looked), inboxes)
            for index in sorted(inboxes):
                seat = self._seats[index]
                watermark = self._watermark(seat.domain, watermark_of, watermarks)
                try:
                    derived = level > 0 and any(not fed[0].primitive for _, fed in inboxes[index])
                    budget.begin(inboxes[index], derived)
                    made = seat.agent.feed(inboxes[index], watermark)
                except TooMuchWorkError as error:
                    budget.exceed(error.what)
                    # Its inputs of this push are gone with it; the push goes on for all others.
                    self.suspensions.suspend(seat.task.key, error.what)
                    continue
                finally:
                    budget.end()
                if seat.agent.waits:
                    self.schedule(seat)
                if made and seat.task.kind == "definition":
                    self._ledger.detected.received += len(made)
                    before = len(results)
                    self._deliver(made, active, results)
                    mixed = mixed or len(results) > before
                elif made:
                    mixed = mixed or bool(results)
                    results += made
                if budget.spent >= budget.slice_max:
                    budget.spent = 0
                    yield
        if mixed:
            yield from sort_results(results, budget.slice_results)
        return results

    def _deliver(
        self,
        events: Sequence[Event],
        active: list[dict[int, list[LeafEvents]]],
        results: list[Result],
        by_class: ByClass | None = None,
    ) -> None:
        if not events:
            return
        if self._direct.unsettled:
            self._direct.settle()
        for content, matched in self.filterer.route(events, by_class, results):
            if lone := self._direct.makers[content]:
                for made in lone:
                    results += made(matched)
                continue
            # Weighing times costs every join, so it begins with the first event that is in doubt.
            if self._agents.doubted is None and doubtful(matched):
                self.doubt()
                self._direct.settle()
            for seat, leaf in self._routes[content]:
                if seat.at_once is not None:
                    results += seat.at_once(matched)
                    continue
                fed: Sequence[Event] = matched
                if seat.domain.clocks and self.passed is not None:
                    fed = on_time(seat.domain, matched, self.passed)
                    self._ledger.note("late_for_waits", len(matched) - len(fed))
                if fed:
                    active[seat.domain.level].setdefault(seat.index, []).append((leaf, fed))

    def resume(self, keys: Sequence[str], begin: int) -> None:
        """Begin these tasks anew at the instant, as far as they are suspended."""
        seats = self.suspensions.resume(keys, begin)
        self.endings.note(seats)
        self.schedule(*seats)

    def schedule(self, *seats: Seat) -> None:
        """Note when their agents are due, where that may be another time than before."""
        for seat in seats:
            due = seat.agent.next_due()
            if due is not None and due != seat.due:
                if due < WATERMARK_END:
                    heappush(seat.domain.due, (due, seat.index))
                elif not seat.waits_for_end:
                    # Once is enough: it stays until the end, however often it is due before.
                    seat.waits_for_end = True
                    heappush(seat.domain.due, (due, seat.index))
            seat.due = due

    def _watermark(
        self, domain: Domain, watermark_of: WatermarkOf, cache: dict[Any, int] | None = None
    ) -> int:
        cache = self._watermarks if cache is None else cache
        known = cache.get(id(domain))
        if known is not None:
            return known
        # Each domain is walked once a push and kept: a diamond of definitions would otherwise be
        # walked once for every path.
        inputs = list(map(watermark_of, domain.types))
        for key in domain.definitions:
            for seat in self._by_task[key]:
                below = self._watermark(seat.domain, watermark_of, cache)
                out = below if below >= WATERMARK_END else seat.agent.watermark_out(below)
                inputs.append(out)
        watermark = min(inputs)
        cache[id(domain)] = watermark
        return watermark

    # --- what it holds -------------------------------------------------------------------

    def frontiers(self, watermark_of: WatermarkOf) -> dict[str, int]:
        """By subscription's task: no result of it that comes later ends at or before this time."""
        self._watermarks = {}
        found: dict[str, int] = {}
        for seat in self._seats.values():
            if seat.task.kind == "subscription":
                out = seat.agent.watermark_out(self._watermark(seat.domain, watermark_of))
                found[seat.task.key] = min(out, found.get(seat.task.key, out))
        return found

    def over(self, foreseen: WatermarkOf, watermark_of: WatermarkOf) -> list[tuple[str, str]]:
        """(subscriber, name) of those subscriptions of which nothing more can be a result.

        `foreseen` tells of which this may be so; only for these a watermark is asked for, as then
        nothing may come behind it.
        """
        if not self.endings.domains:
            return []
        self._watermarks = {}
        ahead: dict[Any, int] = {}
        return self.endings.over(
            lambda domain: self._watermark(domain, foreseen, ahead),
            lambda domain: self._watermark(domain, watermark_of),
        )

    def due(
        self, watermark_of: WatermarkOf, *, ends: bool = False, due_of: DueOf = next_due
    ) -> dict[str, int]:
        """Primitive event types that agents wait for: the least watermark that may bring more.

        Before a type named here has reached that, nothing is reported without events. What waits
        for something open in a definition is not asked for: that is due itself, or needs events.
        With `ends` also what subscriptions are waited for with that come to their end.
        """
        self._watermarks = {}
        wanted: dict[str, int] = {}
        for domains in self._domains.levels:
            for domain in domains:
                due = due_of(domain, self._seats) if domain.due else None
                if due is not None and due < WATERMARK_END:
                    self._want(domain, due, watermark_of, wanted)
        for domain, at in self.endings.first() if ends and self.endings.domains else ():
            self._want(domain, at, watermark_of, wanted)
        return wanted

    def _want(
        self, domain: Domain, target: int, watermark_of: WatermarkOf, wanted: dict[str, int]
    ) -> None:
        for name in domain.types:
            if watermark_of(name) < target:
                wanted[name] = min(target, wanted.get(name, target))
        for key in domain.definitions:
            for seat in self._by_task[key]:
                below = self._watermark(seat.domain, watermark_of)
                at = reached_at(seat.agent, target, below)
                if at is not None and at > below:
                    self._want(seat.domain, at, watermark_of, wanted)

    def held(self) -> int:
        """Count the events and partial results that the agents hold."""
        return sum(seat.agent.held() for seat in self._seats.values())

    def dropped(self) -> dict[str, int]:
        """Count what agents dropped, by reason."""
        counts: dict[str, int] = {}
        for seat in self._seats.values():
            for reason, count in seat.agent.dropped().items():
                counts[reason] = counts.get(reason, 0) + count
        return counts

    def shared_state(self) -> dict[str, Any]:
        """Plain data: what all agents share."""
        return self._agents.state()

    def restore_shared(self, state: Mapping[str, Any]) -> None:
        """Take up such a state, before any task is installed."""
        self._agents.restore(state)

    def state(self) -> dict[str, list[Any]]:
        """Plain data: task key → the states of its cases' agents."""
        return {key: [seat.agent.state() for seat in seats] for key, seats in self._by_task.items()}

    def restore(self, state: dict[str, list[Any]]) -> None:
        """Take up the states of the tasks that are installed; others are ignored."""
        # Before any state is taken up: an agent that weighs reads the state of one that did not,
        # not the other way round.
        if any(weighed(one) for states in state.values() for one in states):
            self.doubt()
        for key, states in state.items():
            for seat, agent_state in zip(self._by_task.get(key, ()), states, strict=False):
                self.suspensions.restored(key, agent_state)
                seat.agent = self._agents.maker.restored(
                    seat.task, seat.case, seat.agent, agent_state
                )
                seat.at_once = at_once(seat)
                if seat.agent.waits:
                    self.schedule(seat)
            self.endings.note(self._by_task.get(key, ()))
        self._direct.all_changed()
