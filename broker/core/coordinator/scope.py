"""Which part of the tree a submission lies in, and how far from it brokers are.

Owns spans and distances. Must not know words or plans. Invariant: any two brokers that hold the
same tree have the same span of the same brokers, each as seen from itself.

All is reckoned from the ways from this broker to others, which the overlay has: the ways to the
points of a span have a stem in common, and behind its end lies the span.

        me ── a ── b ──── c          the span of c and e is c, b, d, e; its stem is me, a, b,
                    └─ d ── e        so that this broker is two hops from it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from broker.network.overlay.tree import Tree as Overlay
from planner.network import Network

Way = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TreeSpan:
    """The least part of the tree that connects some brokers, as seen from this one.

    `stem` leads from this broker to the nearest of the span, both included; `ways` go on from
    this broker to each of the points.
    """

    stem: Way
    ways: tuple[Way, ...]

    @property
    def hops(self) -> int:
        """Count the hops from this broker to the span."""
        return len(self.stem) - 1

    def hops_of(self, neighbour: str) -> int:
        """Count the hops from a neighbour in the tree to the span."""
        if self.hops:
            return self.hops - 1 if neighbour == self.stem[1] else self.hops + 1
        return 0 if any(neighbour in route[1:2] for route in self.ways) else 1

    def members(self, hops_max: int) -> Iterator[str]:
        """Yield the brokers of the span within so many hops of this one, each once."""
        seen: dict[str, None] = {}
        for route in self.ways:
            for name in route[self.hops : hops_max + 1]:
                if name not in seen:
                    seen[name] = None
                    yield name


class Geography:
    """Keep the ways from this broker on one tree as they are asked for.

    `network` is the one that was laid last on that tree.
    """

    def __init__(self, overlay: Overlay) -> None:
        self.overlay = overlay
        self.network: Network | None = None
        self._ways: dict[str, Way | None] = {}

    def way(self, broker: str) -> Way | None:
        """Return the brokers on the way to one, both ends included; None where there is none."""
        if broker not in self._ways:
            self._ways[broker] = self.overlay.path(broker)
        return self._ways[broker]

    def span(self, points: Iterable[str]) -> TreeSpan | None:
        """Return the span of those brokers that are reached; None where there are none."""
        ways = tuple(route for point in points if (route := self.way(point)) is not None)
        if not ways:
            return None
        stem = ways[0]
        for route in ways[1:]:
            shared = 0
            while shared < min(len(stem), len(route)) and stem[shared] == route[shared]:
                shared += 1
            stem = stem[:shared]
        return TreeSpan(stem, ways)

    def onward(self, broker: str, to: str) -> str:
        """Return the neighbour of a broker on the way to another; "" where it is that one."""
        own, route = self.way(broker) or (), self.way(to) or ()
        if route[: len(own)] != own:
            return own[-2]
        return route[len(own)] if len(route) > len(own) else ""
