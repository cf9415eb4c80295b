"""What a rights file says, as validated structs: roles, users, tokens and quotas.

Owns these shapes. Must not know how they are read or asked. Invariant: an instance was validated
whole; it never changes, and a file that is read again makes another one.
"""

from collections.abc import Mapping

from msgspec import Struct

from broker.rights.requests import Right


class RoleEntry(Struct, frozen=True, kw_only=True):
    """One role: what it grants; every tuple is of patterns, in the order of the file.

    `publish`, `subscribe` and `deny` are topic filters below the prefix, `plain_…` those of all
    other topics; `deny` holds for both ways and wins over what any other role grants. `submit_as`,
    `read_types` and `drive` are names, `*` standing for any characters: who may stand behind
    `from`, which event types a subscription may use, which actors may stand behind `to`. `may`
    names rights of `broker.rights.requests`.
    """

    publish: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    plain_publish: tuple[str, ...] = ()
    plain_subscribe: tuple[str, ...] = ()
    plain_deny: tuple[str, ...] = ()
    submit_as: tuple[str, ...] = ()
    read_types: tuple[str, ...] = ()
    drive: tuple[str, ...] = ()
    may: frozenset[Right] = frozenset()


class UserEntry(Struct, frozen=True, kw_only=True):
    """A user: the roles, and the hash of the password, or "" for who comes by a certificate."""

    roles: tuple[str, ...] = ()
    password: str = ""

    def __repr__(self) -> str:
        """Return a text without the hash."""
        return f"UserEntry(roles={self.roles})"


class TokenEntry(Struct, frozen=True, kw_only=True):
    """A program's token: the roles, the token's hash, and the instant (ms) at which it ends."""

    roles: tuple[str, ...] = ()
    digest: str = ""
    until_ms: int | None = None

    def __repr__(self) -> str:
        """Return a text without the hash."""
        return f"TokenEntry(roles={self.roles}, until_ms={self.until_ms})"


class Quota(Struct, frozen=True, kw_only=True):
    """The share of a broker that one user or one address may take; None: as much as there is.

    `connections` counts MQTT and HTTP connections at a time, `subscriptions` MQTT subscriptions,
    `contents` installed subscriptions of the language, `retained` retained messages, `queue_bytes`
    what waits for one's sessions, `work_percent` the share of the broker's work while others want
    some too. `unbounded` is whether subscriptions may be submitted whose state has no bound; for
    who has no name the limit `unbounded_allowed` says it.
    """

    connections: int | None = None
    subscriptions: int | None = None
    contents: int | None = None
    retained: int | None = None
    queue_bytes: int | None = None
    work_percent: int | None = None
    unbounded: bool = False


class QuotaTable(Struct, frozen=True, kw_only=True):
    """Quotas of each user, but for those named in `users`, and of each address."""

    default: Quota = Quota()
    address: Quota = Quota()
    users: Mapping[str, Quota] = {}

    def of_user(self, user: str | None) -> Quota:
        """Return the quota of a user, or of whoever connects without a name."""
        return self.users.get(user or "", self.default)


class RightsTable(Struct, frozen=True, kw_only=True):
    """All that one file says. `everyone` are roles of whoever is let in, `joins` those of servers.

    Without users and tokens it `is_open`: everybody may do everything.
    """

    roles: Mapping[str, RoleEntry] = {}
    users: Mapping[str, UserEntry] = {}
    tokens: Mapping[str, TokenEntry] = {}
    joins: Mapping[str, tuple[str, ...]] = {}
    everyone: tuple[str, ...] = ()
    quotas: QuotaTable = QuotaTable()

    @property
    def is_open(self) -> bool:
        """Return if nobody is asked for a name."""
        return not (self.users or self.tokens)

    @property
    def passwords(self) -> dict[str, str]:
        """Return the password hashes by user, of those who have one."""
        return {name: user.password for name, user in self.users.items() if user.password}
