"""Saleh: the modes of figures 4 and 5 on the paper's own sequences of tuples."""

from __future__ import annotations

import headwater

DECLARED = "event A(n: text) event B(n: text) event C(n: text) event D(n: text)"


def found(detect: str, letters: str) -> list[str]:
    """The names of what each result binds, in the order of the places."""
    engine = headwater.Engine(
        f"{DECLARED} subscription S seq 1 from me to alerts {detect}", lateness_ms=None
    )
    engine.push(
        {"type": name[0].upper(), "id": name, "timestamp": int(name[1:]) * 1000, "n": name}
        for name in letters.split()
    )
    return sorted(
        " ".join(result["values"][place]["n"] for place in "ABCD" if place in result["values"])
        for result in engine.finish()
    )


def test_figure_4_unrestricted_gives_every_combination() -> None:
    """Figure 4: SEQ(A, B+, D) within 6; its B+ reports one B per match, so B here."""
    trace = "a1 b2 a3 c4 c5 b6 d7"
    expected = ["a1 b2 d7", "a1 b6 d7", "a3 b6 d7"]
    assert found("detect A then B then D within 6 s", trace) == expected


def test_figure_5_first_takes_the_earliest_of_each() -> None:
    """Figure 5, upper part: SEQ(A, B+, C+, D) within 6 in FIRST mode."""
    pattern = "detect[first] A then B then C then D within 6 s"
    assert found(pattern, "a1 a2 b3 c4 c5 b6 d7") == ["a1 b3 c4 d7"]


def test_figure_5_recent_takes_the_newest_in_a_row() -> None:
    """Figure 5, lower part: the paper's RECENT is `latest`; b6 comes after the row of C began."""
    pattern = "detect[latest] A then B then C then D within 6 s"
    assert found(pattern, "a1 a2 b3 c4 c5 b6 d7") == ["a2 b3 c5 d7"]
