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
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from broker.engine.event.agent import WATERMARK_END, LeafEvents, Result
from broker.engine.event.event import ByClass, Event, event_class
from broker.engine.filter.filterer import Filterer
from broker.engine.ledger import Ledger
from broker.engine.limits import Limits
from broker.engine.pattern.times.promises import reached_at
from broker.engine.runtime.agents import EXACT, Agents, output_name, weighed
from broker.engine.runtime.budget import Slices, TooMuchWorkError
from broker.engine.runtime.instances import Needs, TaskInstance, Wiring
from broker.engine.runtime.results import sort_results
from broker.engine.runtime.seats import (
    Domain,
    Endings,
    Seat,
    Suspensions,
    at_once,
    next_due,
    on_time,
    wake,
)
from language.taskgraph import cases_of

if TYPE_CHECKING:
    from language.taskgraph import Task

Inboxes = list[dict[int, list[LeafEvents]]]  # of each level of definitions, by agent
WatermarkOf = Callable[[str], int]
Look = tuple[WatermarkOf, dict[Any, int]]  # at watermarks, with those that were asked for
_uncertainty = attrgetter("uncertainty")
DueOf = Callable[[Domain, Mapping[int, Seat]], int | None]


# `install`: after the seats: a silence may begin with the task, and its agent must be there to be
# told.
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
        self.passed: WatermarkOf | None = None  # of clocks that have a wait; None: nobody waits
        self._seats: dict[int, Seat] = {}
        self._by_name: dict[str, list[Seat]] = {}
        self._instances: dict[str, TaskInstance] = {}
        self._names: dict[str, list[str]] = {}  # of instances, by the task's key
        self.endings = Endings(self._seats)
        self._next_index = 0
        self._wiring = Wiring(self.filterer, self._by_name, lambda: self.passed is not None)
        self._watermarks: dict[Any, int] = {}  # of what is asked for now
        self._agents = Agents(self._limits, strict=strict)
        self.budget = self._agents.budget
        self.suspensions = Suspensions(self._by_name, self._agents, self._wiring.direct)
        self.classes = self._agents.classes
        self.durations = self._agents.durations

    # --- tasks ---------------------------------------------------------------------------

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __len__(self) -> int:
        return len(self._by_name)

    def install(
        self, task: Task, begin: int | None = None, name: str = "", needs: Needs | None = None
    ) -> None:
        """Run a task; the definitions that it needs must run already. Twice is once.

        It begins at the instant, where one is given (else see `begin`). `name`: of this instance,
        where the task runs under its key already; `needs`: the instances that it is fed by.
        Raises LimitReachedError; then nothing of the task is left.
        """
        instance = TaskInstance(name or task.key, task, task.needs if needs is None else needs)
        name = instance.name
        if name in self._by_name:
            return
        for type_name, event_type in task.types.items():
            if type_name not in task.needs:
                self._agents.takes(type_name, event_type.attributes)
        output = None
        if task.output is not None:
            output = event_class(output_name(task), task.output.attributes, detected=True)
            self._agents.makes(task, output)
        seats = self._by_name[name] = []
        self._instances[name] = instance
        self._names.setdefault(task.key, []).append(name)
        try:
            for case in cases_of(task.node):
                agent = self._agents.maker.make(instance, case, output)
                seat = Seat(self._next_index, instance, case, agent, instance.outlet)
                self._next_index += 1
                self._seats[seat.index] = seat
                seats.append(seat)
                self._wiring.connect(seat)
        except BaseException:
            self.remove(name)
            raise
        if begin is not None:
            self._agents.begin(name, begin)
        self.suspensions.installed(instance)
        self.endings.note(seats)
        if name in self._agents.beginning:
            self.schedule(*seats)

    @property
    def has_beginnings(self) -> bool:
        """Tell whether it matters to a task when it began."""
        return bool(self._agents.beginning)

    def begin(self, instant: int) -> None:
        """The tasks that are installed, or will be, begin at the instant, if not before."""
        if self._agents.begin_all(instant):
            for key in self._agents.beginning:
                self.schedule(*self._by_name[key])  # a silence is due without any event

    def begins_from(self, floor: int) -> None:
        """No event to come begins before this time, nor does a task, if it has not begun before."""
        self._agents.begins_from(floor)

    def remove(self, name: str) -> None:
        """Stop an instance of a task; its state is gone."""
        self.suspensions.why.pop(name, None)
        for seat in self._by_name.pop(name, ()):
            del self._seats[seat.index]
            self._agents.forget(name)
            self._wiring.disconnect(seat)
        instance = self._instances.pop(name, None)
        if instance is not None:
            key = instance.task.key
            self._names[key].remove(name)
            if not self._names[key]:
                del self._names[key]
                self._agents.makes_no_more(instance.task)

    def rewire(self, name: str, needs: Needs, *, last: bool = False) -> None:
        """Have a task go on with what other instances of the definitions detect that it needs.

        `last`: these began after it, behind which it stands from now on; so do those that need it.
        """
        if last:
            self._by_name[name] = self._by_name.pop(name)
            self._instances[name] = self._instances.pop(name)
        instance = self._instances[name] = TaskInstance(name, self._instances[name].task, needs)
        for seat in self._by_name[name]:
            if (gone := self._wiring.disconnect(seat)) is not None:
                self.endings.drop(gone)
            seat.instance = instance
            self._wiring.connect(seat)
            self.schedule(seat)
        self.endings.note(self._by_name[name])

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
            seat.agent = self._agents.maker.weighing(seat.instance, seat.case, seat.agent)
            seat.at_once = at_once(seat)
            self.schedule(seat)
        self._wiring.direct.all_changed()

    def tasks(self) -> dict[str, Task]:
        """The tasks that run, by key."""
        return {one.task.key: one.task for one in self._instances.values()}

    def instances(self, key: str) -> Sequence[str]:
        """Return the names of the instances of a task, in the order of their beginning."""
        return self._names.get(key, ())

    @property
    def running(self) -> Mapping[str, TaskInstance]:
        """Return all instances by name, each behind what it needs."""
        return self._instances

    def seats_of(self, name: str) -> list[Seat]:
        """Return the seats of an instance; if what an agent holds changes, schedule its seat."""
        return self._by_name[name]

    def wanted(self) -> list[str]:
        """The primitive types that tasks wait for, in order."""
        return self._wiring.domains.types()

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
        active: Inboxes = list(map(dict, [()] * len(self._wiring.domains.levels)))
        results: list[Result] = []
        self._deliver(events, active, results, by_class)
        mixed = bool(results)  # what one agent alone reports is in order
        for level, inboxes in enumerate(active):
            for domain in self._wiring.domains.levels[level]:
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
                    self.suspensions.suspend(seat.instance.name, error.what)
                    continue
                finally:
                    budget.end()
                if seat.agent.waits:
                    self.schedule(seat)
                if made and seat.outlet:
                    self._ledger.detected.received += len(made)
                    before = len(results)
                    self._deliver(made, active, results, outlet=seat.outlet)
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
        outlet: str = "",
    ) -> None:
        if not events:
            return
        if self._wiring.direct.unsettled:
            self._wiring.direct.settle()
        for content, matched in self.filterer.route(events, by_class, results, outlet):
            if lone := self._wiring.direct.makers[content]:
                for made in lone:
                    results += made(matched)
                continue
            # Weighing times costs every join, so it begins with the first event that is in doubt.
            if self._agents.doubted is None and any(map(_uncertainty, matched)):
                self.doubt()
                self._wiring.direct.settle()
            for seat, leaf in self._wiring.routes[content]:
                if seat.at_once is not None:
                    results += seat.at_once(matched)
                    continue
                fed: Sequence[Event] = matched
                if seat.domain.clocks and self.passed is not None:
                    fed = on_time(seat.domain, matched, self.passed)
                    self._ledger.note("late_for_waits", len(matched) - len(fed))
                if fed:
                    active[seat.domain.level].setdefault(seat.index, []).append((leaf, fed))

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
            for seat in self._by_name[key]:
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
            if not seat.outlet:
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
        for domains in self._wiring.domains.levels:
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
            for seat in self._by_name[key]:
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
        """Plain data: an instance's name → the states of its cases' agents."""
        return {key: [seat.agent.state() for seat in seats] for key, seats in self._by_name.items()}

    def restore(self, state: dict[str, list[Any]]) -> None:
        """Take up the states of the instances that are installed; others are ignored."""
        # Before any state is taken up: an agent that weighs reads the state of one that did not,
        # not the other way round.
        if any(weighed(one) for states in state.values() for one in states):
            self.doubt()
        for key, states in state.items():
            for seat, agent_state in zip(self._by_name.get(key, ()), states, strict=False):
                self.suspensions.restored(key, agent_state)
                seat.agent = self._agents.maker.restored(
                    seat.instance, seat.case, seat.agent, agent_state
                )
                seat.at_once = at_once(seat)
                if seat.agent.waits:
                    self.schedule(seat)
            self.endings.note(self._by_name.get(key, ()))
        self._wiring.direct.all_changed()
