"""`headwater check` and `headwater fmt` over files: each file has its turn and is never damaged."""

import json
import os
import stat
import subprocess
import sys

import pytest

from headwater import specifications
from headwater.cli import main
from language import format_text

GOOD = "event Temp(val: float)\nsubscription Frost from me to alerts detect Temp(val < 0)\n"
CANONICAL = format_text(GOOD)
FAULTY = "event Temp(val: float)\nsubscription Frost from me to alerts detect Tmp(val < 0)\n"
UNREADABLE = "event Temp(val float)\n"  # a text of which no form is canonical


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.hw").write_text(GOOD)
    (tmp_path / "faulty.hw").write_text(FAULTY)
    (tmp_path / "unreadable.hw").write_text(UNREADABLE)
    (tmp_path / "binary.hw").write_bytes(b"\x00\xff")
    (tmp_path / "folder.hw").mkdir()
    return tmp_path


def test_check_goes_on_past_a_file_that_cannot_be_read(folder, capsys):
    names = ["nowhere.hw", "binary.hw", "folder.hw", "faulty.hw", "good.hw"]
    assert main(["check", *names]) == 2
    told = capsys.readouterr().err
    assert "headwater: nowhere.hw: cannot be read: no such file or directory\n" in told
    assert "headwater: binary.hw:1:2: not UTF-8\n" in told
    assert "headwater: folder.hw: cannot be read: is a directory\n" in told
    assert "faulty.hw:2:45: HW201" in told
    assert told.endswith("1 error\n")


def test_check_tells_the_same_as_json(folder, capsys):
    assert main(["check", "--json", "nowhere.hw", "faulty.hw", "good.hw"]) == 2
    captured = capsys.readouterr()
    missing, faulty, good = json.loads(captured.out)
    assert captured.err == ""
    assert (missing["file"], missing["ok"]) == ("nowhere.hw", False)
    assert "no such file" in missing["errors"][0]["message"]
    assert (faulty["errors"][0]["line"], faulty["errors"][0]["column"]) == (2, 45)
    assert good == {"file": "good.hw", "ok": True, "errors": []}


@pytest.mark.parametrize(("name", "status"), [("good.hw", 0), ("faulty.hw", 1), ("x.hw", 2)])
def test_check_has_a_status_for_good_faulty_and_missing(folder, name, status):
    assert main(["check", name]) == status


def test_fmt_writes_the_canonical_text_and_tells_of_every_file(folder, capsys):
    """A faulty meaning is no hindrance, a text that cannot be read is one, for itself alone."""
    assert main(["fmt", "good.hw", "unreadable.hw", "nowhere.hw", "faulty.hw"]) == 2
    told = capsys.readouterr().err
    assert "good.hw: formatted\n" in told
    assert "unreadable.hw:1:16: HW101" in told
    assert "headwater: nowhere.hw: cannot be read" in told
    assert "faulty.hw: formatted\n" in told
    assert (folder / "good.hw").read_text() == CANONICAL
    assert (folder / "unreadable.hw").read_text() == UNREADABLE
    assert main(["fmt", "--check", "good.hw", "faulty.hw"]) == 0


def test_fmt_with_check_changes_nothing(folder, capsys):
    assert main(["fmt", "--check", "good.hw"]) == 1
    assert (folder / "good.hw").read_text() == GOOD
    assert capsys.readouterr().err == "good.hw: would change\n"
    assert main(["fmt", "--check", "--json", "good.hw"]) == 1
    assert json.loads(capsys.readouterr().out) == [{"file": "good.hw", "ok": True, "changed": True}]


def test_fmt_tells_errors_as_json(folder, capsys):
    assert main(["fmt", "--json", "unreadable.hw", "nowhere.hw"]) == 2
    captured = capsys.readouterr()
    assert captured.err == ""
    unreadable, missing = json.loads(captured.out)
    assert unreadable["errors"][0]["code"] == "HW101"
    assert "no such file" in missing["errors"][0]["message"]


def test_fmt_of_standard_input_is_one_json_document_where_json_was_asked_for():
    for words in (["fmt", "-"], ["fmt", "--json", "-"]):
        done = subprocess.run(
            [sys.executable, "-m", "headwater.cli", *words],
            input=GOOD,
            capture_output=True,
            text=True,
            check=True,
        )
        text = json.loads(done.stdout)[0]["text"] if "--json" in words else done.stdout
        assert text == CANONICAL


def test_a_file_keeps_its_mode_and_a_link_goes_on_being_one(folder):
    (folder / "good.hw").chmod(0o640)
    (folder / "link.hw").symlink_to("good.hw")
    assert main(["fmt", "link.hw"]) == 0
    assert (folder / "link.hw").is_symlink()
    assert (folder / "good.hw").read_text() == CANONICAL
    assert stat.S_IMODE((folder / "good.hw").stat().st_mode) == 0o640


def test_a_file_that_cannot_be_written_stands_as_it_was(folder, monkeypatch, capsys):
    """As on a full disk: the new text fails while it is written, and leaves nothing behind."""

    def full(*_arguments, **_options):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(specifications.shutil, "copymode", full)
    before = sorted(folder.iterdir())
    assert main(["fmt", "good.hw"]) == 2
    assert "good.hw: cannot be written: no space left on device" in capsys.readouterr().err
    assert (folder / "good.hw").read_text() == GOOD
    assert sorted(folder.iterdir()) == before
