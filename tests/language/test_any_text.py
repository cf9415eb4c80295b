"""Whatever text is given: only diagnostics come of it, at places within it, in bounded time."""

from time import process_time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from language import Checked, LanguageError, check_text, explain, format_text
from language.limits import DIAGNOSTICS_MAX, TEXT_LENGTH_MAX
from tests.language import trees
from tests.language.corpus import FILES, HEAD, TOKENS, WHO, hard
from tests.language.test_round_trip import printed, read_back

LENGTH = 20_000
CPU_S_MAX = 4


def take(text: str) -> Checked:
    """Check and format the text; whatever it is, this must be true of the outcome."""
    checked = check_text(text)
    assert (checked.specification is None) == bool(checked.diagnostics)
    assert len(checked.diagnostics) <= DIAGNOSTICS_MAX
    for one in checked.diagnostics:
        assert 0 <= one.start <= one.end <= len(text)
        assert one.line == text.count("\n", 0, one.start) + 1
        assert one.column == one.start - (text.rfind("\n", 0, one.start) + 1) + 1
        assert one.message.isprintable()
        assert one.hint.isprintable()
    told = checked.report()
    told.encode()
    assert len(told) <= 2_000 * len(checked.diagnostics)
    if checked.ok:
        for task in checked.demand().graph.tasks.values():
            task.text.encode()
    formatted = formatted_or_refused(text)
    if formatted is None:
        assert not checked.ok
        return checked
    assert format_text(formatted) == formatted
    assert read_back(formatted) == read_back(text)
    return checked


def formatted_or_refused(text: str) -> str | None:
    """The text laid out anew; None where it cannot be read, which format_text says by its error."""
    try:
        return format_text(text)
    except LanguageError:
        return None


@given(st.text(max_size=60))
@example("")
@example("\x00")
@example("\ufeff")
@example("\ud800")
@example("event A(x: int)\r\nset S = {1}\r")
@example('event A(t: text)\nsubscription S from u to a\ndetect A(t = "\ud800")')
def test_any_text(text):
    take(text)


@given(st.text(st.characters(), max_size=20))
@example("\x00\x1b[2J")
@example("\ud800")
def test_any_text_within_quotes(text):
    """What can be a text constant comes back as it was; what cannot is refused."""
    shown = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    checked = take(f'set S = {{"{shown}"}}')
    if checked.ok:
        assert [member.value for member in checked.demand().sets["S"].members] == [text]
    else:
        assert any("\ud800" <= c <= "\udfff" for c in text)


@given(st.binary(max_size=80))
def test_any_bytes(data):
    take(data.decode("latin-1"))
    take(data.decode("utf-8", "surrogateescape"))
    take(data.decode("utf-8", "replace"))


@settings(max_examples=400)
@given(st.lists(st.sampled_from(TOKENS), max_size=25), st.sampled_from([" ", "", "\n"]))
def test_any_tokens(tokens, between):
    take(between.join(tokens))


@settings(max_examples=300)
@given(st.lists(st.sampled_from(TOKENS), max_size=12))
def test_any_tokens_behind_a_detect(tokens):
    take(f"{HEAD}{WHO}detect A {' '.join(tokens)}")


@st.composite
def mutated(draw, texts=FILES):
    """A text with parts cut out, doubled, moved or replaced."""
    text = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 30)))
        change = draw(st.sampled_from(["cut", "double", "move", "put", "end"]))
        part = text[start:end]
        rest = text[:start] + text[end:]
        if change == "cut":
            text = rest
        elif change == "double":
            text = text[:end] + part + text[end:]
        elif change == "move":
            at = draw(st.integers(0, len(rest)))
            text = rest[:at] + part + rest[at:]
        elif change == "put":
            text = text[:start] + draw(st.sampled_from(TOKENS)) + text[end:]
        else:
            text = text[:end]
    return text


@settings(max_examples=400)
@given(mutated())
def test_any_change_to_a_text(text):
    take(text)


@settings(max_examples=60)
@given(trees.files)
def test_any_tree(file):
    """What can be written can be judged, sensible or not."""
    take(printed(file))


@given(st.sampled_from(FILES), st.sampled_from(["\r\n", "\r", "\n\n", "\n\t ", "\n# é\n"]))
def test_line_ends_and_comments_change_no_meaning(text, line_end):
    """Every kind of line end but a lone carriage return, which ends no comment."""
    if line_end == "\r" and "#" in text:
        return
    changed = text.replace("\n", line_end)
    codes = [one.code for one in check_text(text).diagnostics]
    assert [one.code for one in take(changed).diagnostics] == codes


# --- size -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", hard(1_000))
def test_a_hard_text_takes_bounded_time(name):
    text = hard(LENGTH)[name]
    began = process_time()
    checked = check_text(text)
    checked.report()
    formatted_or_refused(text)
    assert process_time() - began < CPU_S_MAX


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", hard(1_000))
def test_a_hard_text_of_the_greatest_length_takes_bounded_time(name):
    """A minute is much, but a text of that length is a thousand subscriptions."""
    text = hard(TEXT_LENGTH_MAX)[name][:TEXT_LENGTH_MAX]
    began = process_time()
    check_text(text).report()
    assert process_time() - began < 60


@pytest.mark.parametrize("name", hard(1_000))
def test_what_is_said_of_a_hard_text_is_right(name):
    take(hard(1_000)[name])


def test_a_text_beyond_the_limit_is_not_even_looked_at():
    began = process_time()
    [one] = check_text("(" * 50_000_000).diagnostics
    assert one.code == "HW126"
    assert process_time() - began < 1


def test_explaining_takes_any_text_too():
    for code in ["", "\x00", "HW1", "HW" + "9" * 100_000, "\ud800", "ＨＷ１０１"]:
        with pytest.raises(LanguageError):
            explain.explain(code)
