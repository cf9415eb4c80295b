"""The joined MQTT servers between the core and the world, beside the broker's own faces.

Owns the way of an effect to them and of their messages to the core. Must not know how a server is
joined, nor what the broker decides. Invariant: what comes in by a joined server is handled as what
comes in by the broker's own MQTT face, and answered where it came from; what goes out goes to both.
"""

import asyncio
import logging
import random
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec.structs import replace

from broker import logs
from broker.bridge.backoff import Backoff
from broker.bridge.connection import ConnectionTerms, sentence, tls_context
from broker.bridge.join import Join
from broker.bridge.mapping import Mappings
from broker.bridge.messages import Arrived, JoinToken, OutgoingMessage
from broker.bridge.supply import SuppliedResult, Supply, forget_others
from broker.config import Config
from broker.config.joins import JoinSection
from broker.core import topics
from broker.core.effects import Acknowledge, Emission, Emit, Publish, Reply
from broker.core.messages import Message, RequestRefused
from broker.driver.mqtt_face import AnswerTo, Arrivals, PreviewRequested, Request
from broker.driver.runner import Outside, Runner
from broker.errors import StartError
from broker.mqtt.application import ClientInfo, InboundMessage
from broker.network.effects import Note
from broker.rights.judge import JOIN, Principal
from broker.store import StoreError

if TYPE_CHECKING:
    from broker.store import Outbox

PASSWORD_BYTES_MAX = 65_535  # MQTT has no room for a longer one
END_S = 15.0  # a connection that is just being made has its own time-outs, which are shorter

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=Request | RequestRefused)


class AnswerThere(msgspec.Struct, frozen=True):
    """The place where a client of a joined server wants its answer."""

    server: "JoinedServer"
    to: AnswerTo


class JoinedServer:
    """Between one joined server and the core."""

    def __init__(
        self,
        join: Join,
        settings: JoinSection,
        client_id: str,
        broker: str,
        mappings: Mappings | None = None,
    ) -> None:
        """`broker`: the name of this one."""
        self.join = join
        self._own_status = topics.status(broker)
        self._mappings = mappings
        self._prefix = settings.prefix
        self._results = settings.results
        self._client = ClientInfo(client_id, None, join.address, 5 if settings.is_5 else 4)
        self._arrivals: Arrivals
        self.supply: Supply | None = None
        join.receiver = self

    def attach(self, runner: Runner, ask: Callable[[Request, Principal], None]) -> None:
        """Have what comes go to the core. The server is asked for, as its clients have no names."""
        server = Principal(f"{JOIN}{self.join.name}")

        def message(one: Message) -> None:
            runner.add(self._answered_here(one) if isinstance(one, RequestRefused) else one)

        self._arrivals = Arrivals(
            self._prefix,
            runner.add_payload,
            message,
            lambda request, _: ask(self._answered_here(request), server),
            runner.flush,
        )
        self._arrivals.mappings = self._mappings
        if self._mappings is not None:
            self._mappings.advertised = runner.is_advertised
            self._mappings.publish = self._command
            self.join.on_lost = self._mappings.missed

    def _answered_here(self, request: T) -> T:
        if isinstance(request, PreviewRequested):
            return replace(request, submission=self._answered_here(request.submission))
        return replace(request, reply_to=AnswerThere(self, request.reply_to))

    def on_arrived(self, messages: list[tuple[Arrived, JoinToken | None]]) -> None:
        """Read messages as `broker.bridge.join.JoinReceiver` asks for."""
        self._arrivals.on_publish(
            [
                InboundMessage(
                    topic=message.topic,
                    payload=message.payload,
                    qos=message.qos,
                    retain=message.retain,
                    dup=message.dup,
                    client=self._client,
                    properties=message.properties,
                    token=token,  # type: ignore[arg-type]  # it comes back to us as it is
                )
                for message, token in messages
            ]
        )

    def publish(self, effect: Publish) -> None:
        """Publish what concerns nobody in particular, but for what stands there already, or may.

        Advertisements do; and of other brokers' states those tell it themselves that have joined.
        """
        if self._results:
            for publication in effect.publications:
                other = (
                    publication.topic.startswith(f"{topics.STATUS}/")
                    and publication.topic != self._own_status
                )
                if not other and not publication.topic.startswith(f"{topics.SOURCES}/"):
                    self._send(publication.topic, publication.payload, retain=publication.retain)

    def emit(self, results: Sequence[Emission]) -> None:
        """Of what lies in an outbox the supply sees to it, also to what came before there was one.

        Of one piece either all or nothing lies there.
        """
        if not self._results or not results:
            return
        if results[0].offset < 0:
            for result in results:
                self.put(result)
        elif self.supply is not None:
            self.supply.offer(results)

    def put(self, result: SuppliedResult) -> None:
        """To subscriber and actor."""
        for topic in (
            topics.result(result.subscriber, result.subscription),
            topics.actor(result.actor),
        ):
            message = OutgoingMessage(
                f"{self._prefix}/{topic}", result.payload, offset=result.offset
            )
            self.join.publish(message)

    def supplied(self, outbox: "Outbox", now_ms: Callable[[], int]) -> Supply | None:
        """Make the supply that leaves no result out; None where the server wants no results."""
        if self._results:
            self.supply = Supply(self.join, outbox, self.put, now_ms)
        return self.supply

    def reply(self, effect: Reply, to: AnswerTo) -> None:
        """To whom asked."""
        self.join.publish(OutgoingMessage(to.topic, effect.payload, correlation=to.correlation))

    def _command(self, topic: str, payload: bytes) -> None:
        self.join.publish(OutgoingMessage(topic, payload))

    def _send(self, topic: str, payload: bytes, *, retain: bool = False) -> None:
        self.join.publish(OutgoingMessage(f"{self._prefix}/{topic}", payload, retain))


