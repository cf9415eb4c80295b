"""A broker that does nothing yet: how soon it is ready, and what memory it takes.

Owns the two figures. Must not know anything of the broker but its command line. Invariant: both are
of a process that has opened its MQTT and HTTP faces.

    python -m bench.idle [--quick]
"""

import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SETTLE_S = 1.0  # after the ready line, for what is loaded behind it
CONFIG = '[broker]\ndata_dir = "{folder}/data"\n[mqtt]\nport = 0\n[http]\nport = 0\n'


def once(folder: str) -> tuple[float, float]:
    """Seconds to the ready line, and resident megabytes (of 2**20 bytes) when idle."""
    config = Path(folder, "idle.toml")
    config.write_text(CONFIG.format(folder=folder), encoding="utf-8")
    began = time.monotonic()
    command = [sys.executable, "-m", "headwater.cli", "broker", "--config", str(config)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        if process.stderr is None or "ready" not in process.stderr.readline():
            raise SystemExit("the broker did not start")
        ready_s = time.monotonic() - began
        time.sleep(SETTLE_S)
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        process.send_signal(signal.SIGTERM)
    return ready_s, int(resident.split()[1]) / 1024


def main() -> int:
    """Prints the medians."""
    rounds = 2 if "--quick" in sys.argv else 5
    with tempfile.TemporaryDirectory() as folder:
        figures = [once(folder) for _ in range(rounds)]
    ready_s = statistics.median(figure[0] for figure in figures)
    resident = statistics.median(figure[1] for figure in figures)
    print(f"ready after {ready_s:.2f} s, idle at {resident:.0f} MB resident (median of {rounds})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
