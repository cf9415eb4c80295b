"""Packages and roots that the tests share; `make test-pi` runs them, `make test` does not."""

import os
import platform
import shutil
import sys
from pathlib import Path

import pytest

from tests.compose.engine import ROOT, bootstrapped, run
from tests.pi.roots import Root

if os.environ.get("HEADWATER_TEST_PI") != "1":
    collect_ignore_glob = ["test_*"]
sys.path.insert(0, str(ROOT / "deploy"))
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


@pytest.fixture
def root(tmp_path):
    """A bare Debian with Python, and nothing of Headwater."""
    if why := missing():
        pytest.skip(why)
    place = tmp_path / "root"
    run("cp", "-a", str(bootstrapped("python", "python3", "python3-venv", "ca-certificates")),
        str(place))  # fmt: skip
    made = Root(place)
    yield made
    made.end()
