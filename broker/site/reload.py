"""What a running broker reads again: rights, certificates and the secrets of links.

Owns the order: everything is read first, and only then is anything put in force. Must not know
signals or routes. Invariant: where one file is faulty nothing changes, and the answer says which
file, which line and why.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from broker import logs
from broker.config import Config, ConfigError, is_loopback
from broker.config.checks import OPEN_DOOR
from broker.config.rights import load_rights
from broker.core import refusals, topics
from broker.core.effects import Entry
from broker.core.installer import reader_of
from broker.core.messages import CancelRequested
from broker.core.recovery.durable import DurableBroker
from broker.core.recovery.durable_state import RestorableBroker
from broker.mqtt.listeners import ListenError
from broker.rights.current import CurrentRights
from broker.rights.judge import Principal, RightsJudge
from broker.rights.submission import troubles
from broker.rights.table import RightsTable
from language import check_text

if TYPE_CHECKING:
    from broker.driver.mqtt_face import Delivery
    from broker.driver.runner import Runner
    from broker.mqtt.server import MqttServer
    from broker.site.networking import Networking


class ReloadError(Exception):
    """A file is faulty, so that nothing was changed; each argument is one fault with its caret."""


def read_table(config: Config) -> RightsTable:
    """Read the rights of a configuration. Raises ConfigError, also if strangers could come in."""
    table = load_rights(config.broker.rights)
    required = config.mqtt.tls_client_certificates == "required"
    certified = not config.mqtt.plain and bool(config.mqtt.tls_client_ca) and required
    doors = [] if certified else [config.mqtt.host]
    doors += [config.http.host] if config.http.enabled else []
    if table.is_open:
        for host in doors:
            if not is_loopback(host):
                file = config.broker.rights
                raise ConfigError(f"{file or 'broker.rights'}: {OPEN_DOOR.format(host=host)}")
    return table


class Reload:
    """Reads all of it again when called, one call after the other."""

    def __init__(
        self,
        config: Config,
        rights: CurrentRights,
        server: "MqttServer",
        delivery: "Delivery",
    ) -> None:
        self.config = config
        self.rights = rights
        self._server = server
        self._delivery = delivery
        self._runner: Runner
        self._networking: Networking | None = None
        self._turn = asyncio.Lock()

    def attach(self, runner: "Runner", networking: "Networking | None") -> None:
        """Judge what this runner's core has installed, and secure these links."""
        self._runner = runner
        self._networking = networking

    async def __call__(self) -> dict[str, Any]:
        """Take up what the files say now; return what came of it. Raises ReloadError."""
        async with self._turn:
            try:
                table = read_table(self.config)
                contexts = self._server.read_certificates()
                security = None if self._networking is None else self._networking.read_security()
            except (ConfigError, ListenError) as error:
                faults = error.problems if isinstance(error, ConfigError) else (str(error),)
                logs.tell("error", "reload_refused", reason=faults[0].partition("\n")[0])
                raise ReloadError(*faults) from None
            rights = self.rights
            rights.replace(table)
            self._server.quotas.replace(table.quotas)
            closed = self._server.judge_again(rights or None, rights.welcome, contexts)
            if self._networking is not None and security is not None:
                self._networking.secure(security)
            if self._delivery.fan is not None and rights:
                self._delivery.fan.close()  # who follows comes again, and is asked for a name
            stopped = await self.stop_refused()
        outcome = {"users": len(table.users), "tokens": len(table.tokens)}
        outcome |= {"clients_closed": closed, "subscriptions_stopped": len(stopped)}
        logs.tell("info", "reloaded", **outcome)
        return {"ok": True, **outcome, "stopped": stopped}

    async def stop_refused(self) -> list[str]:
        """End the subscriptions whose submitters may no longer read, drive or speak for so.

        They are not revived when the right comes back: who wants one submits it. What was submitted
        while nobody had to log in was taken on trust, and stays.
        """
        judge, core = self.rights.judge, self._runner.core
        if judge.table.is_open:
            return []
        state = core.core if isinstance(core, DurableBroker) else core
        assert isinstance(state, RestorableBroker)
        entries = [entry for entry in state.entries() if entry.proven]
        # In a thread, as texts are checked once more.
        refused = await asyncio.to_thread(self._refused, judge, entries)
        current = set(state.entries())
        stopped = [entry for entry in refused if entry in current]
        for entry in stopped:
            self._stop(entry)
        return [f"{entry.subscriber}/{entry.subscription}" for entry in stopped]

    def _refused(self, judge: RightsJudge, entries: Sequence[Entry]) -> list[Entry]:
        core = self._runner.core
        reader = reader_of(core.options.tables)
        checked = {
            text: check_text(text, functions=core.functions, tables=reader).specification
            for text in dict.fromkeys(entry.text for entry in entries)
        }
        refused = []
        for entry in entries:
            text = checked[entry.text]
            asker = Principal(entry.client)
            if text is not None and troubles(judge, asker, text, entry.key):
                refused.append(entry)
        return refused

    def _stop(self, entry: Entry) -> None:
        """End one subscription as its subscriber would, and tell who submitted it."""
        name, client = entry.subscription, entry.client
        reason = "the rights of who submitted it no longer grant it; submit it again once they do"
        logs.tell(
            "warning", "subscription_stopped", subscription=name, client=client, reason=reason
        )
        self._runner.handle(
            CancelRequested(entry.subscriber, "reload", name, None, None, proven=True)
        )
        topic = topics.reply(f"x/{topics.level(client)}/stopped")
        self._delivery.send(f"{self.rights.prefix}/{topic}", encode({name: reason}))


def encode(stopped: dict[str, str]) -> bytes:
    """Write the message that tells of subscriptions that were stopped, by name with the reason."""
    errors = [
        {"code": refusals.NOT_GRANTED, "message": f"subscription `{name}` was stopped: {reason}"}
        for name, reason in stopped.items()
    ]
    return msgspec.json.encode({"ok": False, "errors": errors})
