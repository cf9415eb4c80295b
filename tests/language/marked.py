"""Texts with their errors marked: `«HW301»` stands before the place of an error.

Owns the reading of the marks.
"""

import re

from language import check_text

MARK = re.compile(r"«(HW\d{3})»")
DECLARED = """\
event A(x: int, t: text, on: bool, raw: bytes)
event B(x: int, t: text)
event C(y: float, k: text)
set Dock = {"a", "b"}
set Numbers = {1, 2.5}
region Pass = circle(45.8, 7.1, 3 km)
region Hall = path("building-a/floor-1")
table Tags from "tags.csv" key tag
"""
SUBSCRIPTION = "subscription S from u to a\n"


def unmarked(marked):
    """The text without marks, and the marked errors in order: code, line, column."""
    found, text = [], ""
    for index, part in enumerate(MARK.split(marked)):
        if index % 2:
            line = text.count("\n") + 1
            found.append((part, line, len(text) - (text.rfind("\n") + 1) + 1))
        else:
            text += part
    return text, found


def errors(text, functions=()):
    """All errors of a text."""
    return list(check_text(text, functions=dict.fromkeys(functions)).diagnostics)


def assert_errors(marked, functions=()):
    """The text has the marked errors and no others."""
    text, expected = unmarked(marked)
    found = errors(text, functions)
    assert [(one.code, one.line, one.column) for one in found] == sorted(
        expected, key=lambda one: (*one[1:], one[0])
    ), [one.message for one in found]


def assert_detect(marked, functions=()):
    """As `assert_errors`, for the clauses of one subscription over A, B and C."""
    assert_errors(DECLARED + SUBSCRIPTION + marked, functions)


def assert_define(marked, functions=()):
    """As `assert_errors`, for items over A, B and C."""
    assert_errors(DECLARED + marked, functions)
