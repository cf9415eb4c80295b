"""The experiments of paper 004 on the engine: basic events in the place of readings.

Owns the generator of readings, the formula, and the page's figures. Must not know brokers.
Invariant: the same seed gives the same figures, whatever the machine.

    python -m experiments.rfid [--seed N] [--seconds S] [--page docs/papers-rfid.md]

Readers report every tag that they see once each read cycle. A basic event is a stay of a tag at a
reader, from its first reading to its last; a complex event is a stay at one reader and then one at
another. The paper counts all three, for people who move and for devices that do not.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import headwater
from experiments.figures import show_figures, table_lines

CYCLE_S: Final = 1  # the paper's rc
READERS: Final = 4
# LR(E1) = 1 and LR(E2) = 2 are the paper's; that both are of one tag it leaves to the reader.
TEXT: Final = """
event TagRead(tagID: text, readerID: text)

define Stay(tagID, readerID) aggr session {cycle} s max {longest} s
  detect TagRead as r
  assign tagID = group.tagID, readerID = group.readerID
  group by tagID, readerID

subscription Basic seq 1 from paper to paper detect Stay as stay

subscription Moved seq 1 from paper to paper
  detect[chronicle] Stay(readerID = "1") as left then[1 s..60 s] Stay(readerID = "2") as came
    consuming left, came
  group by tagID
"""
# The paper's three tables: events of a type at a second, and what is to come out of them.
OPERATORS: Final = (
    (
        "SEQ, 2 s to 2.5 s",
        "detect[chronicle] E1 as a then[2 s..2500 ms] E2 as b",
        (("①", "E1", 1.0), ("②", "E2", 2.0), ("③", "E1", 2.0), ("④", "E2", 3.2)),
        "①, ④",
    ),
    (
        "NLoop, 4 times",
        "detect (E1 as a){4}",
        (("①", "E1", 1.0), ("②", "E1", 2.0), ("③", "E1", 3.0), ("④", "E1", 4.0)),
        "①, ②, ③, ④",
    ),
    (
        "TLoop, 0.9 s to 1.1 s",
        "detect (E1 as a)+[900 ms..1100 ms]",
        (("①", "E1", 1.0), ("②", "E1", 2.0), ("③", "E1", 3.0), ("④", "E1", 4.0)),
        "①, ②, ③, ④",
    ),
)


@dataclass(frozen=True)
class RfidSetting:
    """A scenario: `tags` are read each cycle, each with this chance by the reader of before."""

    name: str
    tags: int
    stay: float
    longest_s: int = 60

    def expected(self) -> float:
        """Return the basic events of a second, by the paper's formula."""
        ratio = self.longest_s / CYCLE_S
        return self.stay * self.tags / ratio + (1 - self.stay) * self.tags

    def bounded(self) -> float:
        """Return the same for stays that end when the tag moves or the limit is reached.

        Each cycle a stay goes on with the chance `stay`, but for `longest_s` at most: a basic event
        holds (1 − stay^L) / (1 − stay) readings in the mean, L being the readings that fit.
        """
        fit = self.longest_s // CYCLE_S + 1
        held = fit if self.stay == 1 else (1 - self.stay**fit) / (1 - self.stay)
        return self.tags / held


SETTINGS: Final = (
    RfidSetting("people, figure 6", 18, 0.5),
    RfidSetting("devices as written, figure 7", 120, 0.0),
    RfidSetting("devices that stay", 120, 1.0),
    RfidSetting("people, T = 10 s", 18, 0.9, 10),
    RfidSetting("people, T = 60 s", 18, 0.9, 60),
)


