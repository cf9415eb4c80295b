"""A machine with its processes, one after the other: where they end, and what left them.

Owns the moments of ending, what each process was told, and all that left. Must not know what the
core makes of it. Invariant: what left a process because of a record is never followed by a process
that does not know that record, or the run ends there.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from broker.core.broker import BrokerOptions
from broker.core.effects import Acknowledge, Effect, Emission, Publish, Reply
from broker.core.messages import Message
from broker.core.topics import SOURCES
from simulation.account import CheckFailedError
from simulation.crashes.lives import EndedError, ProcessLives
from simulation.crashes.process import Machine, Process
from simulation.world import World

RESTART_MS_MAX = 4_000
SKEW_MS = 1_500  # by how much a clock may be off after a start
CHANGED = 0.05  # how often a process begins with other settings

_encode = msgspec.msgpack.Encoder().encode


class HandledMessage(Struct, frozen=True):
    """A record's message (None: a process began), when the core handled it, and its settings."""

    message: Message | None
    now: int
    options: BrokerOptions


class CrashingSite(ProcessLives[Process]):
    """Run the processes of one machine, and keep what left them."""

    def __init__(self, world: World, machine: Machine, steps_max: int) -> None:
        super().__init__(world, machine)
        self.history: list[
            HandledMessage
        ] = []  # record n at n - 1, as of the process that is there
        self.retained: dict[str, bytes] = {}
        self.delivered_end = 0
        self.kept = 0  # up to this record something that was promised has left
        self._steps_max = steps_max
        self._steps_left = self._life()

    # --- beginnings and ends ---------------------------------------------------------------

    def start(self) -> None:
        """Begin a process."""
        self.connection += 1
        draw = self.world.random
        skew_ms = draw.choice((0, 0, -SKEW_MS, SKEW_MS))
        if draw.random() < CHANGED:
            options = replace(self.machine.options, lateness_ms=draw.choice((0, 500, 2_000)))
            self.machine = replace(self.machine, options=options)
        try:
            self.process = Process(self.world, self.machine, self, skew_ms)
        except (EndedError, OSError):
            self._end()
            return
        for client in self.clients:
            client.reached()

    def end(self) -> None:
        """End the process now, whatever it does."""
        self._end()

    def _end(self) -> None:
        self.ends += 1
        process, self.process = self.process, None
        self.connection += 1
        self._steps_left = self._life()
        draw = self.world.random
        if process is not None and process.committing and draw.random() < 0.5:
            self.machine.outbox.commit(process.committing)  # it was done, and nobody heard of it
        if draw.random() < 0.6:
            self.machine.disk.crash()
        else:
            self.machine.disk.fail(0)
        for client in self.clients:
            client.lost()
        self.answers.clear()
        self.world.after(draw.randint(1, RESTART_MS_MAX), self.start)

    def _life(self) -> int:
        """Draw how many steps a process takes."""
        draw = self.world.random
        return draw.randint(1, draw.choice((20, 200, self._steps_max, self._steps_max)))

    # --- around a process ------------------------------------------------------------------

    def told(self, number: int, message: Message | None, now: int) -> None:
        """Keep what a record was made of, in place of records that a crash took."""
        if message is None:
            if number <= self.kept:
                raise CheckFailedError(
                    f"what was promised after record {self.kept} left, and a process goes on after"
                    f" {number - 1}"
                )
            del self.history[number - 1 :]
            for topic in [topic for topic in self.retained if topic.startswith(SOURCES)]:
                del self.retained[topic]  # all that holds is published again
        if number != len(self.history) + 1:
            raise CheckFailedError(f"record {number} comes after {len(self.history)}")
        self.history.append(HandledMessage(message, now, self.machine.options))

    def leaves(self, effect: Effect) -> None:
        """Log what leaves for good, and answer clients."""
        self.log += _encode((self.world.now, type(effect).__name__, effect))
        match effect:
            case Acknowledge(tokens, outcome, after):
                self.kept = max(self.kept, after)
                for token in tokens:
                    self._answer(token, outcome)
            case Reply():
                self.kept = max(self.kept, effect.after)
                if effect.final:
                    self._answer(effect.reply_to, effect.payload)
            case Publish(publications):
                for publication in publications:
                    if publication.retain and publication.payload:
                        self.retained[publication.topic] = publication.payload
                    elif publication.retain:
                        self.retained.pop(publication.topic, None)

    def delivered(self, rows: list[Emission]) -> None:
        """Log the results that were delivered, and how far they go."""
        self.log += _encode((self.world.now, rows))
        self.delivered_end = max(self.delivered_end, rows[-1].offset + 1)

    def _answer(self, token: Any, what: Any) -> None:
        answer = self.answers.pop(token, None)
        if answer is None:
            raise CheckFailedError(f"{token} is answered, and nobody asked")
        answer(what)
