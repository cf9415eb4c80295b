"""`headwater test`: what passes, what differs, and what is wrong with a file, each in its line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.cli import main
from headwater.testing.compare import same
from headwater.testing.notation import (
    ScriptFaultError,
    Word,
    duration_ms,
    duration_text,
    interval_ms,
    interval_text,
    words_of,
)
from headwater.testing.script import ApproximateNumber
from tests.test_docs import ROOT

SPEC = """\
specification
  event A(x: int, on: bool, name: text, data: float)
  event B(x: int)
  define Pair(x) detect A as a then[..5 s] B as b assign x = a.x + b.x
  subscription Chain from me to alerts detect A as a then[..5 s] B as b
  subscription Summed from me to alerts detect Pair(x > 10) as pair
end
test one
"""
FIRST = SPEC.count("\n") + 1  # the line after it


def run(tmp_path, lines, *words):
    path = tmp_path / "t.hwt"
    path.write_text(SPEC + lines)
    return main(["test", str(path), *words])


def told(tmp_path, capsys, lines):
    """The status and, of a run with differences, the lines with their kinds."""
    status = run(tmp_path, lines, "--json")
    (file,) = json.loads(capsys.readouterr().out)
    (test,) = file["tests"]
    assert test["ok"] == (status == 0) == (not test["differences"])
    return [(one["line"] - FIRST, one["kind"]) for one in test["differences"]]


# --- what passes and what differs -------------------------------------------------------------

CHAIN = "0s A a1 x=1\n2s B b1 x=2\n3s B b2 x=30\n"


@pytest.mark.parametrize(
    "lines",
    [
        "expect Chain: a=a1 b=b1\nexpect Chain: a=a1 b=b2\nexpect Summed\nthen no more\n",
        "expect Chain: b=b2\nexpect Chain: b=b1\nthen no more of Chain\n",
        "expect Chain\nexpect Chain: b=b1\n",  # the first may not take what only the second can
        "expect 2 Chain: a=a1\nthen no more of Chain\n",
        "expect Chain: at 2s\nexpect Chain: at 0s..3s\n",
        "expect Chain: at 3s with b.x=30 a.x=1 certain\n",
        "expect Summed: pair=a1,b2 with pair.x=31\n",
        "expect Summed: pair=b2,a1 with pair.x=~3.1e1\n",
    ],
)
def test_what_is_as_expected_passes(lines, tmp_path, capsys):
    assert told(tmp_path, capsys, CHAIN + lines) == []


@pytest.mark.parametrize(
    ("lines", "differs"),
    [
        ("expect Chain: a=a1 b=b1\nthen no more of Chain\n", [(4, "unexpected")]),
        ("expect nothing\n", [(3, "unexpected")]),
        ("expect nothing of Summed\n", [(3, "unexpected")]),
        ("expect 3 Chain\n", [(3, "missing")]),
        ("expect Chain: at 2s..3s\n", [(3, "missing")]),
        ("expect Chain: at 4s\n", [(3, "missing")]),
        ("expect Chain: with a.x=1.5\n", [(3, "missing")]),
        ("expect Chain: with a.x=true\n", [(3, "missing")]),
        ("expect Chain: with a.y=1\n", [(3, "missing")]),
        ("expect Chain: group source=s1\n", [(3, "missing")]),
        ("expect Chain: maybe\n", [(3, "missing")]),
        ("expect Chain: a=a1,b1\n", [(3, "missing")]),
        ("expect Chain: a= b=b1\n", [(3, "missing")]),
        ("expect Chain: a=\n", [(3, "missing")]),
        ("expect late a1\n", [(3, "taken")]),
        ("expect repeat a1\n", [(3, "taken")]),
    ],
)
def test_what_differs_is_told_at_its_line(lines, differs, tmp_path, capsys):
    assert told(tmp_path, capsys, CHAIN + lines) == differs


def test_a_result_is_looked_for_where_the_expectation_stands(tmp_path, capsys):
    early = "0s A a1\nexpect Chain: a=a1 b=b1\n2s B b1\n".replace(" b=b1", "")
    assert told(tmp_path, capsys, early) == [(1, "missing")]
    run(tmp_path, early)
    assert f"Chain reported it later: with line {FIRST + 2}" in capsys.readouterr().out


def test_a_result_once_told_as_unexpected_is_not_told_again(tmp_path, capsys):
    lines = "0s A a1\n1s B b1\nexpect nothing\n2s B b2\nexpect nothing\n"
    run(tmp_path, lines)
    out = capsys.readouterr().out
    assert out.count("b=b1") == out.count("b=b2") == 1
    assert "0 passed, 1 failed" in out


def test_late_events_and_repeats_are_told_unless_they_are_meant(tmp_path, capsys):
    sent = "lateness 2s\n0s A a1\n9s A a2\n6s B b1\n0s A a1\n"
    differs = [(3, "passed_over"), (4, "passed_over")]
    assert told(tmp_path, capsys, f"{sent}expect nothing\n") == differs
    meant = "expect late b1\nexpect late a1\nexpect nothing\n"
    assert told(tmp_path, capsys, sent + meant) == []
    again = "5s A a1\n5s A a1\nexpect repeat a1\nexpect nothing\n"
    assert told(tmp_path, capsys, again) == []


def test_a_difference_shows_the_nearest_results_in_the_words_of_the_file(tmp_path, capsys):
    assert run(tmp_path, CHAIN + "expect Chain: a=a1 b=b2 at 2s\nexpect nothing of Summed\n") == 1
    lines = capsys.readouterr().out.splitlines()
    near = [line for line in lines if line.startswith("      but ")]
    assert near[0].startswith("      but Chain: a=a1 b=b1 at 0s..2s with a.x=1 b.x=2  (other b)")
    assert near[1].endswith("(other end)")
    (shown,) = [line for line in lines if line.startswith("      Summed")]
    assert run(tmp_path, f"{CHAIN}expect {shown.strip()}\nthen no more of Summed\n") == 0


def test_tests_do_not_touch_each_other(tmp_path, capsys):
    lines = "0s A a1\nexpect nothing\ntest two\n1s B b1\nexpect nothing\n"
    assert run(tmp_path, lines) == 0
    assert capsys.readouterr().out == "2 passed\n"


def test_events_take_the_forms_and_kinds_of_their_attributes(tmp_path, capsys):
    lines = (
        '0s A "a 1" x=-3 on=true name=5 data=1e2 @source s1 @location a/b @uncertainty 0s\n'
        '1s..2s {"type": "B", "id": "b1", "x": 4, "position": [1.5, 2]}\n'
        'expect Chain: a="a 1" b=b1 with a.x=-3 a.on=true a.name="5" a.data=100 at 0s..2s\n'
        "then no more\n"
    )
    assert told(tmp_path, capsys, lines) == []


# --- what is wrong with a file ----------------------------------------------------------------

FAULTS = [
    ("0s C", 4, "no event type `C`"),
    ("0s Pair", 4, "detected by a definition"),
    ("0s A x=q", 8, "`x` is of kind int; found `q`"),
    ("0s A x=9223372036854775808", 8, "kind int"),
    ("0s A on=1", 9, "kind bool"),
    ("0s A data=nan", 1, "found nan at `data`"),
    ("0s A z=1", 6, "no attribute `z`"),
    ("0s A x=1 x=2", 10, "`x` is given twice"),
    ("0s A a b", 8, "expected name=value"),
    ("0s A @sorce s", 6, "found `@sorce`"),
    ("0s A @source", 6, "no value follows"),
    ("0s A @position 1", 16, "in degrees or"),
    ("0s A @position 100,1", 1, "position"),
    ("0s A source=s", 6, "no attribute"),
    ("0x A", 1, "expected the units"),
    ("0.0001s A", 1, "whole milliseconds"),
    ("5s..3s A", 1, "starts after it ends"),
    ("2026-13-01 A", 1, "ISO 8601"),
    ("0s", 1, "no event follows"),
    ('0s {"type": "A"', 4, "never closed"),
    ('0s {"x": 1}', 4, "needs a `type`"),
    ('0s {"type": "A", "timestamp": 1}', 4, "before it and in its JSON"),
    ('0s A "a', 6, "never closed"),
    ('{"type": "A", "timestamp": 1} x', 31, "nothing may follow"),
    ("expect", 1, "nothing follows"),
    ("expect Chian", 8, "no subscription `Chian`"),
    ("expect 0 Chain", 8, "expected `1 NAME`"),
    ("expect Chain: c=a1", 15, "binds no `c`"),
    ("expect Chain: a=a7", 17, "no event `a7`"),
    ("expect Chain: at", 15, "no time follows"),
    ("expect Chain: at x", 18, "expected a time"),
    ("expect Chain: with", 15, "no name=value follows"),
    ("expect Chain: with a.x=~y", 24, "a number after `~`"),
    ("expect Chain: soon", 15, "found `soon`"),
    ("expect nothing off Chain", 16, "expected `of NAME`"),
    ("then no mroe", 9, "expected `more`"),
    ("then", 1, "expected `then no more`"),
    ("then no more", 1, "nothing is expected above"),
    ("lateness", 1, "expected `lateness"),
    ("lateness soon", 10, "expected a duration"),
    ("expct Chain", 1, "found `expct`"),
    ("test", 1, "has no name"),
    ("test one", 6, "already"),
    ('use "other.hw"', 1, "stands in line 1 already"),
]


@pytest.mark.parametrize(("line", "column", "says"), FAULTS)
def test_a_fault_of_a_line_is_told_with_its_column(line, column, says, tmp_path, capsys):
    before = "expect nothing\n" if line.startswith("test") else ""
    status = run(tmp_path, f"{before}{line}\nexpect nothing\n")
    err = capsys.readouterr().err
    assert status == 2
    place, source, caret, *_ = err.splitlines()
    assert place.startswith(f"{tmp_path}/t.hwt:{FIRST + bool(before)}:{column}: ")
    assert says in place
    assert source.endswith(line)
    assert caret.index("^") == source.index(" | ") + 2 + column


def test_every_fault_of_a_file_is_told_in_its_order(tmp_path, capsys):
    assert run(tmp_path, "0s C\n0s A x=q\nexpect Chian\ntest two\n") == 2
    err = capsys.readouterr().err
    places = [line.split(": ")[0].removeprefix(f"{tmp_path}/t.hwt:") for line in err.splitlines()]
    found = [place for place in places if place[:1].isdigit()]
    lines = [(FIRST, 4), (FIRST + 1, 8), (FIRST + 2, 8), (FIRST + 3, 1)]
    assert found == [f"{line}:{column}" for line, column in lines]


def test_out_of_order_needs_a_lateness(tmp_path, capsys):
    assert run(tmp_path, "5s A\n4s A\nexpect nothing\n") == 2
    assert f"t.hwt:{FIRST + 1}:1: line {FIRST} has come as far as 5s" in capsys.readouterr().err
    assert run(tmp_path, "lateness 1s\n5s A\n4s A\nexpect nothing\n") == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", ":1:1: it names no specification"),
        ("test a\nexpect nothing\n", ":1:1: it names no specification"),
        ("specification\nevent A()\n", ":1:1: the specification has no `end`"),
        ("specification\nevent A()\nend\n", ":1:1: the specification has no subscription"),
        (SPEC.replace("test one\n", ""), ":8:1: it holds no test"),
        (SPEC, f":{FIRST - 1}:1: the test expects nothing"),
        (SPEC.replace("detect Pair", "detect Piar") + "expect nothing\n", ":6:48: HW201"),
        ('use "nowhere.hw"\ntest a\nexpect nothing\n', ":1:5: "),
        ("use\ntest a\nexpect nothing\n", ":1:1: found `use`"),
    ],
)
def test_a_file_that_is_no_test_says_why(text, says, tmp_path, capsys):
    path = tmp_path / "t.hwt"
    path.write_text(text)
    assert main(["test", str(path)]) == 2
    assert f"{path}{says}" in capsys.readouterr().err
    assert main(["test", str(path), "--json"]) == 2
    captured = capsys.readouterr()
    (outcome,) = json.loads(captured.out)
    assert captured.err == ""
    assert outcome["errors"]
    assert all({"line", "column", "message"} <= set(one) for one in outcome["errors"])


def test_each_file_has_its_turn_and_the_worst_decides(tmp_path, capsys):
    (tmp_path / "a.hw").write_text(SPEC.split("\n", 1)[1].rsplit("end", 1)[0])
    good = 'use "a.hw"\ntest a\n0s A\nexpect nothing\n'
    names = []
    for name, text in {"good": good, "bad": good.replace("0s A", "0s C"), "no": None}.items():
        path = tmp_path / f"{name}.hwt"
        names.append(str(path))
        if text is not None:
            path.write_text(text)
    assert main(["test", *names]) == 2
    captured = capsys.readouterr()
    assert captured.out == "1 passed, 2 files faulty\n"
    assert "no.hwt: cannot be read" in captured.err
    assert main(["test", names[0]]) == 0


def test_what_editors_add_to_a_file_changes_nothing(tmp_path, capsys):
    """A byte order mark at its beginning, and lines that end as on Windows."""
    path = tmp_path / "t.hwt"
    lines = SPEC + "  0s A a1 x=1\n  expect nothing\n"
    path.write_bytes(b"\xef\xbb\xbf" + lines.replace("\n", "\r\n").encode())
    assert main(["test", str(path)]) == 0
    assert capsys.readouterr().out == "1 passed\n"


def test_too_many_results_are_a_difference_and_no_flood(tmp_path, capsys):
    many = [f"0s A a{i}" for i in range(101)] + [f"1s B b{i}" for i in range(101)]
    assert told(tmp_path, capsys, "\n".join([*many, "expect Chain", ""]))[-1][1] == "too_many"
    assert run(tmp_path, "\n".join([*many, "expect nothing of Chain", ""])) == 1
    assert len(capsys.readouterr().out.splitlines()) < 20


# --- notation ---------------------------------------------------------------------------------


@given(st.integers(-(10**13), 10**13), st.integers(0, 10**12), st.integers(-(10**12), 10**12))
def test_an_interval_reads_as_it_is_told(start, lasted, zero):
    text = interval_text(start, start + lasted, zero)
    assert interval_ms(Word(text, 1), zero) == (start, start + lasted)


@given(st.integers(0, 10**13))
def test_a_duration_reads_as_it_is_told(duration):
    assert duration_ms(Word(duration_text(duration), 1)) == duration


@given(st.text(max_size=60))
def test_any_line_is_words_at_their_columns_or_a_fault_within_it(line):
    words, fault = [], None
    try:
        words = words_of(line)
    except ScriptFaultError as error:
        fault = error.word
    if fault is not None:
        assert line[fault.column - 1 :].startswith(fault.text)
        return
    at = 0
    for word in words:
        assert word.text
        assert line[at : word.column - 1].strip() == ""
        assert line[word.column - 1 :].startswith(word.text)
        at = word.column - 1 + len(word.text)
    assert line[at:].strip()[:1] in {"", "#"}


@given(st.text(max_size=200))
def test_whatever_a_file_holds_the_answer_is_no_traceback(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("t") / "t.hwt"
    path.write_text(SPEC + text, encoding="utf-8", newline="")
    assert main(["test", str(path)]) in {0, 1, 2}


@pytest.mark.parametrize(
    ("wanted", "value", "is_same"),
    [
        ("~20.33", 20.3349, True),
        ("~20.33", 20.336, False),
        ("~20", 20.4, True),
        ("~20", 20.6, False),
        ("~20", True, False),
        ("~20", "20", False),
        (1, 1.0, True),
        (1, True, False),
        (False, 0, False),
        ("a", "a", True),
        ([1, 2], [1, 2.0], True),
    ],
)
def test_values_are_the_same_where_they_say_the_same(wanted, value, is_same):
    from decimal import Decimal

    if isinstance(wanted, str) and wanted.startswith("~"):
        wanted = ApproximateNumber(Decimal(wanted[1:]))
    assert same(wanted, value) is is_same


# --- the examples and the page ----------------------------------------------------------------


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.hw")), ids=lambda p: p.stem)
def test_every_example_has_tests_that_pass_and_look_at_each_subscription(path, capsys):
    tests = path.with_suffix(".hwt")
    assert main(["test", str(tests)]) == 0
    assert capsys.readouterr().out.endswith(" passed\n")
    from language import check_text

    names = {name for _, name in check_text(path.read_text()).demand().subscriptions}
    text = tests.read_text()
    missed = {name for name in names if f"expect {name}:" not in text}
    assert missed <= NOT_IN_A_FEW_LINES.get(path.stem, set())


# Subscriptions that need hours of readings, or only repeat another one's pattern.
NOT_IN_A_FEW_LINES = {
    "fog": {"PersistentFog"},
    "people": {"BreakOver"},
    "weather": {"HotStation", "WindChill", "CoolingFront"},
}
