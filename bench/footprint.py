"""What a broker takes of a small machine: disk, time to be ready, memory when idle.

Owns the closure of what a broker installs, and three figures. Must not know anything of the broker
but its process and its distribution. Invariant: disk is that of the packages which an installation
without extras and without pip brings, measured where they are installed here, bytecode included.

    python -m bench.footprint [--quick] [--repeats N] [--json]
"""

import compileall
import statistics
import sys
import tempfile
import time
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement

from bench.report import Goal, Options, Report, Table, run
from bench.servers import ROOT, start_broker, stop

SETTLE_S = 1.0  # after the ready line, for what is loaded behind it
DISK_GOAL_MB, READY_GOAL_S, RESIDENT_GOAL_MB = 110.0, 0.6, 66.0
MIB = 2**20
UNWANTED = ("numpy", "highspy", "matplotlib", "pandas")


class Start(NamedTuple):
    """Seconds to the ready line, resident megabytes when idle, and unwanted libraries loaded."""

    ready_s: float
    resident_mb: float
    unwanted: tuple[str, ...]


def closure() -> dict[str, Distribution]:
    """Return by name the distributions that Headwater without extras asks for on this machine."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pending = [Requirement(text) for text in project["dependencies"]]
    found: dict[str, Distribution] = {}
    while pending:
        wanted = pending.pop()
        name = wanted.name.lower().replace("_", "-")
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        try:
            package = distribution(wanted.name)
        except PackageNotFoundError:
            continue  # an optional one, such as uvloop on a machine that has none
        if name not in found:
            found[name] = package
            pending += [Requirement(text) for text in package.requires or ()]
    return dict(sorted(found.items()))


def size_mb(paths: list[Path]) -> float:
    """Return the megabytes on disk of these files and folders, as `du` counts them."""
    files = {path for root in paths for path in (root, *root.rglob("*")) if not path.is_symlink()}
    return sum(path.lstat().st_blocks * 512 for path in files) / MIB


def roots_of(package: Distribution) -> list[Path]:
    """Return the folders and files of `package` directly within site-packages."""
    names = {file.parts[0] for file in package.files or () if file.parts[0] != ".."}
    return [Path(str(package.locate_file(name))) for name in sorted(names - {"__pycache__"})]


def own_roots() -> list[Path]:
    """Return the folders that a wheel of Headwater holds."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    return [ROOT / name for name in packages]


def start() -> Start:
    """Start a broker with a data directory and without links, let it settle, and stop it."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        process, _ = start_broker(folder)
        try:
            ready_s = time.monotonic() - began
            time.sleep(SETTLE_S)
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
            mapped = Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8")
        finally:
            stop(process)
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    unwanted = tuple(name for name in UNWANTED if f"/{name}/" in mapped)
    return Start(ready_s, int(resident.split()[1]) / 1024, unwanted)


def report(options: Options) -> Report:
    """All figures; of the times the least counts, as others' work only makes one greater."""
    for root in own_roots():  # as an installation of the wheel or of the Debian package does
        compileall.compile_dir(root, quiet=1)
    sizes = {name: size_mb(roots_of(package)) for name, package in closure().items()}
    sizes["headwater"] = size_mb(own_roots())
    whole = sum(sizes.values())
    rows = [[name, f"{size:.1f}"] for name, size in sorted(sizes.items(), key=lambda p: -p[1])]
    starts = [start() for _ in range(max(2, options.times(5)))]
    ready = [each.ready_s for each in starts]
    resident = [each.resident_mb for each in starts]
    unwanted = sorted({name for each in starts for name in each.unwanted})
    figures = [
        ["ready after, s", *(f"{v:.2f}" for v in (min(ready), statistics.median(ready)))],
        ["resident, MB", *(f"{v:.1f}" for v in (min(resident), statistics.median(resident)))],
    ]
    goals = [
        Goal("site-packages of a broker", DISK_GOAL_MB, [round(whole, 1)], " MB"),
        Goal("broker with a data directory, ready", READY_GOAL_S, [round(min(ready), 2)], " s"),
        Goal("the same, idle", RESIDENT_GOAL_MB, [round(max(resident), 1)], " MB"),
    ]
    return Report(
        "The footprint of a broker",
        [
            Table("Packages", ["package", "MB on disk"], [*rows, ["all", f"{whole:.1f}"]]),
            Table("Process", [f"of {len(starts)} starts", "least", "median"], figures),
        ],
        goals,
        [f"Loaded without need: {', '.join(unwanted) or 'nothing'}."],
    )


if __name__ == "__main__":
    sys.exit(run(__doc__, report))
