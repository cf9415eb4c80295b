"""All measurements, one after the other: `python -m bench [--quick]`.

Owns their order. Must not measure anything itself. Invariant: each prints the machine it ran on or
a baseline of the same run beside its figures.
"""

import platform
import subprocess
import sys

BENCHES = ("bench.idle", "bench.intake", "bench.filterer", "bench.mqtt_face")


def main() -> int:
    """Runs them; the greatest of their statuses."""
    machine = f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}"
    print(f"machine: {machine}", flush=True)
    statuses = []
    for name in BENCHES:
        print(f"\n== {name}", flush=True)
        done = subprocess.run([sys.executable, "-m", name, *sys.argv[1:]], check=False)
        statuses.append(done.returncode)
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main())
