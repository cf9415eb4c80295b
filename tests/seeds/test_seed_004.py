"""Jin et al.: the three tables of section 5.3, and their nets as a second oracle."""

from __future__ import annotations

import random
from typing import Any

import pytest

import headwater
from tests.seeds import petri

SEEDS = 60


def found(detect: str, tokens: list[tuple[int, str, int]]) -> list[list[str]]:
    text = f"event E1(n: text) event E2(n: text) subscription S seq 1 from me to it {detect}"
    engine = headwater.Engine(text, lateness_ms=None)
    engine.push(
        {"type": f"E{kind}", "id": name, "timestamp": time, "n": name}
        for time, name, kind in tokens
    )
    return sorted(_names(result["values"]) for result in engine.finish())


def _names(values: Any) -> list[str]:
    if isinstance(values, dict) and isinstance(values.get("n"), str):
        return [values["n"]]
    items = values.values() if isinstance(values, dict) else values
    return [name for item in items for name in _names(item)]


def drawn(seed: int, kinds: tuple[int, ...]) -> list[tuple[int, str, int]]:
    """Readings in order, no two at one instant; gaps on, inside and outside the bounds."""
    draw, now, tokens = random.Random(seed), 0, []
    for number in range(30):
        now += draw.choice((300, 899, 900, 1000, 1100, 1101, 1500))
        tokens.append((now, f"t{number:02}", draw.choice(kinds)))
    return tokens


def test_table_of_seq() -> None:
    """Section 5.3, SEQ(E1, E2, 2 s, 2.5 s): 2 comes too early and is gone, 3 stays."""
    tokens = [(1000, "1", 1), (2000, "2", 2), (2000, "3", 1), (3200, "4", 2)]
    assert found("detect E1 then[2 s..2500 ms, chronicle] E2", tokens) == [["1", "4"]]
    assert petri.seq(tokens, 2000, 2500) == [["1", "4"]]


def test_table_of_nloop() -> None:
    """Section 5.3, NLoop of 4: the fourth token fires all."""
    tokens = [(n * 1000, str(n), 1) for n in range(1, 5)]
    assert found("detect[chronicle] E1{4}", tokens) == [["1", "2", "3", "4"]]
    assert petri.nloop([token[:2] for token in tokens], 4) == [["1", "2", "3", "4"]]


def test_table_of_tloop() -> None:
    """Section 5.3, TLoop of 0.9 s to 1.1 s: four tokens, then silence."""
    tokens = [(n * 1000, str(n), 1) for n in range(1, 5)]
    assert found("detect E1+[900 ms..1100 ms]", tokens) == [["1", "2", "3", "4"]]
    assert petri.tloop([token[:2] for token in tokens], 900, 1100) == [["1", "2", "3", "4"]]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_nets_agree_with_the_engine(seed: int) -> None:
    """Figures 3, 4 and 5: the nets fire what the engine reports; nets consume: `chronicle`."""
    both, one = drawn(seed, (1, 2)), drawn(seed, (1,))
    plain = [token[:2] for token in one]
    pairs = petri.seq(both, 900, 2000)
    assert pairs
    assert found("detect E1 then[900 ms..2 s, chronicle] E2", both) == sorted(pairs)
    assert found("detect[chronicle] E1{4}", one) == petri.nloop(plain, 4)
    assert found("detect E1+[900 ms..1100 ms]", one) == petri.tloop(plain, 900, 1100)
