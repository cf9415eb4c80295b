"""Answers to the doors' questions about one table of rights.

Owns what rights mean. Must not know files, connections or the clock. Invariant: what no role grants
is denied and a `deny` wins; with a table that is open everything is granted. Answers are
remembered, as the same devices publish to the same topics; a new table gets a new judge.
"""

import hmac
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from msgspec import Struct

from broker.credentials import token_digest
from broker.rights.names import compiled
from broker.rights.requests import Need, Right
from broker.rights.roles import BUILT_IN
from broker.rights.table import RightsTable, RoleEntry
from broker.rights.topics import covers, filled, overlaps, part_below

ANSWERS_CACHED: Final = 4_096  # the oldest answers make room
JOIN: Final = "join:"  # before the name of a joined server, where that stands for a user

_Levels = list[str]


class Principal(Struct, frozen=True):
    """The asker: the user or token whose name was proven, and an MQTT client's identifier."""

    user: str | None
    client_id: str = ""


class _Topics(Struct, frozen=True):
    """Filters of one way, publish or subscribe: below the prefix, and plain ones."""

    below: tuple[_Levels, ...]
    plain: tuple[_Levels, ...]

    def hold(self, part: _Levels | None, plain: _Levels | None) -> bool:
        """Return if both parts of a filter are covered; None: it has no such part."""
        return (part is None or any(covers(levels, part) for levels in self.below)) and (
            plain is None or any(covers(levels, plain) for levels in self.plain)
        )


class _Grant(Struct, frozen=True):
    """All roles of one asker together, with the names filled in."""

    publish: _Topics
    subscribe: _Topics
    deny: _Topics
    submit_as: tuple[re.Pattern[str], ...]
    read_types: tuple[re.Pattern[str], ...]
    drive: tuple[re.Pattern[str], ...]
    may: frozenset[Right]


