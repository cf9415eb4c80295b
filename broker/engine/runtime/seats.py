"""The places at which agents work, and what they share.

Owns these records: who is due, which subscriptions end, which tasks are suspended, and of what the
results are made at once. Must not know who feeds agents. Invariants: a domain counts the seats that
it has, and every seat that is due stands in its domain's heap; a subscription is over only where
its agent promises that nothing comes that ends before its end; the stand-in of a suspended agent
holds nothing and is due at no time, so that nobody waits for what it will not report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from broker.engine.clock_names import SEPARATOR, parts_of
from broker.engine.event.agent import WATERMARK_END, Agent, LeafEvents, Result
from broker.engine.event.event import Event
from language.tree import Case, Subscription

if TYPE_CHECKING:
    from broker.engine.filter.content import Makers
    from broker.engine.filter.filterer import Filterer
    from broker.engine.pattern.agent.lone import LoneAtom
    from broker.engine.runtime.agents import Agents
    from broker.engine.runtime.instances import TaskInstance
    from language.taskgraph import Task

SUSPENDED = "suspended"  # the key of its state, which no other agent's has


class SuspendedAgent:
    """Holds the place of an agent until its task is resumed; `why` is what it exceeded."""

    waits = False

    def __init__(self, why: str) -> None:
        self.why = why

    def feed(self, batch: Sequence[Any], watermark: int) -> list[Any]:  # noqa: ARG002
        """Pass over all events."""
        return []

    def watermark_out(self, watermark: int) -> int:
        """Promise nothing, so that nothing is waited for."""
        # What it would have reported is lost and told as such; holding back its users' watermark
        # for it as well would stop those that need other inputs, too.
        return watermark

    def next_due(self) -> int | None:
        """Be due at no time."""
        return None

    def held(self) -> int:
        """Hold nothing."""
        return 0

    def dropped(self) -> dict[str, int]:
        """Count nothing: what the agent in its place had counted went with its state."""
        return {}

    def state(self) -> Any:
        """Give the reason, as plain data."""
        return {SUSPENDED: self.why}

    def restore(self, state: Any) -> None:
        """Take such a state up."""
        self.why = state[SUSPENDED]


AtOnce = Callable[[Sequence[Event]], list[Result]]
LOOKED_SEATS = 64  # of a domain, that are asked one by one when they may report
BENEATH = "what it needs is suspended"


@dataclass(slots=True)
class Domain:
    """Agents with the same inputs share a watermark, and a heap of who is due at which.

    `types` are the names of their clocks (`broker.engine.clock_names`).
    """

    types: tuple[str, ...]
    definitions: tuple[str, ...]
    level: int
    due: list[tuple[int, int]] = field(default_factory=list)
    seats: int = 0
    clocks: dict[str, str] = field(default_factory=dict)  # by type, where they have a wait


class Domains:
    """All domains; those of a level need only what is detected in those of the levels before."""

    def __init__(self) -> None:
        self.levels: list[list[Domain]] = []
        self._known: dict[tuple[tuple[str, ...], tuple[str, ...]], Domain] = {}

    def of(self, types: tuple[str, ...], definitions: tuple[str, ...], level: int) -> Domain:
        """The domain of these inputs, new where there is none."""
        domain = self._known.get((types, definitions))
        if domain is None:
            domain = self._known[types, definitions] = Domain(types, definitions, level)
            domain.clocks = {parts_of(name)[0]: name for name in types if SEPARATOR in name}
            # Levels are never dropped: an empty one costs a look for each push, and their number is
            # the depth of definitions, which the checker bounds.
            while len(self.levels) <= level:
                self.levels.append([])
            self.levels[level].append(domain)
        return domain

    def drop(self, domain: Domain) -> None:
        """Nobody has these inputs any more."""
        del self._known[domain.types, domain.definitions]
        self.levels[domain.level].remove(domain)

    def types(self) -> list[str]:
        """The primitive types among all inputs, in order."""
        return sorted({parts_of(name)[0] for types, _ in self._known for name in types})


@dataclass(slots=True)
class Seat:
    """An agent at work: one case of one task.

    A subscription to single events, which are results as they come, is asked `at_once`.
    """

    index: int
    instance: TaskInstance
    case: Case
    agent: Agent
    outlet: str  # the filterer's name of what is detected; "" of a subscription
    domain: Domain = field(default_factory=lambda: Domain((), (), 0))
    contents: tuple[int, ...] = ()
    due: int | None = None
    at_once: AtOnce | None = None
    weighs: bool = True  # whether uncertain times matter to it even so
    waits_for_end: bool = False

    @property
    def task(self) -> Task:
        """Return the task of which it runs a case."""
        return self.instance.task


def next_due(domain: Domain, seats: Mapping[int, Seat]) -> int | None:
    """The next time at which a seat is due; what stands before it for nothing goes."""
    while domain.due:
        due, index = domain.due[0]
        seat = seats.get(index)
        if seat is not None and seat.due == due:
            return due
        heappop(domain.due)
        if seat is not None and due >= WATERMARK_END:
            seat.waits_for_end = False  # it is to be noted anew
    return None


def wake(
    domain: Domain, seats: Mapping[int, Seat], watermark: int, inboxes: dict[int, list[LeafEvents]]
) -> None:
    """Have all seats fed, with nothing at least, that are due by a watermark."""
    while domain.due and domain.due[0][0] <= watermark:
        due, index = heappop(domain.due)
        seat = seats.get(index)
        if seat is not None and seat.due == due:
            seat.due = None
            inboxes.setdefault(index, [])


def next_report(domain: Domain, seats: Mapping[int, Seat]) -> int | None:
    """Return the watermark from which on a seat may report something; None where none does.

    Of many that are due, which are not all looked through, the first that is due stands for it.
    """
    from broker.engine.pattern.agent.staged_agent import StagedAgent

    due = next_due(domain, seats)
    if due is None or len(domain.due) > LOOKED_SEATS:
        return due
    reports = []
    for seat in [seats[index] for _, index in domain.due if index in seats]:
        agent = seat.agent
        report = agent.next_report() if isinstance(agent, StagedAgent) else agent.next_due()
        reports += [] if report is None else [report]
    return min(reports, default=None)


def at_once(seat: Seat) -> AtOnce | None:
    """Return the maker of results of a subscription to single events; None for all others."""
    lone = lone_of(seat)
    if seat.outlet or seat.domain.clocks or lone is None:
        return None
    return lone.maker()


def lone_of(seat: Seat) -> LoneAtom | None:
    """Return the one atom of a seat's pattern where each of its events is an occurrence."""
    from broker.engine.pattern.agent.staged_agent import StagedAgent

    return seat.agent.lone if isinstance(seat.agent, StagedAgent) else None


