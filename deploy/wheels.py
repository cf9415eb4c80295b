"""Makes the folder of wheels with which a broker is installed where there is no network.

    python deploy/wheels.py aarch64 dist/wheels-aarch64

Owns which wheels a machine takes. Must not know how they are installed. Invariant: the versions are
those of uv.lock, and each wheel has a locked hash or is built from a source that has it.
"""

import argparse
import platform
import sys
import tempfile
from pathlib import Path

from debian_roots import report, run_tool
from locked import MACHINES, PYTHON, ROOT, UV, LockedPackage, locked_packages
from source_wheels import add_wheels

ABIS = ("cp311", "abi3", "none")
# cryptography and zeroconf have no wheel for i686; the source of the first needs a newer Rust than
# Debian 12 has.
WITHOUT_EXTRAS = ("i686",)


def extras_of(machine: str) -> tuple[str, ...]:
    """Return the extras that a broker on `machine` is installed with."""
    return () if machine in WITHOUT_EXTRAS else ("discovery", "joining")


def packages_of(machine: str) -> list[LockedPackage]:
    """Return the locked packages that a broker on `machine` is installed with."""
    extras = [word for extra in extras_of(machine) for word in ("--extra", extra)]
    return locked_packages(machine, "--no-dev", *extras)


def wheels(machine: str, folder: Path) -> None:
    """Fill `folder` with the wheels of a broker for `machine`; what was in it before goes."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.whl"):
        old.unlink()
    packages = packages_of(machine)
    report(f"taking {len(packages)} packages for {machine}")
    _fetch([package.line for package in packages if package.has_wheel], machine, folder)
    add_wheels([package for package in packages if not package.has_wheel], machine, folder)
    add_own_wheel(folder, compiled=machine == platform.machine())


def add_own_wheel(folder: Path, *, compiled: bool) -> None:
    """Build Headwater's wheel into `folder`; `compiled` ones are for this machine's Python alone.

    For any other machine Python alone does what else is compiled.
    """
    build = (str(UV), "build", "-q", "--wheel", "--out-dir", str(folder), str(ROOT))
    run_tool(*build, HEADWATER_PURE_PYTHON="0" if compiled else "1")
    (folder / ".gitignore").unlink(missing_ok=True)


def _fetch(lines: list[str], machine: str, folder: Path) -> None:
    """Download the wheels of locked requirements, checked against their hashes."""
    with tempfile.TemporaryDirectory() as name:
        requirements = Path(name) / "requirements.txt"
        requirements.write_text("\n".join(lines))
        platforms = [word for tag in MACHINES[machine] for word in ("--platform", tag)]
        abis = [word for abi in ABIS for word in ("--abi", abi)]
        run_tool(
            sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check",
            "--no-deps", "--only-binary=:all:", "--implementation", "cp", *abis, *platforms,
            "--python-version", PYTHON, "--dest", str(folder), "-r", str(requirements),
        )  # fmt: skip


def main() -> None:
    """Run as a program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("machine", choices=sorted(MACHINES), help="as `uname -m` says it there")
    parser.add_argument("folder", type=Path, help="where the wheels go")
    said = parser.parse_args()
    wheels(said.machine, said.folder)
    files = sorted(said.folder.glob("*.whl"))
    size_mb = sum(file.stat().st_size for file in files) / 1e6
    sys.stdout.write(f"{len(files)} wheels, {size_mb:.0f} MB, in {said.folder}\n")


if __name__ == "__main__":
    main()
