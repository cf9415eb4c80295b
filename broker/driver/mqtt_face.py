"""Between the MQTT face and the core: what clients publish, and what the core has delivered.

Owns that translation, in both directions; results go to those who follow by HTTP as well. Must not
judge payloads or know why something is said: the core does. Invariants: every message handed up
becomes exactly one message (or one payload of one) to the core, in the order in which it came; one
on a mapped topic may become several, or none where nobody waits. One message that cannot be sent
stops no other; it is counted, and its first is logged.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from time import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from broker import logs
from broker.core import refusals, topics
from broker.core.effects import Acknowledge, Emission, Emit, Outcome, Publish, Reply
from broker.core.messages import (
    CancelRequested,
    Done,
    Message,
    Payload,
    RequestRefused,
    ResumeRequested,
    SourceAdvertised,
    SourceWithdrawn,
    SpecificationSubmitted,
    TopicRefused,
)
from broker.metrics.histogram import Histogram
from broker.mqtt.codec.packets import Properties
from broker.mqtt.codec.reasons import ProtocolError, Reason
from broker.network.effects import Note
from broker.rights.judge import Principal

if TYPE_CHECKING:
    from broker.bridge.mapping import Mappings
    from broker.engine.ingest.registry import Format
    from broker.http.fan import ResultFan
    from broker.mqtt.application import InboundMessage
    from broker.mqtt.server import MqttServer

MSGPACK = frozenset(("application/msgpack", "application/x-msgpack", "application/vnd.msgpack"))


class ListRequested(msgspec.Struct, frozen=True):
    """Somebody wants to know what is installed here: nothing that the core would have to judge."""

    client: str
    request: str
    reply_to: Any
    token: Any = None
    network: bool = False  # of all brokers that can be reached


class PreviewRequested(msgspec.Struct, frozen=True):
    """Somebody wants to know what a submission would change: the core is never told of it."""

    submission: SpecificationSubmitted


class EndRequested(msgspec.Struct, frozen=True):
    """Somebody wants a subscription ended or resumed that may be at home at any broker.

    `home`: the broker; "": whichever has it.
    """

    client: str
    request: str
    name: str
    reply_to: Any = None
    token: Any = None
    done: Done = "cancelled"
    home: str = ""


Request: TypeAlias = (
    SpecificationSubmitted | CancelRequested | ListRequested | EndRequested | PreviewRequested
)


class NetworkWords(msgspec.Struct):
    """The JSON form of a request: `network`, or a `home`, has it concern other brokers, too."""

    name: str = ""
    network: bool = False
    home: str = ""


class AnswerTo(msgspec.Struct, frozen=True):
    """The topic where an MQTT client wants its answer, and a second one if that cannot be used."""

    topic: str
    usual: str
    correlation: bytes | None


class Arrivals:
    """Takes what the MQTT face hands up; see `broker.mqtt.application.Application`."""

    def __init__(
        self,
        prefix: str,
        payload: Callable[[Payload], None],
        message: Callable[[Message], None],
        request: Callable[[Request, Principal], None],
        flush: Callable[[], None],
    ) -> None:
        self.mappings: Mappings | None = None
        # Answers if an asker may subscribe to a topic, and so have an answer there.
        self.may_hear: Callable[[Principal, str], bool] = lambda _asker, _topic: True
        self._own = f"{prefix}/"
        self._skip = len(prefix) + 1
        self._prefix = prefix
        self._payload = payload
        self._message = message
        self._request = request
        self._flush = flush

    def on_publish(self, messages: list["InboundMessage"]) -> None:
        """Pass on the messages of one socket read."""
        for message in messages:
            if self.mappings is not None and not f"{message.topic}/".startswith(self._own):
                self._map(self.mappings, message)
                continue
            address = topics.read(message.topic[self._skip :])
            if address is None:
                topic = message.topic[self._skip :]
                self._message(TopicRefused(topic, message.payload, message.token))
            elif address.kind == topics.EVENTS:
                type_name, source = address.names
                format_ = "json" if message.properties is None else _format(message)
                self._payload(Payload(type_name, source, message.payload, message.token, format_))
            elif address.kind == topics.SOURCES:
                self._message(_source(address.names[0], message))
            else:
                self._ask(address, message)
        self._flush()

    def _map(self, mappings: "Mappings", message: "InboundMessage") -> None:
        for outcome in mappings.read(message):
            if isinstance(outcome, Payload):
                self._payload(outcome)
            else:
                self._message(outcome)

    def _ask(self, address: topics.Address, message: "InboundMessage") -> None:
        client, request = address.names
        proven = message.client.user is not None
        asker = message.client.user or client
        who = Principal(message.client.user, message.client.client_id)
        answer_to = self._answer_to(message)
        if not self.may_hear(who, answer_to.usual):
            answer_to = msgspec.structs.replace(answer_to, usual=answer_to.topic)
        if not self.may_hear(who, answer_to.topic):
            # Told where the asker can hear it, and nobody else is made to.
            own = (
                f"{self._prefix}/{topics.reply(f'x/{topics.level(asker)}/{topics.last(request)}')}"
            )
            answer_to = AnswerTo(own, own, message.correlation_data)
            code = refusals.ANSWER_ELSEWHERE
            self._message(RequestRefused(asker, request, code, answer_to, message.token))
            return
        words = _words(message.payload)
        if address.kind == topics.LIST:
            listed = ListRequested(asker, request, answer_to, message.token, words.network)
            self._request(listed, who)
            return
        try:
            text = message.payload.decode()
        except UnicodeDecodeError:
            code = refusals.NOT_TEXT
            self._message(RequestRefused(asker, request, code, answer_to, message.token))
            return
        if address.kind in (topics.SUBMIT, topics.PREVIEW):
            answering = (text, answer_to, message.token, proven)
            submission = SpecificationSubmitted(asker, request, *answering)
            is_preview = address.kind == topics.PREVIEW
            self._request(PreviewRequested(submission) if is_preview else submission, who)
            return
        kind = ResumeRequested if address.kind == topics.RESUME else CancelRequested
        if words.network or words.home:
            rest_of = (words.name, answer_to, message.token, kind.done, words.home)
            self._request(EndRequested(asker, request, *rest_of), who)
        else:
            answering = (words.name or text.strip(), answer_to, message.token, proven)
            self._request(kind(asker, request, *answering), who)

    def _answer_to(self, message: "InboundMessage") -> AnswerTo:
        """Tell where the answer goes: nobody makes us speak on Headwater's own topics."""
        own = f"{self._prefix}/"
        usual = own + topics.reply(message.topic[self._skip :])
        wanted = message.response_topic
        if wanted and not wanted.startswith("$"):
            inside = wanted == self._prefix or wanted.startswith(own)
            if not inside or wanted.startswith(f"{own}reply/"):
                return AnswerTo(wanted, usual, message.correlation_data)
        return AnswerTo(usual, usual, message.correlation_data)


