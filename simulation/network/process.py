"""One process of a broker among brokers, on its disk.

Owns the frames that wait for the journal. Must not know what they say. Invariant: a frame leaves
once the record that it rests on is durable, and in order with those of its link and class.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import Any

from broker.core.effects import Effect, SendFrame
from broker.core.messages import Message
from broker.core.network.network_broker import NetworkBroker
from broker.network.overlay.calls import CallArrived
from broker.network.routing.entry import Joining
from simulation.crashes.process import Around, Machine, Process
from simulation.world import World

CHECKED_EACH = 64  # messages; each time costs as much as a message


class BrokerProcess(Process):
    """See the module; `send` brings a frame to its link."""

    network: NetworkBroker

    def __init__(
        self,
        world: World,
        machine: Machine,
        around: Around,
        epoch: int,
        send: Callable[[SendFrame], None],
        *,
        peers: Collection[str] = (),
        identity: int = 0,
    ) -> None:
        self._frames: dict[tuple[str, bool], deque[SendFrame]] = {}
        self._send = send
        self._begun = False
        self._handled = 0
        super().__init__(world, machine, around, 0)
        self._begun = True
        joining = Joining(peers, self._now())
        self.network = NetworkBroker(self.core, epoch, joining=joining, identity=identity)
        self._perform(self.network.begun(), None)

    def _handle(self, message: Any) -> None:
        effects = self.network.handle(message, self._now())
        self._handled += 1
        if self._handled % CHECKED_EACH == 0:
            self.core.check_invariants()
        self._perform(effects, message)

    def _perform(self, effects: list[Effect], message: Message | None) -> None:
        for effect in effects:
            if isinstance(effect, SendFrame):
                key = (effect.link, effect.control)
                self._frames.setdefault(key, deque()).append(effect)
            elif isinstance(effect, CallArrived):
                self._around.leaves(effect)
        super()._perform([one for one in effects if not isinstance(one, SendFrame)], message)
        self._send_frames()

    def _keep_promises(self) -> None:
        super()._keep_promises()
        self._send_frames()

    def _send_frames(self) -> None:
        for waiting in self._frames.values():
            while waiting and self._may_send(waiting[0]):
                self._send(waiting.popleft())

    def _may_send(self, frame: SendFrame) -> bool:
        return frame.after <= self.journal.durable

    def _plan_waking(self) -> None:
        if not self._begun or not hasattr(self, "network"):
            return
        wake = self.network.next_wake()
        if wake is not None and (self._wake_at is None or wake < self._wake_at):
            self._wake_at = wake
            self._around.later(max(1, wake - self._now()), lambda: self._woken(wake))
