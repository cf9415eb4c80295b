"""How long a coordinator is at work at a time: its looks, and the slices of its thorough ones.

Owns which networks are tried and how the table is laid out. Must not decide: the coordinators do.

    python -m bench.looks

Networks of the tests, drawn with submissions that nearly all share three types of four origins,
from their beginning until each is quiet. Nothing else happens in a broker while it looks.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from planner.rounds import machine
from planner.rounds.looking import ThoroughLook, look
from tests.broker.core.coordinator.town import drawn

TOWNS = ((15, 50), (30, 100), (30, 300))
UNTIL_S = 240

P = ParamSpec("P")
R = TypeVar("R")


def timed(action: Callable[P, R], spent: list[float]) -> Callable[P, R]:
    """The same, with the seconds of one core that each call takes."""

    def do(*words: P.args, **named: P.kwargs) -> R:
        begin = time.process_time()
        try:
            return action(*words, **named)
        finally:
            spent.append(time.process_time() - begin)

    return do


def main() -> None:
    """Print the table."""
    go_on = ThoroughLook.go_on
    say("brokers", "submissions", "looks", "longest, s", "slices", "longest, s")
    say("---:", "---:", "---:", "---:", "---:", "---:")
    for brokers, jobs in TOWNS:
        looks: list[float] = []
        slices: list[float] = []
        with (
            patch.object(machine, "look", timed(look, looks)),
            patch.object(ThoroughLook, "go_on", timed(go_on, slices)),
        ):
            drawn(1, brokers=brokers, jobs=jobs).run(UNTIL_S)
        longest = [f"{max(some, default=0.0):.2f}" for some in (looks, slices)]
        say(brokers, jobs, len(looks), longest[0], len(slices), longest[1])


def say(*cells: object) -> None:
    """A row of a table."""
    sys.stdout.write(f"| {' | '.join(str(cell) for cell in cells)} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
