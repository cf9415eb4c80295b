"""Builds wheels of locked packages that have none for a machine, in a Debian root of that machine.

Owns the root with a compiler, the sources that are fetched, and the wheels, which are kept beside
the roots as NAME-VERSION-ARCHITECTURE. Must not know which packages those are. Invariant: sources
and the tools that build them have the hashes of uv.lock, and nothing is fetched while a package's
own code runs in the root.
"""

import fcntl
import shutil
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from debian_roots import CACHE, bootstrapped, is_native, missing, report, run_in, run_tool
from locked import ARCHITECTURES, LockedPackage, locked_packages

COMPILER = ("python3-dev", "gcc", "libc6-dev", "libffi-dev")
BACKEND = "setuptools.build_meta"
BUILD = f"import sys, {BACKEND} as backend; backend.build_wheel(sys.argv[1])"
# Debug symbols are the larger half of a module; a date that is always the same makes one wheel.
COMPILED = {"CFLAGS": "-g0", "SOURCE_DATE_EPOCH": "315532800"}


def obstacle(package: LockedPackage, machine: str) -> str:
    """Return a sentence about what keeps the wheel of `package` from being had; empty: nothing."""
    architecture = ARCHITECTURES[machine]
    title = f"{package.name} {package.version}"
    if _kept(package, architecture).exists():
        return ""
    if not package.source_hash:
        return f"{title} has neither a wheel for {machine} nor a source in uv.lock"
    if reason := missing(architecture):
        return f"{title} has no wheel for {machine} and has to be built: {reason}"
    return ""


def add_wheels(packages: list[LockedPackage], machine: str, folder: Path) -> None:
    """Put wheels of `packages` for `machine` into `folder`, built where none is kept.

    Ends this program with the sentence of `obstacle` where there is one.
    """
    architecture = ARCHITECTURES[machine]
    for package in packages:
        if reason := obstacle(package, machine):
            raise SystemExit(reason)
        kept = _kept(package, architecture)
        with _held(kept):
            if not kept.exists():
                _build(package, machine, architecture, kept)
        for wheel in kept.glob("*.whl"):
            shutil.copy(wheel, folder)


def _kept(package: LockedPackage, architecture: str) -> Path:
    """Return the folder in which the wheel of `package` is kept once it is built."""
    return CACHE / "built" / f"{package.name}-{package.version}-{architecture}"


@contextmanager
def _held(kept: Path) -> Iterator[None]:
    """Have another program that wants the same wheel wait for it instead of building its own."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with kept.with_name(f".{kept.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(package: LockedPackage, machine: str, architecture: str, kept: Path) -> None:
    """Build the wheel of `package` and put it into the folder `kept`, which is then complete."""
    title = f"{package.name} {package.version}"
    root = bootstrapped(f"build-{architecture}", *COMPILER, architecture=architecture)
    how = "" if is_native(architecture) else ", emulated, which takes minutes"
    with tempfile.TemporaryDirectory(dir=root / "var/tmp") as name:
        place = Path(name)
        tools, source, made = place / "tools", place / "source", place / "made"
        report(f"fetching the source of {title}, and what builds it")
        _install_tools(machine, tools)
        _unpack(package, tools, source)
        made.mkdir()
        report(f"building {title} for {architecture}{how}")
        inside = Path("/") / place.relative_to(root)
        # A kernel of 64 bits is to look like one of 32 to the programs of such a root.
        personality = "linux32 " if is_native(architecture) else ""
        script = f"cd {inside}/source && {personality}python3 -c '{BUILD}' {inside}/made"
        run_in(root, "sh", "-c", script, PYTHONPATH=f"{inside}/tools", **COMPILED)
        (wheel,) = made.glob("*.whl")
        if not wheel.stem.endswith(f"linux_{machine}"):
            raise SystemExit(f"{wheel.name} is not for {machine}: look at the root {root}")
        # Beside its place first: a folder that is there is complete.
        with tempfile.TemporaryDirectory(dir=kept.parent) as draft:
            shutil.copytree(made, Path(draft) / "made")
            (Path(draft) / "made").rename(kept)


def _install_tools(machine: str, folder: Path) -> None:
    """Install the locked tools that build wheels into `folder`; they are Python alone."""
    requirements = folder.with_suffix(".txt")
    lines = [tool.line for tool in locked_packages(machine, "--only-group", "building")]
    requirements.write_text("\n".join(lines))
    _pip("install", "--only-binary=:all:", "--target", str(folder), "-r", str(requirements))


def _unpack(package: LockedPackage, tools: Path, folder: Path) -> None:
    """Fetch the sdist of `package` and unpack it as `folder`."""
    requirements = folder.with_suffix(".txt")
    requirements.write_text(package.line)
    with tempfile.TemporaryDirectory() as name:
        # pip asks the source for its metadata, for which the same tools are lent to it.
        _pip(
            "download", "--no-binary=:all:", "--no-build-isolation", "--dest", name,
            "-r", str(requirements), PYTHONPATH=str(tools),
        )  # fmt: skip
        (archive,) = Path(name).iterdir()
        with tarfile.open(archive) as packed:
            packed.extractall(name, filter="data")
        (unpacked,) = (path for path in Path(name).iterdir() if path.is_dir())
        shutil.move(unpacked, folder)
    with (folder / "pyproject.toml").open("rb") as file:
        backend = tomllib.load(file)["build-system"].get("build-backend")
    if backend != BACKEND:
        raise SystemExit(
            f"{package.name} is built by {backend}, and only {BACKEND} is known: leave the package"
            " out for this machine, or add its tools to the group `building` of pyproject.toml"
        )


def _pip(*words: str, **environ: str) -> None:
    """Run pip quietly, with all hashes checked."""
    command = [sys.executable, "-m", "pip", words[0], "-q", "--disable-pip-version-check"]
    run_tool(*command, "--no-deps", "--require-hashes", *words[1:], **environ)