class RightsJudge:
    """Answers for one table; `prefix` is that of Headwater's own topics. Never blocks."""

    def __init__(self, table: RightsTable, prefix: str) -> None:
        self.table = table
        self._prefix = prefix.split("/")
        self._grant = lru_cache(maxsize=ANSWERS_CACHED)(self._made_grant)
        self._publish = lru_cache(maxsize=ANSWERS_CACHED)(self._judge_publish)
        self._subscribe = lru_cache(maxsize=ANSWERS_CACHED)(self._judge_subscribe)
        self._receive = lru_cache(maxsize=ANSWERS_CACHED)(self._judge_receive)
        self._tokens = {entry.digest: name for name, entry in table.tokens.items()}

    # --- topics -------------------------------------------------------------------------------

    def may_publish(self, asker: Principal, topic: str) -> bool:
        """Return if the asker may publish to a topic; requests are judged by `allows` instead."""
        return self.table.is_open or self._publish(asker, topic)

    def may_subscribe(self, asker: Principal, topic_filter: str) -> bool:
        """Return if the asker may subscribe: every topic of the filter is granted, some not denied.

        A `deny` that meets a part of the filter narrows what is delivered, see `may_receive`.
        """
        return self.table.is_open or self._subscribe(asker, topic_filter)

    def may_receive(self, asker: Principal, topic: str) -> bool:
        """Return if a message of this topic may be delivered to the asker; a topic, no filter."""
        return self.table.is_open or self._receive(asker, topic)

    def denies(self, asker: Principal) -> bool:
        """Return if any `deny` concerns the asker, so that deliveries have to be looked at."""
        if self.table.is_open:
            return False
        denied = self._grant(asker).deny
        return bool(denied.below or denied.plain)

    # --- the meaning of a submission ------------------------------------------------------------

    def may_submit_as(self, asker: Principal, name: str) -> bool:
        """Return if `name` may stand behind `from`, and its subscriptions be ended."""
        return self.table.is_open or _fits(self._grant(asker).submit_as, name)

    def may_read(self, asker: Principal, type_name: str) -> bool:
        """Return if a subscription of the asker may use an event type."""
        return self.table.is_open or _fits(self._grant(asker).read_types, type_name)

    def may_drive(self, asker: Principal, actor: str) -> bool:
        """Return if an actor may stand behind `to`."""
        return self.table.is_open or _fits(self._grant(asker).drive, actor)

    def may_see(self, asker: Principal, subscriber: str, result_topic: str) -> bool:
        """Return if the asker may know of a subscription; `result_topic` is below the prefix."""
        return (
            self.table.is_open
            or self.allows(asker, "cancel_any")
            or self.may_submit_as(asker, subscriber)
            or self.may_receive(asker, "/".join((*self._prefix, result_topic)))
        )

    # --- requests -------------------------------------------------------------------------------

    def allows(self, asker: Principal, need: Need | Right) -> bool:
        """Return if the asker has what a request needs, see `broker.rights.requests`."""
        if self.table.is_open or need in {"nothing", "login"}:
            return True
        grant = self._grant(asker)
        match need:
            case "list":
                return "look" in grant.may or bool(grant.submit_as)
            case "submit":
                return bool(grant.submit_as)
            case "cancel":
                return bool(grant.submit_as) or "cancel_any" in grant.may
            case "publish":
                return _meets(grant.publish, "events")
            case "results":
                return _meets(grant.subscribe, "results")
            case "log":
                results = "/".join((*self._prefix, "results", "#"))
                return self.may_subscribe(asker, results) and not _meets(grant.deny, "results")
            case _:
                return need in grant.may

    def roles_of(self, user: str | None) -> tuple[str, ...]:
        """Return the names of all roles of a user, a token or a joined server."""
        table, name = self.table, user or ""
        if name.startswith(JOIN):
            return table.joins.get(name.removeprefix(JOIN), ())
        own = table.users.get(name) or table.tokens.get(name)
        return (*table.everyone, *(own.roles if own else ()))

    def user_of_token(self, token: str, now_ms: int) -> str | None:
        """Return the name of a token that is known and not over."""
        digest = token_digest(token)
        name = self._tokens.get(digest)
        if name is None:
            return None
        entry = self.table.tokens[name]
        over = entry.until_ms is not None and now_ms >= entry.until_ms
        return None if over or not hmac.compare_digest(digest, entry.digest) else name

    # --- within ---------------------------------------------------------------------------------

    def _parts(self, topic_filter: str) -> tuple[_Levels | None, _Levels | None]:
        """The part of a filter below the prefix, and the filter if it has another part too."""
        wanted = topic_filter.split("/")
        part = part_below(wanted, self._prefix)
        inside = part is not None and covers([*self._prefix, "#"], wanted)
        return part, None if inside else wanted

    def _judge_publish(self, asker: Principal, topic: str) -> bool:
        grant, parts = self._grant(asker), self._parts(topic)
        return grant.publish.hold(*parts) and not self._denied(grant, parts)

    def _judge_subscribe(self, asker: Principal, topic_filter: str) -> bool:
        grant, (part, plain) = self._grant(asker), self._parts(topic_filter)
        if not grant.subscribe.hold(part, plain):
            return False
        # Denied as a whole: it would be granted and never deliver anything.
        below = part is None or any(covers(levels, part) for levels in grant.deny.below)
        other = plain is None or any(covers(levels, plain) for levels in grant.deny.plain)
        return not (below and other)

    def _judge_receive(self, asker: Principal, topic: str) -> bool:
        grant, parts = self._grant(asker), self._parts(topic)
        return grant.subscribe.hold(*parts) and not self._denied(grant, parts)

    def _denied(self, grant: _Grant, parts: tuple[_Levels | None, _Levels | None]) -> bool:
        part, plain = parts
        return (part is not None and any(covers(levels, part) for levels in grant.deny.below)) or (
            plain is not None and any(covers(levels, plain) for levels in grant.deny.plain)
        )

    def _made_grant(self, asker: Principal) -> _Grant:
        names = self.roles_of(asker.user)
        roles = [BUILT_IN.get(name) or self.table.roles[name] for name in names]

        def topics(way: str) -> _Topics:
            below, plain = (
                tuple(
                    levels
                    for role in roles
                    for pattern in getattr(role, key)
                    if (levels := filled(pattern, asker.user, asker.client_id)) is not None
                )
                for key in (way, f"plain_{way}")
            )
            return _Topics(below, plain)

        return _Grant(
            topics("publish"),
            topics("subscribe"),
            topics("deny"),
            _names(roles, "submit_as", asker.user),
            _names(roles, "read_types", asker.user),
            _names(roles, "drive", asker.user),
            frozenset(right for role in roles for right in role.may),
        )


def _meets(topics: _Topics, kind: str) -> bool:
    """Return if some of the filters matches a topic of this kind."""
    return any(overlaps(levels, [kind, "#"]) for levels in topics.below)


def _names(roles: Iterable[RoleEntry], key: str, user: str | None) -> tuple[re.Pattern[str], ...]:
    made = (compiled(pattern, user) for role in roles for pattern in getattr(role, key))
    return tuple(pattern for pattern in made if pattern is not None)


def _fits(patterns: Iterable[re.Pattern[str]], name: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns)
