"""Where a home's submissions are planned to run: what brokers agreed on, or the home itself set.

Owns the claims. Must not know links nor where tasks run by now. Invariant: a claim is replaced by
one of more terms alone, so whatever brokers agree on while a home's word is on its way, all end
with the same.
"""

from __future__ import annotations

from collections.abc import Collection, Container

from msgspec import Struct

from broker.core.coordinator.bounds import OVERRULED


class HostClaim(Struct, frozen=True):
    """The broker that is to run a submission.

    `urgent`: the one before is to be rid of it. `stands_in`: it is the home, as there is no way to
    who runs it by now.
    """

    term: int
    host: str
    urgent: bool = False
    stands_in: bool = False


class HostClaims:
    """Keep the claims of one home, by key."""

    def __init__(self, me: str) -> None:
        self.me = me
        self._claims: dict[str, HostClaim] = {}

    def get(self, key: str) -> HostClaim | None:
        """Return the claim, if there is one."""
        return self._claims.get(key)

    def take(self, key: str, claim: HostClaim) -> bool:
        """Take what brokers agreed on; tell whether it is newer than what holds."""
        before = self._claims.get(key)
        if before is None or before.term >= claim.term:
            return False
        self._claims[key] = claim
        return True

    def settle(
        self, key: str, host: str, refused: Collection[str], reached: Container[str]
    ) -> HostClaim:
        """Return the claim of a submission that runs at `host`, set anew if it cannot hold.

        It cannot where there is no way to whom it names, or where that one `refused`.
        """
        claim, is_reached = self._claims.get(key), host in reached
        holds = (
            claim is not None
            and claim.host in reached
            and (claim.host == host or claim.host not in refused)
            and not (claim.stands_in and is_reached)
        )
        if claim is None or not holds:
            term = 0 if claim is None else claim.term + OVERRULED
            actual = host if is_reached else self.me
            claim = HostClaim(term, actual, stands_in=not is_reached)
            self._claims[key] = claim
        return claim

    def keep(self, keys: Container[str]) -> None:
        """Forget the claims on what is at home here no more."""
        for key in [key for key in self._claims if key not in keys]:
            del self._claims[key]
