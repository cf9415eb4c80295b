"""One connection to a joined server, through aiomqtt and the client of paho beneath it.

Owns what is asked of these libraries, also what aiomqtt does not pass on: that messages are
acknowledged by us alone, that reading can pause, whether the session was kept. Must not know what
messages mean, or that there is another connection afterwards. Invariant: whatever goes wrong ends
as a JoinError with one sentence, and leaves no socket open.
"""

import asyncio
import logging
import math
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiomqtt
from aiomqtt.exceptions import MqttCodeError
from msgspec import Struct
from paho.mqtt.client import MQTTMessage
from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from broker.bridge.messages import Arrived, JoinError, OutgoingMessage
from broker.config.joins import JoinSection
from broker.mqtt.codec.packets import Properties

TIMEOUT_S = 5.0  # a server that takes longer to answer is not there
READ_BYTES_MAX = 65_536  # handed over together; so much more than is allowed may wait
NO_DELAY = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)  # small packets wait 40 ms otherwise
REFUSED_FROM = 0x80  # reason codes from here on are failures

logger = logging.getLogger(__name__)
# What the libraries tell is told here as the reason of a JoinError, or is a line for each message.
_theirs = logging.getLogger(f"{__name__}.library")
_theirs.setLevel(logging.CRITICAL + 1)


class ConnectionTerms(Struct, frozen=True):
    """With what a connection is made; `tls` is an SSLContext or None."""

    settings: JoinSection
    client_id: str
    packet_bytes_max: int
    password: str | None = None
    tls: Any = None
    will: OutgoingMessage | None = None


