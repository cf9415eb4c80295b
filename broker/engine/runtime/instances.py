"""The way from events to the seats that want them, and from a definition to its users.

Owns what a task at work is called here, the contents that its seats want, and with whom they share
a watermark; and which instances become one. Must not know who decides which tasks run. Invariant:
a seat gets what the very instances detect that its task was wired to, and nothing of others of the
same key.

A task may run more than once, as *instances*: what a definition holds depends on when it began, so
that one that began later needs an instance beside it for as long as the two hold other things. All
instances of a task make events of one class, with the same ids: who detected them is told by the
filterer's name alone.

Two that hold the same are one from then on: a state says all that what comes later depends on. What
is not compared is what no report depends on: how much was dropped so far, when silent groups were
looked at last, whether it pays to let events wait, and what those that wait may complete, of which
the older instance knows no less. The order in which a pattern's groups began decides but which goes
first where a limit on them is passed, and is not compared either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from broker.engine.clock_names import clock_name
from broker.engine.pattern.pattern import lay_out
from broker.engine.runtime.seats import Direct, Domain, Domains, at_once
from broker.engine.runtime.shelf import Shelf

if TYPE_CHECKING:
    from broker.engine.event.agent import Agent
    from broker.engine.event.event import Event
    from broker.engine.filter.filterer import Filterer
    from broker.engine.pattern.patience import Group
    from broker.engine.pattern.pattern import Layout
    from broker.engine.pattern.staged_agent import StagedAgent
    from broker.engine.runtime.matcher import Matcher
    from broker.engine.runtime.seats import Seat
    from language.taskgraph import Task

Needs: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TaskInstance:
    """A task at work under a name: its key, or one beside it where it runs more than once.

    `needs`: the names of the instances that detect what it needs, by type.
    """

    name: str
    task: Task
    needs: Needs

    @property
    def outlet(self) -> str:
        """Return the filterer's name of what it detects; "" of a subscription."""
        return "" if self.task.output is None else f"{self.task.name}@{self.name}"

    def inlet(self, event_type: str) -> str:
        """Return the filterer's name of an input."""
        source = self.needs.get(event_type)
        return event_type if source is None else f"{event_type}@{source}"


class Wiring:
    """Connects seats with the filterer's contents and with their domain.

    `waits` returns True where tasks of different waits have clocks of their own.
    """

    def __init__(
        self,
        filterer: Filterer,
        by_name: Mapping[str, Sequence[Seat]],
        waits: Callable[[], bool],
    ) -> None:
        self.filterer = filterer
        # Content id to seats: the unique id of the matching content with which paper 003 (3.3.1)
        # passes an event to the agents.
        self.routes: dict[int, list[tuple[Seat, int]]] = {}
        self.domains = Domains()
        self.direct = Direct(self.routes, filterer)
        self._by_name = by_name
        self._waits = waits

    def connect(self, seat: Seat) -> None:
        """Have a seat want what its case names. Raises LimitReachedError; then `disconnect` it."""
        layout = lay_out(seat.case)
        seat.weighs = layout.root.within_ms is not None or seat.case.detect.maybe_drop
        seat.due, seat.waits_for_end = None, False
        seat.domain = self._domain(seat.instance, layout)
        seat.domain.seats += 1
        wanted = [(leaf.event_type, leaf.conditions) for leaf in layout.leaves]
        # `next` looks at every event of the named types whatever its values, and a group begins
        # with its first event of any type. Without groups a silence begins with the input, of which
        # agents are told as it is.
        if seat.case.group_by or any(joint.next for joint in layout.joints):
            wanted += [(name, ()) for name in layout.named]
        for place, (event_type, conditions) in enumerate(wanted):
            content = self.filterer.add(seat.instance.inlet(event_type), conditions)
            seat.contents += (content,)
            self.routes[content] = [*self.routes.get(content, ()), (seat, place)]
            self.direct.changed(content)
        seat.at_once = at_once(seat)

    def disconnect(self, seat: Seat) -> Domain | None:
        """Have a seat want nothing; return its domain if that is gone with it."""
        for content in seat.contents:
            # Two leaves of a case may want one content: the second finds nothing left of it.
            others = [route for route in self.routes.pop(content, ()) if route[0] is not seat]
            if others:
                self.routes[content] = others
            self.direct.changed(content)
            self.filterer.remove(content)
        seat.contents = ()
        seat.domain.seats -= 1
        if seat.domain.seats:
            return None
        self.domains.drop(seat.domain)
        return seat.domain

    def _domain(self, instance: TaskInstance, layout: Layout) -> Domain:
        used = sorted({leaf.event_type for leaf in layout.leaves})
        needs, wait_ms = instance.needs, instance.task.wait_ms if self._waits() else None
        types = tuple(clock_name(name, wait_ms) for name in used if name not in needs)
        definitions = tuple(needs[name] for name in used if name in needs)
        below = [seat.domain.level for name in definitions for seat in self._by_name[name]]
        return self.domains.of(types, definitions, 1 + max(below, default=-1))


