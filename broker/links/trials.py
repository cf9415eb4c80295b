"""Discovered addresses that came to nothing, and when each is tried again.

Owns the waits. Must not know sockets, clocks or names. Invariant: an address at which no broker of
the network proves itself is tried ever more seldom, down to once in LAST_S; one that proves itself
begins again.
"""

from collections.abc import Container

from msgspec import Struct

from broker.links.announcement import Address

FIRST_S = 3.0  # the wait after the first failure: a look; doubled at each further one
LAST_S = 60.0  # a broker that is back where it was is asked within so long
PROOF_S = 10.0  # longer than a connection and a handshake take


class _Trial(Struct):
    """One address: the last wait, until when it lasts, and since when a proof is awaited."""

    wait_s: float = 0.0
    until_s: float = 0.0
    since_s: float | None = None


class Trials:
    """The waits of all addresses; times are seconds of one clock that does not go back."""

    def __init__(self) -> None:
        self._trials: dict[Address, _Trial] = {}

    def is_due(self, where: Address, now_s: float) -> bool:
        """Return whether an address may be tried now."""
        trial = self._trials.get(where)
        return trial is None or now_s >= trial.until_s

    def fail(self, where: Address, now_s: float) -> None:
        """Set an address aside."""
        trial = self._trials.setdefault(where, _Trial())
        trial.wait_s = min(max(FIRST_S, 2 * trial.wait_s), LAST_S)
        trial.until_s = now_s + trial.wait_s
        trial.since_s = None

    def await_proof(self, where: Address, now_s: float) -> None:
        """Count that an address is dialled without a link; after PROOF_S it has failed."""
        trial = self._trials.setdefault(where, _Trial())
        if trial.since_s is None:
            trial.since_s = now_s
        elif now_s - trial.since_s >= PROOF_S:
            self.fail(where, now_s)

    def succeed(self, where: Address) -> None:
        """Forget the failures of an address whose broker is linked."""
        self._trials.pop(where, None)

    def prune(self, addresses: Container[Address], now_s: float) -> None:
        """Forget what is no longer announced, once it would have been tried again.

        Not before: an announcement that comes and goes would otherwise be tried each time.
        """
        gone = [
            where
            for where, trial in self._trials.items()
            if where not in addresses and now_s >= trial.until_s
        ]
        for where in gone:
            del self._trials[where]

    def __len__(self) -> int:
        return len(self._trials)
