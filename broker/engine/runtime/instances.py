"""The way from events to the seats that want them, and from a definition to its users.

Owns what a task at work is called here, the contents that its seats want, and with whom they share
a watermark. Must not know who decides which tasks run. Invariant: a seat gets what the very
instances detect that its task was wired to, and nothing of others of the same key.

A task may run more than once, as *instances*: what a definition holds depends on when it began, so
that one that began later needs an instance beside it for as long as the two hold other things. All
instances of a task make events of one class, with the same ids: who detected them is told by the
filterer's name alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from broker.engine.clock_names import clock_name
from broker.engine.pattern.layout.pattern import lay_out
from broker.engine.runtime.seats import Direct, Domain, Domains, at_once

if TYPE_CHECKING:
    from broker.engine.filter.filterer import Filterer
    from broker.engine.pattern.layout.pattern import Layout
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
