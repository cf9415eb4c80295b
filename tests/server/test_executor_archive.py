"""What goes along to executors is enough to run a specification there."""

import subprocess
import sys
import zipfile
from io import BytesIO
from types import SimpleNamespace

import pytest

from server import executor_archive as shipping
from server.errors import ServerError
from server.executor_archive import archive, kept_archive

SCRIPT = """
import sys
sys.path[:] = [p for p in sys.path if p.endswith("site-packages") or "lib/python" in p]
sys.path.insert(0, sys.argv[1])
from server.detection.course import DetectionCourse, waiting_of
from server.detection.processor import Detector
from server.detection.event_batches import pack, unpacked
from server.detection.program import DetectionProgram
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
assert all(sys.argv[1] in (sys.modules[m].__file__ or sys.argv[1]) for m in ours), ours
print(results[0]["events"])
"""


def test_an_executor_without_our_packages_runs_a_specification(tmp_path):
    kept = kept_archive(tmp_path)
    done = subprocess.run(
        [sys.executable, "-I", "-c", SCRIPT, str(kept)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "{'Temp': ['t']}\n", done.stderr


def test_the_same_packages_are_the_same_archive_under_a_name_of_its_content(tmp_path):
    data = archive()
    assert archive() == data
    kept = kept_archive(tmp_path)
    assert kept.read_bytes() == data
    assert kept_archive(tmp_path) == kept
    assert [one.name for one in tmp_path.iterdir()] == [kept.name]


def test_no_secret_and_nothing_compiled_is_in_it():
    names = zipfile.ZipFile(BytesIO(archive())).namelist()
    assert {name.rpartition(".")[2] for name in names} == {"py", "lark"}
    assert not any(name.startswith(("broker/http", "broker/config", "tests")) for name in names)


def test_packages_that_were_imported_from_an_archive_are_no_archive(tmp_path, monkeypatch):
    """Nothing of them would be in it, and executors would take what they have, or nothing."""
    spec = SimpleNamespace(origin=f"{kept_archive(tmp_path)}/lark/__init__.py")
    monkeypatch.setattr(shipping.importlib.util, "find_spec", lambda _: spec)
    with pytest.raises(ServerError, match="cannot be sent along"):
        archive()


def test_archives_that_nobody_has_wanted_for_long_go(tmp_path):
    import os

    (tmp_path / "headwater-old.zip").write_bytes(b"")
    os.utime(tmp_path / "headwater-old.zip", (0, 0))
    (tmp_path / "headwater-new.zip").write_bytes(b"")
    kept_archive(tmp_path)
    assert not (tmp_path / "headwater-old.zip").exists()
    assert (tmp_path / "headwater-new.zip").exists()
