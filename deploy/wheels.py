"""Makes the folder of wheels with which a broker is installed where there is no network.

    python deploy/wheels.py aarch64 dist/wheels-aarch64

Owns which wheels a machine takes. Must not know how they are installed. Invariant: the versions are
those of uv.lock, and each wheel's hash is the one that is locked.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = "3.11"
MACHINES = {
    "x86_64": ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    "aarch64": ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
}
ABIS = ("cp311", "abi3", "none")
UV = ROOT / ".venv" / "tools" / "bin" / "uv"


def wheels(machine: str, folder: Path, extras: tuple[str, ...] = ("joining",)) -> None:
    """Fill `folder` with the wheels of a broker for a machine; what was in it before goes."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.whl"):
        old.unlink()
    with tempfile.TemporaryDirectory() as name:
        listed = Path(name) / "requirements.txt"
        wanted = [word for extra in extras for word in ("--extra", extra)]
        export = ["export", "--frozen", "--no-dev", "--no-emit-project", "-q", *wanted]
        _run(str(UV), *export, "--directory", str(ROOT), "-o", str(listed))
        platforms = [word for tag in MACHINES[machine] for word in ("--platform", tag)]
        abis = [word for abi in ABIS for word in ("--abi", abi)]
        _run(
            sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check",
            "--no-deps", "--only-binary=:all:", "--implementation", "cp", *abis, *platforms,
            "--python-version", PYTHON, "--dest", str(folder), "-r", str(listed),
        )  # fmt: skip
    # What is compiled is compiled for this machine; for any other, Python alone does the same.
    pure = "0" if machine == platform.machine() else "1"
    build = (str(UV), "build", "-q", "--wheel", "--out-dir", str(folder), str(ROOT))
    _run(*build, HEADWATER_PURE_PYTHON=pure)
    (folder / ".gitignore").unlink(missing_ok=True)


def _run(*words: str, **environ: str) -> None:
    """Run a program, and show what it complained of where it fails."""
    done = subprocess.run(  # noqa: S603  # the words are those above
        words, env=os.environ | environ, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words[:4])} …: {done.stdout}{done.stderr}")


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
