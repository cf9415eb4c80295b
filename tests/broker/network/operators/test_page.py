"""The page on what travels shows the operators that patterns become."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest

from broker.network.operators.derivation import operators_of
from broker.network.operators.phrases import in_words
from broker.network.operators.times import Times
from broker.network.routing.advertisement.operator import Key, Operator
from language import check_text

PAGE = Path(__file__).resolve().parents[4] / "docs" / "what-travels.md"
TYPES = "".join(f"event {name}(n: int)\n" for name in "ABCD")
FENCE = re.compile(r"^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
READINGS = Times(uncertainty_ms_max=0, duration_ms_max=0)
SAID = {
    "# events may last a week": Times(uncertainty_ms_max=0),
    "# readings; ε is 100 ms at most, ρ 1 %": Times(
        uncertainty_ms_max=100, drift=Fraction(1, 100), duration_ms_max=0
    ),
}


def shown():
    """Each pattern of the page with its times and the lines beneath it."""
    found = []
    for block in FENCE.findall(PAGE.read_text("utf-8")):
        times = READINGS
        for line in block.splitlines():
            if line.startswith("#"):
                times = SAID[line]
            elif line.startswith("    "):
                found[-1][2].append(line.strip())
            else:
                found.append((line, times, []))
    return found


@pytest.mark.parametrize(("pattern", "times", "lines"), shown())
def test_the_page_shows_what_a_pattern_becomes(pattern, times, lines):
    detect = f"detect{'' if pattern.startswith('[') else ' '}{pattern}"
    graph = check_text(f"{TYPES}subscription S from me to you {detect}").demand().graph
    found = operators_of(graph, graph.roots[0], times)
    assert sorted(map(in_words, found)) == sorted(lines)


def test_the_page_shows_patterns():
    assert len(shown()) >= 15


def test_words_tell_operators_apart():
    keys = (Key("A", "A"), Key("B", "B", optional=True))
    lines = [
        in_words(one)
        for one in (
            Operator("", keys),
            Operator("", keys, 5),
            Operator("", keys, 5, strict=True),
            Operator("", keys, 5, 2.0),
            Operator("", keys[:1], correlated=False),
        )
    ]
    assert lines == [
        "A, perhaps B: together in any time",
        "A, perhaps B: together in at most 5 ms",
        "A, perhaps B: together in less than 5 ms",
        "A, perhaps B: together in at most 5 ms and at most 2.0 m",
        "A: each",
    ]
