"""What documents tell a reader to type, follow or save is right."""

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from headwater.cli import main
from headwater.cli.frame import COMMANDS, parser_of
from language import check_text

ROOT = Path(__file__).resolve().parent.parent
PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [match[3] for match in FENCE.finditer(text) if match[1] == language]


def command_lines(page: str) -> list[str]:
    """Lines that begin with the command, in indented or console blocks."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^(?:    |\$ )headwater (.*)$", text, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("page", "line"), [(page, line) for page in PAGES for line in command_lines(page)]
)
def test_every_command_line_that_is_told_is_understood(page, line):
    words = shlex.split(line, comments=True)
    for mark in (">", ">>", "2>", "|", "&"):
        if mark in words:
            words = words[: words.index(mark)]
    name = " ".join(words[:2]) if " ".join(words[:2]) in COMMANDS else words[0]
    assert name in COMMANDS
    parser_of(name).parse_args(words[len(name.split()) :])


def test_the_commands_told_are_those_of_the_first_acquaintance():
    """The check above sees nothing where the form of the documents has changed."""
    told = {
        line.split()[0]
        for page in ("README.md", "docs/tutorial.md")
        for line in command_lines(page)
    }
    assert told >= {"check", "replay", "broker", "submit", "ls", "tail", "user"}


@pytest.mark.parametrize("page", PAGES)
def test_json_and_toml_blocks_can_be_read(page):
    for block in blocks(page, "toml"):
        tomllib.loads(block)
    for block in blocks(page, "json"):
        for line in block.splitlines():
            json.loads(line)


@pytest.mark.parametrize("page", [*PAGES, "CHANGELOG.md"])
def test_every_link_within_the_documents_leads_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not target.startswith(("https://", "#")):
            assert (ROOT / page).parent.joinpath(target.split("#")[0]).exists(), target


@pytest.mark.parametrize("page", PAGES)
def test_every_specification_that_is_shown_is_free_of_errors(page):
    for block in blocks(page, "headwater"):
        checked = check_text(block, file=page)
        assert checked.ok, checked.report()


def saved(page: str, folder: Path) -> None:
    """Blocks whose fence names a file are written there, as the reader is told to."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        if match[2]:
            (folder / match[2]).write_text(match[3], encoding="utf-8")


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_check_and_replay_do_what_the_documents_say(page, tmp_path, monkeypatch, capsys):
    """The two worked examples; what is said of their results in prose is counted here."""
    saved(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    for line in command_lines(page):
        words = shlex.split(line, comments=True)
        if words[0] == "check":
            assert main(words) == 0
            assert capsys.readouterr().out == ""
        elif words[0] == "replay":
            assert main(words) == 0
            results = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
            bound = [result["events"].values() for result in results]
            events = [sorted(one for ids in lists for one in ids) for lists in bound]
            assert events == EXPECTED[page]


EXPECTED = {
    "README.md": [["h1", "t1", "w1"]],
    "docs/tutorial.md": [["d1", "t1"], ["d1", "t3"]],
}


def test_the_page_on_testing_shows_what_the_command_prints(tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs/testing.md").read_text()
    shown = {match[2]: match[3] for match in FENCE.finditer(text) if match[1] == "hwt"}
    assert set(shown) == {"frost.hwt", "wrong.hwt", "forms.hwt", "window.hwt"}
    monkeypatch.chdir(tmp_path)
    for name, block in shown.items():
        Path(name).write_text(block)
        assert main(["test", name]) == (1 if name == "wrong.hwt" else 0)
        out = capsys.readouterr().out
        if name == "frost.hwt":
            assert out == "2 passed\n"
            assert "It prints `2 passed`." in text
        if name == "wrong.hwt":
            (printed,) = [m[3] for m in FENCE.finditer(text) if m[1] == "text"]
            assert out == printed


def test_the_page_on_inspecting_shows_what_the_command_prints(tmp_path, monkeypatch, capsys):
    page = "docs/inspecting.md"
    saved(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    printed = ""
    for line in command_lines(page):
        assert main(shlex.split(line)) == 0
        printed += capsys.readouterr().out
    assert printed == "".join(blocks(page, "text"))
    drawn = (ROOT / "docs/plan.svg").read_text(encoding="utf-8")
    assert Path("plan.svg").read_text(encoding="utf-8") == drawn
