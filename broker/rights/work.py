"""The share of a broker's work that a user may take while others want some, too.

Owns what each user with such a quota still owes the others. Must not know sockets or clocks: times
that work took come in. Invariants: after work of `took_s` a user of `percent` waits until others
had `took_s * (100 - percent) / percent`; where nobody else wants any work, nobody waits.
"""

import math

QUIET_TURNS = 2  # a socket that is busy is read in every other turn of asyncio's own loop


class WorkShare:
    """The debt of one user, which all connections of the user share."""

    __slots__ = ("_ledger", "others_s", "owed_s", "seen_s")

    def __init__(self, ledger: "WorkLedger") -> None:
        self._ledger = ledger
        self.owed_s = 0.0
        self.others_s = 0.0  # all that others had
        self.seen_s = ledger.total_s  # everybody's work before this is counted here already

    def credit(self) -> None:
        """Count what others had since."""
        since_s = self._ledger.total_s - self.seen_s
        self.seen_s = self._ledger.total_s
        self.others_s += since_s
        self.owed_s = max(0.0, self.owed_s - since_s)

    def charge(self, took_s: float, percent: int) -> None:
        """Count work of the user, which the ledger counts as well."""
        self.credit()
        self._ledger.total_s += took_s
        self.seen_s = self._ledger.total_s
        self.owed_s += took_s * (100 - percent) / percent if percent else math.inf


class Wait:
    """One connection that waits for its user's share."""

    __slots__ = ("_others_s", "_quiet", "_share")

    def __init__(self, share: WorkShare) -> None:
        self._share = share
        self._others_s = share.others_s
        self._quiet = 0

    def goes_on(self) -> bool:
        """Return whether to wait another turn of the loop; to be asked once in each."""
        share = self._share
        share.credit()
        self._quiet = 0 if share.others_s > self._others_s else self._quiet + 1
        self._others_s = share.others_s
        if self._quiet > QUIET_TURNS:
            share.owed_s = 0.0  # nobody else wants any
        return share.owed_s > 0


class WorkLedger:
    """The work of one broker, and the share of each user whose quota bounds it."""

    def __init__(self) -> None:
        self.total_s = 0.0
        self._shares: dict[str, WorkShare] = {}

    def charge(self, user: str, percent: int | None, took_s: float) -> Wait | None:
        """Count work of a user; return the wait that the user's quota demands, if it does.

        Of who has no name `total_s` counts it.
        """
        if percent is None:
            self.total_s += took_s
            return None
        share = self._shares.get(user)
        if share is None:
            share = self._shares[user] = WorkShare(self)
        share.charge(took_s, percent)
        return Wait(share) if share.owed_s > 0 else None
