"""Where actors listen, and which of several is the nearest.

Owns what brokers have told of the actors at them. Must not know topics or connections. Invariant:
an actor is known exactly while the last word of some broker names it.

`to nearest NurseTablet` means, of the actors `NurseTablet/…` (any level below), the one that is
fewest hops away; among equally near ones the least name, by code point. Where none listens, the
result goes to the actor `NurseTablet` itself, so that somebody may take it who takes all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Actors:
    """The actors known of, by broker; at most so many in all."""

    def __init__(self, actors_max: int) -> None:
        self._actors_max = actors_max
        self._told: dict[str, tuple[int, tuple[str, ...]]] = {}  # by broker: hops, actors
        self._nearest: dict[str, tuple[int, str]] = {}  # by any name that actors are below

    def __len__(self) -> int:
        return sum([len(actors) for _, actors in self._told.values()])

    def tell(self, broker: str, hops: int, actors: Sequence[str]) -> int:
        """A broker so many hops away has these actors now; how many of them there is no room for.

        What it told before is void. Those with the least names are kept.
        """
        self._told.pop(broker, None)
        wanted = sorted(dict.fromkeys(actors))
        kept = wanted[: self._actors_max - len(self)]
        if kept:
            self._told[broker] = (hops, tuple(kept))
        self._look()
        return len(wanted) - len(kept)

    def nearest(self, name: str) -> str | None:
        """The nearest actor below the name; None where there is none."""
        found = self._nearest.get(name)
        return None if found is None else found[1]

    def state(self) -> Any:
        """Plain data."""
        return [[broker, hops, list(actors)] for broker, (hops, actors) in self._told.items()]

    def restore(self, state: Sequence[Any]) -> None:
        """Take up such a state."""
        for broker, hops, actors in state:
            self.tell(broker, hops, actors)

    def _look(self) -> None:
        nearest: dict[str, tuple[int, str]] = {}
        for hops, actors in self._told.values():
            for actor in actors:
                for above in _above(actor):
                    known = nearest.get(above)
                    if known is None or (hops, actor) < known:
                        nearest[above] = (hops, actor)
        self._nearest = nearest


def _above(actor: str) -> list[str]:
    """The names that an actor is below: of `a/b/c` these are `a` and `a/b`."""
    levels = actor.split("/")
    return ["/".join(levels[:depth]) for depth in range(1, len(levels)) if levels[depth]]
