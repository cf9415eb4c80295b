"""Where actors listen, and which of several is the nearest.

Owns what brokers have told of the actors at them. Must not know topics or connections. Invariant:
an actor is known exactly while the last word of some broker names it.

`to nearest NurseTablet` means, of the actors `NurseTablet/…` (any level below), the one that is
fewest hops away; among equally near ones the least name, by code point. An actor at a broker to
which there is no way is taken only where there is no other. Where none listens, the result goes to
the actor `NurseTablet` itself, so that somebody may take it who takes all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Actors:
    """The actors known of, by broker; at most so many in all."""

    def __init__(self, actors_max: int) -> None:
        self._actors_max = actors_max
        self.out_of_reach: tuple[str, ...] = ()
        self.known: dict[str, tuple[int, dict[str, None]]] = {}  # by broker: hops, actors
        # by any name that actors are below
        self._nearest: dict[str, tuple[bool, int, str]] | None = None

    def __len__(self) -> int:
        return sum([len(actors) for _, actors in self.known.values()])

    def tell(
        self, broker: str, hops: int, came: Sequence[str], gone: Sequence[str], *, anew: bool
    ) -> int:
        """A broker so many hops away has some actors more, or less; `anew`: these and no others.

        Returns how many of them there is no room for; those with the least names are kept.
        """
        actors = {} if anew else self.known.pop(broker, (0, {}))[1]
        if anew:
            self.known.pop(broker, None)
        for name in gone:
            actors.pop(name, None)
        fresh = sorted([name for name in dict.fromkeys(came) if name not in actors])
        # The least names, and not those that came first: every broker keeps the same ones, so that
        # `nearest` is the same wherever it is asked.
        room = max(self._actors_max - len(self) - len(actors), 0)
        actors.update(dict.fromkeys(fresh[:room]))
        if actors:
            self.known[broker] = (hops, actors)
        self._nearest = None
        return len(fresh[room:])

    def nearest(self, name: str) -> str | None:
        """The nearest actor below the name; None where there is none."""
        if self._nearest is None:
            self._nearest = self._look()
        found = self._nearest.get(name)
        return None if found is None else found[2]

    def cut_off(self, brokers: Sequence[str]) -> None:
        """To these brokers, and no others, there is no way."""
        self.out_of_reach = tuple(brokers)
        self._nearest = None

    def brokers_of(self, name: str) -> list[str]:
        """The brokers at which the actor listens."""
        return [broker for broker, (_, actors) in self.known.items() if name in actors]

    def of(self, broker: str) -> tuple[int, tuple[str, ...]]:
        """(hops, actors) of a broker."""
        hops, actors = self.known.get(broker, (0, {}))
        return hops, tuple(actors)

    def state(self) -> Any:
        """Plain data."""
        return [[broker, hops, list(actors)] for broker, (hops, actors) in self.known.items()]

    def restore(self, state: Sequence[Any]) -> None:
        """Take up such a state."""
        for broker, hops, actors in state:
            self.tell(broker, hops, actors, (), anew=True)

    def _look(self) -> dict[str, tuple[bool, int, str]]:
        nearest: dict[str, tuple[bool, int, str]] = {}
        for broker, (hops, actors) in self.known.items():
            # First in the comparison: an actor in reach is nearer than any beyond a cut, however
            # few hops that had.
            far = broker in self.out_of_reach
            for actor in actors:
                one = (far, hops, actor)
                for above in _above(actor):
                    known = nearest.get(above)
                    if known is None or one < known:
                        nearest[above] = one
        return nearest


def _above(actor: str) -> list[str]:
    """The names that an actor is below: of `a/b/c` these are `a` and `a/b`."""
    # Worked out for all names at once after a change: results ask for every event, actors come and
    # go by the hour.
    levels = actor.split("/")
    return ["/".join(levels[:depth]) for depth in range(1, len(levels)) if levels[depth]]
