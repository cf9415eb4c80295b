"""The centralised rival: one broker holds every subscription and gets every event.

Owns the way to the centre and back. Must not know links. Invariant: the centre alone matches; on
the way nothing is filtered, split or shared.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker.network.routing.advertisement.messages import (
    LOCAL,
    Events,
    Message,
    Results,
    Send,
    Unwant,
    Want,
)
from broker.network.routing.advertisement.operator import Operator
from broker.network.routing.matching.matching import Compile, Matcher, Released, parts_of
from broker.network.routing.matching.rows import EventView, Store
from broker.network.routing.router import no_conditions

Addressed = tuple[EventView, tuple[str, ...]]


class CentralRouter:
    """A router that asks and tells the centre alone; `inward` is the neighbour nearer to it.

    None: this broker is the centre.
    """

    def __init__(self, inward: str | None, compile_condition: Compile = no_conditions) -> None:
        self._inward = inward
        self._came_from: dict[str, str] = {}  # by operator
        self._store = Store()
        self._matcher = Matcher(LOCAL, 0, compile_condition, each=True)

    def receive(self, came_from: str, message: Message) -> list[Send]:
        """Handle what a neighbour's router gave out for this broker."""
        if isinstance(message, Events):
            return self.events(came_from, message.events)
        if isinstance(message, Results):
            return self._pass_on(message.events)
        if isinstance(message, Want):
            return self.operator_added(came_from, message.operator)
        if isinstance(message, Unwant):
            return self.operator_removed(came_from, message.id)
        return []  # the centre is known without being advertised

    def operator_added(self, came_from: str, operator: Operator) -> list[Send]:
        """A subscription, on its way to the centre."""
        self._came_from[operator.id] = came_from
        if self._inward is not None:
            return [Send(self._inward, Want(operator))]
        return self._answer(self._matcher.add(operator, parts_of(operator), self._store))

    def operator_removed(self, came_from: str, name: str) -> list[Send]:
        """A subscription has ended."""
        if self._came_from.pop(name, came_from) != came_from:
            raise ValueError(f"{name} came from elsewhere")
        if self._inward is not None:
            return [Send(self._inward, Unwant(name))]
        self._matcher.remove(name)
        return []

    def events(self, came_from: str, events: Iterable[EventView]) -> list[Send]:
        """Events on their way to the centre."""
        if self._inward is not None:
            entered = list(events)
            return [Send(self._inward, Events(entered, len(entered)))]
        released: list[Released] = []
        for event in events:
            held = self._store.add(event, came_from)
            if held is not None:
                released += self._matcher.offer(held)
        return self._answer(released)

    def expire(self, before_ms: int) -> None:
        """Forget events that began before."""
        self._store.expire(before_ms)
        self._matcher.expire(before_ms)

    def _answer(self, released: list[Released]) -> list[Send]:
        return self._pass_on([(each.held.event, tuple(each.names)) for each in released])

    def _pass_on(self, addressed: list[Addressed]) -> list[Send]:
        """Results one broker further toward those who asked."""
        out: dict[str, list[Addressed]] = {}
        for event, names in addressed:
            ways: dict[str, list[str]] = {}
            for name in names:
                if name in self._came_from:
                    ways.setdefault(self._came_from[name], []).append(name)
            for toward, operators in ways.items():
                out.setdefault(toward, []).append((event, tuple(operators)))
        return [Send(toward, Results(out[toward])) for toward in sorted(out)]
