"""The processes of one machine, one after the other: when one ends, and who hears of it.

Owns the steps that a process has left, its clients and whom they wait for. Must not know what is
made of what leaves a process. Invariant: what was put off by one process is never done in another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from broker.core.messages import Message
from simulation.crashes.process import Machine, Process
from simulation.world import World


class EndedError(Exception):
    """The process ends here."""


class ConnectedClient(Protocol):
    """Whoever is connected."""

    def reached(self) -> None:
        """There is a broker to connect to."""

    def lost(self) -> None:
        """The connection is gone."""


AnyProcess = TypeVar("AnyProcess", bound=Process)


class ProcessLives(Generic[AnyProcess]):
    """Run the processes of one machine, one after the other."""

    def __init__(self, world: World, machine: Machine) -> None:
        self.world = world
        self.machine = machine
        self.process: AnyProcess | None = None
        self.connection = 0  # ascends with each process
        self.clients: list[ConnectedClient] = []
        self.answers: dict[Any, Callable[[Any], None]] = {}  # by token or reply address
        self.log = bytearray()
        self.ends = 0
        self.mortal = True  # whether a process may end by itself
        self._steps_left: int | None = None  # None: it does not end by itself

    def step(self) -> None:
        """Count a step, and end the process if it was its last."""
        if self.mortal and self._steps_left is not None:
            self._steps_left -= 1
            if self._steps_left <= 0:
                raise EndedError

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Do something after so long, if the process is still there."""
        connection = self.connection

        def guarded() -> None:
            if connection == self.connection:
                self._guarded(action)

        self.world.after(delay_ms, guarded)

    def tell(self, message: Message, answers: dict[Any, Callable[[Any], None]]) -> None:
        """A message of a client arrives; `answers` are to be called with what it is told."""
        process = self.process
        if process is not None:
            self.answers |= answers
            self._guarded(lambda: process.tell(message))

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except EndedError:
            self._end()

    def _end(self) -> None:
        raise NotImplementedError
