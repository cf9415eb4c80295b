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


def test_table_of_seq_place_by_place() -> None:
    """Section 5.3, the rows of the table of SEQ: what lies where after each read cycle."""
    net = petri.seq_net(2000, 2500)
    net.put(1000, "buffer 1", "1")
    assert net.names("buffer 1") == [["1"]]
    net.put(2000, "buffer 2", "2")
    net.put(2000, "buffer 1", "3")
    assert (net.names("buffer 1"), net.names("buffer 2")) == ([["1"], ["3"]], [])
    net.wait(3000)
    assert net.names("buffer 1") == [["1"], ["3"]]
    net.put(3200, "buffer 2", "4")
    assert (net.names("buffer 1"), net.names("initial")) == ([["3"]], [["1", "4"]])


def test_table_of_nloop_place_by_place() -> None:
    """Section 5.3, the rows of the table of NLoop."""
    net = petri.nloop_net(4)
    for cycle in (1, 2, 3):
        net.put(cycle * 1000, "buffer 1", str(cycle))
        assert net.names("buffer 1") == [[str(n)] for n in range(1, cycle + 1)]
    net.put(4000, "buffer 1", "4")
    assert (net.names("buffer 1"), net.names("initial")) == ([], [["1", "2", "3", "4"]])


def test_table_of_tloop_place_by_place() -> None:
    """Section 5.3, the rows of the table of TLoop; of buffer 2 the last token counts."""
    net = petri.tloop_net(900, 1100)
    for cycle in (1, 2, 3, 4):
        net.put(cycle * 1000, "arrived", str(cycle))
        assert net.names("buffer 1") == [[str(n)] for n in range(1, cycle + 1)]
        assert net.names("buffer 2") == [[str(cycle)]]
    net.wait(5000)
    assert (net.names("buffer 2"), net.names("initial")) == ([["4"]], [])
    net.wait(5200)
    assert (net.names("buffer 1"), net.names("initial")) == ([], [["1", "2", "3", "4"]])


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


LOGICAL_READERS = """
event Basic(n: text)
set LR14 = {"reader-1", "reader-2"}
set LR15 = {"reader-3"}
subscription S seq 1 from me to it detect
"""
EXAMPLE_1 = """[chronicle]
(Basic(source in LR14) as e1 then[1 ms..5 s] Basic(source in LR15) as e2){3}
"""


def read_by(detect: str, tokens: list[tuple[int, str, str]]) -> list[list[str]]:
    """What is found of basic events (time, name, reader)."""
    engine = headwater.Engine(LOGICAL_READERS + detect, lateness_ms=None)
    engine.push(
        {"type": "Basic", "id": name, "timestamp": time, "n": name, "source": reader}
        for time, name, reader in tokens
    )
    bound = [result["events"] for result in engine.finish()]
    return [sorted(name for names in one.values() for name in names) for one in bound]


def test_example_1_binds_three_pairs_of_two_logical_readers() -> None:
    """Section 4.3, Example 1: NLoop of 3 over SEQ, LR 14 being two readers and LR 15 another."""
    readers = ["reader-1", "reader-3", "reader-2", "reader-3", "reader-1", "reader-3"]
    names = ["1.1", "1.2", "2.1", "2.2", "3.1", "3.2"]
    tokens = [(1000 * n, *pair) for n, pair in enumerate(zip(names, readers, strict=True), 1)]
    assert read_by(EXAMPLE_1, tokens) == [names]
    assert read_by(EXAMPLE_1, tokens[:-1]) == []
    foreign = [(time, name, reader.replace("3", "9")) for time, name, reader in tokens]
    assert read_by(EXAMPLE_1, foreign) == []


@pytest.mark.parametrize("seed", range(20))
def test_example_1_agrees_with_its_net(seed: int) -> None:
    """A SEQ whose output is the buffer of an NLoop, on readings of both logical readers."""
    draw, now, tokens = random.Random(seed), 0, []
    for number in range(24):
        now += draw.choice((400, 1500, 5000, 5001))
        reader = ("reader-1", "reader-3", "reader-2", "reader-3")[number % 4]
        if draw.random() < 0.9:
            tokens.append((now, f"t{number:02}", reader))
    buffers = [(at, n, "buffer 2" if r == "reader-3" else "buffer 1") for at, n, r in tokens]
    wanted = petri.fired(petri.pairs_net(5000, 3), buffers)
    assert wanted
    assert read_by(EXAMPLE_1, tokens) == [sorted(names) for names in wanted]