class JoinedConnection:
    """A connection that stands; made by `connected`. All methods belong to the loop's thread."""

    def __init__(
        self,
        client: aiomqtt.Client,
        terms: ConnectionTerms,
        take: Callable[["JoinedConnection", list[Arrived]], None],
    ) -> None:
        self.session_kept = False
        self.expiry_s: int | None = None  # where the server grants another than was asked for
        self.inflight_max = terms.settings.inflight_max
        self.not_taken: dict[str, int] = {}  # what the server refused, by its reason
        self._client = client
        self._terms = terms
        self._take = take
        self._paused = self._deaf = self._reading = False
        self._read_now: list[Arrived] = []
        self._loop = asyncio.get_running_loop()
        self._broken: asyncio.Future[None] = self._loop.create_future()
        # aiomqtt has no words for these; paho's own interface, which is public, has.
        self._paho = paho = client._client  # noqa: SLF001
        paho.connect_timeout = TIMEOUT_S
        paho.manual_ack_set(True)
        self._on_connect: Any = paho.on_connect
        self._on_publish: Any = paho.on_publish
        self._on_disconnect: Any = paho.on_disconnect
        self._answered = False
        self._why = ""
        paho.on_connect, paho.on_publish = self._connected, self._published
        paho.on_disconnect = self._disconnected
        paho.on_message = self._arrived

    # --- what the server says ------------------------------------------------------------

    def _connected(
        self, client: Any, data: Any, flags: Any, reason: ReasonCode, properties: Any = None
    ) -> None:
        self._answered = True
        self.session_kept = bool(flags.session_present)
        self.expiry_s = getattr(properties, "SessionExpiryInterval", None)
        granted = getattr(properties, "ReceiveMaximum", self.inflight_max)
        self.inflight_max = min(self.inflight_max, granted)
        self._on_connect(client, data, flags, reason, properties)

    def _disconnected(
        self, client: Any, data: Any, flags: Any, reason: ReasonCode, properties: Any = None
    ) -> None:
        reason_text = str(reason).lower()
        if flags.is_disconnect_packet_from_server:
            self._why = f"it said: {reason_text}"
        elif not self._answered:
            self._why = "it closed the connection without a word"
        else:
            self._why = (
                "it fell silent" if "keep alive" in reason_text else "the connection was lost"
            )
        self._on_disconnect(client, data, flags, reason, properties)

    def why(self, error: BaseException) -> str:
        """Why the connection ended, in a sentence."""
        if isinstance(error, MqttCodeError) and isinstance(error.rc, ReasonCode):
            return sentence(error)  # a refusal, after which the connection ends as well
        if not self._why and not self._answered and self._paho.socket() is not None:
            return "no answer in time"
        return self._why or sentence(error)

    def _published(
        self, client: Any, data: Any, mid: int, reason: ReasonCode, properties: Any
    ) -> None:
        if reason.is_failure:
            reason_text = str(reason).lower()
            self.not_taken[reason_text] = self.not_taken.get(reason_text, 0) + 1
        self._on_publish(client, data, mid, reason, properties)

    def _arrived(self, _client: Any, _data: Any, message: MQTTMessage) -> None:
        try:
            topic = message.topic
        except UnicodeDecodeError:  # no server that keeps to the standard sends it
            topic = ""
        if self._deaf:
            return
        number = message.mid if message.qos else 0
        flags = (message.qos, bool(message.retain), bool(message.dup))
        properties = _properties(message.properties)
        self._read_now.append(Arrived(topic, bytes(message.payload), *flags, number, properties))
        if not self._reading:
            self._hand_over()

    def _hand_over(self) -> None:
        if self._read_now:
            messages, self._read_now = self._read_now, []
            self._take(self, messages)

    # --- what it is told -----------------------------------------------------------------

    async def subscribe(self, filters: Sequence[str]) -> None:
        """Subscribe at QoS 1. Raises JoinError where that is refused."""
        wanted: Any = [(topic_filter, 1) for topic_filter in filters]
        if self._terms.settings.is_5:
            wanted = [
                (topic_filter, SubscribeOptions(qos=1, noLocal=True)) for topic_filter in filters
            ]
        granted: Sequence[Any] = await self._client.subscribe(wanted)
        for topic_filter, code in zip(filters, granted, strict=True):
            value = code if isinstance(code, int) else code.value
            if value >= REFUSED_FROM:
                raise JoinError(f"it does not let this client subscribe to {topic_filter}")
            if value == 0:
                raise JoinError(f"it grants QoS 0 alone for {topic_filter}, which loses messages")

    async def publish(self, message: OutgoingMessage) -> None:
        """Publish, and wait until the server has it. Raises aiomqtt.MqttError, ValueError."""
        properties = None
        if message.correlation is not None and self._terms.settings.is_5:
            properties = PahoProperties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
            properties.CorrelationData = message.correlation
        await self._client.publish(
            message.topic,
            message.payload,
            qos=1,
            retain=message.retain,
            properties=properties,
            timeout=math.inf,
        )

    def acknowledge(self, numbers: Sequence[int]) -> None:
        """The messages are taken."""
        for number in numbers:
            self._paho.ack(number, 1)

    # --- reading -------------------------------------------------------------------------

    def take_no_more(self) -> None:
        """Nobody is there any more for what still comes; the server will send it again."""
        self._deaf = True

    def read_alone(self) -> None:
        """Take the place of aiomqtt at the socket.

        It reads as many packets at a time as are under way to the server, of any size, and one by
        one where none are; and it would not stop in between.
        """
        if (sock := self._paho.socket()) is not None:
            self._loop.add_reader(sock.fileno(), self._read)
            self._loop.call_soon(self._read)  # TLS may have taken bytes from the socket before

    def pause(self, *, on: bool) -> None:
        """Read nothing from the socket, so that the server has to wait; or read on."""
        sock = self._paho.socket()
        if sock is None or on == self._paused:
            return
        self._paused = on
        if on:
            self._loop.remove_reader(sock.fileno())
        else:
            self.read_alone()

    def _read(self) -> None:
        """Read what is there, but not more at a time than is handed over together."""
        paho, self._reading = self._paho, True
        try:
            while not self._paused and paho.socket() is not None:
                status = paho._packet_read()  # noqa: SLF001  `loop_read` reads as it likes
                if status == MQTTErrorCode.MQTT_ERR_AGAIN:
                    break
                if status != MQTTErrorCode.MQTT_ERR_SUCCESS:
                    paho._loop_rc_handle(status)  # noqa: SLF001  as `loop_read` does
                    break
                if sum(message.size_bytes for message in self._read_now) >= READ_BYTES_MAX:
                    self._loop.call_soon(self._read)
                    break
        except Exception as error:
            logger.debug("reading failed", exc_info=True)
            if not self._broken.done():
                self._broken.set_exception(JoinError(f"reading failed: {error}"))
        finally:
            self._reading = False
            self._hand_over()

    async def lost(self) -> None:
        """Wait for the end of the connection, which is a JoinError or an aiomqtt.MqttError."""
        ends = asyncio.ensure_future(anext(self._client.messages))
        try:
            await asyncio.wait((ends, self._broken), return_when=asyncio.FIRST_COMPLETED)
            for future in (ends, self._broken):
                if future.done():
                    future.result()
        finally:
            if not ends.done():
                ends.cancel()
            with suppress(asyncio.CancelledError, aiomqtt.MqttError):
                await ends
        raise JoinError("the connection ended")

    def close(self) -> None:
        """Close the socket, if anything has left it open."""
        self._broken.cancel()
        if self._paho.socket() is not None:
            self._paho._sock_close()  # noqa: SLF001  nothing public closes one that is stuck


