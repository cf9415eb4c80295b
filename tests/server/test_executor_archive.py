"""What goes along to executors is enough to run a specification there."""

import subprocess
import sys
import zipfile
from types import SimpleNamespace

import pytest

from broker.engine import native
from server import executor_archive as shipping
from server.errors import ServerError
from server.executor_archive import archived, kept_archive

SCRIPT = """
import sys
sys.path[:] = [p for p in sys.path if p.endswith("site-packages") or "lib/python" in p]
sys.path.insert(0, sys.argv[1])
from server.detection.course import DetectionCourse, waiting_of
from server.detection.processor import Detector
from server.detection.event_batches import pack, unpacked
from server.detection.program import DetectionProgram
import server.detection.course
program_file = server.detection.course.__file__.rpartition("/")[2]
program = DetectionProgram(
    "event Temp(val: float) subscription Frost seq 1 from me to alerts detect Temp(val < 0)",
    raw=True,
)
course = DetectionCourse(program)
waiting = waiting_of(None)
row = ('{"type": "Temp", "id": "t", "timestamp": 5, "val": -1.0}', None)
waiting.events += unpacked(pack(program, [row]))
state, results = course.run("k", None, waiting, 5)
ours = [m for m in sys.modules if m.split(".")[0] in ("language", "broker", "headwater", "lark")]
ours = [m for m in ours if m != "broker.engine.native._passes"]  # loaded from beside it
assert all(sys.argv[1] in (sys.modules[m].__file__ or sys.argv[1]) for m in ours), ours
from broker.engine import native
print(results[0]["events"], native.passes is not None, program_file)
"""


def run(kept):
    done = subprocess.run(
        [sys.executable, "-I", "-c", SCRIPT, str(kept)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout, done.stderr


def test_an_executor_without_our_packages_runs_a_specification(tmp_path):
    """As this process compiled it, and with the passes that this process has."""
    stdout, stderr = run(kept_archive(tmp_path))
    assert stdout == f"{{'Temp': ['t']}} {native.passes is not None} course.pyc\n", stderr


def test_an_executor_takes_the_sources_where_it_can_take_nothing_else(tmp_path):
    """As of another Python, on another machine."""
    with (
        zipfile.ZipFile(kept_archive(tmp_path)) as kept,
        zipfile.ZipFile(tmp_path / "other.zip", "w") as other,
    ):
        for name in kept.namelist():
            strange = name.endswith((".pyc", ".so"))
            other.writestr(name, b"another machine" if strange else kept.read(name))
    stdout, stderr = run(tmp_path / "other.zip")
    assert stdout == "{'Temp': ['t']} False course.py\n", stderr


def test_the_same_packages_are_the_same_archive_under_a_name_of_its_content(tmp_path, monkeypatch):
    kept = kept_archive(tmp_path)
    assert kept_archive(tmp_path) == kept
    assert [one.name for one in tmp_path.iterdir()] == [kept.name]
    contents = archived()
    with zipfile.ZipFile(kept) as held:
        assert {name: held.read(name) for name in contents} == contents
    other = contents | {"server/errors.py": contents["server/errors.py"] + b"\n"}
    monkeypatch.setattr(shipping, "archived", lambda: other)
    assert kept_archive(tmp_path) != kept


def test_no_secret_is_in_it_and_nothing_but_what_runs(tmp_path):
    with zipfile.ZipFile(kept_archive(tmp_path)) as kept:
        names = set(kept.namelist())
    compiled = {name for name in names if name.endswith(".pyc")}
    assert compiled == {f"{name}c" for name in names if name.endswith(".py")}
    passes = {name for name in names if name.startswith("broker/engine/native/_passes.")}
    assert len(passes) == (native.passes is not None)
    others = names - compiled - passes
    assert {name.rpartition(".")[2] for name in others} == {"py", "lark"}
    assert not any(name.startswith(("broker/http", "broker/config", "tests")) for name in names)


def test_packages_that_were_imported_from_an_archive_are_no_archive(tmp_path, monkeypatch):
    """Nothing of them would be in it, and executors would take what they have, or nothing."""
    spec = SimpleNamespace(origin=f"{kept_archive(tmp_path)}/lark/__init__.py")
    monkeypatch.setattr(shipping.importlib.util, "find_spec", lambda _: spec)
    with pytest.raises(ServerError, match="cannot be sent along"):
        archived()


def test_archives_that_nobody_has_wanted_for_long_go(tmp_path):
    import os

    (tmp_path / "headwater-old.zip").write_bytes(b"")
    os.utime(tmp_path / "headwater-old.zip", (0, 0))
    (tmp_path / "headwater-new.zip").write_bytes(b"")
    kept_archive(tmp_path)
    assert not (tmp_path / "headwater-old.zip").exists()
    assert (tmp_path / "headwater-new.zip").exists()
