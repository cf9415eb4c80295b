"""`headwater replay` as a command: what it says of bad input, and what it does to its output."""

import gzip
import json
import os
import pty
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import headwater
from headwater.cli import main
from headwater.replays import replay
from headwater.replays import sorter as sorting

SPECIFICATION = """\
event Temp(val: float, raw: bytes)
subscription Cold from me to alerts detect Temp(val < 0)
"""
COLD = '{"type": "Temp", "id": "a", "timestamp": 1000, "val": -1}\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("cold.hw").write_text(SPECIFICATION)
    Path("cold.jsonl").write_text(COLD)
    return tmp_path


def found(out: str) -> list[tuple[str, list[str]]]:
    results = [json.loads(line) for line in out.splitlines()]
    return [(one["subscription"], one["events"]["Temp"]) for one in results]


def on_terminal(folder: Path, *words: str, with_output: bool) -> tuple[str, str]:
    """Run `replay` with a terminal for standard error; what that shows, and what output says.

    `with_output`: results go to the terminal, too.
    """
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "headwater.cli", "replay", str(folder / "cold.hw"), *words]
    with subprocess.Popen(
        command,
        stdout=end if with_output else subprocess.PIPE,
        stderr=end,
        cwd=Path(__file__).parents[2],
        text=True,
    ) as process:
        os.close(end)
        output = "" if process.stdout is None else process.stdout.read()
        shown = b""
        with os.fdopen(terminal, "rb", buffering=0) as reading:
            try:
                while more := reading.read(65_536):
                    shown += more
            except OSError:  # a terminal whose other end is closed fails instead of ending
                pass
    assert process.returncode == 0
    return shown.decode(), output


# --- what goes in -----------------------------------------------------------------------------


