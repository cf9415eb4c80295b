"""From what MQTT clients publish to what the core is told.

Owns that translation. Must not judge payloads: the core does. Invariant: every message handed up
becomes exactly one message (or one payload of one) to the core, in the order in which it came; one
on a mapped topic may become several, or none where nobody waits.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from broker.core import refusals, topics
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
from broker.rights.judge import Principal

if TYPE_CHECKING:
    from broker.bridge.mapping import Mappings
    from broker.engine.ingest.registry import Format
    from broker.mqtt.application import InboundMessage

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