class JoinedServers:
    """All of them; an Outside around that of the broker's own faces.

    `draw` is for the waits between tries.
    """

    def __init__(self, config: Config, inside: Outside, draw: random.Random | None = None) -> None:
        """Raises StartError where a password or certificate cannot be read."""
        draw = draw or random.Random()
        self.servers: list[JoinedServer] = []
        self._inside = inside
        self._tasks: list[asyncio.Task[None]] = []
        self._supplying: list[asyncio.Task[None]] = []
        self._faults = 0
        for name, settings in config.joins.items():
            terms = _terms(name, settings, config)
            mappings = _mappings(config, settings)
            foreign = mappings.filters() if mappings is not None else []
            subscribed = [*filters(settings), *foreign]
            join = Join(name, terms, subscribed, Backoff(draw), logs.tell)
            self.servers.append(
                JoinedServer(join, settings, terms.client_id, config.broker.name, mappings)
            )

    def attach(self, runner: Runner, ask: Callable[[Request, Principal], None]) -> None:
        """Have what comes go to the core; requests by the line in which they are checked."""
        for server in self.servers:
            server.attach(runner, ask)

    def start(self, outbox: "Outbox | None", now_ms: Callable[[], int]) -> None:
        """Connect, now or as soon as it can be done; without an outbox there is none."""
        for server in self.servers:
            supply = server.supplied(outbox, now_ms) if outbox is not None else None
            if supply is not None:
                self._supplying.append(asyncio.create_task(supply.run()))
            task = asyncio.create_task(server.join.run(), name=f"join {server.join.name}")
            self._tasks.append(task)
        if outbox is not None:
            names = [server.join.name for server in self.servers if server.supply is not None]
            self._supplying.append(asyncio.create_task(forget_others(outbox, names)))
        for task in self._supplying:
            task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        """Report the end of a supply: it ends with the broker alone, else that is a fault."""
        if not task.cancelled() and task.exception() is not None:
            self._faults += 1
            logger.error("a joined server gets no more results", exc_info=task.exception())

    async def stop(self) -> None:
        """Take leave, after what still waits has been sent, if that is soon."""
        for server in self.servers:
            server.join.end()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=END_S)
            for task in (*late, *self._supplying):
                task.cancel()
            await asyncio.gather(*self._tasks, *self._supplying, return_exceptions=True)
        for server in self.servers:
            if server.supply is not None:
                with suppress(StoreError):
                    await server.supply.write()

    # --- what is to be seen --------------------------------------------------------------

    @property
    def faults(self) -> int:
        """Faults of the program's own."""
        return self._faults + sum(server.join.faults for server in self.servers)

    def missing(self) -> list[str]:
        """The servers that are not connected, in words."""
        reasons = [server.join.missing for server in self.servers]
        return [reason for reason in reasons if reason is not None]

    def status(self) -> dict[str, Any]:
        """Each by its name."""
        return {
            server.join.name: {
                **server.join.status(),
                "missed": 0 if server.supply is None else server.supply.missed,
            }
            for server in self.servers
        }

    def up(self) -> dict[str, int]:
        """1 for each that is connected, else 0."""
        return {server.join.name: int(server.join.up) for server in self.servers}

    def counts(self) -> dict[str, int]:
        """Add up what was counted of all servers since the start."""
        totals: dict[str, int] = {}
        for server in self.servers:
            for what, count in server.join.counted().items():
                totals[what] = totals.get(what, 0) + count
        return totals

    # --- effects, see broker.driver.runner.Outside ---------------------------------------

    def publish(self, effect: Publish) -> None:
        """Here and there."""
        self._inside.publish(effect)
        for server in self.servers:
            server.publish(effect)

    def emit(self, effect: Emit) -> None:
        """Here and there."""
        self._inside.emit(effect)
        for server in self.servers:
            server.emit(effect.results)

    def reply(self, effect: Reply) -> None:
        """Answer where it was asked."""
        to = effect.reply_to
        if isinstance(to, AnswerThere):
            to.server.reply(effect, to.to)
        else:
            self._inside.reply(effect)

    def acknowledge(self, effect: Acknowledge) -> None:
        """Each where it came from. What is refused for good is not to come again either."""
        theirs = [token for token in effect.tokens if isinstance(token, JoinToken)]
        if not theirs:
            self._inside.acknowledge(effect)
            return
        for token in theirs:
            token.join.taken(token)
        ours = tuple(token for token in effect.tokens if not isinstance(token, JoinToken))
        if ours:
            self._inside.acknowledge(replace(effect, tokens=ours))

    def fail(self, tokens: list[Any]) -> None:
        """Each where it came from."""
        for token in tokens:
            if isinstance(token, JoinToken):
                token.join.failed(token)
        ours = [token for token in tokens if not isinstance(token, JoinToken)]
        if ours:
            self._inside.fail(ours)

    def note(self, effect: Note) -> None:
        """A log line."""
        self._inside.note(effect)

    def hold(self, *, on: bool) -> None:
        """Read no further from anybody, or read on."""
        self._inside.hold(on=on)
        for server in self.servers:
            server.join.hold(on=on)