def test_plain_packed_json_and_csv_say_the_same(folder, capsys):
    """A digest stands for an id that is left out, and a time may be a text."""
    Path("cold.csv").write_text("type,id,timestamp,val\nTemp,a,1970-01-01T00:00:01Z,-1\n")
    Path("long.csv").write_text("attribute,key,time,val\nTemp,a,1000,-1\n")
    Path("array.jsonl").write_text(f"[{COLD.strip()}]\n")
    for name in ("cold.jsonl", "cold.csv"):
        Path(f"{name}.gz").write_bytes(gzip.compress(Path(name).read_bytes()))
    for words in (
        ["cold.jsonl"],
        ["cold.jsonl.gz"],
        ["array.jsonl"],
        ["cold.csv"],
        ["cold.csv.gz"],
        ["long.csv", "--map", "timestamp=time,id=key"],
        ["cold.jsonl", "--lateness", "2s"],
        ["cold.jsonl", "--json"],
    ):
        assert main(["replay", "cold.hw", "--events", *words]) == 0
        assert found(capsys.readouterr().out) == [("Cold", ["a"])]


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_is_read_as_a_file_is(folder, packed):
    data = gzip.compress(COLD.encode()) if packed else COLD.encode()
    command = [sys.executable, "-m", "headwater.cli", "replay"]
    done = subprocess.run(
        [*command, str(folder / "cold.hw"), "--events", "-", "--lateness", "1s"],
        input=data,
        capture_output=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert found(done.stdout.decode()) == [("Cold", ["a"])]


@pytest.mark.parametrize("words", [["-", "--events", "-"], ["cold.hw", "--events", "-", "-"]])
def test_standard_input_is_not_asked_for_twice(folder, words, capsys):
    assert main(["replay", *words]) == 2
    assert "standard input (-) can be read only once" in capsys.readouterr().err


def test_each_bad_line_is_told_with_file_and_line_and_nothing_else_is_written(folder, capsys):
    Path("bad.jsonl").write_text(f'{COLD}nonsense\n{COLD}{{"type": "Temp", "val": "x"}}\n')
    assert main(["replay", "cold.hw", "--events", "bad.jsonl"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [line.split(" ")[0] for line in captured.err.splitlines()] == [
        "bad.jsonl:2:",
        "bad.jsonl:4:",
    ]
    assert main(["replay", "cold.hw", "--events", "bad.jsonl", "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    told = json.loads(captured.err)
    assert told["ok"] is False
    assert [(one["file"], one["line"]) for one in told["errors"]] == [
        ("bad.jsonl", 2),
        ("bad.jsonl", 4),
    ]


def test_of_many_bad_lines_the_first_are_told_and_the_rest_counted(folder, capsys):
    """Over several batches too: a batch is a quarter of a megabyte."""
    Path("bad.jsonl").write_text(("{" + "x" * 998 + "\n") * 1000)
    assert main(["replay", "cold.hw", "--events", "bad.jsonl"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == replay.BAD_LINES_SHOWN_MAX + 1
    assert told[-1].startswith(f"and {1000 - replay.BAD_LINES_SHOWN_MAX} bad lines more")


def test_what_is_passed_over_is_counted_once_each(folder, capsys):
    """Two bad lines, a repeat, a late event, and one of an undeclared type in each format."""
    late = '{"type": "Temp", "timestamp": 1, "val": 1}\n'
    strange = '{"type": "Wind", "timestamp": 5000}\n'
    Path("mixed.jsonl").write_text(f'{COLD}{COLD}x\n{strange}{{"type": "Temp"}}\n{late}')
    Path("mixed.csv").write_text("type,timestamp,val\nWind,5000,1\nTemp,6000,cold\n")
    words = ["replay", "cold.hw", "--events", "mixed.jsonl", "mixed.csv", "--skip-bad"]
    words += ["--lateness", "0ms"]
    assert main(words) == 0
    assert capsys.readouterr().err == (
        "passed over: bad lines 3, late 1, repeat 1, undeclared_type 2\n"
    )
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().err) == {
        "bad_lines": 3,
        "dropped": {"late": 1, "repeat": 1, "undeclared_type": 2},
    }


def test_a_faulty_specification_is_told_on_standard_error(folder, capsys):
    Path("faulty.hw").write_text(SPECIFICATION.replace("val <", "vall <"))
    assert main(["replay", "faulty.hw", "--events", "cold.jsonl"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("faulty.hw:2:49: HW203")
    assert main(["replay", "faulty.hw", "--events", "cold.jsonl", "--json"]) == 2
    captured = capsys.readouterr()
    (error,) = json.loads(captured.err)["errors"]
    assert captured.out == ""
    assert (error["file"], error["line"], error["column"]) == ("faulty.hw", 2, 49)


@pytest.mark.parametrize("name", ["nowhere.jsonl", "."])
def test_input_that_cannot_be_opened_is_a_sentence(folder, name, capsys):
    assert main(["replay", "cold.hw", "--events", "cold.jsonl", name]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"headwater: {name}: ")
    assert main(["replay", "cold.hw", "--events", name, "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["errors"][0]["message"].startswith(f"{name}: ")


def test_large_values_are_sorted_on_disk_however_few_they_are(folder, monkeypatch, capsys):
    """The bound in bytes holds, not the one in events alone."""
    spilled = []
    spill = sorting.ExternalSort._spill
    monkeypatch.setattr(sorting.ExternalSort, "_spill", lambda s: spilled.append(1) or spill(s))
    monkeypatch.setattr(replay, "ExternalSort", partial(sorting.ExternalSort, bytes_max=1))
    raw = "AAAA" * 100
    lines = [
        json.dumps({"type": "Temp", "id": f"e{n}", "timestamp": 9 - n, "val": -n, "raw": raw})
        for n in range(1, 5)
    ]
    for name, line in enumerate(lines):
        Path(f"{name}.jsonl").write_text(line + "\n")
    Path("4.csv").write_text(f"type,id,timestamp,val,raw\nTemp,e0,9,-9,{raw}\n")
    files = [*(f"{n}.jsonl" for n in range(4)), "4.csv"]
    assert main(["replay", "cold.hw", "--events", *files]) == 0
    assert found(capsys.readouterr().out) == [("Cold", [f"e{n}"]) for n in (4, 3, 2, 1, 0)]
    assert len(spilled) == 5


@pytest.mark.parametrize("batch_events", [1, 4096])
def test_a_recording_begins_with_its_least_start_wherever_that_comes(
    folder, monkeypatch, capsys, batch_events
):
    """The event that starts first ends last, so it is the last in order."""
    monkeypatch.setattr(replay, "BATCH_EVENTS", batch_events)
    Path("quiet.hw").write_text(
        "event A() event B() subscription Quiet from me to alerts detect absent A for 10 s"
    )
    Path("quiet.jsonl").write_text(
        '{"type": "B", "timestamp": 5000}\n{"type": "B", "start": 1000, "end": 6000}\n'
    )
    assert main(["replay", "quiet.hw", "--events", "quiet.jsonl"]) == 0
    (result,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (result["start"], result["end"]) == (1000, 11_000)
    engine = headwater.Engine(Path("quiet.hw").read_text(), lateness_ms=None)
    engine.push(json.loads(line) for line in Path("quiet.jsonl").read_text().splitlines())
    assert engine.finish() == [result]


# --- what comes out ---------------------------------------------------------------------------


def test_results_go_to_the_file_that_is_named(folder, capsys):
    Path("out.jsonl").write_text("older\n" * 1000)
    assert main(["replay", "cold.hw", "--events", "cold.jsonl", "--output", "out.jsonl"]) == 0
    assert found(Path("out.jsonl").read_text()) == [("Cold", ["a"])]
    assert capsys.readouterr().out == ""


def test_a_dash_is_standard_output(folder, capsys):
    assert main(["replay", "cold.hw", "--events", "cold.jsonl", "--output", "-"]) == 0
    assert found(capsys.readouterr().out) == [("Cold", ["a"])]
    assert not Path("-").exists()


def test_without_results_the_file_is_empty(folder):
    Path("out.jsonl").write_text("older\n")
    Path("warm.jsonl").write_text(COLD.replace("-1", "1"))
    assert main(["replay", "cold.hw", "--events", "warm.jsonl", "--output", "out.jsonl"]) == 0
    assert Path("out.jsonl").read_text() == ""


@pytest.mark.parametrize("events", ["nowhere.jsonl", "bad.jsonl"])
def test_faulty_input_leaves_the_output_as_it_was(folder, events):
    Path("bad.jsonl").write_text("x\n")
    Path("out.jsonl").write_text("older\n")
    for name in ("out.jsonl", "new.jsonl"):
        assert main(["replay", "cold.hw", "--events", events, "--output", name]) == 2
    assert Path("out.jsonl").read_text() == "older\n"
    assert not Path("new.jsonl").exists()


@pytest.mark.parametrize("name", ["cold.jsonl", "link.jsonl", "cold.hw"])
def test_an_input_is_not_overwritten_by_the_output(folder, name, capsys):
    Path("link.jsonl").symlink_to("cold.jsonl")
    before = Path(name).read_text()
    assert main(["replay", "cold.hw", "--events", "cold.jsonl", "--output", name]) == 2
    assert f"--output {name}: " in capsys.readouterr().err
    assert Path(name).read_text() == before


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nowhere/out", "no such file or directory"),
        (".", "is a directory"),
        ("/dev/full", "no space left on device"),
    ],
)
def test_output_that_cannot_be_written_is_a_sentence(folder, name, reason, capsys):
    assert main(["replay", "cold.hw", "--events", "cold.jsonl", "--output", name]) == 2
    assert capsys.readouterr().err == f"headwater: {name}: cannot be written: {reason}\n"


# --- how far it is ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ([], ["1 events read", "1 of 1  events matched"]),
        (["--lateness", "1s"], ["1 events matched"]),
    ],
)
def test_a_terminal_shows_how_far_a_replay_is_and_is_clean_behind_it(folder, words, lines):
    shown, output = on_terminal(
        folder, "--events", str(folder / "cold.jsonl"), *words, with_output=False
    )
    assert found(output) == [("Cold", ["a"])]
    for line in lines:
        assert line in shown
    assert shown.endswith("\r\x1b[2K")


def test_results_on_a_terminal_are_not_mixed_with_how_far_it_is(folder):
    shown, _ = on_terminal(folder, "--events", str(folder / "cold.jsonl"), with_output=True)
    assert found(shown) == [("Cold", ["a"])]
