"""The canonical layout: the same twice, the same meaning, every comment kept."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from language import LanguageError, check_text, format_text
from language.diagnostics import Collector
from language.printing.formatter import WIDTH
from language.reading.parser import read
from tests.language import trees
from tests.language.corpus import EXAMPLES, FILES
from tests.language.test_round_trip import printed, read_back
from tests.language.test_whole_files import SPECIFIED

COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|`[^`\n]*`|#[^\n]*')


def can_be_read(text):
    collector = Collector()
    read(text, collector)
    return not len(collector)


READABLE = [text for text in FILES if can_be_read(text)]


def comments_of(text):
    """All comments in a row, as several behind one part of a line come to stand on one line."""
    found = [found.rstrip() for found in COMMENT.findall(text) if found.startswith("#")]
    return " ".join(found)


def commented(text, places):
    """The text with a comment put in at each of the given gaps between words."""
    # A number and its unit are one word, which no comment can part.
    gaps = [m.start() for m in re.finditer(r'(?<=\s)(?<!\d\s)(?=[^\s"`#])|$', text)]
    inside = [m.span() for m in COMMENT.finditer(text)]
    gaps = [at for at in gaps if not any(start < at < end for start, end in inside)]
    chosen = sorted({gaps[place % len(gaps)] for place in places}, reverse=True)
    for number, at in enumerate(chosen):
        text = f"{text[:at]}# comment {number}\n{text[at:]}"
    return text


def assert_kept(text):
    formatted = format_text(text)
    assert sorted(comments_of(formatted).split()) == sorted(comments_of(text).split())
    assert format_text(formatted) == formatted
    assert read_back(formatted) == read_back(text)
    return formatted


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_examples_stand_as_they_are_formatted(text):
    assert format_text(text) == text


@pytest.mark.parametrize("text", [SPECIFIED, *READABLE])
def test_formatting_twice_changes_nothing_more(text):
    assert_kept(text)


@settings(max_examples=100)
@given(st.sampled_from([SPECIFIED, *EXAMPLES]), st.lists(st.integers(0, 10_000), max_size=4))
@example(SPECIFIED, [0])
def test_comments_are_kept_wherever_they_stand(text, places):
    assert_kept(commented(text, places))


@settings(max_examples=100)
@given(trees.files, st.lists(st.integers(0, 1_000), max_size=3))
def test_comments_are_kept_in_any_file(file, places):
    assert_kept(commented(printed(file) + "\n", places))


@pytest.mark.parametrize("text", EXAMPLES)
@pytest.mark.parametrize("step", [5, 17])
def test_comments_some_words_apart_keep_their_order(text, step):
    """Several in one part of a line may not: there the ones on their own line come first."""
    every = commented(text, range(0, 400, step))
    assert comments_of(assert_kept(every)) == comments_of(every)


@given(trees.files)
def test_lines_are_broken_where_they_can_be(file):
    """What is wider than a line has a single part: a word, a name, a long condition."""
    formatted = format_text(printed(file))
    assert all(line == line.rstrip() for line in formatted.splitlines())
    assert not re.search(r"\n\n\n", formatted)
    assert formatted == "" or (formatted.endswith("\n") and not formatted.endswith("\n\n"))


def test_a_long_set_fills_its_lines():
    formatted = format_text(f"set S = {{{', '.join(str(n) for n in range(500))}}}")
    lines = formatted.splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert min(map(len, lines[:-1])) > WIDTH - 10


def test_many_comments_in_a_long_set_take_no_long_time():
    text = "set S = {" + "".join(f"{n}, # {n}\n" for n in range(9_000)) + "1}"
    assert format_text(text).count("#") == 9_000


@pytest.mark.parametrize(
    ("text", "laid_out"),
    [
        ("event   A ( x:int,y :text )", "event A(x: int, y: text)\n"),
        ("set S={ 1,2 }  # both", "set S = {1, 2}  # both\n"),
        ("\n\n# first\n\n\n\nset S = {}\n\n\nset T = {}\nset U = {}\n\n",
         "# first\n\nset S = {}\n\nset T = {}\nset U = {}\n"),
        ("subscription S from u to a detect A", "subscription S seq 1 from u to a\n  detect A\n"),
        ("subscription S from u to a\ndetect (A)and((B))within 60 s # soon\n#at last\n",
         "subscription S seq 1 from u to a\n  detect A and B within 1 min  # soon\n\n#at last\n"),
        ("set S = {1.50, 90 s, 1500 ms, 0 s, 48 h, 0.5 km, 2000 m, -5 m}",
         "set S = {1.5, 90 s, 1500 ms, 0 s, 2 days, 500 m, 2 km, -5 m}\n"),
        ('set S = {"\\u0041\\t\\"é\\u0000💥"}', 'set S = {"A\\t\\"é\\u0000💥"}\n'),
        ("define D(srcid)detect A assign srcid=A.srcid group by srcid",
         "define D(source)\n  detect A\n  assign source = A.source\n  group by source\n"),
        ("event `A`(`last`: int)", "event A(`last`: int)\n"),
    ],
)  # fmt: skip
def test_layout(text, laid_out):
    assert format_text(text) == laid_out


@pytest.mark.parametrize("text", ["detect A", "event A(", 'set S = {"\\q"}', "(" * 200, "\x00"])
def test_what_cannot_be_read_is_not_formatted(text):
    with pytest.raises(LanguageError) as refused:
        format_text(text)
    assert refused.value.diagnostics
    assert str(refused.value) == check_text(text).report()


def test_what_can_be_read_is_formatted_whatever_it_means():
    assert format_text("define D() detect D") == "define D()\n  detect D\n"
