"""Accepted texts with windows, also of windows' events; events come with gaps up to days."""

import random
from collections.abc import Iterator
from typing import Any

from language import check_text

DECLARED = "event Temp(val: float, place: text)\nevent Key(val: float)\n"
WINDOWS = (
    "every {step}",
    "every {step}",
    "every {step} range {reach}",
    "every {step} range {reach}",
    "every {step} range {reach}",
    "range {reach}",
    "session {step}",
    "session {step} max {reach}",
    'every 1 days in "Europe/Zurich"',
    'every 1 days in "Europe/Zurich" range 30 days',
)
STEPS = ("1 ms", "7 ms", "100 ms", "1 s", "1 s", "1 min", "1 hour")
REACHES = ("10 ms", "90 ms", "10 s", "10 s", "1 min", "1000 s", "1 day")
FUNCTIONS = ("Sum", "Avg", "StdDev", "Min", "Last", "Median", "CountDistinct", "Quantile")
GAPS_MS = (0, 0, 0, 0, 0, 0, 1, 1, 10, 10, 100, 1_000, 1_000, 10_000, 60_000, 3_600_000)
DAY_MS = 86_400_000


def _definition(draw: random.Random, name: str, below: list[str]) -> str:
    kind = draw.choice(below)
    value = "a.val"
    function = draw.choice(FUNCTIONS)
    of = f"{value}, 0.9" if function == "Quantile" else value
    window = draw.choice(WINDOWS).format(step=draw.choice(STEPS), reach=draw.choice(REACHES))
    operands = f"{kind} as a"
    if draw.random() < 0.15:
        operands += f" and {draw.choice(below)} as b"
    group = "group by source\n" if kind in {"Temp", "Key"} and draw.random() < 0.5 else ""
    head = f"define {name}(val) aggr {window}\ndetect {operands}\n"
    return f"{head}assign val = {function}({of})\n{group}"


def text_of(seed: int) -> str:
    """Return a text that is accepted."""
    draw = random.Random(f"windows {seed}")
    while True:
        below, lines = ["Temp", "Temp", "Key"], []
        for at in range(draw.randint(1, 3)):
            lines.append(_definition(draw, f"M{at}", below))
            below += [f"M{at}"] * 3
        top = f"M{len(lines) - 1}"
        body = draw.choice(
            (
                f"{top} as x",
                f"{top} as x",
                f"{top} as x then {draw.choice(below)} as y within 1 min",
            )
        )
        text = f"{DECLARED}{''.join(lines)}subscription Wild seq 1 from me to x\ndetect {body}\n"
        if check_text(text).specification is not None:
            return text


def events_of(seed: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield events in order: of few or many sources, now and then behind a day's silence."""
    draw = random.Random(f"events {seed}")
    sources = draw.choice((1, 3, 30, 1_000))
    now_ms = 1_700_000_000_000
    for at in range(count):
        now_ms += DAY_MS if draw.random() < 2 / count else draw.choice(GAPS_MS)
        kind = draw.choice(("Temp", "Temp", "Key"))
        event = {"type": kind, "timestamp": now_ms, "val": float(draw.randint(0, 9))}
        yield {**event, "source": f"s{at % sources}", "place": "hall"}