def readings(setting: RfidSetting, seconds: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the readings of a scenario, in the order of their times."""
    draw = random.Random(f"{seed} {setting}")
    place = {tag: draw.randrange(READERS) for tag in range(setting.tags)}
    for second in range(0, seconds, CYCLE_S):
        for tag in range(setting.tags):
            if second and draw.random() >= setting.stay:
                place[tag] = (place[tag] + draw.randrange(1, READERS)) % READERS
            yield {
                "type": "TagRead",
                "id": f"{second}-{tag}",
                "timestamp": 1000 * (second + 1),
                "tagID": f"t{tag}",
                "readerID": str(place[tag] + 1),
            }


def counted(setting: RfidSetting, seconds: int, seed: int) -> dict[str, list[int]]:
    """Return the ends of readings, basic and complex events, in ms, and the bytes of each."""
    text = TEXT.format(cycle=CYCLE_S, longest=setting.longest_s)
    engine = headwater.Engine(text, lateness_ms=None)
    events = list(readings(setting, seconds, seed))
    results = []
    for begin in range(0, len(events), 1000):
        results += engine.push(events[begin : begin + 1000])
    results += engine.finish()
    ends = {"readings": [event["timestamp"] for event in events], "Basic": [], "Moved": []}
    sizes = {"readings": sum(len(json.dumps(event)) for event in events), "Basic": 0, "Moved": 0}
    for result in results:
        ends[result["subscription"]].append(result["end"])
        values = {**result["values"].get("stay", {}), "start": result["start"]}
        sizes[result["subscription"]] += len(json.dumps({**values, "end": result["end"]}))
    return {**ends, "bytes": list(sizes.values())}


def operators() -> Iterator[list[str]]:
    """Yield each of the paper's tables with what comes out of it here."""
    for name, pattern, events, wanted in OPERATORS:
        text = f"event E1()\nevent E2()\nsubscription E seq 1 from paper to paper {pattern}\n"
        engine = headwater.Engine(text, lateness_ms=None)
        engine.push(
            [
                {"type": kind, "id": mark, "timestamp": round(1000 * second)}
                for mark, kind, second in events
            ]
        )
        results = engine.finish()
        came = "; ".join(
            ", ".join(mark for marks in result["events"].values() for mark in marks)
            for result in results
        )
        given = ", ".join(f"{mark} {kind} at {second:g}" for mark, kind, second in events)
        yield [name, given, wanted, came]


def page(seconds: int, seed: int) -> str:
    """Return the tables of the page."""
    lines = [f"{seconds} s of each scenario, {READERS} readers, rc = {CYCLE_S} s, seed {seed}.", ""]
    lines += ["### Figures 6 and 7: events so far", ""]
    rows, curves = [], []
    for setting in SETTINGS:
        counts = counted(setting, seconds, seed)
        primitive, basic = len(counts["readings"]), len(counts["Basic"])
        share = f"{100 * (1 - basic / primitive):.1f} %"
        sizes = counts["bytes"]
        rows.append(
            [
                *(setting.name, str(setting.tags), f"{setting.stay:g}", str(setting.longest_s)),
                *(f"{each:.2f}" for each in (setting.expected(), setting.bounded())),
                *(f"{basic / seconds:.2f}", share, f"{100 * (1 - sizes[1] / sizes[0]):.1f} %"),
            ]
        )
        if setting in SETTINGS[:3]:
            for second in range(seconds // 5, seconds + 1, seconds // 5):
                so_far = [
                    sum(end <= 1000 * second for end in counts[kind])
                    for kind in ("readings", "Basic", "Moved")
                ]
                curves.append([setting.name, str(second), *(f"{count:,}" for count in so_far)])
    lines += table_lines(["scenario", "s", "primitive", "basic", "complex"], curves)
    lines += ["", "### The formula", ""]
    head = ["scenario", "N", "τ", "T, s", "E", "runs", "here", "fewer events", "fewer bytes"]
    lines += table_lines(head, rows)
    lines += ["", "### The tables of the operators", ""]
    lines += table_lines(["operator", "events", "the paper", "here"], list(operators()))
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print the tables, or put them into the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--page", type=Path, help="write the figures into this page")
    options = parser.parse_args()
    show_figures(page(options.seconds, options.seed), options.page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
