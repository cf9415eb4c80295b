"""Carries out the core's effects: MQTT messages, live results, answers, log lines.

Owns the way from an effect to the faces. Must not know why something is said. Invariant: one
message that cannot be sent stops no other; it is counted, and its first is logged.
"""

import asyncio
from functools import lru_cache
from time import time
from typing import TYPE_CHECKING, Any, Final

from broker import logs
from broker.core import topics
from broker.core.effects import Acknowledge, Emit, Note, Outcome, Publish, Reply
from broker.driver.arrivals import AnswerTo
from broker.metrics.histogram import Histogram
from broker.mqtt.codec.packets import Properties
from broker.mqtt.codec.reasons import ProtocolError, Reason

if TYPE_CHECKING:
    from broker.http.fan import ResultFan
    from broker.mqtt.server import MqttServer

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


class Delivery:
    """Deliver as `broker.driver.runner.Outside` asks for. `fan` is there once the HTTP face is.

    `latency_s`: how long after its end each result was given out.
    """

    def __init__(self, server: "MqttServer", prefix: str) -> None:
        self.fan: ResultFan | None = None
        self.unsent: dict[str, int] = {}
        self.latency_s = Histogram()
        self._server = server
        self._prefix = prefix

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
        """Each to its subscriber, to its actor and to who follows by HTTP."""
        prefix, fan = self._prefix, self.fan
        now_s, observe = time(), self.latency_s.observe
        for result in effect.results:
            payload = result.payload
            if not payload or result.is_silent:
                continue
            observe(now_s - result.end_ms / 1000)
            topics_of = _ways(prefix, result.subscriber, result.subscription, result.actor)
            for topic in self._server.heard(topics_of):
                self._send(topic, payload)
            if fan is not None:
                fan.publish(result.subscriber, result.subscription, payload)
        if effect.results:
            # With the queues of sessions that outlast the process, in one transaction.
            self._server.mark_results(effect.results[-1].offset + 1)

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
