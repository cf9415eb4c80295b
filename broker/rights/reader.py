"""From the tables of a TOML file to a table of rights.

Owns the keys of the file and the sentences for what is wrong in it. Must not know files: the tables
come in, and each fault names its keys, so that whoever read the file adds the line. Invariant:
either everything was understood, or all faults are listed and nothing is used.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple, cast

from broker.credentials import check_hash, check_token_digest
from broker.rights import topics
from broker.rights.names import NAME_PATTERN, NAME_SAYS, pattern_fault
from broker.rights.requests import RIGHTS, Right
from broker.rights.roles import BUILT_IN
from broker.rights.table import Quota, QuotaTable, RightsTable, RoleEntry, TokenEntry, UserEntry
from language.suggest import nearest

PATTERNS_MAX: Final = 1_000  # of one key: each is compared for each new topic of each client
NAME_CHARS_MAX: Final = 256
QUOTA_MAX: Final = 2**40
_SECTIONS: Final = ("roles", "users", "tokens", "joins", "everyone", "quotas")
_TOPIC_KEYS: Final = (
    *("publish", "subscribe", "deny"),
    *("plain_publish", "plain_subscribe", "plain_deny"),
)
_NAME_KEYS: Final = ("submit_as", "read_types", "drive")
_QUOTA_KEYS: Final = tuple(name for name in Quota.__struct_fields__ if name != "unbounded")

_Keys = tuple[str, ...]


class RightsFault(NamedTuple):
    """One thing that is wrong: the keys that lead to it, and a sentence."""

    keys: _Keys
    sentence: str


class RightsError(ValueError):
    """A table of rights that is refused, with all its faults."""

    def __init__(self, faults: Iterable[RightsFault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(fault.sentence for fault in self.faults))


def read_rights(tables: Mapping[str, Any]) -> RightsTable:
    """Return the rights that `tables` say, the tables of a TOML file. Raises RightsError."""
    reader = _Reader()
    reader.known("", tables, _SECTIONS, ())
    roles = {
        name: reader.role(name, value) for name, value in reader.entries("roles", tables).items()
    }
    role_names = (*BUILT_IN, *roles)
    users = {
        name: reader.user(name, value, role_names)
        for name, value in reader.entries("users", tables).items()
    }
    tokens = {
        name: reader.token(name, value, role_names)
        for name, value in reader.entries("tokens", tables).items()
    }
    for name in tokens:
        if name in users:
            reader.fault(("tokens", name), f"`{name}` is a user already; give one another name")
    joins = {
        name: reader.principal(("joins", name), value, role_names)
        for name, value in reader.entries("joins", tables).items()
    }
    everyone: tuple[str, ...] = ()
    if "everyone" in tables:
        everyone = reader.principal(("everyone",), tables["everyone"], role_names)
    quotas = reader.quotas(reader.entries("quotas", tables))
    if reader.faults:
        raise RightsError(reader.faults)
    return RightsTable(
        roles=roles, users=users, tokens=tokens, joins=joins, everyone=everyone, quotas=quotas
    )


class _Reader:
    """Collects faults; what is faulty is read as if it granted nothing."""

    def __init__(self) -> None:
        self.faults: list[RightsFault] = []

    def fault(self, keys: _Keys, sentence: str) -> None:
        self.faults.append(RightsFault(keys, sentence))

    def known(self, where: str, table: Mapping[str, Any], names: Iterable[str], at: _Keys) -> None:
        """Refuse keys that are none; `where` is `[section]`, or empty at the top."""
        names = tuple(names)
        for key in table:
            if key not in names:
                what = f"{where} has no key `{key}`" if where else f"there is no table `{key}`"
                near = nearest(key, names)
                hint = f"; did you mean `{near}`?" if near else f"; there are {_listed(names)}"
                if not where and key == "rights":
                    hint = "; what [[rights]] listed is said by [roles.NAME] and [users.NAME]"
                self.fault((*at, key), what + hint)

    def entries(self, section: str, tables: Mapping[str, Any]) -> Mapping[str, Any]:
        entries = tables.get(section, {})
        if not isinstance(entries, dict):
            self.fault((section,), f"`{section}` is a table: write [{section}.NAME] above its keys")
            return {}
        return entries

    def table(self, keys: _Keys, value: object) -> Mapping[str, Any]:
        if isinstance(value, dict):
            return value
        self.fault(keys, f"`{keys[-1]}` is a table: write [{'.'.join(keys)}] above its keys")
        return {}

    def texts(self, keys: _Keys, value: object) -> tuple[str, ...]:
        """One text or a list of them."""
        several = [value] if isinstance(value, str) else value
        if not isinstance(several, list) or not all(isinstance(text, str) for text in several):
            self.fault(keys, f"`{keys[-1]}` is a list of texts in quotes")
            return ()
        if len(several) > PATTERNS_MAX:
            self.fault(keys, f"`{keys[-1]}` has {len(several)} texts, at most {PATTERNS_MAX}")
            return ()
        return tuple(several)

    def role(self, name: str, value: object) -> RoleEntry:
        keys = ("roles", name)
        table = self.table(keys, value)
        self.known(f"[roles.{name}]", table, RoleEntry.__struct_fields__, keys)
        if name in BUILT_IN:
            self.fault(keys, f"`{name}` is a role that every broker knows; give yours another name")
        self._name(keys, name)
        patterns: dict[str, tuple[str, ...]] = {}
        for key in (*_TOPIC_KEYS, *_NAME_KEYS):
            if key in table:
                check = topics.fault_of if key in _TOPIC_KEYS else pattern_fault
                patterns[key] = self.texts((*keys, key), table[key])
                for text in patterns[key]:
                    if why := check(text):
                        self.fault((*keys, key), f'"{text[:100]}": {why}')
        may = self.texts((*keys, "may"), table.get("may", []))
        for word in may:
            if word not in RIGHTS:
                near = nearest(word, RIGHTS)
                hint = f"did you mean `{near}`?" if near else f"there are {_listed(RIGHTS)}"
                self.fault((*keys, "may"), f"there is no right `{word[:100]}`; {hint}")
        return RoleEntry(**patterns, may=cast("frozenset[Right]", frozenset(may)))

    def user(self, name: str, value: object, roles: Iterable[str]) -> UserEntry:
        keys = ("users", name)
        table = self.table(keys, value)
        granted = self.principal(keys, table, roles, "password")
        password = table.get("password", "")
        try:
            if "password" in table:
                self._name(keys, name)
                # Only that it is no text: what is found may be the password itself.
                check_hash(password if isinstance(password, str) else "")
        except ValueError as error:
            hint = f"`headwater user passwd {name}` writes one that is"
            self.fault((*keys, "password"), f"{error}; {hint}")
            password = ""
        if not name or len(name) > NAME_CHARS_MAX:
            self.fault(keys, f"a user's name has 1 to {NAME_CHARS_MAX} characters")
        return UserEntry(roles=granted, password=str(password))

    def token(self, name: str, value: object, roles: Iterable[str]) -> TokenEntry:
        keys = ("tokens", name)
        table = self.table(keys, value)
        self._name(keys, name)
        granted = self.principal(keys, table, roles, "digest", "until")
        digest, until_ms = table.get("digest"), None
        try:
            check_token_digest(digest if isinstance(digest, str) else "")
        except ValueError as error:
            self.fault((*keys, "digest"), f"{error}; `headwater token add` writes one that is")
            digest = ""
        if "until" in table:
            until_ms = _instant_ms(table["until"])
            if until_ms is None:
                wanted = 'an instant with its zone, such as "2027-12-31T00:00Z"'
                self.fault((*keys, "until"), f"`until` is {wanted}")
        return TokenEntry(roles=granted, digest=str(digest), until_ms=until_ms)

    def principal(
        self, keys: _Keys, value: object, roles: Iterable[str], *more: str
    ) -> tuple[str, ...]:
        """The roles of a user, a token or whoever; `more` are keys that may stand beside them."""
        table = self.table(keys, value)
        self.known(f"[{'.'.join(keys)}]", table, ("roles", *more), keys)
        names = self.texts((*keys, "roles"), table.get("roles", []))
        roles = tuple(roles)
        for role in names:
            if role not in roles:
                near = nearest(role, roles)
                hint = f"did you mean `{near}`?" if near else f"there are {_listed(roles)}"
                self.fault((*keys, "roles"), f"there is no role `{role[:100]}`; {hint}")
        return names

    def quotas(self, tables: Mapping[str, Any]) -> QuotaTable:
        self.known("[quotas]", tables, ("default", "address", "users"), ("quotas",))
        default = self.quota(("quotas", "default"), tables.get("default", {}))
        address = self.quota(("quotas", "address"), tables.get("address", {}))
        named = self.table(("quotas", "users"), tables.get("users", {}))
        users = {
            name: self.quota(("quotas", "users", name), entry) for name, entry in named.items()
        }
        return QuotaTable(default=default, address=address, users=users)

    def quota(self, keys: _Keys, value: object) -> Quota:
        table = self.table(keys, value)
        self.known(f"[{'.'.join(keys)}]", table, Quota.__struct_fields__, keys)
        fields: dict[str, Any] = {}
        for key in _QUOTA_KEYS:
            if key not in table:
                continue
            number, at_most = table[key], 100 if key == "work_percent" else QUOTA_MAX
            if type(number) is int and 0 <= number <= at_most:
                fields[key] = number
            else:
                self.fault((*keys, key), f"`{key}` is a whole number from 0 to {at_most}")
        if "unbounded" in table:
            if isinstance(table["unbounded"], bool):
                fields["unbounded"] = table["unbounded"]
            else:
                self.fault((*keys, "unbounded"), "`unbounded` is true or false")
        return Quota(**fields)

    def _name(self, keys: _Keys, name: str) -> None:
        if not re.fullmatch(NAME_PATTERN, name):
            self.fault(keys, f"the name `{name[:100]}` will not do, expected {NAME_SAYS}")


def _instant_ms(value: object) -> int | None:
    """Milliseconds since the epoch of a TOML or ISO 8601 instant; None if it is none."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        return None
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        return None
    return int(moment.timestamp() * 1000)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
