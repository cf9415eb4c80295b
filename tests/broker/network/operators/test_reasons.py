"""Why events travel as they do is said of each operator, and names what decides it."""

import pytest

from broker.network.operators import reasons
from broker.network.operators.derivation import reasoned_operators, task_operators
from broker.network.operators.phrases import in_words
from broker.network.operators.times import Times
from language import check_text
from language.taskgraph import cases_of
from tests.broker.network.operators.test_page import READINGS, SAID, TYPES, shown

WEEK = SAID["# events may last a week"]
WHY = [
    (" A(n > 1)", READINGS, {"A(n > 1): each": reasons.ALL_ALONE}),
    (" A or B", READINGS, {"A: each": reasons.SIDE, "B: each": reasons.SIDE}),
    (" A and B", READINGS, dict.fromkeys(["A: each", "B: each"], reasons.UNBOUNDED)),
    ("[recent] A then B", READINGS, dict.fromkeys(["A: each", "B: each"], reasons.UNBOUNDED)),
    (" A then[..2 s] B", WEEK, dict.fromkeys(["A: each", "B: each"], reasons.LONG)),
    (
        "[latest] A then B within 5 s",
        READINGS,
        dict.fromkeys(["A: each", "B: each"], reasons.CHOSEN.format("latest")),
    ),
    (
        "[chronicle] A then B then C within 5 s",
        READINGS,
        dict.fromkeys(["A: each", "B: each", "C: each"], reasons.CHOSEN.format("chronicle")),
    ),
    (
        "[first] A then B within 5 s",
        READINGS,
        {"A, B: together in less than 5001 ms": reasons.PAIR.format("first")},
    ),
    (
        " A and B without C within 5 s",
        READINGS,
        {
            "A, B: together in less than 5001 ms": reasons.UNRESTRICTED,
            "C: each": reasons.WITHOUT,
        },
    ),
    (" A{3} within 5 s", READINGS, {"A: each": reasons.COUNTED}),
    (" distinct(n) A within 5 s", READINGS, {"A: each": reasons.COUNTED}),
    (" absent A for 5 s", READINGS, {"A: each": reasons.ABSENT}),
    (
        " A(n > 0) then[next] B within 5 s",
        READINGS,
        dict.fromkeys(["A: each", "B: each"], reasons.NEXT),
    ),
    (
        " A then nth 2 B within 5 s",
        READINGS,
        {"A: each": reasons.NO_PARTNER, "B: each": reasons.COUNTED},
    ),
    (
        " A then B+ then[recent] C within 5 s",
        READINGS,
        {
            "A: each": reasons.CHOSEN.format("recent"),
            "B: each": reasons.LISTED,
            "C: each": reasons.CHOSEN.format("recent"),
        },
    ),
]
CASES = (
    TYPES
    + """
define Pair(n)
case 0:
  detect A as a and B as b within 5 s
  assign n = a.n
case 1:
  detect A as a or B as b
  assign n = 1
define W(n) aggr every 5 s
  detect C as c
  assign n = Count(c)
subscription S from me to you
detect Pair or W or absent A for 5 s
group by n
subscription T from me to you
detect A as a then B as b within 5 s group by n
"""
)


def told(task, times):
    return {
        in_words(one.operator): one.why
        for case in cases_of(task.node)
        for one in reasoned_operators(task, case, times)
    }


@pytest.mark.parametrize(("pattern", "times", "expected"), WHY, ids=[one[0] for one in WHY])
def test_the_reason_names_what_decides(pattern, times, expected):
    detect = f"detect{pattern}"
    graph = check_text(f"{TYPES}subscription S from me to you {detect}").demand().graph
    assert told(graph.tasks[graph.roots[0]], times) == expected


@pytest.mark.parametrize(("pattern", "times", "lines"), shown())
def test_every_operator_has_a_reason(pattern, times, lines):
    detect = f"detect{'' if pattern.startswith('[') else ' '}{pattern}"
    graph = check_text(f"{TYPES}subscription S from me to you {detect}").demand().graph
    found = told(graph.tasks[graph.roots[0]], times)
    assert sorted(found) == sorted(lines)
    assert all(found.values())


def test_reasons_are_told_case_by_case_and_leave_no_operator_out():
    graph = check_text(CASES).demand().graph
    certain = Times(uncertainty_ms_max=0, duration_ms_max=0)
    whys = set()
    for task in graph.tasks.values():
        rows = [
            one for case in cases_of(task.node) for one in reasoned_operators(task, case, certain)
        ]
        asked = [one.operator for one in rows if one.why != reasons.ANYHOW]
        assert {one.id for one in asked} == {one.id for one in task_operators(task, certain)}
        whys.update(one.why for one in rows)
    # The first case of Pair is asked for anyhow, as the second wants each of its events.
    assert whys >= {reasons.ANYHOW, reasons.SIDE, reasons.WINDOW, reasons.BEGINS}
    assert reasons.UNRESTRICTED in whys
