"""The wheel, built as an installation would and put where nothing of the clone is in reach."""

import os
import signal
import subprocess
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.conftest import require_program

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
CARRIED = {
    "headwater/demo/examples/weather.hw",
    "headwater/demo/examples/expected.json",
    "headwater/demo/examples/data/grand_st_bernard.csv.gz",
    "headwater/demo/examples/data/singapore.csv.gz",
    "headwater/demo/examples/data/README.md",
    "headwater/py.typed",  # its types are for the checkers of those who import it
    "language/headwater.lark",
}

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def uv():
    """Of the version that the Makefile names, where setup has fetched it; else what is there."""
    fetched = ROOT / ".venv" / "tools" / "bin" / "uv"
    return str(fetched) if fetched.exists() else require_program("uv")


@pytest.fixture(scope="module")
def wheel(uv, tmp_path_factory):
    """Built from what setup has fetched already: nothing is asked of the network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [uv, "build", "--wheel", "--offline", "--quiet", "--out-dir", str(folder)]
    subprocess.run([*command, str(ROOT)], check=True, timeout=PATIENCE_S)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(uv, wheel, tmp_path_factory):
    """A new environment with the wheel alone; what it depends on is lent by this one."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, symlinks=True, with_pip=False)
    python = folder / "bin" / "python"
    command = [uv, "pip", "install", "--offline", "--quiet", "--no-deps", "--python"]
    subprocess.run([*command, str(python), str(wheel)], check=True, timeout=PATIENCE_S)
    (site,) = folder.glob("lib/python3.*/site-packages")
    # Behind its own packages, and without what makes this environment find the clone.
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def run(installed, folder, *words):
    environ = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.Popen(
        [str(installed / "bin" / "headwater"), *words],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_wheel_has_what_the_commands_need(wheel):
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        assert names >= CARRIED
        for name in CARRIED - {"language/headwater.lark"}:
            source = ROOT / name.removeprefix("headwater/demo/")
            assert packed.read(name) == source.read_bytes()
    assert not [name for name in names if name.startswith(("tests/", "bench/", "docs/"))]
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "headwater").rglob("*.py")}
    assert names >= modules


def test_what_is_installed_is_not_the_clone(installed, tmp_path):
    code = "import headwater, broker, language; print(headwater.__file__)"
    found = subprocess.run(
        [str(installed / "bin" / "python"), "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(found.stdout.strip()).is_relative_to(installed)


def test_the_demonstration_runs_from_an_installed_wheel(installed, tmp_path):
    with run(installed, tmp_path, "demo") as process:
        try:
            lines = [process.stdout.readline() for _ in range(3)]
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert process.returncode == 130
    assert all(" FrozenGround " in line for line in lines), errors
    assert errors.endswith("stopped\n")


@pytest.mark.parametrize("words", [["--version"], ["explain", "HW101"], ["config", "show"]])
def test_commands_run_from_an_installed_wheel(installed, tmp_path, words):
    with run(installed, tmp_path, *words) as process:
        out, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (0, "")
    assert out
