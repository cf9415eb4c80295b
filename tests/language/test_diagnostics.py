"""The table of errors drives the reporter: each entry is found, placed, told and explained."""

import re
import string
from pathlib import Path

import pytest

import language
from language import LanguageError, check_text, explain
from language.diagnostics import Collector, report
from language.limits import ECHO_LENGTH_MAX, SOURCE_LINE_LENGTH_MAX
from language.messages import TABLE
from language.messages.entry import CARET
from language.tree import Span

CASES = [
    pytest.param(entry, example, id=f"{entry.code}-{number}")
    for entry in TABLE.values()
    for number, example in enumerate(entry.examples)
]


def checked(example):
    return check_text(
        example.text,
        functions=dict.fromkeys(example.functions),
        tables=example.read_table if example.tables else None,
    )


@pytest.mark.parametrize(("entry", "example"), CASES)
def test_a_bad_example_has_this_error_alone_at_its_place(entry, example):
    found = [(one.code, one.line, one.column) for one in checked(example).diagnostics]
    assert found == [(entry.code, example.line, example.column)]
    assert checked(example).specification is None


@pytest.mark.parametrize(("entry", "example"), CASES)
def test_the_caret_stands_under_the_place(entry, example):
    """Counted on the screen: below the character that the example marks, in the line shown."""
    told = checked(example).report(code=entry.code).split("\n")
    head, shown, carets, *advice = told
    assert head.startswith(f"<text>:{example.line}:{example.column}: {entry.code}: ")
    at = carets.index("^")
    assert set(carets[at:]) == {"^"}
    line = example.text.split("\n")[example.line - 1]
    assert shown[at : at + 20] == line[example.column - 1 :][:20]
    assert len(shown) <= SOURCE_LINE_LENGTH_MAX + len("12345 | ")
    assert len(advice) == 1
    assert advice[0].strip().removeprefix("= ")


@pytest.mark.parametrize(("entry", "example"), CASES)
def test_an_error_says_what_is_wrong_and_what_would_be_right(entry, example):
    for one in checked(example).diagnostics:
        if one.code == entry.code:
            assert "{" not in re.sub(r"`[^`]*`|found \{", "", one.message)
            assert one.hint
            assert one.hint != one.message
            assert "\n" not in one.message + one.hint
            assert CARET not in one.message + one.hint


@pytest.mark.parametrize("entry", TABLE.values(), ids=list(TABLE))
def test_an_entry_is_complete(entry):
    assert re.fullmatch(r"HW\d{3}", entry.code)
    assert len(entry.examples) >= 2
    assert len({one.text for one in entry.examples}) == len(entry.examples)
    for sentence in (entry.title, entry.message, entry.help):
        assert sentence == sentence.strip()
        assert not sentence.endswith(".")
        assert len(sentence) > 5


def test_codes_are_unique_and_grouped():
    codes = [
        entry.code
        for name in ("syntax", "names", "types", "semantics", "clauses")
        for entry in __import__(f"language.messages.{name}", fromlist=["ENTRIES"]).ENTRIES
    ]
    assert codes == sorted(codes)
    assert len(codes) == len(set(codes)) == len(TABLE)
    assert {code[:3] for code in codes} == set(explain.SECTIONS)


def test_every_code_that_is_noted_has_an_entry_and_every_entry_is_noted():
    """A code that nothing can find is a promise that nobody keeps."""
    root = Path(language.__file__).parent
    noted = {
        code
        for path in root.rglob("*.py")
        if path.parent.name != "messages"
        for code in re.findall(r'"(HW\d{3})"', path.read_text(encoding="utf-8"))
    }
    assert noted == set(TABLE)


def test_a_suggested_name_is_right():
    """Where another name is suggested, writing it in place of the one found mends the error."""
    mended = 0
    for entry in TABLE.values():
        for example in entry.examples:
            for one in checked(example).diagnostics:
                name = re.fullmatch(r"did you mean `(.*)`\?", one.hint)
                if one.code != entry.code or name is None:
                    continue
                old = example.text[one.start : one.end]
                new = re.sub(r"^[\w-]+", name[1], old) if "." not in name[1] else name[1]
                text = example.text[: one.start] + new + example.text[one.end :]
                again = check_text(
                    text,
                    functions=dict.fromkeys(example.functions),
                    tables=example.read_table if example.tables else None,
                )
                left = [(d.code, d.start) for d in again.diagnostics]
                assert (one.code, one.start) not in left, text
                mended += 1
    assert mended >= 12


