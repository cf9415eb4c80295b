"""Standard streams that are closed, full or of a narrow encoding are no traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SPECIFICATION = "event Temp(val: float)\nsubscription Frost from me to a detect Temp(val < 0)\n"
COMMAND = [sys.executable, "-m", "headwater.cli"]


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "frost.hw"
    path.write_text(SPECIFICATION)
    (tmp_path / "cold.jsonl").write_text('{"type": "Temp", "timestamp": 1000, "val": -1}\n')
    return path


@pytest.mark.parametrize(
    "words", [["--help"], ["explain"], ["check", "--json", "SPEC"], ["replay", "SPEC", "--events"]]
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_a_sentence_and_status_2(spec, words, unbuffered):
    if not Path("/dev/full").exists():
        pytest.fail("this needs the device /dev/full, which Linux has")
    words = [str(spec) if word == "SPEC" else word for word in words]
    if words[-1] == "--events":
        words.append(str(spec.with_name("cold.jsonl")))
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, *words],
            stdout=full,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.startswith("headwater: ")
    assert done.stderr.endswith("no space left on device\n")
    assert done.stderr.count("\n") == 1


def test_closed_streams_are_no_failure(spec):
    closing = 'exec "$0" -m headwater.cli check "$1" >&- 2>&- <&-'
    for name, status in ((str(spec), 0), ("-", 0), ("/nowhere.hw", 2)):
        done = subprocess.run(["sh", "-c", closing, sys.executable, name], check=False)
        assert done.returncode == status


@pytest.mark.parametrize("words", [["check", "--no-such"], ["check", "/nowhere.hw"], ["nonsense"]])
def test_nobody_reading_what_is_wrong_does_not_make_it_good(words):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*COMMAND, *words], stdout=subprocess.PIPE, stderr=writing, check=False
        )
    finally:
        os.close(writing)
    assert done.returncode == 2
    assert done.stdout == b""


def test_the_package_is_the_command_too():
    done = subprocess.run(
        [sys.executable, "-m", "headwater", "explain", "HW999"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "headwater: no error has the code HW999; the first is HW101\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_what_the_output_cannot_encode_is_escaped(tmp_path, encoding):
    """Here the file's name: a letter beyond latin-1, and a byte that is no text at all."""
    name = "\u2265 é \udcff.hw"
    (tmp_path / name).write_text(SPECIFICATION)
    done = subprocess.run(
        [*COMMAND, "check", "--json", name],
        cwd=tmp_path,
        env=os.environ | {"PYTHONIOENCODING": encoding, "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout.decode(encoding))[0]["file"] == name
