"""A broker for tests that keeps what it is told, in plain dictionaries."""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp.test_utils import TestClient, TestServer

from broker.http import HttpOptions, MetricsLedger, RequestReply, ResultFan, make_app
from broker.rights.current import CurrentRights
from broker.rights.table import RightsTable, UserEntry

OPEN = CurrentRights(RightsTable(), "headwater")


def rights_of(**passwords: str) -> CurrentRights:
    """Users who may do everything, by name with their password's hash."""
    users = {
        name: UserEntry(roles=("administrate",), password=encoded)
        for name, encoded in passwords.items()
    }
    return CurrentRights(RightsTable(users=users), "headwater")


class FakeBroker:
    """A submitted text is a list of names; the line `bad` is its only error."""

    def __init__(self, followers_max: int = 10, queue_max: int = 10) -> None:
        self.installed: dict[str, str] = {}
        self.published: list[tuple[str, str, bytes]] = []
        self.missing: list[str] = []
        self.view: dict | None = None
        self.plans: dict | None = None
        self.drained = False
        self.ended: list[tuple[str, str, str]] = []
        self.unreached: list[dict[str, str]] = []
        self.states: list[dict] = []
        self.alive = True
        self.account = MetricsLedger()
        self.fan = ResultFan(followers_max, queue_max)

    def healthy(self) -> bool:
        return self.alive

    def ready(self) -> list[str]:
        return self.missing

    def ledger(self) -> MetricsLedger:
        return self.account

    def subscriptions(self, user):
        return [
            {"subscription": name, "subscriber": client, "state": "active"}
            for name, client in self.installed.items()
        ]

    def status(self):
        return {"broker": "fake", "subscriptions": len(self.installed)}

    async def network_status(self):
        return {"brokers": self.states, "unreached": self.unreached}

    async def publish(self, parts, user):
        self.published += [(part.type_name, part.source, part.data) for part in parts]
        return 200, {"ok": True, "accepted": len(parts)}

    async def submit(self, text: str, client: str, user: str | None) -> RequestReply:
        names = text.split("\n")
        if "bad" in names:
            line = names.index("bad") + 1
            error = {"code": "HW100", "message": "bad", "line": line, "column": 1, "hint": ""}
            return {"ok": False, "errors": [error]}
        self.installed |= dict.fromkeys(names, client)
        return {"ok": True, "subscriptions": names, "definitions": []}

    async def preview(self, text: str, client: str, user: str | None) -> RequestReply:
        reply = await self.submit(text, client, user)
        return reply | {"dry_run": True}

    async def cancel(self, name: str, client: str, user: str | None) -> RequestReply:
        if self.installed.get(name) != client:
            return {"ok": False, "errors": [{"code": "HW900", "message": f"no `{name}` of yours"}]}
        del self.installed[name]
        return {"ok": True, "subscriptions": [name]}

    async def resume(self, name: str, client: str, user: str | None) -> RequestReply:
        return await self.cancel(name, client, user)

    async def end(
        self, name: str, client: str, user: str | None, done: str, *, home: str
    ) -> RequestReply:
        self.ended.append((name, done, home))
        return await self.cancel(name, client, user)

    async def network_subscriptions(self, user: str | None):
        return {"subscriptions": list(self.subscriptions(user)), "unreached": self.unreached}

    def forget(self, broker: str) -> bool:
        return broker == "roof"

    def backup(self):
        return None

    def network(self):
        return self.view

    def plan(self):
        return self.plans

    def drain(self, *, drained: bool) -> bool:
        self.drained = drained
        return self.plans is not None

    def follow(self, subscription: str | None, user: str | None):
        return self.fan.follow(subscription)

    async def reload(self):
        return {"ok": True, "users": 0, "tokens": 0, "stopped": []}

    def leaving(self) -> asyncio.Event:
        """Set when the next follower has left."""
        left, forget = asyncio.Event(), self.fan.forget

        def noted(follower):
            forget(follower)
            left.set()

        self.fan.forget = noted  # type: ignore[method-assign]
        return left


def talk(
    broker: FakeBroker,
    scenario: Callable[[TestClient], Awaitable[None]],
    rights: CurrentRights | None = None,
    options: HttpOptions | None = None,
) -> None:
    """Runs a scenario against the face of the broker, with server and client closed at its end."""

    async def run() -> None:
        app = make_app(broker, rights or OPEN, options)
        async with TestClient(TestServer(app)) as client:
            try:
                await scenario(client)
            finally:
                broker.fan.close()

    asyncio.run(run())
