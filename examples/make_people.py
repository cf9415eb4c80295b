"""Draws the synthetic example: people who pass doors with two light beams each.

Owns the day that is drawn. Nothing in it was measured. Invariant: the same seed gives the same
file, byte for byte.

    python examples/make_people.py
"""  # noqa: INP001  (a script, run by hand)

import gzip
import io
import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent

SEED = 20240304
DAY_BEGINS_MS = 1_709_539_200_000  # 2024-03-04 08:00 UTC, a Monday
MINUTE_MS = 60_000
DAY_MINUTES = 600
# At one door nobody follows sooner, so that what the beams saw has but one meaning.
SPACING_MS = 6_000
ROOM_OF = {"canteen-main": "canteen", "library-north": "library", "library-south": "library"}


@dataclass(frozen=True)
class Passage:
    """One person at one door: `way` is in, out or back (came to the door and turned round)."""

    at_ms: int
    door: str
    way: str


def intended(dice: random.Random) -> list[Passage]:
    """Who wants to pass when: visits all day, and crowds in the canteen at ten and at noon."""
    passages = []
    for door in ROOM_OF:
        for _ in range(70):
            come = dice.uniform(0, DAY_MINUTES - 60)
            stay = dice.uniform(5, 55)
            passages += [(come, door, "in"), (come + stay, door, "out")]
        passages += [(dice.uniform(0, DAY_MINUTES), door, "back") for _ in range(9)]
    for begins, crowd, stays in ((120, 24, 22), (240, 30, 38), (300, 18, 75)):
        for _ in range(crowd):
            passages.append((begins + dice.uniform(0, 4), "canteen-main", "in"))
            passages.append((begins + stays + dice.uniform(0, 4), "canteen-main", "out"))
    return [
        Passage(DAY_BEGINS_MS + int(minute * MINUTE_MS), door, way)
        for minute, door, way in sorted(passages)
    ]


def one_after_the_other(passages: list[Passage]) -> list[Passage]:
    """The same with everyone waiting until the door is free."""
    free_ms = dict.fromkeys(ROOM_OF, 0)
    passed = []
    for passage in passages:
        at_ms = max(passage.at_ms, free_ms[passage.door])
        free_ms[passage.door] = at_ms + SPACING_MS
        passed.append(Passage(at_ms, passage.door, passage.way))
    return passed


def beams(passage: Passage, dice: random.Random) -> list[tuple[int, str, str]]:
    """What the door's beams see of it: (time, door, side)."""
    first, second = {"in": ("outer", "inner"), "out": ("inner", "outer")}.get(
        passage.way, ("outer", "outer")
    )
    gap_ms = dice.randint(800, 2500) if passage.way == "back" else dice.randint(300, 900)
    return [
        (passage.at_ms, passage.door, first),
        (passage.at_ms + gap_ms, passage.door, second),
    ]


def day(seed: int = SEED) -> tuple[list[Passage], list[dict[str, object]]]:
    """Who passed, and the events of the day in order of time."""
    dice = random.Random(seed)
    passages = one_after_the_other(intended(dice))
    seen = sorted(beam for passage in passages for beam in beams(passage, dice))
    numbers = dict.fromkeys(ROOM_OF, 0)
    events: list[dict[str, object]] = []
    for at_ms, door, side in seen:
        numbers[door] += 1
        events.append(
            {
                "type": "Beam",
                "id": f"{door}-{numbers[door]:04}",
                "source": door,
                "location": f"campus/{ROOM_OF[door]}",
                "timestamp": at_ms,
                "side": side,
            }
        )
    return passages, events


def main() -> None:
    """Writes data/people.jsonl.gz."""
    _, events = day()
    text = "".join(json.dumps(event) + "\n" for event in events)
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=9, mtime=0) as out:
        out.write(text.encode())
    path = HERE / "data" / "people.jsonl.gz"
    path.write_bytes(packed.getvalue())
    sys.stdout.write(f"{path.name}: {len(events)} events, {len(packed.getvalue())} bytes\n")


if __name__ == "__main__":
    main()
