"""A copy of the product and its tests, in which faults are planted and tests are run.

Owns the copy. Must not know the tables of faults. Invariant: between two runs the copy is as the
tree was when it was made, and what runs in it imports nothing of the tree itself.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

from tests.planted.fault import ENGINE, PRODUCT, ROOT, SCENARIOS, Fault
from tests.planted.running import CHOSEN, SAID

COPIED = (*PRODUCT, "tests", "examples", "docs")
RUN_S_MAX = 540
RECORD_S_MAX = 3_600
RUN_BYTES_MAX = 2 << 30  # a fault may make something grow without end
REACHED = "HEADWATER_PLANTED_REACHED"  # names the file that reaching.py writes
FAILED = re.compile(rf"^{re.escape(SAID)}(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Ran:
    """How a run of tests ended: pytest's exit status, the test that failed, and what it said."""

    status: int
    failed: str | None
    output: str


def nearest_first(tests: tuple[str, ...], module: str) -> tuple[str, ...]:
    """The files of tests, those that fail soonest first.

    These are named like the module, or name it, or a module beside it; then come the engine's, and
    at last the long scenarios.
    """
    files = [
        str(file.relative_to(ROOT))
        for path in map(ROOT.joinpath, tests)
        for file in (sorted(path.rglob("test_*.py")) if path.is_dir() else [path])
    ]
    words = set(Path(module).stem.strip("_").split("_")) | {Path(module).parent.name}
    dotted = module.removesuffix(".py").replace("/", ".")
    inside, _, name = dotted.rpartition(".")
    imported = re.compile(
        rf"{re.escape(dotted)}\b|from {re.escape(inside)} import [^)\n]*\b{re.escape(name)}\b"
    )

    def far(file: str) -> tuple[bool, int, bool]:
        alike = len(words & set(Path(file).stem.split("_")))
        named = imported.search((ROOT / file).read_text(encoding="utf-8")) is not None
        return file in SCENARIOS, -(alike + 2 * named), file not in ENGINE

    return tuple(sorted(files, key=far))


class Copy:
    """The packages and tests in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            if (ROOT / name).is_dir():
                ignore = shutil.ignore_patterns("__pycache__", ".*")
                shutil.copytree(ROOT / name, folder / name, ignore=ignore)
        shutil.copy(ROOT / "pyproject.toml", folder)

    def run(
        self,
        tests: tuple[str, ...],
        fault: Fault | None = None,
        first: Sequence[str] = (),
        *,
        only: bool = False,
    ) -> Ran:
        """Run fast tests up to the first failure, with a fault or without one.

        Where there is a fault and one of the tests `first` fails by it, that is all; `only` these
        are run where nothing is to be searched.
        """
        if fault is None:
            return self._run(tests)
        path = self.folder / fault.module
        before = path.read_text(encoding="utf-8")
        self._write(path, fault.planted(before))
        try:
            if first:
                ran = self._chosen(first)
                if only or ran.failed:
                    return ran
            return self._run((*nearest_first(tests, fault.module), *_only(fault)))
        finally:
            self._write(path, before)

    def reached(self, files: Sequence[str], processes: int) -> dict[str, tuple[float, list[str]]]:
        """How many seconds each passing test of the files takes, and the faults it reaches."""
        told = self.folder / "reached.json"
        options = ("-n", str(processes), "--timeout", "0", "-p", "tests.planted.reaching")
        ran = self._pytest((*options, *files), {REACHED: str(told)}, RECORD_S_MAX)
        if not told.exists():
            raise RuntimeError(f"what tests reach was not recorded: {ran.output[-2000:]}")
        return {name: tuple(each) for name, each in json.loads(told.read_bytes()).items()}

    def _chosen(self, tests: Sequence[str]) -> Ran:
        """Run these in their order; one alone needs no more than its name."""
        if len(tests) == 1:
            return self._run(tuple(tests))
        chosen = self.folder / "chosen.txt"
        chosen.write_text("\n".join(tests), encoding="utf-8")
        files = sorted({test.partition("::")[0] for test in tests})
        return self._run(files, **{CHOSEN: str(chosen)})

    def home_of(self, module: str) -> Path:
        """The file that a run in the copy imports for a module."""
        code = f"import {module}; print({module}.__file__)"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=self.folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return Path(done.stdout.strip())

    def _write(self, path: Path, text: str) -> None:
        """Write a module and forget its bytecode: a change within a second might not show."""
        path.write_text(text, encoding="utf-8")
        Path(cache_from_source(str(path))).unlink(missing_ok=True)

    def _run(self, words: Sequence[str], **environment: str) -> Ran:
        return self._pytest(("-x", "-p", "no:xdist", *words), environment, RUN_S_MAX)

    def _pytest(self, words: Sequence[str], environment: dict[str, str], within_s: float) -> Ran:
        command = [sys.executable, "-m", "pytest", "-q", "--tb=line", "--no-header"]
        command += ["-p", "no:cacheprovider", "-p", "tests.planted.running", *words]
        try:
            done = subprocess.run(
                command,
                cwd=self.folder,
                env={**self._environment(), **environment},
                capture_output=True,
                text=True,
                check=False,
                timeout=within_s,
                preexec_fn=_bounded,
            )
        except subprocess.TimeoutExpired as error:
            said = (error.stdout or b"").decode(errors="replace")
            return Ran(-1, None, f"no end after {within_s} s\n{said}")
        found = FAILED.search(done.stdout)
        return Ran(done.returncode, found[1] if found else None, done.stdout + done.stderr)

    def _environment(self) -> dict[str, str]:
        left = ("PYTEST", "PYTHONDONTWRITEBYTECODE")  # all would be compiled anew at each run
        kept = {key: value for key, value in os.environ.items() if not key.startswith(left)}
        return {**kept, "PYTHONPATH": str(self.folder), "HEADWATER_REQUIRE_PROGRAMS": "0"}


def _only(fault: Fault) -> tuple[str, ...]:
    return ("-k", fault.only) if fault.only else ()


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (RUN_BYTES_MAX, RUN_BYTES_MAX))
