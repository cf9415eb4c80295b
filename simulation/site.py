"""One broker's core at work in a world: told of messages, woken, its effects carried out.

Owns the log of effects and what clients got. Must not know what a scenario does. Invariant: the
core's own invariants hold after every message, or the run ends there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from broker.core.broker import Broker, BrokerOptions
from broker.core.effects import Acknowledge, Effect, Emission, Emit, Publication, Publish, Reply
from broker.core.messages import Message, Woken
from broker.engine.limits import Limits
from simulation.world import World

_encode = msgspec.msgpack.Encoder().encode


class SimulatedBroker:
    """One broker on a simulated disk.

    `acknowledged` counts each token's answers; `replies` are by `reply_to`.
    """

    def __init__(
        self, world: World, options: BrokerOptions | None = None, limits: Limits | None = None
    ) -> None:
        self.core = Broker(options, limits)
        self.results: list[tuple[int, Emission]] = []
        self.published: list[tuple[int, Publication]] = []
        self.retained: dict[str, bytes] = {}
        self.acknowledged: dict[Any, int] = {}
        self.replies: dict[Any, dict[str, Any]] = {}
        self.log = bytearray()
        self._world = world
        self._wake_at: int | None = None
        self._carry: dict[type[Any], Callable[[Any], None]] = {
            Publish: self._publish,
            Emit: self._emit,
            Reply: self._reply,
            Acknowledge: self._acknowledge,
        }

    def tell(self, message: Message) -> list[Effect]:
        """Have the core handle a message now; its effects, carried out already."""
        effects = self.core.handle(message, self._world.now)
        self.core.check_invariants()
        named = [(type(effect).__name__, effect) for effect in effects]
        self.log += _encode((self._world.now, type(message).__name__, named))
        for effect in effects:
            carry = self._carry.get(type(effect))
            if carry is not None:
                carry(effect)
        self._plan_waking()
        return effects

    def _plan_waking(self) -> None:
        wake = self.core.next_wake()
        if wake is not None and (self._wake_at is None or wake < self._wake_at):
            self._wake_at = wake
            self._world.at(wake, lambda: self._woken(wake))

    def _woken(self, planned: int) -> None:
        if planned == self._wake_at:  # else an earlier one was planned since
            self._wake_at = None
            self.tell(Woken())

    def _publish(self, effect: Publish) -> None:
        for publication in effect.publications:
            self.published.append((self._world.now, publication))
            if publication.retain and publication.payload:
                self.retained[publication.topic] = publication.payload
            elif publication.retain:
                self.retained.pop(publication.topic, None)

    def _emit(self, effect: Emit) -> None:
        self.results += [(self._world.now, result) for result in effect.results]

    def _reply(self, effect: Reply) -> None:
        if not effect.final:
            return
        if effect.reply_to in self.replies:
            raise AssertionError(f"{effect.reply_to} is answered twice")
        self.replies[effect.reply_to] = json.loads(effect.payload)

    def _acknowledge(self, effect: Acknowledge) -> None:
        for token in effect.tokens:
            self.acknowledged[token] = self.acknowledged.get(token, 0) + 1
