"""How long a coordinator is at work at a time, and what a look takes of memory.

Owns which networks are tried and how the table is laid out. Must not decide: the coordinators do.

    python -m bench.looks

Networks of the tests, drawn with submissions that nearly all share three types of four origins,
from their beginning until each is quiet. Nothing else happens in a broker while it looks. Memory is
that of one look at a vicinity, traced in a run of its own, as tracing takes time.
"""

import sys
import time
import tracemalloc
from pathlib import Path
from typing import ClassVar
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from planner.rounds import machine
from planner.rounds.look import Look
from planner.rounds.settings import Settings
from planner.rounds.view import View
from tests.broker.core.coordinator.town import drawn

TOWNS = ((15, 50), (30, 100), (30, 300))
UNTIL_S = 240


class TimedLook(Look):
    """The same, with the seconds of one core that it takes at a time; keeps the largest view."""

    seconds: ClassVar[list[float]] = []
    views: ClassVar[list[tuple[View, Settings]]] = []
    over = 0

    def __init__(self, view: View, settings: Settings) -> None:
        begin = time.process_time()
        super().__init__(view, settings)
        self.seconds.append(time.process_time() - begin)
        self.views.append((view, settings))

    def go_on(self) -> bool:
        """Take one slice more."""
        begin = time.process_time()
        over = super().go_on()
        self.seconds.append(time.process_time() - begin)
        TimedLook.over += over
        return over


def memory_mb(view: View, settings: Settings) -> float:
    """Return the most that one whole look has at a time, in MB."""
    tracemalloc.start()
    look = Look(view, settings)
    while not look.go_on():
        pass
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 1e6


def main() -> None:
    """Print the table."""
    say("brokers", "submissions", "looks", "slices", "longest, s", "a look's memory, MB")
    say("---:", "---:", "---:", "---:", "---:", "---:")
    for brokers, jobs in TOWNS:
        TimedLook.seconds, TimedLook.views, TimedLook.over = [], [], 0
        with patch.object(machine, "Look", TimedLook):
            drawn(1, brokers=brokers, jobs=jobs).run(UNTIL_S)
        slices = len(TimedLook.seconds) - len(TimedLook.views)
        view, settings = max(TimedLook.views, key=lambda pair: len(pair[0].hosts))
        longest = max(TimedLook.seconds)
        say(
            brokers,
            jobs,
            TimedLook.over,
            slices,
            f"{longest:.2f}",
            f"{memory_mb(view, settings):.1f}",
        )


def say(*cells: object) -> None:
    """A row of a table."""
    sys.stdout.write(f"| {' | '.join(str(cell) for cell in cells)} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
