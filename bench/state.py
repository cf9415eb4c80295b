"""What the engine holds: a burst of candidates for a list, and memory over ten million events.

Owns both loads. Must not know how agents keep their state. Invariant: every pattern of the long
stream holds events or partial matches all the time and none is ever complete.

    python -m bench.state [--quick] [--repeats N] [--json]
"""

import gc
import sys
from statistics import median
from time import perf_counter_ns, process_time

from bench.report import Goal, Options, Report, Table, run
from bench.resident import alone, resident_mb
from bench.workload import DECLARED, HEAD, TEXTS, as_event, workload
from headwater import Engine

CANDIDATES = (12, 20, 50, 200)
BURSTS = 200
BURST_US_MAX = 999.0
MILLION = 1_000_000
SLICE = 50_000
BATCH = 1_000
GROWTH_MB_MAX = 4.0  # half a million readings would be some hundred

# None is ever complete: no value is above 100, no mean either.
NEVER = {
    "sequence with a list": "Motion then Door+ then Temperature(value > 100) within 60 s",
    "sequence, first": "[first] Motion then Door then Temperature(value > 100) within 60 s",
    "sequence, recent": "[recent] Motion then[..5 s] Door then[..30 s] Power(value > 100)",
    "pairs, chronicle": "Humidity as h then[..30 s, chronicle] Light as l where h.value > 100",
    "any order": "Humidity and Light and Power(value > 100) within 10 s",
    "without": "(Motion as m then Light as l within 60 s) without Power where m.value > 100",
    "gaps": "Carbon+[900 ms..1100 ms] as c within 10 mins where Count(c) > 50",
    "repeats": "Light{3} as c within 60 s where Sum(c.value) > 1000",
}
WINDOWS = {
    "Mean": "aggr every 5 mins",
    "Moving": "aggr every 10 s range 60 s",
    "Each": "aggr range 60 s",
    "Session": "aggr session 5 s max 2 mins",
}


def text_of_never() -> str:
    """All of them in one specification, each by location."""
    lines = [DECLARED]
    for name, window in WINDOWS.items():
        lines.append(f"define {name}(mean) {window} detect Temperature")
        lines.append("assign mean = Median(Temperature.value) group by location")
    details = [f"detect{'' if text[0] == '[' else ' '}{text}" for text in NEVER.values()]
    details += [f"detect {name}(mean > 100)" for name in WINDOWS]
    for number, detect in enumerate(details):
        head = HEAD.replace("S ", f"S{number} ", 1)
        by = " group by location" if number < len(NEVER) else ""
        lines.append(f"{head}{detect}{by}")
    return "\n".join(lines)


def memory(events: int) -> tuple[list[float], float]:
    """Megabytes resident after each tenth, and seconds of CPU for it all."""
    engine = Engine(text_of_never())
    found = []
    rows = workload(SLICE)  # again and again, each time later
    step_ms = rows[-1][1] - rows[0][1] + 20
    began = process_time()
    for turn in range(events // SLICE):
        made = [
            as_event((kind, at_ms + turn * step_ms, place, value, f"{turn}-{name}"))
            for kind, at_ms, place, value, name in rows
        ]
        for start in range(0, SLICE, BATCH):
            if engine.push(made[start : start + BATCH]):
                raise RuntimeError("there was a result")
        if (turn + 1) * SLICE % (events // 10) == 0:
            del made
            found.append(resident_mb())
    return found, process_time() - began


def burst(candidates: int) -> tuple[float, float, int]:
    """Microseconds of all of a burst and of what completes it; how many results."""
    engine = Engine(DECLARED + TEXTS["sequence with a list"])
    whole, last, results = [], [], 0
    for number in range(BURSTS):
        at_ms = 1_700_000_000_000 + number * 1_000_000
        rows = [("Motion", at_ms, "hall", 1.0, f"m{number}")]
        rows += [
            ("Door", at_ms + n, "hall", 1.0, f"d{number}-{n}") for n in range(1, candidates + 1)
        ]
        events = [as_event(row) for row in rows]
        end_ms = at_ms + candidates + 1
        # What ends at one instant with a door might come later: the next instant decides.
        end = [
            as_event(("Temperature", end_ms, "hall", 31.0, f"t{number}")),
            as_event(("Power", end_ms + 1, "hall", 1.0, f"p{number}")),
        ]
        gc.disable()  # of others' garbage nothing is to be told here
        began = perf_counter_ns()
        engine.push(events)
        closing = perf_counter_ns()
        found = engine.push(end)
        ended = perf_counter_ns()
        gc.enable()
        if len(found) != 1 or len(found[0]["events"]["Door"]) != candidates:
            raise RuntimeError(f"{len(found)} results of {candidates} candidates")
        whole.append((ended - began) / 1e3)
        last.append((ended - closing) / 1e3)
        results += len(found)
    return median(whole), median(last), results


def report(options: Options) -> Report:
    """Both."""
    bursts = [(count, *burst(count)) for count in CANDIDATES]
    events = MILLION if options.quick else 10 * MILLION
    sizes, seconds = alone(memory, events)
    growth = max(sizes[5:]) - sizes[4]
    fifty = next(last for count, _, last, _ in bursts if count == 50)
    return Report(
        "What the engine holds",
        [
            Table(
                "one motion, so many doors, one high temperature: the list of all doors",
                ["candidates", "subsets", "whole burst, µs", "its end, µs"],
                [
                    [f"{count}", f"{2.0**count - 1:.3g}", f"{whole:.0f}", f"{last:.0f}"]
                    for count, whole, last, _ in bursts
                ],
            ),
            Table(
                f"{events:,} events through {len(NEVER) + len(WINDOWS)} patterns without results",
                ["events", "resident, MB"],
                [[f"{(n + 1) * events // 10:,}", f"{size:.1f}"] for n, size in enumerate(sizes)],
            ),
        ],
        [
            Goal("completing a list of 50 candidates", BURST_US_MAX, [fifty], " µs"),
            Goal(
                "growth of memory in the second half of the events", GROWTH_MB_MAX, [growth], " MB"
            ),
        ],
        [
            f"Medians of {BURSTS} bursts through `headwater.Engine`, from events to results.",
            f"{seconds:.0f} s of CPU for the {events:,} events, their making included.",
        ],
    )


if __name__ == "__main__":
    sys.exit(run(__doc__, report))
