"""A broker that does nothing yet: how soon it is ready, and what memory it takes.

Owns the two figures. Must not know anything of the broker but its process. Invariant: both are of a
process that has opened its MQTT and HTTP faces.

    python -m bench.idle [--quick] [--repeats N] [--json]
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench.report import Goal, Options, Report, Table, run
from bench.servers import start_broker, stop

SETTLE_S = 1.0  # after the ready line, for what is loaded behind it
READY_GOAL_S = 1.0
RESIDENT_GOAL_MB = 64.0


def once() -> tuple[float, float]:
    """Seconds to the ready line, and resident megabytes (of 2**20 bytes) when idle."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        process, _ = start_broker(folder)
        try:
            ready_s = time.monotonic() - began
            time.sleep(SETTLE_S)
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        finally:
            stop(process)
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return ready_s, int(resident.split()[1]) / 1024


def report(options: Options) -> Report:
    """The medians."""
    repeats = options.times(5)
    figures = [once() for _ in range(repeats)]
    ready_s = round(statistics.median(figure[0] for figure in figures), 2)
    resident_mb = round(statistics.median(figure[1] for figure in figures), 1)
    rows = [
        ["ready after", f"{ready_s:.2f} s", _range([f"{one[0]:.2f}" for one in figures])],
        ["resident", f"{resident_mb:.1f} MB", _range([f"{one[1]:.1f}" for one in figures])],
    ]
    goals = [
        Goal("`headwater broker`, idle: ready after", READY_GOAL_S, [ready_s], " s"),
        Goal("`headwater broker`, idle: resident memory", RESIDENT_GOAL_MB, [resident_mb], " MB"),
    ]
    return Report("An idle broker", [Table("", [f"of {repeats}", "median", "range"], rows)], goals)


def _range(figures: list[str]) -> str:
    return f"{min(figures, key=float)} to {max(figures, key=float)}"


if __name__ == "__main__":
    sys.exit(run(__doc__, report))
