"""All measurements, one after the other, and the goals with what was reached.

Owns their order and the page of figures. Must not measure anything itself. Invariant: each bench
runs in a process of its own, and its figures stand beside the machine that they were taken on.

    python -m bench [--quick] [--repeats N] [--json] [--page docs/benchmarks.md]
"""

import subprocess
import sys
import time
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

BENCHES = (
    "bench.mqtt_face",
    "bench.batches",
    "bench.intake",
    "bench.idle",
    "bench.filterer",
    "bench.language",
    "bench.engine",
)
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


class Findings(msgspec.Struct, frozen=True):
    """What one run of all benches found."""

    machine: list[str]
    seconds: float
    reports: list[Report]


def measure(arguments: list[str], *, loud: bool) -> Findings:
    """Run all benches with these options; SystemExit where one fails."""
    where = [*machine(), mosquitto_version()]
    began = time.monotonic()
    if loud:
        print("\n".join(where), flush=True)
    reports = []
    for name in BENCHES:
        done = subprocess.run(
            [sys.executable, "-m", name, "--json", *arguments], stdout=subprocess.PIPE, check=False
        )
        if done.returncode:
            raise SystemExit(f"{name} failed")
        reports.append(msgspec.json.decode(done.stdout, type=Report))
        if loud:
            print(f"\n== {as_text(reports[-1])}", flush=True)
    return Findings(where, round(time.monotonic() - began, 1), reports)


def write_page(page: Path, findings: Findings, command: str) -> None:
    """Put the figures between the page's marks."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    if not after:
        raise SystemExit(f"{page} has no marks for figures")
    told = as_markdown(findings.reports, [f"`{command}`", *findings.machine])
    page.write_text(f"{before}{BEGIN}\n\n{told}\n\n{END}{after}", encoding="utf-8")


def main() -> int:
    """Measures and shows."""
    options = parser(__doc__)
    options.add_argument("--page", type=Path, help="write the figures into this page")
    arguments = options.parse_args()
    passed_on = ["--quick"] if arguments.quick else []
    passed_on += ["--repeats", str(arguments.repeats)] if arguments.repeats else []
    findings = measure(passed_on, loud=not arguments.json)
    if arguments.page is not None:
        write_page(arguments.page, findings, " ".join(["python -m bench", *passed_on]))
    if arguments.json:
        print(msgspec.json.encode(findings).decode())
        return 0
    goals = goals_table(findings.reports)
    print(f"\n== {goals.title}; measured in {findings.seconds:.0f} s\n")
    print("\n".join(columns_of(goals.columns, goals.rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