def _words(payload: bytes) -> NetworkWords:
    """Return what a request in JSON says; nothing where it is a name, or empty."""
    if not payload.lstrip().startswith(b"{"):
        return NetworkWords()
    try:
        return msgspec.json.decode(payload, type=NetworkWords)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return NetworkWords()


def _source(source: str, message: "InboundMessage") -> Message:
    if message.payload:
        return SourceAdvertised(source, message.payload, message.token)
    return SourceWithdrawn(source, message.token)


def _format(message: "InboundMessage") -> "Format":
    properties = message.properties
    if properties is not None and properties.content_type in MSGPACK:
        return "msgpack"
    return "json"


# What a publisher of MQTT 5 reads in its PUBACK.
OUTCOMES: Final[dict[Outcome, Reason]] = {
    "taken": Reason.SUCCESS,
    "refused": Reason.PAYLOAD_FORMAT_INVALID,
    "no_such_topic": Reason.NOT_AUTHORIZED,
}

FAILED: Final = "the broker failed on this event; its log says more"


def _settle(answer: "asyncio.Future[str]", refusal: str) -> None:
    """Tell who waits for a publication over HTTP; an empty refusal: it was taken."""
    if not answer.done():
        answer.set_result(refusal)


@lru_cache(maxsize=topics.NAMES_CACHED)
def _ways(prefix: str, subscriber: str, subscription: str, actor: str) -> tuple[str, str]:
    """The topics that a result is published to."""
    return (
        f"{prefix}/{topics.result(subscriber, subscription)}",
        f"{prefix}/{topics.actor(actor)}",
    )


RESULTS_EACH = 500  # are given out in one turn of the loop, in which all others wait: 3 ms