def filters(settings: JoinSection) -> list[str]:
    """Give the topic filters that are subscribed at the server."""
    kinds = [topics.EVENTS, topics.SOURCES] if settings.events else []
    if settings.requests:
        kinds += [topics.SUBMIT, topics.PREVIEW, topics.CANCEL, topics.LIST]
    return [f"{settings.prefix}/{kind}/#" for kind in kinds]


def _mappings(config: Config, settings: JoinSection) -> Mappings | None:
    """Make the mappings from the server's other topics to events; None where there are none."""
    if not (config.mappings and settings.mappings):
        return None
    return Mappings(config.mappings, config.limits, joined=True)


def _terms(name: str, settings: JoinSection, config: Config) -> ConnectionTerms:
    broker = config.broker.name
    try:
        context = tls_context(settings) if settings.tls else None
    except (OSError, ValueError) as error:
        named = ", ".join(filter(None, (settings.tls_ca, settings.tls_cert, settings.tls_key)))
        why = f"the certificates cannot be read ({named}): {sentence(error)}"
        raise StartError(f"joins.{name}: {why}") from None
    lost = OutgoingMessage(
        f"{settings.prefix}/{topics.status(broker)}", b'{"state":"lost"}', retain=True
    )
    return ConnectionTerms(
        settings=settings,
        client_id=settings.client_id or f"headwater-{broker}",
        packet_bytes_max=config.mqtt_limits.packet_bytes_max,
        password=_password(name, settings),
        tls=context,
        will=lost if settings.results else None,
    )


def _password(name: str, settings: JoinSection) -> str | None:
    """The password, which is never logged. Raises StartError."""
    if not settings.password_file:
        return settings.password or None
    path = Path(settings.password_file)
    try:
        with path.open("rb") as file:
            data = file.read(PASSWORD_BYTES_MAX + 1)
            mode = path.stat().st_mode
        line = data.decode().split("\n", 1)[0].removesuffix("\r")
    except UnicodeDecodeError:
        raise StartError(f"joins.{name}.password_file: {path} is not UTF-8") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StartError(f"joins.{name}.password_file: {path} cannot be read: {reason}") from None
    if not line or len(line.encode()) > PASSWORD_BYTES_MAX:
        raise StartError(f"joins.{name}.password_file: the first line of {path} is no password")
    if mode & stat.S_IROTH:
        why = "every user of this machine can read it; `chmod 600` it"
        logs.tell("warning", "password_file", join=name, file=str(path), reason=why)
    return line
