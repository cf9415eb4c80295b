"""A network of coordinators on machines that are slow, each in its own way.

What comes to a broker waits until it is done with what came before, and so do its own times: words
arrive late and in bunches, and a broker may do nothing for seconds while others go on.
"""

from collections import deque
from collections.abc import Callable
from random import Random

from tests.broker.core.coordinator.town import House, Town

WORD_MS = (0, 1, 5, 25, 100)  # the most that a word takes, by broker
PAUSES_MS = (300, 1_000, 2_500, 6_000)  # a broker's longest pause, near what the protocol waits
APART_MS = 20_000  # from one pause to the next, at most


class SlowHouse(House):
    """A broker that does one thing after the other, and takes its time."""

    def __init__(self, town: Town, name: str, life: int) -> None:
        self.draw = Random(f"slow {town.seed} {name} {life}")
        self.word_ms = self.draw.choice(WORD_MS)
        self.pause_ms = self.draw.choice(PAUSES_MS)
        self.free_at = 0
        self._todo: deque[Callable[[], None]] = deque()
        super().__init__(town, name, life)
        self._pause()

    def _pause(self) -> None:
        world = self.town.world
        if self.alive:
            self.free_at = max(self.free_at, world.now + self.draw.randint(0, self.pause_ms))
            world.after(self.draw.randint(1, APART_MS), self._pause)

    def _later(self, action: Callable[[], None]) -> None:
        self._todo.append(action)
        if len(self._todo) == 1:
            self.town.world.at(self.free_at, self._go_on)

    def _go_on(self) -> None:
        world = self.town.world
        if world.now >= self.free_at:
            self._todo[0]()
            self._todo.popleft()
            self.free_at = max(self.free_at, world.now + self.draw.randint(0, self.word_ms))
        if self._todo:
            world.at(self.free_at, self._go_on)

    def hear(self, message: object) -> None:
        """See simulation.network.links.End."""
        self._later(lambda: super(SlowHouse, self).hear(message))

    def touch(self) -> None:
        """See House."""
        self._later(super().touch)

    def _woken(self, at: int) -> None:
        self._later(lambda: super(SlowHouse, self)._woken(at))

    def _both_woken(self, at: int) -> None:
        super()._both_woken(self.town.world.now)


class SlowTown(Town):
    """See the module."""

    kind = SlowHouse
