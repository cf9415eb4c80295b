"""The lease by which a home gives out results, and its stand-in takes over by itself.

Owns both sides of it. Must not know results, links or what a take-over does. Invariant: at no
moment does a home give out results by a lease that its stand-in holds for lapsed, as long as each
clock runs at the rate of true time within `DRIFT_PPM`.

A home asks for its lease again after a third of it. The stand-in counts `lease_ms` by its own clock
from when it hears that; the home from when it asked, which was earlier, and it stops before it has
counted as many:

    home        asks ──────── usable_ms ────────▶ gives out nothing
    stand-in          hears ─────────── lease_ms ───────────▶ takes over

With rates within 1 ± d the home stops at most usable_ms / (1 - d) of true time after it asked, and
the stand-in waits at least lease_ms / (1 + d). So usable_ms = lease_ms (1 - 2 d) is little enough,
as (1 - 2 d)(1 + d) < 1 - d. Neither compares the time of one clock with that of another.
"""

from __future__ import annotations

from collections.abc import Iterable

DRIFT_PPM = 10_000  # a hundred times what crystals do, for machines that a host holds up
ASKS = 3  # in the time of a lease: two may be lost


def usable_ms(lease_ms: int) -> int:
    """Return how long a home may count on a lease, from when it asked for it."""
    return max(0, lease_ms - -(-2 * DRIFT_PPM * lease_ms // 1_000_000))


class HomeLease:
    """The lease of a home; `lease_ms` 0: it has none, and needs none."""

    def __init__(self, lease_ms: int = 0) -> None:
        self.lease_ms = lease_ms
        self._until: int | None = None
        self._asked: dict[int, int] = {}  # by number, when
        self._number = 0
        self._asks_at = 0

    def holds(self, now: int) -> bool:
        """Tell if results may be given out."""
        return not self.lease_ms or (self._until is not None and now < self._until)

    def ask(self, now: int) -> int | None:
        """Return the number of the question that is due, if one is."""
        # An answer to a question of before counts as well, from when that was asked: on a link on
        # which an answer takes longer than a third of a lease, none would ever be in time.
        if not self.lease_ms or now < self._asks_at:
            return None
        self._number += 1
        self._asked = {
            number: asked for number, asked in self._asked.items() if now - asked < self.lease_ms
        }
        self._asked[self._number] = now
        self._asks_at = now + max(1, self.lease_ms // ASKS)
        return self._number

    def grant(self, number: int) -> None:
        """Count on the lease from when question `number` was asked."""
        asked = self._asked.pop(number, None)
        if asked is not None:
            until = asked + usable_ms(self.lease_ms)
            self._until = until if self._until is None else max(self._until, until)

    def lose(self) -> None:
        """Count on it no longer, nor on an answer under way: another is to grant it."""
        # Numbers go on, so that an answer to a question that is forgotten finds none.
        self._until, self._asked, self._asks_at = None, {}, 0

    def next_wake(self) -> int | None:
        """Return when a question is due."""
        return self._asks_at if self.lease_ms else None


class LeaseGrants:
    """The leases that a stand-in has granted, by home, in its process.

    It may have granted one right before it began: so each counts from its beginning.
    """

    def __init__(self) -> None:
        self.homes: dict[str, tuple[int, int]] = {}  # by home: when, for how long

    def grant(self, home: str, now: int) -> bool:
        """Grant a lease once more; False where none is to be granted."""
        if home not in self.homes:
            return False
        self.homes[home] = now, self.homes[home][1]
        return True

    def look(self, leases: Iterable[tuple[str, int]], now: int) -> list[str]:
        """Return the homes whose leases have lapsed, of those with one."""
        # A home whose copy comes to have a lease, or comes anew, has just been heard of.
        self.homes = {
            home: (self.homes.get(home, (now, 0))[0], lease_ms) for home, lease_ms in leases
        }
        return [home for home, (since, lease_ms) in self.homes.items() if now - since >= lease_ms]

    def left_ms(self, home: str, now: int) -> int | None:
        """Return how much is left of a lease; None: there is none."""
        granted = self.homes.get(home)
        return None if granted is None else max(0, granted[0] + granted[1] - now)

    def next_wake(self) -> int | None:
        """Return when the next one lapses."""
        return min([since + lease_ms for since, lease_ms in self.homes.values()], default=None)
