"""A machine with its broker's processes, one after the other, and the links at it.

Owns the moments of ending and what left for clients. Must not know what frames say. Invariant:
`hear` reaches the process that is there, or nobody.
"""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

from broker.core.effects import Acknowledge, Effect, Emission, Publish, Reply
from broker.core.messages import ActorsListening, Message
from broker.core.topics import actor, is_of_suspended
from broker.network.effects import SendFrame
from broker.network.frames.messages import FromNetwork
from simulation.account import CheckFailedError
from simulation.crashes.lives import EndedError, ProcessLives
from simulation.crashes.process import Machine
from simulation.network.links import Link
from simulation.network.process import BrokerProcess
from simulation.world import World

RESTART_MS_MAX = 3_000
ACTOR = "alerts"  # of all results


class Place(ProcessLives[BrokerProcess]):
    """Run a machine's broker processes, one after the other, with the links at it.

    It is what clients of `simulation.crashes` call a site.
    """

    identifies = False  # whether a process asks others how far they have seen it
    dated = False  # whether processes are numbered by the time, as real ones are

    def __init__(self, world: World, machine: Machine) -> None:
        super().__init__(world, machine)
        self.name = machine.options.name
        self.links: dict[str, Link] = {}
        self.late: list[dict[str, Any]] = []
        self.listens = False  # whether the actor of all results does, here
        self.heard: Counter[bytes] = Counter()  # what it was sent from other brokers
        self.suspended: list[str] = []  # the topics on which that was told
        self.states: list[str] = []  # what requests were answered
        self.away_ms = 0  # how long it is gone at least, once it ends

    @property
    def alive(self) -> bool:
        """Tell whether there is a process."""
        return self.process is not None

    # --- beginnings and ends ---------------------------------------------------------------

    def start(self) -> None:
        """Begin a process."""
        self.connection += 1
        try:
            self.process = BrokerProcess(
                self.world,
                self.machine,
                self,
                self.world.now if self.dated else self.connection,
                self._send,
                peers=self.links,
                identity=self._identity(),
            )
        except EndedError:
            self._end()
            return
        if self.listens:
            self.hear(ActorsListening(self.name, 0, (ACTOR,), anew=True))
        for client in self.clients:
            client.reached()
        for link in self.links.values():
            link.begin()

    def _identity(self) -> int:
        if not self.identifies:
            return 0
        return Random(f"{self.name} {self.connection} {self.world.now}").getrandbits(52) | 1 << 52

    def end_after(self, steps: int) -> None:
        """Have the process end after so many steps."""
        self._steps_left = steps

    def end(self) -> None:
        """End the process now."""
        if self.process is not None:
            self._end()

    def _end(self) -> None:
        self.ends += 1
        self._steps_left = None
        process, self.process = self.process, None
        self.connection += 1
        draw = self.world.random
        if process is not None and process.committing and draw.random() < 0.5:
            self.machine.outbox.commit(process.committing)  # it was done, and nobody heard of it
        if draw.random() < 0.6:
            self.machine.disk.crash()
        for client in self.clients:
            client.lost()
        for link in self.links.values():
            link.down()
        self.answers.clear()
        self.world.after(max(draw.randint(1, RESTART_MS_MAX), self.away_ms), self.start)
        self.away_ms = 0

    # --- around a process ------------------------------------------------------------------

    def told(self, number: int, message: Message | None, now: int) -> None:
        """Pass over what was told: it is not looked at here."""

    def leaves(self, effect: Effect) -> None:
        """Answer clients, and keep what was published late, suspended or to the actor."""
        match effect:
            case Acknowledge(tokens, outcome, _):
                for token in tokens:
                    self._answer(token, outcome)
            case Reply():
                self.states.append(json.loads(effect.payload).get("state", "refused"))
                if effect.final:
                    self._answer(effect.reply_to, effect.payload)
            case Publish(publications):
                for one in publications:
                    if one.topic.startswith("late/"):
                        self.late.append(json.loads(one.payload))
                    elif is_of_suspended(one.topic):
                        self.suspended.append(one.topic)
                    elif one.topic == actor(ACTOR):
                        self.heard[one.payload] += 1

    def delivered(self, rows: list[Emission]) -> None:
        """Log the results that were delivered."""
        for one in rows:
            self.log += one.payload

    def _send(self, frame: SendFrame) -> None:
        self.step()
        link = self.links.get(frame.link)
        if link is None:
            raise CheckFailedError(f"{self.name} has a frame for {frame.link}, no neighbour")
        self.log += frame.data
        link.send(self.name, frame)

    # --- what comes ------------------------------------------------------------------------

    def hear(self, message: FromNetwork | ActorsListening) -> None:
        """Bring the message to the process, if there is one."""
        process = self.process
        if process is not None:
            self._guarded(lambda: process.tell(message))  # type: ignore[arg-type]

    def counted(self, name: str) -> int:
        """Return what the process that is there has counted under that name."""
        return 0 if self.process is None else self.process.network.counts[name]

    def _answer(self, token: Any, what: Any) -> None:
        answer = self.answers.pop(token, None)
        if answer is not None:
            answer(what)
