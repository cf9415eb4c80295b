"""`--functions FILE.py`: what the page on them tells to type does what it says."""

import json
import shlex

import pytest

from headwater.cli import main
from tests.test_docs import command_lines, saved

PAGE = "docs/functions.md"


@pytest.fixture
def followed(tmp_path, monkeypatch):
    saved(PAGE, tmp_path)
    monkeypatch.chdir(tmp_path)


def test_the_page_on_functions_can_be_followed(followed, capsys):
    checking, replaying = map(shlex.split, command_lines(PAGE))
    assert main(checking) == 0
    assert capsys.readouterr().out == ""
    assert main(replaying) == 0
    (result,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert result["values"] == {"half": 3.0}


@pytest.mark.parametrize("more", [["--bounds"], ["--plan"]])
def test_all_that_check_can_show_takes_them(followed, capsys, more):
    assert main(["check", "swings.hw", "--functions", "own.py", *more]) == 0
    assert "Wide" in capsys.readouterr().out


def test_explaining_takes_them(followed, capsys):
    words = ["replay", "swings.hw", "--functions", "own.py", "--events", "swings.jsonl"]
    assert main([*words, "--explain"]) == 0
    assert "Wide" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["check"], ["replay", "--events", "swings.jsonl"]])
def test_without_them_a_text_that_calls_them_is_faulty(followed, capsys, command):
    assert main([command[0], "swings.hw", *command[1:]]) == (1 if command == ["check"] else 2)
    assert "Swing" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["check"], ["replay", "--events", "swings.jsonl"]])
def test_a_file_that_cannot_be_used_is_a_sentence(followed, capsys, command):
    assert main([command[0], "swings.hw", *command[1:], "--functions", "none.py"]) == 2
    assert capsys.readouterr().err == "headwater: none.py: there is no such file of functions\n"
