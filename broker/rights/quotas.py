"""What users and addresses take of a broker, counted against their quotas.

Owns the counts. Must not know connections, sessions or messages: names and amounts come in.
Invariants: a count is what was taken and not given back; a refusal changes nothing. The address
counts for everybody, the user for whoever has proven a name: all who have none would else be one.
"""

from collections import defaultdict
from collections.abc import Hashable
from typing import Literal

from msgspec import Struct

from broker.rights.table import Quota, QuotaTable

Resource = Literal["connections", "subscriptions", "retained"]
UNBOUNDED = 2**63


class Holder(Struct, frozen=True):
    """A user, None without a proven name, at an address, empty where it is not known (yet)."""

    user: str | None
    address: str


class QueueAccount(Struct):
    """The bytes that wait for all sessions of one user; changed by their queues themselves.

    Every message passes here, so that it is a sum and no question to the ledger.
    """

    bytes_max: int
    held_bytes: int = 0


class QuotaLedger:
    """The counts of one broker; what was taken before the table is replaced stays counted."""

    def __init__(self, table: QuotaTable | None = None) -> None:
        self._table = table or QuotaTable()
        self._of_user: defaultdict[tuple[Resource, str], int] = defaultdict(int)
        self._of_address: defaultdict[tuple[Resource, str], int] = defaultdict(int)
        self._retained: dict[str, Holder] = {}  # by topic
        self._accounts: dict[str, QueueAccount] = {}  # of users with sessions

    def take(
        self, resource: Resource, holder: Holder, amount: int = 1, *, spare: int = 0
    ) -> str | None:
        """Count `amount` unless a quota forbids it; return the sentence of the refusal, or None.

        `spare` is how much is given back right after, as where a connection replaces another.
        """
        sentence = self._refusal(resource, holder, amount - spare)
        if sentence is None:
            self.add(resource, holder, amount)
        return sentence

    def replace(self, table: QuotaTable) -> None:
        """Judge by another table from now on."""
        self._table = table
        for user, account in self._accounts.items():
            account.bytes_max = self._queue_bytes_max(user)

    def of_user(self, user: str | None) -> Quota:
        """Return the quota of a user as it stands."""
        return self._table.of_user(user)

    def account(self, user: str | None) -> QueueAccount | None:
        """Return the account that all queues of a user share; None without a proven name."""
        if user is None:
            return None
        account = self._accounts.get(user)
        if account is None:
            account = self._accounts[user] = QueueAccount(self._queue_bytes_max(user))
        return account

    def _queue_bytes_max(self, user: str) -> int:
        bytes_max = self._table.of_user(user).queue_bytes
        return UNBOUNDED if bytes_max is None else bytes_max

    def add(self, resource: Resource, holder: Holder, amount: int = 1) -> None:
        """Count what is there already, as after a restart; negative: what is given back."""
        counts = ((self._of_address, holder.address), (self._of_user, holder.user))
        for taken, name in counts:
            if not name:
                continue
            taken[resource, name] += amount
            if not taken[resource, name]:
                del taken[resource, name]  # else every address that ever came would stay

    def give(self, resource: Resource, holder: Holder, amount: int = 1) -> None:
        """Take back what was counted."""
        self.add(resource, holder, -amount)

    def taken(self, resource: Resource, *, user: str) -> int:
        """Return how much a user has."""
        return self._of_user.get((resource, user), 0)

    # --- retained messages: each topic's is of whoever wrote it last ------------------------------

    def retain(self, topic: str, holder: Holder) -> str | None:
        """Count a topic's retained message as the holder's; return the refusal, or None."""
        before = self._retained.get(topic)
        if before == holder:
            return None
        sentence = self.take("retained", holder)
        if sentence is None:
            self.unretain(topic)
            self._retained[topic] = holder
        return sentence

    def unretain(self, topic: str) -> None:
        """Note that a topic has no retained message any longer."""
        holder = self._retained.pop(topic, None)
        if holder is not None:
            self.give("retained", holder)

    def _refusal(self, resource: Resource, holder: Holder, amount: int) -> str | None:
        if holder.user:
            count_max = getattr(self._table.of_user(holder.user), resource)
            if count_max is not None:
                count = self._of_user.get((resource, holder.user), 0)
                if count + amount > count_max:
                    return f"the user {holder.user!r} has {_words(resource, count, count_max)}"
        count_max = getattr(self._table.address, resource)
        if count_max is not None and holder.address:
            count = self._of_address.get((resource, holder.address), 0)
            if count + amount > count_max:
                return f"the address {holder.address} has {_words(resource, count, count_max)}"
        return None


def _words(resource: Resource, count: int, count_max: int) -> str:
    name = "retained messages" if resource == "retained" else resource
    return f"{count} {name}, and its quota is {count_max}"


class DoorCount:
    """Connections of a door that learns whose each is from what comes through it, as HTTP does.

    A connection counts from its first request on; another user's request makes it that user's.
    """

    def __init__(self, ledger: QuotaLedger) -> None:
        self._ledger = ledger
        self._holders: dict[Hashable, Holder] = {}  # by connection

    def admit(self, connection: Hashable, holder: Holder) -> str | None:
        """Count a connection as the holder's; return the sentence of the refusal, or None."""
        before = self._holders.get(connection)
        if before == holder:
            return None
        if before is not None:
            self._ledger.give("connections", before)  # else it would stand in its own way
        sentence = self._ledger.take("connections", holder)
        if sentence is None:
            self._holders[connection] = holder
        elif before is not None:
            self._ledger.add("connections", before)
        return sentence

    def gone(self, connection: Hashable) -> None:
        """Give back what a connection that ended was counted as."""
        holder = self._holders.pop(connection, None)
        if holder is not None:
            self._ledger.give("connections", holder)
