"""What is printed reads as the same tree."""

import pytest
from hypothesis import given, settings

from language import format_text, tree
from language.diagnostics import Collector
from language.printing.expressions import expression_text
from language.printing.items import item_text
from language.printing.patterns import pattern_text
from language.reading.parser import parser, read
from language.reading.values import COLLECTOR
from tests.language import trees


def printed(file: tree.File) -> str:
    return "\n".join(item_text(item) for item in file.items)


def read_back(text: str) -> tree.File:
    collector = Collector()
    reading = read(text, collector)
    assert collector.found() == ()
    return reading.file


@given(trees.files)
def test_a_printed_file_reads_as_the_same_tree(file):
    assert read_back(printed(file)) == file


@given(trees.files)
def test_a_formatted_file_reads_as_the_same_tree(file):
    """Here lines are broken, as in a task's text they never are."""
    assert read_back(format_text(printed(file))) == file


def only(pattern: str, clause: str = "detect") -> tree.Node:
    token = COLLECTOR.set(Collector())
    try:
        return parser().parse(f"{clause} {pattern}", start="clause").value
    finally:
        COLLECTOR.reset(token)


@pytest.mark.parametrize(
    "text",
    [
        "A or B and C then D",
        "(A or B) and C then (D and E)",
        "A then (B then C) then D",
        "A then B without[5 s] C",
        "(A and B) then C",
        "last (A then B) and C",
        "(A as a)+ as b then C",
        "(A+)+",
        "nth 2 last A",
        "distinct(x, y) A and distinct A",
        "distinct (A then B)",
        "absent (A or B) for 5 mins",
        "A then[1 s..5 s, next, recent] B",
        "A within 5 s spread 10 km in Pass where A.x > 1",
        "(A where A.x > 1) within 5 s",
        "((A where A.x > 1) where A.y > 2) in Pass",
    ],
)
def test_parentheses_stand_only_where_they_are_needed(text):
    assert pattern_text(only(text).pattern) == text


@pytest.mark.parametrize(
    ("text", "shorter"),
    [
        ("((A then B)) then C", "A then B then C"),
        ("(A and B) or C", "A and B or C"),
        ("(last A) and B", "last A and B"),
        ("(A) as a", "A as a"),
        ("(A within 5 s) spread 5 m", "A within 5 s spread 5 m"),
    ],
)
def test_parentheses_that_change_nothing_go(text, shorter):
    assert pattern_text(only(text).pattern) == shorter


@pytest.mark.parametrize(
    "text",
    [
        "a or b and not c = d",
        "(a or b) and c",
        "not (a and b)",
        "a - (b - c) - d",
        "a * (b + c) / -d",
        "--a",
        "(a < b) = c",
        "1 < a <= b < 9",
        "a - -5",
        "x in {1, -2.5} or source in Dock",
        'location in path("a/b") and position in circle(45.87, 7.17, 3 km)',
        'Tags[a.tag].kind = "box"',
        "f(a, g(b + 1), -2)",
        "timestamp + 5 mins",
    ],
)
def test_an_expression_is_printed_as_it_was_written(text):
    [assigned] = only(f"x = {text}", "assign")
    assert expression_text(assigned.value) == text


@settings(max_examples=300)
@given(trees.expressions)
def test_an_expression_means_the_same_after_printing(expression):
    [assigned] = only(f"x = {expression_text(expression)}", "assign")
    assert assigned.value == expression
