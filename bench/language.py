"""What reading, checking and graphing of specifications cost.

Owns the texts and the figures. Must not know brokers. Invariant: each submission is a text of its
own, with the declarations that it needs; no two are equal, so that nothing can be remembered.

    python -m bench.language [--quick] [--repeats N] [--json]
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from time import process_time

from bench.report import Goal, Options, Report, Table, run
from language import TaskGraph, check_text, format_text
from language.check import check
from language.diagnostics import Collector
from language.reading.parser import parser, read

GOAL_S = 2.0
SUBMISSIONS = 1_000
TYPES = ("AirTemp", "Humidity", "WindSpeed", "Rain", "SoilMoisture")
DECLARED = "".join(f"event {name}(value: float, quality: int)\n" for name in TYPES)
COLD = "from language import check_text; check_text('event A()')"


def plain(seeded: random.Random, number: int) -> str:
    """Ranges of three to five types at one place, within a time and a distance."""
    operands = []
    for name in seeded.sample(TYPES, seeded.randint(3, 5)):
        low = round(seeded.uniform(-20, 20), 2)
        operands.append(f"{name}({low} <= value < {low + 5:.2f}, quality > 2)")
    pattern = "\n   and ".join(operands)
    return (
        f"subscription Range{number} seq 1 from user-{number % 50} to alerts\n"
        f"detect {pattern}\n   within {seeded.randint(1, 30)} mins spread 10 km\n"
        f'   in path("area-{seeded.randrange(100)}")\n'
    )


def composed(seeded: random.Random, number: int) -> str:
    """A windowed definition, a sequence with a bound over it, values and a key."""
    name = seeded.choice(TYPES)
    return (
        f"define Mean{number}(location, mean) aggr every {seeded.randint(1, 60)} mins\n"
        f"  detect {name}(quality > 2) as reading\n"
        "  assign location = group.location, mean = Avg(reading.value)\n"
        "  group by location\n\n"
        f"subscription Rise{number} seq 1 from user-{number % 50} to heating\n"
        f"detect Mean{number}(mean < {seeded.randint(1, 9)}) as low\n"
        f"   then[..{seeded.randint(1, 9)} h, recent] Mean{number}(mean > 10) as high\n"
        "   where high.mean >= low.mean + 5\n"
        "assign place = group.location, rise = high.mean - low.mean\n"
        "consuming low\ngroup by location\n"
    )


def submissions(count: int) -> list[str]:
    """Texts that each declare what they need; every other one has a definition."""
    seeded = random.Random(7)
    kinds = (plain, composed)
    return [DECLARED + kinds[number % 2](seeded, number) for number in range(count)]


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    began = process_time()
    work()
    return process_time() - began


def stages(texts: list[str]) -> dict[str, float]:
    """CPU seconds of each stage over all texts."""
    found = {}
    collector = Collector()
    readings = []
    found["read"] = seconds(lambda: readings.extend(read(text, collector) for text in texts))
    made = [0]

    def judged() -> None:
        for reading in readings:
            specification = check(reading, collector, {})
            assert specification is not None
            made[0] += len(specification.graph.tasks)

    found["check and graph"] = seconds(judged)
    assert made[0] >= len(texts)
    found["format"] = seconds(lambda: [format_text(text) for text in texts])
    return found


def megabytes(texts: list[str]) -> float:
    """Memory of the checked specifications: trees, types and graphs."""
    tracemalloc.start()
    graphs: list[TaskGraph] = [check_text(text).demand().graph for text in texts]
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(graphs) == len(texts)
    return size / 1e6


def cold_s() -> float:
    """CPU seconds of a process that checks one line: interpreter, lark and the parser's tables."""
    script = f"import time; {COLD}; print(time.process_time())"
    done = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, check=True, text=True
    )
    return float(done.stdout)


def report(options: Options) -> Report:
    """The medians, of submissions one by one and of one text with all of it."""
    repeats = options.times(5)
    texts = submissions(100 if options.quick else SUBMISSIONS)
    parser()
    whole = DECLARED + "".join(text.removeprefix(DECLARED) for text in texts)
    rows, totals = [], []
    for name, given in (("a text each", texts), ("one text", [whole])):
        found = [stages(given) for _ in range(repeats)]
        median = {stage: statistics.median(one[stage] for one in found) for stage in found[0]}
        total = median["read"] + median["check and graph"]
        totals.append(total * SUBMISSIONS / len(texts))
        size = f"{sum(map(len, given)):,}"
        figures = [f"{value:.2f}" for value in (*median.values(), total)]
        rows.append([name, size, *figures, f"{megabytes(given):.1f}"])
    columns = ["", "characters", "read, s", "check and graph, s", "format, s", "to graph, s", "MB"]
    first = f"A process that checks its first line takes {cold_s():.2f} s"
    notes = [
        "CPU seconds; to graph is read, check and graph. Every other submission has a definition.",
        f"{first}, the making of the parser included.",
    ]
    goal = Goal("1,000 submissions read, checked and graphed", GOAL_S, totals, " s")
    title = f"{len(texts):,} specifications"
    return Report("The language", [Table(title, columns, rows)], [goal], notes)


if __name__ == "__main__":
    sys.exit(run(__doc__, report))
