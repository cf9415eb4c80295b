"""All measurements, one after the other, and the goals with what was reached.

Owns their order and the page of figures. Must not measure anything itself. Invariant: each bench
runs in a process of its own, and its figures stand beside the machine that they were taken on.

    python -m bench [--part broker|engine|durability|covering|links|routing|placement|server]
                    [--quick] [--repeats N] [--json] [--page docs/benchmarks.md]
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.report import (
    Report,
    as_markdown,
    as_text,
    columns_of,
    goals_table,
    machine,
    parser,
)
from bench.servers import mosquitto_version

PARTS = {
    "broker": (
        "bench.mqtt_face",
        "bench.fairness",
        "bench.batches",
        "bench.intake",
        "bench.idle",
        "bench.filterer",
        "bench.language",
    ),
    "engine": ("bench.engine", "bench.state", "bench.ranges", "bench.window_average"),
    "durability": ("bench.durable",),
    "covering": ("bench.covering",),
    "links": ("bench.links",),
    "routing": ("bench.router",),
    # With its own defaults it proves optima for hours: `python -m bench.planner`.
    "placement": ("bench.planner --brokers-max 30 --milp-seconds 20",),
    "server": ("bench.server",),
}
BENCHES = tuple(name for part in PARTS.values() for name in part)
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


class Findings(msgspec.Struct, frozen=True):
    """What one run of all benches found."""

    machine: list[str]
    seconds: float
    reports: list[Report]


def measure(benches: Sequence[str], arguments: list[str], *, loud: bool) -> Findings:
    """Run these benches with these options; SystemExit where one fails."""
    where = machine()
    if not set(benches) <= {*PARTS["engine"], *PARTS["placement"], *PARTS["server"]}:
        where.append(mosquitto_version())
    began = time.monotonic()
    if loud:
        print("\n".join(where), flush=True)
    reports = []
    for name in benches:
        done = subprocess.run(
            [sys.executable, "-m", *name.split(), "--json", *arguments],
            stdout=subprocess.PIPE,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{name} failed")
        told = msgspec.json.decode(done.stdout, type=Report | list[Report])
        found = told if isinstance(told, list) else [told]
        reports += found
        if loud:
            print("\n".join(f"\n== {as_text(one)}" for one in found), flush=True)
    return Findings(where, round(time.monotonic() - began, 1), reports)


def around(page: Path) -> tuple[str, str]:
    """What stands before and after the figures of a page; SystemExit where they have no place."""
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SystemExit(f"{page}: cannot be read: {error}") from None
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise SystemExit(f"{page}: found no lines {BEGIN} and {END}, between which figures go")
    return before, after


def write_page(page: Path, findings: Findings, command: str) -> None:
    """Put the figures between the page's marks."""
    before, after = around(page)
    told = as_markdown(findings.reports, [f"`{command}`", *findings.machine])
    page.write_text(f"{before}{BEGIN}\n\n{told}\n\n{END}{after}", encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """Measures and shows."""
    options = parser(__doc__)
    options.add_argument("--part", choices=PARTS, help="only these benches; default: all")
    options.add_argument("--page", type=Path, help="write the figures into this page")
    arguments = options.parse_args(argv)
    if arguments.page is not None:
        around(arguments.page)  # what is measured for minutes must find its place
    benches = PARTS[arguments.part] if arguments.part else BENCHES
    passed_on = ["--quick"] if arguments.quick else []
    passed_on += ["--repeats", str(arguments.repeats)] if arguments.repeats else []
    findings = measure(benches, passed_on, loud=not arguments.json)
    if arguments.page is not None:
        part = ["--part", arguments.part] if arguments.part else []
        write_page(arguments.page, findings, " ".join(["python -m bench", *part, *passed_on]))
    if arguments.json:
        print(msgspec.json.encode(findings).decode())
        return 0
    goals = goals_table(findings.reports)
    print(f"\n== {goals.title}; measured in {findings.seconds:.0f} s\n")
    print("\n".join(columns_of(goals.columns, goals.rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
