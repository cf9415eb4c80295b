"""Packages and roots that the tests share; `make test-pi` runs them, `make test` does not."""

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from debian_roots import missing as missing_for

from tests.compose.engine import ROOT, run
from tests.pi.roots import Root, bare_root

if os.environ.get("HEADWATER_TEST_PI") != "1":
    collect_ignore_glob = ["test_*"]
MACHINE = platform.machine()


def missing() -> str:
    """Say why there can be no root; empty: there can."""
    if os.geteuid() != 0:
        return "a root of its own needs root"
    if MACHINE != "x86_64":
        return f"packages for {MACHINE} are not built here yet"
    absent = [name for name in ("debootstrap", "dpkg-deb") if shutil.which(name) is None]
    return f"{', '.join(absent)} are not installed" if absent else ""


@pytest.fixture(scope="session")
def wheel_folder(tmp_path_factory) -> Path:
    """The wheels of a broker for this machine."""
    if why := missing():
        pytest.skip(why)
    from wheels import wheels

    folder: Path = tmp_path_factory.mktemp("wheels")
    wheels(MACHINE, folder)
    return folder


@pytest.fixture(scope="session")
def packages(wheel_folder, tmp_path_factory) -> list[Path]:
    """A Debian package, and the same as a later version."""
    from deb import build

    folder = tmp_path_factory.mktemp("debs")
    return [build("amd64", folder, version, wheel_folder) for version in ("1.0", "1.1")]


@pytest.fixture(scope="session")
def newer_package(packages, tmp_path_factory) -> Path:
    """A package of a tree in which the journal is of the next format, as a later version's is."""
    tree = tmp_path_factory.mktemp("newer") / "headwater"
    for path in run("git", "-C", str(ROOT), "ls-files", "-z").rstrip("\0").split("\0"):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tree / path)
    (tree / ".venv").symlink_to(ROOT / ".venv")
    change(tree / "broker/core/recovery/records.py", "\nVERSION = 1\n", "\nVERSION = 2\n")
    change(tree / "pyproject.toml", 'version = "0.1.0"', 'version = "2.0"')
    run(sys.executable, str(tree / "deploy/deb.py"), "amd64", str(tree / "dist"))
    (package,) = (tree / "dist").glob("*.deb")
    return package


def change(file: Path, old: str, new: str) -> None:
    """Replace what stands once in a file."""
    text = file.read_text()
    assert text.count(old) == 1, (file, old)
    file.write_text(text.replace(old, new))


@pytest.fixture
def root(tmp_path):
    """A bare Debian with Python, and nothing of Headwater."""
    if why := missing():
        pytest.skip(why)
    yield from copied(bare_root(), tmp_path)


@pytest.fixture(params=["i386", "arm64", "armhf"])
def other_architecture(request) -> str:
    """An architecture that is not this machine's; only i386 runs here without an emulator."""
    if why := missing() or missing_for(request.param):
        pytest.skip(why)
    architecture: str = request.param
    return architecture


@pytest.fixture
def other_root(other_architecture, tmp_path):
    """A bare Debian of that architecture."""
    yield from copied(bare_root(other_architecture), tmp_path)


def copied(kept: Path, folder: Path) -> Iterator[Root]:
    """A copy of a root; a broker that still runs there is ended."""
    run("cp", "-a", str(kept), str(folder / "root"))
    made = Root(folder / "root")
    yield made
    made.end()