class Delivery:
    """Deliver as `broker.driver.runner.Outside` asks for. `fan` is there once the HTTP face is.

    `latency_s`: how long after its end each result was given out. Many results go out in slices,
    between which clients are served; `flush` gives out all that are left.
    """

    def __init__(self, server: "MqttServer", prefix: str) -> None:
        self.fan: ResultFan | None = None
        self.unsent: dict[str, int] = {}
        self.latency_s = Histogram()
        self._server = server
        self._prefix = prefix
        self._slices: deque[Sequence[Emission]] = deque()  # of results that wait for their turn

    def publish(self, effect: Publish) -> None:
        """Each in order."""
        for publication in effect.publications:
            self._send(
                f"{self._prefix}/{publication.topic}",
                publication.payload,
                publication.qos,
                publication.retain,
            )

    def emit(self, effect: Emit) -> None:
        """Each to its subscriber, to its actor and to who follows by HTTP, in order."""
        results, is_idle = effect.results, not self._slices
        if is_idle and len(results) <= RESULTS_EACH:
            self._give(results)
            return
        for begin in range(0, len(results), RESULTS_EACH):
            self._slices.append(results[begin : begin + RESULTS_EACH])
        if is_idle:
            asyncio.get_running_loop().call_soon(self._turn)

    def flush(self) -> None:
        """Give out what waits for its turn."""
        while self._slices:
            self._give(self._slices.popleft())

    def _turn(self) -> None:
        if self._slices:
            self._give(self._slices.popleft())
        if self._slices:
            asyncio.get_running_loop().call_soon(self._turn)

    def _give(self, results: Sequence[Emission]) -> None:
        prefix, fan = self._prefix, self.fan
        now_s, observe = time(), self.latency_s.observe
        for result in results:
            payload = result.payload
            if not payload or result.is_silent:
                continue
            observe(now_s - result.end_ms / 1000)
            topics_of = _ways(prefix, result.subscriber, result.subscription, result.actor)
            for topic in self._server.heard(topics_of):
                self._send(topic, payload)
            if fan is not None:
                fan.publish(result.subscriber, result.subscription, payload)
        if results:
            # With the queues of sessions that outlast the process, in one transaction.
            self._server.mark_results(results[-1].offset + 1)

    def reply(self, effect: Reply) -> None:
        """To the topic that the client named, or to whoever waits for the future."""
        to = effect.reply_to
        if isinstance(to, AnswerTo):
            properties = Properties(correlation_data=to.correlation) if to.correlation else None
            sent = self._send(to.topic, effect.payload, properties=properties)
            if not sent and to.topic != to.usual:
                self._send(to.usual, effect.payload, properties=properties)
        elif isinstance(to, asyncio.Future) and not to.done():
            to.set_result(effect.payload)

    def acknowledge(self, effect: Acknowledge) -> None:
        """Each in order."""
        code, taken = OUTCOMES[effect.outcome], effect.outcome == "taken"
        reasons = effect.reasons or (effect.outcome,) * len(effect.tokens)
        for number, token in enumerate(effect.tokens):
            if isinstance(token, asyncio.Future):  # of HTTP, see `Facade.publish`
                _settle(token, "" if taken else reasons[number])
            else:
                self._server.complete(token, code)

    def fail(self, tokens: list[Any]) -> None:
        """The publishers may try again."""
        for token in tokens:
            if isinstance(token, asyncio.Future):
                _settle(token, FAILED)
            else:
                self._server.complete(token, Reason.UNSPECIFIED_ERROR)

    def note(self, effect: Note) -> None:
        """A log line."""
        logs.write(effect)

    def send(self, topic: str, payload: bytes) -> None:
        """A message to a topic that is not Headwater's, at QoS 0."""
        self._send(topic, payload, 0)

    def others_are_lost(self, me: str, now_ms: int) -> None:
        """Of other brokers nothing is known yet: what was told before the process began is old."""
        own, lost = f"{self._prefix}/{topics.status(me)}", b'{"state":"lost","at":%d}' % now_ms
        for message in self._server.retained(f"{self._prefix}/{topics.STATUS}/+"):
            if message.topic != own:
                self._send(message.topic, lost, retain=True)

    def hold(self, *, on: bool) -> None:
        """Read no further from those who publish to the core, or read on."""
        self._server.hold_intake(on)

    def _send(
        self,
        topic: str,
        payload: bytes,
        qos: int = 1,
        retain: bool = False,
        properties: Properties | None = None,
    ) -> bool:
        """Publish; False (counted) where that cannot be."""
        try:
            self._server.publish(topic, payload, qos, retain, properties)
        except ProtocolError as error:
            reason = error.reason.name.lower()
            if reason not in self.unsent:
                logs.tell("warning", "unsent", topic=topic[:200], reason=error.text)
            self.unsent[reason] = self.unsent.get(reason, 0) + 1
            return False
        return True
