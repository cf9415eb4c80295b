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
from typing import NamedTuple

from bench.load import cpu_s
from bench.report import Goal, Options, Report, Table, run
from bench.servers import start_broker, stop

SETTLE_S = 1.0  # after the ready line, for what is loaded behind it
READY_GOAL_S = 1.0
RESIDENT_GOAL_MB = 64.0
COMPILING = "PYTHONDONTWRITEBYTECODE is set: each start compiles everything anew."


class Start(NamedTuple):
    """Seconds by the clock and of CPU to the ready line, and resident megabytes when idle."""

    ready_s: float
    ready_cpu_s: float
    resident_mb: float  # of 2**20 bytes


def once() -> Start:
    """Start a broker, let it settle, and stop it."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        process, _ = start_broker(folder)
        try:
            ready_s = time.monotonic() - began
            ready_cpu_s = cpu_s(process.pid)
            time.sleep(SETTLE_S)
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        finally:
            stop(process)
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return Start(ready_s, ready_cpu_s, int(resident.split()[1]) / 1024)


def report(options: Options) -> Report:
    """The figures of some starts; the fastest counts, as others' work only makes one slower."""
    repeats = max(2, options.times(5))
    starts = [once() for _ in range(repeats)]
    rows = [
        _row("ready after, s", [one.ready_s for one in starts], 2),
        _row("CPU until then, s", [one.ready_cpu_s for one in starts], 2),
        _row("resident, MB", [one.resident_mb for one in starts], 1),
    ]
    ready_s = round(min(one.ready_s for one in starts), 2)
    resident_mb = round(max(one.resident_mb for one in starts), 1)
    goals = [
        Goal("`headwater broker`, idle: ready after", READY_GOAL_S, [ready_s], " s"),
        Goal("`headwater broker`, idle: resident memory", RESIDENT_GOAL_MB, [resident_mb], " MB"),
    ]
    columns = [f"of {repeats} starts", "least", "median", "greatest"]
    notes = [COMPILING] if sys.dont_write_bytecode else []
    return Report("An idle broker", [Table("", columns, rows)], goals, notes)


def _row(name: str, values: list[float], digits: int) -> list[str]:
    chosen = (min(values), statistics.median(values), max(values))
    return [name, *(f"{value:.{digits}f}" for value in chosen)]


if __name__ == "__main__":
    sys.exit(run(__doc__, report))
