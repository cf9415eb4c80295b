"""Brokers on machines that are slow, each in its own way, for runs in which brokers decide.

What comes to a broker waits until it is done with what came before, be it a frame, a client's word,
its own time or its disk's answer: things happen late and in bunches, and a broker may do nothing
for seconds while others go on.
"""

from collections import deque
from functools import partial
from random import Random

from simulation.network.planned import PlannedPlace

MESSAGE_MS = (0, 1, 5, 20)  # the most that a message takes, by broker
PAUSES_MS = (300, 1_000, 2_500, 6_000)  # a broker's longest pause, near what the protocol waits
APART_MS = 20_000  # from one pause to the next, at most


class SlowPlace(PlannedPlace):
    """A machine that does one thing after the other, and takes its time while it is `slow`."""

    def __init__(self, seed, *given):
        super().__init__(*given)
        self.slow = False
        self._draw = Random(f"slow {seed} {self.name}")
        self._message_ms = self._draw.choice(MESSAGE_MS)
        self._pause_ms = self._draw.choice(PAUSES_MS)
        self._free_at = 0
        self._todo = deque()
        self.world.at(0, self._pause)

    def _pause(self):
        if self.slow:
            pause_ms = self._draw.randint(0, self._pause_ms)
            self._free_at = max(self._free_at, self.world.now + pause_ms)
        self.world.after(self._draw.randint(1, APART_MS), self._pause)

    def _behind(self, action):
        """Do something when all that came before is done, if the process is the same then."""
        self._todo.append((self.connection, action))
        if len(self._todo) == 1:
            self.world.at(self._free_at, self._go_on)

    def _go_on(self):
        if self.world.now >= self._free_at:
            connection, action = self._todo[0]
            if connection == self.connection:
                self._guarded(action)
                took_ms = self._draw.randint(0, self._message_ms) if self.slow else 0
                self._free_at = max(self._free_at, self.world.now + took_ms)
            self._todo.popleft()
        if self._todo:
            self.world.at(self._free_at, self._go_on)

    def hear(self, message):
        self._behind(partial(super().hear, message))

    def tell(self, message, answers):
        self._behind(partial(super().tell, message, answers))

    def later(self, delay_ms, action):
        super().later(delay_ms, partial(self._behind, action))


class Slow:
    """What makes a run of that kind; all is as fast as usual before the readings and after."""

    def _place(self, name):
        place = super()._place(name)
        return SlowPlace(self.seed, self.world, place.machine, place.settings)

    def _plan_readings(self):
        for place in self.places:
            place.slow = True
        return super()._plan_readings()

    def _settle(self):
        for place in self.places:
            place.slow = False
        super()._settle()