def on_time(
    domain: Domain, events: Sequence[Event], passed: Callable[[str], int]
) -> Sequence[Event]:
    """Return those of `events` that are not late for a domain whose clocks have a wait."""
    clocks = domain.clocks
    return [
        event
        for event in events
        if (clock := clocks.get(event.event_type)) is None or event.end > passed(clock)
    ]


class Direct:
    """Contents of which nothing is done but to make results of their events."""

    def __init__(
        self, routes: Mapping[int, Sequence[tuple[Seat, int]]], filterer: Filterer
    ) -> None:
        self._routes = routes
        self._filterer = filterer
        self.makers: dict[int, list[AtOnce]] = {}  # by content, of which that is all; else none
        self.unsettled: dict[int, None] = {}

    def changed(self, content: int) -> None:
        """Others want it now, or those who do have other agents."""
        # Worked out again when an event comes: installing a thousand subscriptions to one content
        # would otherwise make a thousand lists, of one to a thousand seats.
        self.makers.pop(content, None)
        if content in self._routes:
            self.unsettled[content] = None
        else:
            self.unsettled.pop(content, None)  # nobody does: it is gone

    def all_changed(self) -> None:
        """So it is with all."""
        self.makers.clear()
        self.unsettled.update(dict.fromkeys(self._routes))

    def settle(self) -> None:
        """Work out the makers of what has changed, and tell the filterer of single events."""
        for content in self.unsettled:
            seats = [seat for seat, _ in self._routes[content]]
            lone = [seat.at_once for seat in seats if seat.at_once and not seat.weighs]
            self.makers[content] = lone if len(lone) == len(seats) else []
            self._filterer.make_at_once(content, self._each(content))
        self.unsettled.clear()

    def _each(self, content: int) -> Makers:
        """The same for single events, where each gives a result and none is detected."""
        makers = []
        for seat, _ in self._routes[content]:
            plain = seat.at_once is not None and not seat.weighs
            lone = lone_of(seat)
            # What is detected has its certainty and lineage to be carried over, which makers of
            # primitive events leave out.
            if seat.task.needs or not plain or lone is None:
                return ()
            make = lone.maker_of_one()
            if make is None:
                return ()
            makers.append(make)
        return tuple(makers)


