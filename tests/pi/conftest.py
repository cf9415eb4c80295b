"""Packages and roots that the tests share; `make test-pi` runs them, `make test` does not."""

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compose.engine import ROOT, bootstrapped, run
from tests.pi.roots import Root

if os.environ.get("HEADWATER_TEST_PI") != "1":
    collect_ignore_glob = ["test_*"]
sys.path.insert(0, str(ROOT / "deploy"))
MACHINE = platform.machine()
BARE = ("python3", "python3-venv", "ca-certificates")
EMULATOR = Path("/proc/sys/fs/binfmt_misc/qemu-aarch64")


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


@pytest.fixture
def root(tmp_path):
    """A bare Debian with Python, and nothing of Headwater."""
    if why := missing():
        pytest.skip(why)
    yield from copied(bootstrapped("python", *BARE), tmp_path)


@pytest.fixture
def emulated(tmp_path):
    """The same for arm64, each of whose programs is emulated."""
    if why := missing():
        pytest.skip(why)
    if not EMULATOR.exists():
        pytest.skip("no emulator of arm64 is registered: see qemu-user-static and binfmt-support")
    yield from copied(bootstrapped("pi-arm64", *BARE, architecture="arm64"), tmp_path)


def copied(kept: Path, folder: Path) -> Iterator[Root]:
    """A copy of a root; a broker that still runs there is ended."""
    run("cp", "-a", str(kept), str(folder / "root"))
    made = Root(folder / "root")
    yield made
    made.end()