# --- explaining -------------------------------------------------------------------------------


@pytest.mark.parametrize("code", TABLE)
def test_every_code_is_explained_with_an_example(code):
    entry = TABLE[code]
    for spelt in (code, code.lower(), f" {code}\n"):
        told = explain.explain(spelt)
        assert told.startswith(f"{code}: {entry.title}\n")
        assert entry.help in told
        assert entry.message in told
    if any(len(one.text) <= explain.SHOWN_LENGTH_MAX for one in entry.examples):
        assert "^" in told
        assert f": {code}: " in told


@pytest.mark.parametrize("code", ["HW000", "", "hello", "HW1010", "x" * 10_000, "\x00"])
def test_an_unknown_code_is_refused(code):
    with pytest.raises(LanguageError, match="no error has the code") as refused:
        explain.explain(code)
    assert len(str(refused.value)) < 100


def test_the_page_tells_of_every_error_in_order():
    page = explain.page()
    heads = re.findall(r"^### (HW\d{3}): (.*)$", page, flags=re.MULTILINE)
    assert heads == [(entry.code, entry.title) for entry in TABLE.values()]
    assert page.endswith("\n")
    assert not page.endswith("\n\n")


# --- what is echoed ---------------------------------------------------------------------------


def test_what_a_message_repeats_of_the_text_is_short_and_on_one_line():
    """Whatever stands in the text: a terminal is not moved, a log line is not split."""
    fields = {
        name
        for entry in TABLE.values()
        for _, name, _, _ in string.Formatter().parse(entry.message)
        if name is not None
    }
    for entry in TABLE.values():
        collector = Collector()
        words = dict.fromkeys(fields, "\x1b[2J\r\n\u2028" + "x" * 100_000)
        collector.note(entry.code, Span(0, 1, 1, 1), **words)
        [one] = collector.found()
        assert one.message.isprintable()
        assert len(one.message) < len(entry.message) + 4 * 6 * ECHO_LENGTH_MAX


def test_the_report_shows_the_part_of_a_long_line_around_the_place():
    text = "set S = {" + "1, " * 3_000 + '"a", ' + "2, " * 3_000 + "3}"
    _, shown, carets, _ = check_text(text).report().split("\n")
    assert len(shown) <= SOURCE_LINE_LENGTH_MAX + len("    1 | ")
    assert shown[carets.index("^") :].startswith('"a"')
    assert carets.count("^") == len('"a"')


def test_tabs_and_wide_ranges_keep_the_caret_in_place():
    text = "event A(x: int)\nsubscription S from u to a\n\tdetect\tA(y > 1)"
    _, shown, carets, _ = check_text(text).report().split("\n")
    before = shown[: shown.index("y")]
    assert carets.split("^")[0][len("    3 ") :].count("\t") == before.count("\t") == 2
    assert len(carets.split("^")[0]) == len(before)


def test_the_caret_stands_below_what_follows_wide_and_combining_characters():
    """Each of the wide ones takes two columns of a screen, the combining ones none."""
    for held, columns in (("日本語", 6), ("ｅ", 2), ("e\u0301", 1)):
        text = (
            f'event A(x: int, t: text)\nsubscription S from u to a\ndetect A(t = "{held}", y > 1)'
        )
        _, shown, carets, _ = check_text(text).report().split("\n")
        before = shown[: shown.index("y > 1")].removesuffix(f'{held}", ')
        assert carets.index("^") == len(before) + columns + len('", ')


def test_control_characters_of_the_text_do_not_reach_the_terminal():
    told = check_text('event A(x: int)\nset S = {1, "\x1b[2J\x9b"}\n').report()
    assert all(c.isprintable() or c == "\n" for c in told)


def test_colour_changes_nothing_but_colour():
    one = check_text("event A(x: integer)\nevent A()")
    plain = re.sub(r"\x1b\[\d+m", "", one.report(color=True))
    assert plain == one.report() == report(one.text, one.diagnostics)
    assert "\x1b[31m" in one.report(color=True)


def test_a_diagnostic_for_programs_says_the_same():
    one = check_text("event A(x: integer)").diagnostics[0]
    assert one.to_dict() == {
        "code": "HW216",
        "message": "`integer` is no type of attributes",
        "line": 1,
        "column": 12,
        "hint": "the types are int, float, text, bool and bytes",
    }
