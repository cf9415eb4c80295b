"""Who may publish and subscribe where: rights by user and client, the first that fits decides.

Owns what rights mean. Must not know files or connections. Invariant: what no right fits is denied,
and a subscription is allowed only where every topic that it could match is: a filter is weighed as
the set of its topics, so no wildcard reaches around a right.
"""

from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from broker.mqtt.application import Action, ClientInfo
from broker.rights.topics import covers, filled

USER, CLIENT = "%u", "%c"  # levels of a right's topics that stand for who asks
ANSWERS_KEPT = 4_096  # questions whose answers are remembered; the oldest make room


class Right(Struct, frozen=True):
    """One right: whom it is about, what it says and of which topics.

    `users` and `clients` name them exactly; empty: anybody. `actions` is what it is about. A level
    of a topic that is `%u` or `%c` is the asker's user name or client identifier.
    """

    allow: bool
    actions: tuple[Action, ...]
    topics: tuple[str, ...]
    users: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()


class Rights:
    """See `broker.mqtt.application.Authorize`; the rights do not change while it lives."""

    def __init__(self, rights: Sequence[Right]) -> None:
        self._rights = tuple(rights)
        # By the names alone: a client's address says nothing about its rights.
        self._answer = lru_cache(maxsize=ANSWERS_KEPT)(self._decide)

    def __call__(self, client: ClientInfo, topic: str, action: Action) -> bool:
        """Whether the client may publish to the topic, or subscribe to the topic filter."""
        return self._answer(client.user, client.client_id, topic, action)

    def _decide(self, user: str | None, client_id: str, topic: str, action: Action) -> bool:
        wanted = topic.split("/")  # a topic name is a filter without wildcards
        for right in self._rights:
            if (action if action != "receive" else "subscribe") not in right.actions:
                continue
            if (right.users and user not in right.users) or (
                right.clients and client_id not in right.clients
            ):
                continue
            for pattern in right.topics:
                levels = filled(
                    pattern.replace(USER, "{user}").replace(CLIENT, "{client}"), user, client_id
                )
                if levels is None:
                    continue
                if right.allow and covers(levels, wanted):
                    return True
                if not right.allow and covers(levels, wanted):
                    return False
        return False


def check_pattern(pattern: str) -> str:
    """What is wrong with a right's topic beyond what a topic filter must be; empty: nothing."""
    for level in pattern.split("/"):
        for name in (USER, CLIENT):
            if name in level and level != name:
                return f"`{name}` is not a level of its own"
    return ""
