"""Runs laboratory.hw on real temperature and humidity, with people and pictures that are made up.

Owns the made events. Nothing of Tracking and Video was measured: both are drawn by a seed, a frame
is a few bytes in place of 216 × 144. Temperature and humidity are those of ../data/steam.csv.gz
(attribution and licence: ../data/README.md), four motes in a room each. Invariant: the same results
each time.

    python examples/placement/replay_laboratory.py
"""  # noqa: INP001  (a script, run by hand)

import csv
import gzip
import json
import sys
from pathlib import Path
from random import Random
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

import headwater  # noqa: E402
from broker.own_functions import load_functions  # noqa: E402

Event = dict[str, Any]

ROOMS = ("hall", "office", "meeting", "kitchen")
TYPES = {"temperature": "Temp", "humidity": "Humid"}
VISITS_EACH = 6
STAY_MS = (120_000, 900_000)


def measured() -> list[Event]:
    """The readings of the four motes, a room for each."""
    found: list[Event] = []
    rooms: dict[str, str] = {}
    path = HERE.parent / "data" / "steam.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file)):
            room = rooms.setdefault(row["mote"], ROOMS[len(rooms) % len(ROOMS)])
            found.append(
                {
                    "type": TYPES[row["attribute"]],
                    "id": f"r{number}",
                    "source": f"th-{row['mote']}",
                    "location": f"lab/{room}",
                    "timestamp": int(row["timestamp_ms"]),
                    "val": float(row["value"]),
                }
            )
    return found


def made(first_ms: int, last_ms: int, random: Random) -> list[Event]:
    """People who come from the street into a room and leave, and frames of the hall's camera."""
    found: list[Event] = []
    for room in ROOMS:
        for visit in range(VISITS_EACH):
            comes = random.randrange(first_ms, last_ms)
            leaves = comes + random.randrange(*STAY_MS)
            for direction, at in ((1, comes), (0, leaves)):
                # 1: from left to right. The room lies to the right of its sensor.
                found.append(
                    {
                        "type": "Tracking",
                        "id": f"{room}-{visit}-{direction}",
                        "source": f"tracking-{room}",
                        "timestamp": at,
                        "direction": direction,
                        "left": "street",
                        "right": f"lab/{room}",
                    }
                )
    for number, at in enumerate(range(first_ms, last_ms, 30_000)):
        frame = bytes(random.choices((7, 255), k=256))
        video = {"type": "Video", "id": f"v{number}", "source": "camera", "timestamp": at}
        found.append({**video, "location": "lab/hall", "frame": frame})
    return found


def results() -> list[Event]:
    """What the three subscriptions report."""
    readings = measured()
    times = [event["timestamp"] for event in readings]
    events = readings + made(min(times), max(times), Random(6))
    text = (HERE / "laboratory.hw").read_text(encoding="utf-8")
    functions = load_functions(str(HERE / "laboratory_functions.py"))
    engine = headwater.Engine(text, lateness_ms=None, functions=functions)
    return [*engine.push(events), *engine.finish()]


if __name__ == "__main__":
    for result in results():
        shown = {key: result[key] for key in ("subscription", "group", "values")}
        sys.stdout.write(json.dumps(shown) + "\n")
