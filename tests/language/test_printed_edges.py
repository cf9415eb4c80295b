"""Where printing goes astray first: characters that are not to be seen, suffixes over suffixes."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from language import check_text, format_text
from language.printing.expressions import string_text

DECLARED = "event A(x: int, t: text)\nevent B(x: int)\nevent C(x: int)\n"
HEAD = "subscription S from a to b\n  detect "
SURROGATES = st.characters(exclude_categories=("Cs",))


@given(st.text(SURROGATES))
@example('\x00\x1b\x7f\x85\u2028\u200b\ufeff\r\n\t\\"')
def test_a_text_constant_shows_all_its_characters_and_reads_as_the_same(value):
    """Neither a terminal nor a diff is to be led astray by a specification's text."""
    written = string_text(value)
    kinds = {unicodedata.category(character) for character in written}
    assert not kinds & {"Cc", "Zl", "Zp"}
    checked = check_text(f"{DECLARED}{HEAD}A(t = {written})")
    (task,) = checked.demand().graph.tasks.values()
    (condition,) = task.node.case.detect.pattern.conditions
    assert condition.operands[1].value == value


@pytest.mark.parametrize(
    "pattern",
    [
        "(A where A.x > 1) where A.x < 3",
        "((A where A.x > 1) and B) where A.x < B.x",
        "(A where A.x > 1) within 5 s where A.x < 3",
        "((A then B where B.x > 1) spread 5 km) within 5 s where A.x < 3",
        "(A as a where a.x > 1) and (B as b where b.x > 1) where a.x < b.x",
    ],
)
@pytest.mark.parametrize("wide", [False, True])
def test_suffixes_over_suffixes_keep_their_parentheses(pattern, wide):
    if wide:  # the formatter breaks the line at operators
        pattern = pattern.replace("A.x", "A.x + 1000000000000").replace("a.x", "a.x + 1000000000")
        pattern = f"({pattern}) and (C(x > 1000000000000) within 500 ms)"
    before = check_text(DECLARED + HEAD + pattern).demand()
    after = check_text(format_text(DECLARED + HEAD + pattern)).demand()
    assert after.graph.roots == before.graph.roots


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        ("A without (B then C+)", None),  # what lies within p ends with it
        ("A without (B then C*)", None),
        ("A without[5 s] (B then C+)", None),
        ("A+ then B", None),
        ("A then B+", "HW404"),
        ("A then[..5 s] B+", None),
        ("A then[1 s..] B+", "HW404"),
        ("last A and B", "HW405"),
        ("last A and[..5 s] B", None),
        ("A and[..5 s] last B", None),
        ("last A and[5 s..] B", "HW405"),
        ("A before last B", "HW405"),
        ("last A before B", None),
        ("A contains last B", None),
        ("last A contains B", "HW405"),
        ("last A during B", None),
    ],
)
def test_what_ends_a_list_or_a_last(pattern, code):
    found = [one.code for one in check_text(DECLARED + HEAD + pattern).diagnostics]
    assert found == ([] if code is None else [code])