# --- becoming one ---------------------------------------------------------------------------------

# Of an agent's state.
SILENT = frozenset(
    ("swept", "patience", "overflow", "inverted", "outlasting", "groups_overflow", "dropped")
)
GROUPED = frozenset(("partitions", "events"))
REACH = 7  # the place in a group's row of what may be completed there


def like(matcher: Matcher, name: str) -> str:
    """Return the first instance of the task that holds what this one does; else its own name.

    What is suspended holds nothing, and is like no other.
    """
    instance, suspended = matcher.running[name], matcher.suspensions.why
    agents = [seat.agent for seat in matcher.seats_of(name)]
    for other in matcher.instances(instance.task.key):
        if other == name or name in suspended:
            return name
        if other in suspended or matcher.running[other].needs != instance.needs:
            continue
        others = [seat.agent for seat in matcher.seats_of(other)]
        pairs = zip(others, agents, strict=True)
        if all(_alike(earlier, later, matcher.classes) for earlier, later in pairs):
            return other
    return name


def merge(matcher: Matcher, gone: str, into: str) -> None:
    """Have what needs an instance go on with another that holds the same, and stop it."""
    for name, instance in list(matcher.running.items()):
        if gone in instance.needs.values():
            needs = {
                kind: into if source == gone else source for kind, source in instance.needs.items()
            }
            matcher.rewire(name, needs)
    matcher.remove(gone)


def _alike(earlier: Agent, later: Agent, classes: Mapping[str, type[Event]]) -> bool:
    from broker.engine.pattern.staged_agent import StagedAgent

    if isinstance(earlier, StagedAgent) and earlier.lone is not None:
        return isinstance(later, StagedAgent) and later.lone is not None  # neither holds anything
    if earlier.held() != later.held():
        return False
    if isinstance(earlier, StagedAgent) and isinstance(later, StagedAgent):
        if earlier.groups.keys() != later.groups.keys():
            return False
        for key in earlier.groups:
            if _group(earlier, key, classes) != _group(later, key, classes):
                return False
    return _essence(earlier.state()) == _essence(later.state())


def _group(agent: StagedAgent, key: Group, classes: Mapping[str, type[Event]]) -> bytes:
    """Return what a pattern holds of a group, but for what may be completed there."""
    from broker.engine.pattern.staged_partition import packed

    shelf = Shelf(classes)
    row = packed(agent.groups[key], shelf)
    return msgspec.msgpack.encode([row[:REACH], row[REACH + 1 :], shelf.packed()])


def _essence(state: Mapping[str, Any]) -> bytes:
    """Return of an agent's state what its reports depend on."""
    # Of a pattern's groups the events are numbered through: they are compared each by itself.
    silent = SILENT | GROUPED if "partitions" in state else SILENT
    kept = {key: value for key, value in state.items() if key not in silent}
    if "partitions" in state:
        events = state["events"]
        kept["pending"] = [[leaf, events[number]] for leaf, number in state["pending"]]
    if "inner" in kept:
        kept["inner"] = _essence(kept["inner"])
    if "windows" in kept:
        kept["windows"] = {**kept["windows"], "drops": None}
    return msgspec.msgpack.encode(kept)
