"""The table of rights as it stands: what every door asks, and what a reload replaces.

Owns the one reference to the judge and the check of passwords. Must not know files or sockets.
Invariant: all doors change from one table to the next in the same instant, and a login that was
found good under one table is checked again under the next, unless its hash is the same there.
"""

from typing import Literal, Protocol

from broker.core import topics
from broker.credentials import Users
from broker.rights.judge import Principal, RightsJudge
from broker.rights.requests import BY_TOPIC
from broker.rights.table import RightsTable


class NamedClient(Protocol):
    """An MQTT client, as its face knows it."""

    @property
    def client_id(self) -> str:
        """Return the identifier that the client chose."""

    @property
    def user(self) -> str | None:
        """Return the user whom a password or certificate proved."""


class CurrentRights:
    """The doors' door keeper: `broker.mqtt.application.Authorize` and `Credentials` at once."""

    def __init__(self, table: RightsTable, prefix: str) -> None:
        self.prefix = prefix
        self.judge = RightsJudge(table, prefix)
        self._users = Users(table.passwords)
        self._logged_out: frozenset[str] = frozenset()

    def replace(self, table: RightsTable) -> None:
        """Answer by another table from now on."""
        before, after = self.judge.table.passwords, table.passwords
        self._logged_out = frozenset(
            name for name, password in before.items() if after.get(name) != password
        )
        self.judge = RightsJudge(table, self.prefix)
        self._users = self._users.succeeded_by(after)

    def welcome(self, client: NamedClient, certified: bool) -> bool:
        """Return if a client that came in under the table before is let in under this one."""
        if self.judge.table.is_open or certified:
            return True
        return client.user is not None and client.user not in self._logged_out

    # --- names and passwords --------------------------------------------------------------------

    def __bool__(self) -> bool:
        """Return if anybody is asked for a name."""
        return not self.judge.table.is_open

    def remembered(self, name: str, password: str) -> bool:
        """Return if this login was good before, under this table; quick."""
        return self._users.remembered(name, password)

    def login(self, name: str, password: str) -> bool:
        """Return if the login is good; may take tens of milliseconds, safe to call in a thread."""
        while True:
            users = self._users
            good = users.login(name, password)
            if users is self._users:  # else the table was replaced meanwhile
                return good

    def may_hear(self, asker: Principal, topic: str) -> bool:
        """Return if `asker` may subscribe to a topic, and so have an answer there."""
        return self.judge.may_subscribe(asker, topic)

    # --- MQTT -----------------------------------------------------------------------------------

    def __call__(
        self, client: NamedClient, topic: str, action: Literal["publish", "subscribe", "receive"]
    ) -> bool:
        """Return if a client may publish to a topic, subscribe to a filter or receive a topic."""
        judge, asker = self.judge, Principal(client.user, client.client_id)
        if action == "subscribe":
            return judge.may_subscribe(asker, topic)
        if action == "receive":
            return judge.may_receive(asker, topic)
        own = f"{self.prefix}/"
        if topic.startswith(own):
            # A request is judged by what it does, not by the topic that carries it.
            address = topics.read(topic[len(own) :])
            request = BY_TOPIC.get(address.kind) if address is not None else None
            if request is not None:
                return judge.allows(asker, request.need)
        return judge.may_publish(asker, topic)