@asynccontextmanager
async def connected(
    terms: ConnectionTerms, take: Callable[[JoinedConnection, list[Arrived]], None]
) -> AsyncIterator[JoinedConnection]:
    """A connection. Raises JoinError.

    `take` is given messages, the first of them before this has come back, and must not raise.
    """
    client = _client(terms)
    connection = JoinedConnection(client, terms, take)
    try:
        async with client:
            connection.read_alone()
            yield connection
    except aiomqtt.MqttError as error:
        raise JoinError(connection.why(error)) from None
    except UnicodeError:  # of a name that can be none
        raise JoinError("there is no such host") from None
    finally:
        connection.close()


def _client(terms: ConnectionTerms) -> aiomqtt.Client:
    settings = terms.settings
    versioned: dict[str, Any] = {"protocol": aiomqtt.ProtocolVersion.V311, "clean_session": False}
    if terms.settings.is_5:
        properties = PahoProperties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = settings.session_expiry_s
        properties.ReceiveMaximum = settings.inflight_max
        properties.MaximumPacketSize = terms.packet_bytes_max
        versioned = {
            "protocol": aiomqtt.ProtocolVersion.V5,
            "clean_start": False,
            "properties": properties,
        }
    will = terms.will
    client = aiomqtt.Client(
        settings.host,
        settings.port,
        username=settings.user or None,
        password=terms.password,
        identifier=terms.client_id,
        keepalive=settings.keep_alive_s,
        timeout=TIMEOUT_S,
        max_inflight_messages=settings.inflight_max,
        tls_context=terms.tls,
        will=None if will is None else aiomqtt.Will(will.topic, will.payload, 1, will.retain),
        logger=_theirs,
        socket_options=NO_DELAY,
        **versioned,
    )
    client.pending_calls_threshold = settings.inflight_max
    return client


def sentence(error: BaseException) -> str:
    """Why a connection failed, without the libraries' numbers."""
    if isinstance(error, MqttCodeError) and isinstance(error.rc, ReasonCode):
        return f"it said: {str(error.rc).lower()}"
    text = re.sub(r"\[[^\]]*\] |\s*\(_ssl\.c:\d+\)", "", str(error)).strip()
    return text.lower() or "the connection ended"


class _Closing(ssl.SSLSocket):
    """Closed where its handshake fails, which paho leaves open, and done with that in time."""

    def do_handshake(self, block: bool = False) -> None:
        """As it is, within the time that a server has for an answer."""
        self.settimeout(TIMEOUT_S)
        try:
            super().do_handshake(block)
        except BaseException:
            self.close()
            raise


def tls_context(settings: JoinSection) -> ssl.SSLContext:
    """Make the context that `tls = true` asks for. Raises OSError, of which ssl.SSLError is one."""
    context = ssl.create_default_context(cafile=settings.tls_ca or None)
    context.sslsocket_class = _Closing
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if settings.tls_cert:
        context.load_cert_chain(settings.tls_cert, settings.tls_key)
    return context


def _properties(found: Any) -> Properties | None:
    """Of the properties of a message those that Headwater looks at."""
    if found is None:
        return None
    content_type = getattr(found, "ContentType", None)
    response_topic = getattr(found, "ResponseTopic", None)
    correlation = getattr(found, "CorrelationData", None)
    if content_type is None and response_topic is None and correlation is None:
        return None
    return Properties(
        content_type=content_type, response_topic=response_topic, correlation_data=correlation
    )
