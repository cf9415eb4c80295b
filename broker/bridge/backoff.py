"""How long to wait before the next try.

Owns the growth of the waits. Must not know what is tried. Invariant: a wait lies between half of
its step and the whole, and no step is longer than the cap.

Each wait is drawn at random below its step, so that the brokers that lost a server together do not
come back together; the generator is handed in, so that a run can be repeated.
"""

import random

FIRST_S = 0.5  # a server that restarts is back after about as long
CAP_S = 30.0  # nobody waits longer for one that was away for a day
STOOD_S = 10.0  # what stood so long was no failed try


class Backoff:
    """Waits in seconds: doubling from the first to the cap."""

    def __init__(self, draw: random.Random, first_s: float = FIRST_S, cap_s: float = CAP_S) -> None:
        self._draw = draw
        self._first_s = first_s
        self._cap_s = cap_s
        self._step_s = first_s

    def next_s(self) -> float:
        """Return how long to wait now, in s."""
        step_s = self._step_s
        self._step_s = min(2 * step_s, self._cap_s)
        return self._draw.uniform(step_s / 2, step_s)

    def stood(self, for_s: float) -> None:
        """Note that what was tried has held for so long."""
        if for_s >= STOOD_S:
            self._step_s = self._first_s