class Suspensions:
    """The suspended tasks, and `why`, by name; so many were `told` to whom they concern.

    Where that is another number some are suspended, or are no more, of which nobody was told.
    """

    def __init__(
        self, by_name: Mapping[str, Sequence[Seat]], agents: Agents, direct: Direct
    ) -> None:
        self.why: dict[str, str] = {}
        self.told = 0
        self._by_name = by_name
        self._agents = agents
        self._direct = direct

    def suspend(self, name: str, why: str) -> None:
        """Suspend a task, and those that need it: all that they hold is gone."""
        self.why[name] = why
        # In the order of installation, in which a task stands behind all that it needs: one pass
        # finds all that rests on it.
        for other, seats in self._by_name.items():
            if seats and not self.why.keys().isdisjoint(seats[0].instance.needs.values()):
                self.why.setdefault(other, BENEATH)
            if other not in self.why:
                continue
            self._agents.forget(other)
            for seat in seats:
                seat.agent = SuspendedAgent(self.why[other])
                seat.at_once = seat.due = None
        self._direct.all_changed()

    def installed(self, instance: TaskInstance) -> None:
        """Suspend a new task where what it needs is suspended."""
        if not self.why.keys().isdisjoint(instance.needs.values()):
            self.suspend(instance.name, BENEATH)

    def restored(self, name: str, state: Mapping[str, Any]) -> None:
        """Note a task whose agent was restored from a stand-in's state."""
        if SUSPENDED in state:
            self.why[name] = state[SUSPENDED]


Key = tuple[tuple[str, ...], tuple[str, ...]]
WatermarkAt = Callable[[Domain], int]


class Endings:
    """The ends of all subscriptions that have one; `seats` are those that are there."""

    def __init__(self, seats: Mapping[int, Seat]) -> None:
        self._seats = seats
        # A heap for each; empty where no subscription ends, as in most brokers.
        self.domains: dict[Key, tuple[Domain, list[tuple[int, int]]]] = {}

    def note(self, seats: Sequence[Seat]) -> None:
        """Take in when these end, where that is known; twice is once."""
        for seat in seats:
            at = None if seat.outlet else _ends_at(seat)
            if at is not None:
                domain, entry = seat.domain, (at, seat.index)
                key = (domain.types, domain.definitions)
                known = self.domains.get(key)
                # A domain that went and came again is another object under the same key; its old
                # heap waits for nobody.
                if known is None or known[0] is not domain:
                    known = self.domains[key] = (domain, [])
                heappush(known[1], entry)

    def drop(self, domain: Domain) -> None:
        """Forget a domain that no seat is in any more."""
        self.domains.pop((domain.types, domain.definitions), None)

    def first(self) -> Iterator[tuple[Domain, int]]:
        """Each domain in which one has an end, with the first of these."""
        for key, (domain, ends) in list(self.domains.items()):
            while ends and ends[0][1] not in self._seats:
                heappop(ends)
            if ends:
                yield domain, ends[0][0]
            else:
                del self.domains[key]

    def over(self, foreseen: WatermarkAt, given: WatermarkAt) -> list[tuple[str, str]]:
        """(subscriber, name) of those of which nothing more can be a result.

        `foreseen` only looks at a domain's watermark; `given` asks for it, so that nothing may come
        behind it.
        """
        found: dict[tuple[str, str], None] = {}
        for domain, at in self.first():
            # Looking is free, asking is not: a watermark that was given out makes every earlier
            # event late, also for tasks that would still have taken it.
            if at <= foreseen(domain):
                found.update(dict.fromkeys(self._over_at(domain, given(domain))))
        return list(found)

    def _over_at(self, domain: Domain, watermark: int) -> list[tuple[str, str]]:
        _, ends = self.domains[domain.types, domain.definitions]
        passed: dict[tuple[int, int], None] = {}
        while ends and ends[0][0] <= watermark:
            passed[heappop(ends)] = None
        found = []
        for at, index in passed:
            seat = self._seats.get(index)
            if seat is None:
                continue
            # It stays noted until its seat goes: the broker may be told, and fail before it acts.
            heappush(ends, (at, index))  # until it goes
            node = seat.task.node
            if isinstance(node, Subscription) and seat.agent.watermark_out(watermark) >= at - 1:
                found.append((node.subscriber, node.name))
        return found


def _ends_at(seat: Seat) -> int | None:
    from broker.engine.pattern.agent.staged_agent import StagedAgent

    return seat.agent.ends_at() if isinstance(seat.agent, StagedAgent) else None
