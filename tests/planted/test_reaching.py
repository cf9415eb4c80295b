"""What is traced is what ran: no fault seems to be reached that was not."""

from __future__ import annotations

import sys
from textwrap import dedent

from broker.engine.filter.conditions import past
from tests.planted.fault import Fault
from tests.planted.reaching import CALLS_MAX, Tracer, lines_of

CONDITIONS = "broker/engine/filter/conditions.py"


def fault(name: str, old: str) -> Fault:
    return Fault(name, CONDITIONS, old, "", "what it says", ())


def test_a_fault_stands_in_the_lines_of_the_statement_that_it_changes():
    text = dedent("""\
    def told(
        many,
    ):
        if (
            many
            and more
        ):
            return sum(
                many,
                beside,
            )
        return 0
    """)
    assert lines_of(fault("within", "beside"), text) == {8, 9, 10, 11}
    assert lines_of(fault("head", "and more"), text) == {4, 5, 6, 7}
    assert lines_of(fault("two", ")\n    return 0"), text) == {8, 9, 10, 11, 12}
    assert lines_of(fault("parameter", "    many,\n)"), text) == {1, 2, 3}


def test_what_a_test_reaches_is_told_anew_for_each():
    tracer = Tracer(
        [
            fault("of texts", 'than the value, and as little as can be."""\n    if isinstance'),
            fault("of integers", "value + 1"),
            fault("of floats", "    return nextafter(value, inf)\n\n\ndef spanned"),
        ]
    )
    told = []
    for value in ("a", 2**53, 1.5):
        tracer.begin()
        assert past(value) > value
        told.append(tracer.end())
    assert told == [["of texts"], ["of texts", "of integers"], ["of texts", "of floats"]]
    assert sys.gettrace() is None


def test_a_function_that_is_called_for_ever_is_not_traced_for_ever():
    tracer = Tracer([fault("of integers", "value + 1")])
    for calls, told in ((CALLS_MAX - 1, ["of integers"]), (CALLS_MAX, [])):
        tracer.begin()
        for _ in range(calls):
            past(1.5)
        past(2**53)
        assert tracer.end() == told
