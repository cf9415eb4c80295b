"""The MQTT server of a broker as its process sees it: start, stop, publish, complete.

Owns the listening sockets. Must not know the protocol: `hub` decides and `driver` carries out.
Invariant: either all listeners are open or none is.
"""

import asyncio
import logging
import os
import secrets
import ssl
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from broker.mqtt.application import (
    Application,
    Authorize,
    ClientInfo,
    Credentials,
    RetainedMessage,
    Token,
)
from broker.mqtt.codec.packets import Properties, Publish
from broker.mqtt.codec.reasons import Reason
from broker.mqtt.driver import MqttDriver, Socket
from broker.mqtt.hub import Hub
from broker.mqtt.limits import MqttLimits
from broker.mqtt.listeners import (
    Listener,
    ListenError,
    check_listeners,
    files_allowed,
    tls_context,
)
from broker.mqtt.routing.router import Prefix
from broker.mqtt.sessions.rights import judge_again
from broker.mqtt.storage.batches import HubStorage
from broker.mqtt.storage.writer import wall_ms
from broker.rights.quotas import QuotaLedger
from broker.store import Store

FILES_BESIDE = 128  # open files of the process that are no MQTT connections

logger = logging.getLogger(__name__)


class MqttServer:
    """All methods belong to the event loop's thread; an instance is started once.

    `users`: who may come in by password; none or an empty one: anybody, on loopback only.

    Given a store before it starts (`keep_in`), what it promises to clients outlasts the process:
    sessions, their subscriptions and queues, both sides of QoS 2, retained messages of clients, and
    wills. Without one all of this is in memory.
    """

    def __init__(
        self,
        application: Application,
        *,
        listeners: Sequence[Listener],
        users: Credentials | None = None,
        prefix: Prefix | None = None,
        limits: MqttLimits | None = None,
        authorize: Authorize | None = None,
    ) -> None:
        self._application = application
        self._listeners = tuple(listeners)
        self._users = users
        self._hub = Hub(
            limits=limits,
            prefix=prefix,
            users_only=bool(users),
            authorize=authorize,
            new_client_id=lambda: "auto-" + secrets.token_hex(8),
        )
        self.heard = self._hub.router.heard
        self._driver: MqttDriver | None = None
        self._servers: list[asyncio.Server] = []
        self._contexts: list[ssl.SSLContext | None] = []

    async def keep_in(self, store: Store) -> int:
        """Go on with what is kept in a store, which was opened with the part KEPT; once, and first.

        Returns the results' mark, see `mark_results`: results from this offset on are to be
        published again, before `start`. No client is there then, so that they reach the queues of
        kept sessions alone. Raises StoreError.
        """
        hub = self._hub
        hub.keep(HubStorage(partial(wall_ms, asyncio.get_running_loop())))
        driver = self._driver = MqttDriver(hub, self._application, self._users, store)
        assert driver.writing is not None
        assert hub.keeping is not None
        await driver.writing.restore(hub, driver.now_ms())
        driver.soon()
        return hub.keeping.results_mark

    def mark_results(self, offset: int) -> None:
        """All results before this offset of the outbox were published.

        To be called right after the `publish` of a result (or of some of them), in the same turn of
        the loop: then the mark is stored in one transaction with the queues that these are in, and
        after a restart `keep_in` tells where to go on. So results reach kept sessions at least
        once. Nothing, where there is no store.
        """
        keeping = self._hub.keeping
        if keeping is not None and offset > keeping.results_mark:
            keeping.results_mark = offset
            if keeping.sessions:
                keeping.keep_mark()
                self._started().soon()

    def results_needed(self) -> int | None:
        """Results from this offset on are to be there still, so that kept sessions get them.

        None where no session is kept. It follows the end of the outbox by one transaction.
        """
        keeping = self._hub.keeping
        return None if keeping is None or not keeping.sessions else keeping.results_durable

    async def start(self) -> None:
        """Listen; `ListenError` says in a sentence why not, and then nothing is open."""
        check_listeners(self._listeners, users=bool(self._users))
        self._contexts = self.read_certificates()
        self._look_at_files()
        loop = asyncio.get_running_loop()
        if self._driver is None:
            self._driver = MqttDriver(self._hub, self._application, self._users)
        driver = self._driver
        for number, (listener, context) in enumerate(
            zip(self._listeners, self._contexts, strict=True)
        ):
            secure: dict[str, Any] = {}
            if context is not None:
                context.sni_callback = partial(self._choose_context, number)
                # The loop tells of a connection only after its handshake, so it has to see to that.
                secure["ssl"] = context
                secure["ssl_handshake_timeout"] = self._hub.limits.connect_timeout_ms / 1000
                secure["ssl_shutdown_timeout"] = max(1, self._hub.limits.close_timeout_ms) / 1000
            try:
                self._servers.append(
                    await loop.create_server(
                        lambda: Socket(driver), listener.host, listener.port, **secure
                    )
                )
            except OSError as error:
                await self.stop()
                # The number's own word: asyncio's text says the address once more.
                code = error.errno or 0
                reason = os.strerror(code) if code > 0 else error.strerror or str(error)
                raise ListenError(
                    f"cannot listen for MQTT on {listener.host}:{listener.port}: {reason.lower()}"
                ) from None

    def read_certificates(self) -> list[ssl.SSLContext | None]:
        """Read the certificates of all listeners. Raises ListenError."""
        return [None if item.tls is None else tls_context(item.tls) for item in self._listeners]

    def judge_again(
        self,
        authorize: Authorize | None,
        welcome: Callable[[ClientInfo, bool], bool],
        contexts: Sequence[ssl.SSLContext | None],
    ) -> int:
        """Put other rights and certificates in force; return how many clients are disconnected.

        See `broker.mqtt.sessions.rights.judge_again`. Connections that stand keep their encryption.
        """
        self._contexts = list(contexts)
        self._hub.users_only = bool(self._users)
        driver = self._started()
        closed = judge_again(self._hub, authorize, welcome, driver.now_ms())
        driver.soon()
        return closed

    def _choose_context(self, number: int, connection: ssl.SSLObject, *_: object) -> None:
        """Use the certificates as they were read last, though the listener has the first."""
        context = self._contexts[number]
        if context is not None:
            connection.context = context

    def _look_at_files(self) -> None:
        """Each connection is an open file; the others of the process have some to spare."""
        connections_max = self._hub.limits.connections_max
        wanted = connections_max + FILES_BESIDE
        allowed = files_allowed(wanted)
        if allowed < wanted:
            logger.warning(
                "%d MQTT connections may be open, but the system allows this process %d files; "
                "allow it %d, or lower connections_max",
                *(connections_max, allowed, wanted),
            )

    async def stop(self) -> None:
        """Close the listeners and all connections, which have a short while to take the last."""
        for server in self._servers:
            server.close()
        if self._driver is not None:
            await self._driver.stop()
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()

    def addresses(self) -> list[tuple[str, int]]:
        """Host and port of every open listening socket, in the order of the listeners."""
        return [socket.getsockname()[:2] for server in self._servers for socket in server.sockets]

    def publish(
        self,
        topic: str,
        payload: bytes,
        qos: int = 1,
        retain: bool = False,
        properties: Properties | None = None,
    ) -> int:
        """Publish; how many clients it goes to, kept sessions included.

        ProtocolError: it is no topic name, or there is no room to retain it.
        """
        driver = self._started()
        if not retain and not self.heard((topic,)):
            return 0
        packet = Publish(topic, payload, qos, retain, properties=properties)
        count = self._hub.publish(packet, driver.now_ms())
        driver.soon()
        return count

    def complete(self, token: Token | None, reason_code: int = Reason.SUCCESS) -> None:
        """A message handed up is done with: its publisher gets its PUBACK, in order."""
        driver = self._driver
        assert driver is not None, "who has a message has it of a server that was started"
        self._hub.complete(token, reason_code, driver.now_ms())
        driver.soon()

    def retained(self, topic_filter: str) -> list[RetainedMessage]:
        """The retained messages that a filter matches."""
        return self._hub.retained(topic_filter)

    def subscribers(self, topic: str) -> int:
        """Count the clients that have a subscription that matches the topic."""
        return len(self._hub.router.route(topic).deliveries)

    def subscribed_below(self, topic: str) -> list[str]:
        """The topics beneath this one to which somebody has subscribed by their very names."""
        return self._hub.router.names_below(topic)

    def on_subscriptions(self, changed: Callable[[], None]) -> None:
        """Have this called whenever a subscription has come or gone."""
        self._hub.router.changed = changed

    def hold_intake(self, hold: bool) -> None:
        """While held, clients that publish to the application are not read any further."""
        self._hub.hold_intake(hold)
        self._started().soon()

    def counters(self) -> dict[str, Any]:
        """Return what was counted, see `broker.mqtt.counters`, and how many may be connected."""
        return {
            **self._hub.counters.as_dict(),
            "connections_max": self._hub.limits.connections_max,
        }

    @property
    def quotas(self) -> QuotaLedger:
        """Return the one ledger of quotas, which counts what comes by other doors, too."""
        return self._hub.quotas

    def _started(self) -> MqttDriver:
        if self._driver is None:
            raise RuntimeError("the MQTT server was not started")
        return self._driver
