"""What a bench hands back, and how it is shown: tables, goals, the machine.

Owns the form of a report as text, JSON and Markdown. Must not know what is measured. Invariant: a
goal is shown with every value that it is judged by, and is met only if all of them keep it.
"""

import argparse
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from broker.engine import native


class Table(msgspec.Struct, frozen=True):
    """Figures under their columns' names; a row's first cell says what it is."""

    title: str
    columns: list[str]
    rows: list[list[str]]


class Goal(msgspec.Struct, frozen=True):
    """At most (or at least) `limit`, for each value; without any it was not measured, and why."""

    text: str
    limit: float
    values: list[float]
    unit: str = ""
    why_not: str = ""
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether all values keep the goal."""
        return bool(self.values) and self._kept() == len(self.values)

    def _kept(self) -> int:
        if self.at_least:
            return sum(value >= self.limit for value in self.values)
        return sum(value <= self.limit for value in self.values)

    def told(self) -> str:
        """What is wanted."""
        return f"{'≥' if self.at_least else '≤'} {_figure(self.limit)}{self.unit}"

    def reached(self) -> str:
        """The values' range."""
        if not self.values:
            return f"not measured: {self.why_not}"
        low, high = (_figure(value) for value in (min(self.values), max(self.values)))
        return (low if low == high else f"{low} to {high}") + self.unit

    def verdict(self) -> str:
        """One word, or how many of the values keep it."""
        if not self.values:
            return "-"
        if self.met:
            return "met"
        return f"missed in {len(self.values) - self._kept()} of {len(self.values)}"


class Report(msgspec.Struct, frozen=True):
    """What one bench found. `notes` say what has to be known to read it."""

    title: str
    tables: list[Table]
    goals: list[Goal] = []
    notes: list[str] = []


def _figure(value: float) -> str:
    return f"{value:.0f}" if value >= 20 else f"{value:.2f}"


# --- showing ----------------------------------------------------------------------------------


def columns_of(columns: list[str], rows: list[list[str]]) -> list[str]:
    """Lines in which the first column is to the left and the others are to the right."""
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]

    def line(cells: list[str]) -> str:
        rest = (f"{cell:>{width}}" for cell, width in zip(cells[1:], widths[1:], strict=True))
        return "  ".join([f"{cells[0]:<{widths[0]}}", *rest]).rstrip()

    return [line(columns), *map(line, rows)]


def as_text(report: Report) -> str:
    """The report for a terminal."""
    lines = []
    for table in report.tables:
        lines += ["", table.title, *(f"  {line}" for line in columns_of(table.columns, table.rows))]
    lines += [""] if report.notes else []
    lines += [f"  {note}" for note in report.notes]
    return "\n".join([report.title, *lines])


def goals_table(reports: list[Report]) -> Table:
    """All goals with what was reached."""
    rows = [
        [goal.text, goal.told(), goal.reached(), goal.verdict()]
        for report in reports
        for goal in report.goals
    ]
    return Table("Goals", ["", "goal", "reached", ""], rows)


def as_markdown(reports: list[Report], where: list[str]) -> str:
    """All reports as a part of a page, goals first."""
    parts = ["\n".join(f"- {line}" for line in where)]
    goals = goals_table(reports)
    for title, tables, notes in [
        *([("Goals", [goals], [])] if goals.rows else []),
        *((report.title, report.tables, report.notes) for report in reports),
    ]:
        parts.append(f"### {title}")
        for table in tables:
            if table.title and table.title != title:
                parts.append(f"**{table.title}**")
            parts.append(_markdown(table))
        parts += notes
    return "\n\n".join(parts)


def _markdown(table: Table) -> str:
    ruler = ["---", *("---:" for _ in table.columns[1:])]
    return "\n".join(
        "| " + " | ".join(cells) + " |" for cells in (table.columns, ruler, *table.rows)
    )


def machine() -> list[str]:
    """What the figures were taken on, and when."""
    cores = os.cpu_count()
    load = f"load average {os.getloadavg()[0]:.1f} when the measuring began"
    if niceness := os.nice(0):
        load += f", niceness {niceness}"
    passes = "Python alone" if native.passes is None else "with compiled passes"
    return [
        f"{_cpu_model()}, {cores} cores ({platform.machine()}), {platform.system()}",
        f"{platform.python_implementation()} {platform.python_version()}, {passes}",
        f"{time.strftime('%Y-%m-%d', time.gmtime())}; {load}",
    ]


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith(("model name", "Model")):
            return line.partition(":")[2].strip()
    return platform.processor() or "an unknown processor"


# --- the command line of a bench --------------------------------------------------------------


class Options(msgspec.Struct, frozen=True):
    """How thoroughly to measure: `repeats` None leaves that to the bench."""

    quick: bool = False
    repeats: int | None = None

    def times(self, usual: int) -> int:
        """How often, where a bench usually repeats so often."""
        return self.repeats or (1 if self.quick else usual)


def parser(about: str | None) -> argparse.ArgumentParser:
    """The options that all benches have."""
    made = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    made.add_argument("--quick", action="store_true", help="a short look: less, and once")
    made.add_argument("--repeats", type=int, metavar="N", help="repeat so often")
    made.add_argument("--json", action="store_true", help="the report as JSON")
    return made


def run(about: str | None, measure: Callable[[Options], Report]) -> int:
    """Be a bench's command."""
    arguments = parser(about).parse_args()
    report = measure(Options(arguments.quick, arguments.repeats))
    if arguments.json:
        print(msgspec.json.encode(report).decode())
    else:
        print(as_text(report))
        if report.goals:
            goals = goals_table([report])
            print("\n" + "\n".join(columns_of(goals.columns, goals.rows)))
    return 0
