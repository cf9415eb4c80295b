"""One process of a broker among brokers, on its disk.

Owns the machine of the network around the core. Must not know what frames say. Invariant: each
message goes to that machine, and its effects through the gate of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from broker.core.effects import Effect
from broker.core.network.network_broker import NetworkBroker
from broker.engine.runtime.budget import Slices
from broker.network.effects import SendFrame
from broker.network.routing.entry import Joining
from simulation.crashes.process import Machine, Process, ProcessWatcher
from simulation.world import World

CHECKED_EACH = 64  # messages; each time costs as much as a message


class BrokerProcess(Process):
    """Run one process of a broker among brokers; `send` brings a frame to its link."""

    network: NetworkBroker

    def __init__(
        self,
        world: World,
        machine: Machine,
        around: ProcessWatcher,
        epoch: int,
        send: Callable[[SendFrame], None],
        *,
        peers: Collection[str] = (),
        identity: int = 0,
    ) -> None:
        self._begun = False
        self._handled = 0
        super().__init__(world, machine, around, 0, send)
        self._begun = True
        joining = Joining(peers, self._now())
        self.network = NetworkBroker(self.core, epoch, joining=joining, identity=identity)
        self._perform(self.network.begun(), None)

    def _work(self, message: Any) -> Slices[list[Effect]]:
        return self.network.work(message, self._now())

    def _check(self) -> None:
        self._handled += 1
        if self._handled % CHECKED_EACH == 0:
            self.core.check_invariants()

    def _plan_waking(self) -> None:
        if not self._begun or not hasattr(self, "network"):
            return
        wake = self.network.next_wake()
        if wake is not None and (self._wake_at is None or wake < self._wake_at):
            self._wake_at = wake
            self._around.later(max(1, wake - self._now()), lambda: self._woken(wake))
