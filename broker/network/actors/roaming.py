"""Results for actors that have just left the broker where they listened.

Owns who left when, and what waits for them. Must not know frames or topics. Invariant: what waits
is given away once, when the actor is heard of again, or is let go when its time is over.

A client that goes from one broker to another listens nowhere for a moment, or is not known to
listen there yet. Without this a result of that moment would reach nobody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from msgspec import Struct

ROAMING_MS = 30_000  # time enough to connect elsewhere; what is older alarms nobody in time
PUBLISHED_MAX = 10_000  # results that are known again when they come on another way: 1 MB
_DIGEST_BYTES = 16  # of what was published: few enough to keep many


class Held(Struct, frozen=True):
    """A result for an actor."""

    until: int  # then it is let go
    actor: str  # as it listened
    payload: bytes  # as it would be published


class Roaming:
    """Hold results for actors that have just left the broker where they listened.

    At most so many results are held, and actors known; the oldest go first.
    """

    def __init__(self, held_max: int) -> None:
        self._max = held_max  # of results, and of actors each
        self.gone: dict[str, int] = {}  # actors that listen nowhere, and since when, in that order
        self._held: deque[Held] = deque()
        self._published: dict[bytes, None] = {}  # not part of the state: see `first`

    def __len__(self) -> int:
        return len(self._held)

    def left(self, actors: Iterable[str], now: int) -> None:
        """These listen nowhere any more."""
        for actor in actors:
            self.gone.pop(actor, None)
            self.gone[actor] = now
        while len(self.gone) > self._max:
            del self.gone[next(iter(self.gone))]
        self._forget(now)

    def left_below(self, name: str, now: int) -> str | None:
        """Of the actors below a name that have just left the last."""
        self._forget(now)
        below = [actor for actor in self.gone if actor.startswith(f"{name}/")]
        return below[-1] if below else None

    def hold(self, actor: str, payload: bytes, now: int) -> bool:
        """Hold a result for an actor that has just left; whether it did, and nothing had to go."""
        self._forget(now)
        since = self.gone.get(actor)
        if since is None:
            return False
        self._held.append(Held(since + ROAMING_MS, actor, payload))
        if len(self._held) <= self._max:
            return True
        self._held.popleft()
        return False

    def came(self, actors: Iterable[str], now: int) -> list[Held]:
        """These listen somewhere: what was held for them."""
        names = dict.fromkeys(actors)
        for actor in names:
            self.gone.pop(actor, None)
        self._forget(now)
        found = [one for one in self._held if one.actor in names]
        if found:
            self._held = deque([one for one in self._held if one.actor not in names])
        return found

    def published(self, actor: str, payload: bytes) -> bool:
        """Tell whether a result of another home was published to the actor here.

        Nobody else can tell that somebody heard it. A process that ends forgets this.
        """
        return _digest(actor, payload) in self._published

    def first(self, actor: str, payload: bytes) -> bool:
        """It is published now; whether for the first time."""
        key = _digest(actor, payload)
        known = key in self._published
        self._published[key] = None
        if len(self._published) > PUBLISHED_MAX:
            del self._published[next(iter(self._published))]
        return not known

    def _forget(self, now: int) -> None:
        """Let go of what is over."""
        over: list[str] = []
        for actor, since in self.gone.items():
            if since + ROAMING_MS > now:
                break
            over.append(actor)
        for actor in over:
            del self.gone[actor]
        if self._held and min([one.until for one in self._held]) <= now:
            self._held = deque([one for one in self._held if one.until > now])

    def state(self) -> list[Any]:
        """Plain data."""
        held = [[one.until, one.actor, one.payload] for one in self._held]
        return [list(self.gone.items()), held]

    def restore(self, state: list[Any]) -> None:
        """Take up such a state, in the place of all that is here."""
        left, held = state
        self.gone = dict(left)
        self._held = deque([Held(*row) for row in held])


def _digest(actor: str, payload: bytes) -> bytes:
    found = blake2b(actor.encode(), digest_size=_DIGEST_BYTES)
    found.update(b"\0" + payload)
    return found.digest()
