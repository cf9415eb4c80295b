"""What is told of the state that a window may hold is true of agents at work."""

from __future__ import annotations

import random
from typing import Any

import pytest

from broker.core.window_hold import Load, StateBound, state_bound
from broker.core.window_shape import WindowLimits
from tests.broker.core.window_support import CLASSES, agent_of, task_of

WINDOWS = [
    *("every 700 ms", "every 2 s range 2 s", "every 700 ms range 3 s", "every 3 s range 500 ms"),
    *("range 300 ms", "range 4 s", "session 400 ms max 2 s", "session 400 ms"),
    'every 1 day in "Europe/Zurich"',
]
OPERANDS = ["A", "distinct(i) A", "A and outer B", "outer distinct A and outer B"]
ASSIGNS = ["n = Count(A)", "n = Count(A), m = Median(A.x), c = CountDistinct(A.i)"]


def text_of(window: str, operand: str, assign: str) -> str:
    declared = "x: float, i: int, s: text, g: text"
    names = ", ".join(part.split(" = ")[0].strip() for part in assign.split(","))
    return (
        f"event A({declared})\nevent B({declared})\ndefine W({names}) aggr {window}\n"
        f"detect {operand} assign {assign} group by g\n"
        "subscription S seq 1 from tester to out\ndetect W\n"
    )


def bound_of(text: str, load: Load, limits: WindowLimits | None = None) -> StateBound:
    task = task_of(text)
    return state_bound(task, task.node.cases[0], limits or WindowLimits(), load)  # type: ignore[union-attr]


def bursts(draw: random.Random, name: str, rate: int, keys: int) -> list[Any]:
    """As many as a rate allows: no more than so many within any second, often all at once."""
    at, ends, made = 0, [-10_000] * rate, []
    for number in range(60):
        at = max(at + draw.choice([0, 0, 1, 40, 400]), ends[-rate] + 1_000)
        ends.append(at)
        fields = {"a_i": number, "a_x": 1.0, "a_g": "uvw"[number % keys]}
        made.append(CLASSES[name](id=f"{name}{number}", start=at, end=at, **fields))
    return made


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("assign", ASSIGNS)
def test_no_agent_holds_more_than_was_told(window: str, operand: str, assign: str):
    """In bursts, over few or many groups, with the watermark as late as the lag."""
    text = text_of(window, operand, assign)
    limits = {"events_max": 10_000, "groups_max": 1_000, "duration_max_ms": 0}
    for seed in range(6):
        draw = random.Random(seed)
        rate, keys = draw.randint(1, 8), draw.randint(1, 3)
        lag_ms = draw.choice([1, 10, 999, 1_000, 2_500])
        load = Load({"A": rate, "B": rate}, lag_ms, keys)
        bound = bound_of(text, load, WindowLimits(**limits))
        agent = agent_of(text, **limits)
        events = [*bursts(draw, "A", rate, keys), *bursts(draw, "B", rate, keys)]
        leaves = {"A": 0, "B": 1} if " B" in operand else {"A": 0}
        for event in sorted(events, key=lambda event: event.end):
            leaf = leaves.get(event.event_type)
            agent.feed([] if leaf is None else [(leaf, [event])], event.end - lag_ms)
            assert agent.held() <= bound.counted + bound.partials
        assert not any(count for reason, count in agent.dropped().items() if "ids" not in reason)


@pytest.mark.parametrize(
    ("window", "assign", "load", "text"),
    [
        # Twice the range (what silent groups hold is swept as seldom as that), and what waits.
        ("range 10 s", ASSIGNS[0], Load({"A": 20}, 2_000, 3), "440 events and 3 partial results"),
        (
            "session 10 s",
            ASSIGNS[1],
            Load({"A": 20}, 0, 1),
            "1,002,176 events and 1 partial result (by events_held_max)",
        ),
        (
            "range 10 s",
            ASSIGNS[0],
            Load({"A": 1}, 0),
            "20 events and 100,000 partial results (by groups_max)",
        ),
    ],
)
def test_it_is_told_in_words(window: str, assign: str, load: Load, text: str):
    assert bound_of(text_of(window, "A", assign), load).text() == f"at most {text}"


def test_what_waits_for_ticks_is_bounded_by_the_limit():
    text = text_of("every 10 s", "A", "n = A.i").replace("aggr ", "")
    bound = bound_of(text, Load({"A": 1}, 0), WindowLimits(events_max=70))
    assert bound.text() == "at most 70 events and 0 partial results (by events_held_max)"


def test_more_of_anything_never_needs_less():
    for window in WINDOWS:
        text = text_of(window, OPERANDS[3], ASSIGNS[1])
        bounds = [
            bound_of(text, Load({"A": rate, "B": rate}, lag_ms, keys))
            for rate, lag_ms, keys in ((1, 0, 1), (2, 0, 1), (2, 3_000, 1), (2, 3_000, 5))
        ]
        events = [bound.events for bound in bounds]
        assert events == sorted(events)
        partials = [bound.partials for bound in bounds]
        assert partials == sorted(partials)
