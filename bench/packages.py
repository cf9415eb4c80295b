"""The Debian packages of a broker, by architecture: their size, time to be ready, memory when idle.

Owns the figures of packages that `make release` or `make deb` left in dist. Must not know how they
are built. Invariant: each package is installed in a bare Debian root of its own, and what was
measured under an emulator is called emulated, as its times and memory are the emulator's as well.

    python -m bench.packages [--quick] [--repeats N] [--json]     # needs root and debootstrap
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench.report import Options, Report, Table, run
from bench.servers import ROOT

sys.path.insert(0, str(ROOT / "deploy"))
from debian_roots import is_native, missing, run_tool

from tests.pi.roots import Root, bare_root

SETTLE_S = 1.0  # after it is ready, for what is loaded behind that
MIB = 2**20


def packages() -> dict[str, Path]:
    """Return the newest package of each architecture by its name."""
    files = sorted((ROOT / "dist").rglob("headwater_*.deb"), key=lambda file: file.stat().st_mtime)
    return {file.stem.rpartition("_")[2]: file for file in files}


def row(architecture: str, package: Path, repeats: int) -> list[str]:
    """Return the figures of `package`, which is installed in a copy of a bare root."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "root"
        run_tool("cp", "-a", str(bare_root(architecture)), str(place))
        root = Root(place)
        root.copy(package, "package.deb")
        root.run("dpkg", "--install", "/package.deb")
        installed = (place / "usr/lib/headwater").rglob("*")
        disk_mb = sum(file.stat().st_blocks * 512 for file in installed) / MIB
        ready, resident = [], []
        for _ in range(repeats):
            began = time.monotonic()
            try:
                root.start()
                ready.append(time.monotonic() - began)
                time.sleep(SETTLE_S)
                resident.append(root.resident_mb())
            finally:
                root.end()
    return [
        architecture if is_native(architecture) else f"{architecture}, emulated",
        f"{package.stat().st_size / MIB:.1f}",
        f"{disk_mb:.0f}",
        f"{min(ready):.1f}",
        f"{statistics.median(resident):.0f}",
    ]


def report(options: Options) -> Report:
    """Measure all packages in dist; of times the least counts, as others work beside them."""
    rows, notes = [], []
    for architecture, package in sorted(packages().items()):
        if reason := missing(architecture):
            notes.append(f"{architecture}: {reason}.")
        else:
            rows.append(row(architecture, package, options.times(3)))
    columns = ["architecture", "package, MB", "installed, MB", "ready after, s", "resident, MB"]
    return Report(
        "Debian packages of a broker",
        [Table("Least time, median memory", columns, rows)],
        [],
        notes,
    )


if __name__ == "__main__":
    sys.exit(run(__doc__, report))
