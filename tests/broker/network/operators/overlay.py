"""Routers of many brokers over links that lose nothing: what arrives at a subscription's home.

Owns a tree of brokers, the queues between them, and the order in which these are emptied. Must not
know what ought to arrive. Invariant: a link keeps the order of its messages; nothing else has one.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable
from typing import Any

from broker.network.operators.conditions import compile_condition
from broker.network.routing.advertisement.messages import LOCAL, Results, Send
from broker.network.routing.advertisement.operator import Advertisement, Operator
from broker.network.routing.router import Router


class Overlay:
    """Brokers 0 to count - 1 in a random tree."""

    def __init__(self, count: int, draw: random.Random) -> None:
        self._draw = draw
        links = [(draw.randrange(broker), broker) for broker in range(1, count)]
        beside: list[list[str]] = [[] for _ in range(count)]
        for a, b in links:
            beside[a].append(str(b))
            beside[b].append(str(a))
        self.routers = [Router(names, compile_condition=compile_condition) for names in beside]
        self.home = draw.randrange(count)
        self.arrived: list[Any] = []
        self.over_links = 0
        self._seen: dict[tuple[int, int], set[int]] = {}
        self._queues: dict[tuple[int, int], deque[Any]] = {}

    def advertise(self, at: int, source: str) -> None:
        """A source says that it is there, and nothing of what it sends."""
        self._put(at, self.routers[at].advertised(LOCAL, Advertisement(source, ())))

    def want(self, operators: Iterable[Operator]) -> None:
        """The home's subscription."""
        for one in operators:
            self._put(self.home, self.routers[self.home].operator_added(LOCAL, one))

    def enter(self, at: int, events: list[Any]) -> None:
        """Events that come to a broker from its own sources."""
        self._put(at, self.routers[at].events(LOCAL, events))

    def step(self) -> bool:
        """Let one message arrive somewhere; False if none is on its way."""
        waiting = [link for link, queue in self._queues.items() if queue]
        if not waiting:
            return False
        came_from, to = self._draw.choice(waiting)
        message = self._queues[came_from, to].popleft()
        self._put(to, self.routers[to].receive(str(came_from), message))
        return True

    def settle(self) -> None:
        """Let all arrive."""
        while self.step():
            pass

    def _put(self, at: int, sends: Iterable[Send]) -> None:
        for to, message in sends:
            if to == LOCAL:
                assert isinstance(message, Results)
                assert at == self.home
                self.arrived += [event for event, _ in message.events]
            else:
                self._count(at, int(to), getattr(message, "events", ()))
                self._queues.setdefault((at, int(to)), deque()).append(message)

    def _count(self, at: int, to: int, events: Iterable[Any]) -> None:
        """No event goes over a link twice."""
        seen = self._seen.setdefault((at, to), set())
        for event in events:
            assert id(event) not in seen
            seen.add(id(event))
            self.over_links += 1
