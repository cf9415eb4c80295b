"""Every command answers with a sentence and one of four statuses."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.config.table import settings
from headwater.cli import main
from headwater.cli.frame import COMMANDS, module_of
from headwater.cli.output import print_table
from headwater.cli.specifications.diagnostics import rendered
from headwater.cli.specifications.replay import lateness_ms
from headwater.cli.subscriptions.results import as_line


def test_the_overview_lists_every_command(capsys):
    assert main(["--help"]) == 0
    told = capsys.readouterr().out
    assert all(f"  {name} " in told for name in COMMANDS)
    assert main([]) == 2


@pytest.mark.parametrize("words", [["user", "--help"], ["user", "-h"], ["help", "user"]])
def test_the_first_word_of_several_commands_has_help_of_its_own(words, capsys):
    assert main(words) == 0
    told = capsys.readouterr().out
    shown = [name for name in COMMANDS if f"  {name} " in told]
    assert shown == [name for name in COMMANDS if name.startswith("user ")]


@pytest.mark.parametrize("name", ["check", "user add"])
def test_help_may_stand_before_a_command_too(name, capsys):
    assert main([*name.split(), "--help"]) == 0
    usual = capsys.readouterr().out
    assert main(["help", *name.split()]) == 0
    assert capsys.readouterr().out == usual


def test_the_version_is_that_of_the_distribution(capsys):
    assert main(["--version"]) == 0
    assert re.fullmatch(r"headwater \d+\.\d+\.\d+\n", capsys.readouterr().out)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_of_its_own_and_json(name, capsys):
    assert main([*name.split(), "--help"]) == 0
    told = capsys.readouterr().out
    assert "--json" in told
    module = module_of(name)
    assert f"example:\n{module.EXAMPLE}" in told
    assert module.EXAMPLE.startswith(f"  headwater {name}")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["tial"], "no command `tial`; did you mean `tail`?"),
        (["zzzz"], "`headwater --help` lists what there is"),
        (["config"], "`config` needs a second word: `config show`"),
        (["user", "rename"], "`user` needs a second word: `user add`"),
        (["ls", "--prot"], "unrecognized arguments: --prot"),
        (["cancel"], "required: NAME"),
        (["ls", "--timeout", "0"], "more than 0"),
        (["ls", "--timeout", "x"], "--timeout"),
        (["tail", "--count", "0"], "1 or more"),
        (["ls", "--broker", "ftp://x"], "expected http://, https://, mqtt://, mqtts://"),
        (["ls", "--broker", "http://"], "expected http://"),
        (["ls", "--broker", "http://x:port"], "--broker http://x:port"),
        (["ls", "--broker", "http://anna:pw@x"], "use --user"),
        (["ls", "--as", "a/b"], "without /, + and #"),
        (["submit", "/nowhere.hw"], "/nowhere.hw: cannot be read: no such file"),
        (["config", "show", "--set", "x"], "expected SECTION.KEY=VALUE"),
        (["config", "show", "--set", "mqtt.prot=1"], "did you mean `mqtt.port`?"),
    ],
)
def test_what_is_used_wrongly_is_status_2_with_what_would_be_right(words, says, capsys):
    assert main(words) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["ls", "--broker", "ftp://x", "--json"], "ftp://x"),
        (["ls", "--json", "--prot"], "unrecognized arguments: --prot"),
        (["cancel", "--json"], "required: NAME"),
        (["tial", "--json"], "did you mean `tail`?"),
    ],
)
def test_a_refusal_is_json_where_json_was_asked_for(words, says, capsys):
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.err == ""
    told = json.loads(captured.out)
    assert told["ok"] is False
    assert says in told["errors"][0]["message"]


def test_a_refused_replay_leaves_standard_output_to_results(capsys):
    assert main(["replay", "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "required" in json.loads(captured.err)["errors"][0]["message"]


@pytest.mark.parametrize("control", ["\x1b[2J", "\x07", "\x00", "\x7f", "\x9b31m", "\r"])
def test_what_a_stranger_wrote_does_not_steer_the_terminal(control, tmp_path, capsys):
    spec, data = tmp_path / "a.hw", tmp_path / "a.csv"
    spec.write_text("event A(x: int)\nsubscription S from u to a\ndetect A\n")
    data.write_text(f'type,timestamp,x\nA,5,"z{control}"\n', newline="")
    for words in (["replay", str(spec), "--events", str(data)], ["ls", "--broker", f"x{control}"]):
        assert main(words) == 2
    told = capsys.readouterr().err + as_line({"subscription": control, "values": {"a": control}})
    assert "column x" in told
    assert not any(one != "\n" and not one.isprintable() for one in told)
    print_table(["A"], [[control]])
    assert control not in capsys.readouterr().out


def test_a_specification_that_is_not_utf8_is_told_with_its_line(tmp_path, capsys):
    path = tmp_path / "x.hw"
    path.write_bytes("ok\nä = ".encode() + b"\xff")
    assert main(["submit", str(path)]) == 2
    assert f"{path}:2:5: not UTF-8" in capsys.readouterr().err


# --- config show, user add --------------------------------------------------------------------


def test_config_show_tells_every_value_with_its_origin(tmp_path, monkeypatch, capsys):
    path = tmp_path / "site.toml"
    path.write_text("[mqtt]\nport = 1999\n")
    monkeypatch.setenv("HEADWATER__HTTP__PORT", "9999")
    command = ["config", "show", "--config", str(path), "--set", "log.level=debug", "--origin"]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if " = " in line]) == len(settings())
    port, web_port, _ = [line for line in lines if line.startswith("port = ")]
    assert port.endswith(f"# {path}:2")
    assert web_port.endswith("# env HEADWATER__HTTP__PORT")
    assert any(re.match(r'level = "debug" +# flag --set log.level', line) for line in lines)
    assert main([*command, "--json"]) == 0
    rows = {row["key"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["mqtt.port"] == {
        "key": "mqtt.port",
        "value": 1999,
        "unit": "",
        "origin": f"{path}:2",
    }
    assert rows["intake.lateness_ms"]["unit"] == "ms"


def test_config_show_refuses_what_a_broker_would_refuse(tmp_path, capsys):
    path = tmp_path / "site.toml"
    path.write_text("[mqtt]\nprot = 1\nhost = 3\n")
    for command in (["config", "show"], ["broker"]):
        assert main([*command, "--config", str(path)]) == 2
        told = capsys.readouterr().err.splitlines()
        assert told[0].startswith(f"headwater: {path}:2:1: [mqtt] has no key `prot`")
        assert told[1].startswith(f"headwater: {path}:3:1: mqtt.host: ")


@pytest.mark.parametrize(
    ("name", "typed", "says"),
    [
        ("anna", "\n", "an empty password"),
        ("anna", "x" * 2000, "at most 1024"),
        ("a b", "x", "a b"),
    ],
)
def test_user_add_refuses_what_will_not_do(name, typed, says, tmp_path):
    made = subprocess.run(
        [sys.executable, "-m", "headwater.cli", "user", "add", name, "--file", str(tmp_path / "r")],
        input=typed,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 2
    assert says in made.stderr
    assert made.stdout == ""


ADD_ANNA = ["user", "add", "anna", "--file", "none.toml"]


@pytest.mark.parametrize("words", [ADD_ANNA, ["ls", "--user", "anna"]])
def test_who_types_no_password_is_told_so(words, monkeypatch, capsys):
    """Ctrl-D at the prompt."""

    def ended(prompt):
        raise EOFError

    monkeypatch.delenv("HEADWATER_PASSWORD", raising=False)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("getpass.getpass", ended)
    assert main(words) == 2
    assert capsys.readouterr().err == "headwater: no password was typed\n"


# --- a pipe that closes, Ctrl-C ---------------------------------------------------------------


def test_a_reader_that_has_seen_enough_is_no_error():
    """As in `headwater config show | head -1`, with the pipe closed before anything is written."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "headwater.cli", "config", "show"],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_ctrl_c_ends_tail_cleanly(face):
    process = subprocess.Popen(
        [sys.executable, "-m", "headwater.cli", "tail", "--broker", face.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        face.publish(("Frost", b'{"subscription": "Frost", "end": 0}'))
        assert process.stdout is not None
        assert process.stdout.readline() == "1970-01-01T00:00:00.000Z Frost\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
    finally:
        process.kill()
        process.wait(10)
    assert (process.returncode, out, err) == (0, "", "")


# --- what is printed --------------------------------------------------------------------------


def test_a_diagnostic_stands_under_its_column_also_behind_tabs():
    error = {"code": "HW104", "message": "no such name", "line": 2, "column": 4, "hint": "try x"}
    assert rendered("a.hw", "one\n\ttwo\r\n", [error]) == (
        "a.hw:2:4: HW104: no such name\n    2 | \ttwo\n      | \t  ^\n      = try x"
    )


def test_a_diagnostic_of_a_broker_looks_like_one_of_check(tmp_path, capsys):
    """But for the width of the caret, which is not sent."""
    path = tmp_path / "a.hw"
    path.write_text("event A(x: int)\nsubscription S from u to a\ndetect B\n")
    assert main(["check", str(path)]) == 1
    told = capsys.readouterr().err.removesuffix("1 error\n").rstrip("\n")
    assert main(["check", str(path), "--json"]) == 1
    (checked,) = json.loads(capsys.readouterr().out)
    assert rendered(str(path), path.read_text(), checked["errors"]) == told


def test_a_diagnostic_without_a_hint_has_no_empty_line_for_it():
    error = {"code": "HW104", "message": "x", "line": 1, "column": 1}
    assert rendered("a.hw", "one", [error]).splitlines()[-1] == "      | ^"


@pytest.mark.parametrize("error", [{}, {"line": 9, "column": 1}, {"line": "x", "column": 1}])
def test_a_diagnostic_without_a_usable_place_is_still_told(error):
    assert rendered("a.hw", "one", [{"message": "bad"} | error]) == "a.hw: bad"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["subscription", "end", "group", "values", "x"]), JSON))
def test_a_result_is_one_line_whatever_it_holds(result):
    assert "\n" not in as_line(result)


def test_a_result_tells_time_group_and_values():
    result = {
        "subscription": "Frost",
        "end": 1191234567089,
        "certainty": "maybe",
        "group": {"source": "t7"},
        "values": {"temp": -1.5, "who": ["a", "b"]},
    }
    assert as_line(result) == (
        '2007-10-01T10:29:27.089Z Frost (maybe) source="t7" temp=-1.5 who=["a", "b"]'
    )


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("250ms", 250),
        ("2s", 2000),
        ("1.5s", 1500),
        ("20m", 1_200_000),
        ("5 min", 300_000),
        ("1h", 3_600_000),
        ("2d", 172_800_000),
    ],
)
def test_a_lateness_is_a_duration(text, expected_ms):
    """Written as in a rehearsal."""
    assert lateness_ms(text) == expected_ms


@pytest.mark.parametrize("text", ["2", "s", "-1s", "1.s", "1e3ms", "2 days"])
def test_a_lateness_that_is_none_is_refused(text, capsys):
    assert main(["replay", "x.hw", "--events", "-", f"--lateness={text}"]) == 2
    assert "expected a duration" in capsys.readouterr().err
