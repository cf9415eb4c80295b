"""Order among detected events of detected events: nothing but what they are made of parts them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import headwater
from broker.engine.window.constituents import LEVELS_NESTED, order_of, plain_order

pytestmark = pytest.mark.usefixtures("both_ways")

TEXT = """
event A(n: int)
event B(n: int)
event C(n: int)
event E(n: int)
define D0(o)
case 0:
  detect A assign o = 1
case 1:
  detect A assign o = 2
define D1(o) detect D0 assign o = D0.o
define W0(o) aggr every 3 ms range 4 ms detect B assign o = First(B.end) - 1022 + Count(B)
define W1(o) detect W0 assign o = W0.o
"""
IDS = ("a0", "a1", "a2", "a3", "zz")


def results(text: str, events: list[tuple[str, str, int]], more: str = "") -> list[dict[str, Any]]:
    engine = headwater.Engine(
        f"{TEXT}{more}\nsubscription S from me to x\n{text}\n", lateness_ms=None
    )
    told = [{"type": kind, "id": ident, "timestamp": at, "n": 1} for kind, ident, at in events]
    engine.push(told)
    return engine.finish()


def values(text: str, ident: str, more: str = "") -> list[Any]:
    events = [("A", ident, 10), ("E", "e", 12)]
    return [result["values"] for result in results(text, events, more)]


@pytest.mark.parametrize("ident", IDS)
@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("D1", 2),
        ("D1 at most 9 per 1 s", 2),
        ("D1 at most 1 per 1 s", 1),
        ("D1 as p and D0 as q", 4),
        ("D1 as p and D0 as q at most 5 per 10 ms", 4),
        ("D1 as p and D1 as q at most 5 per 10 ms", 2),
    ],
)
def test_none_is_taken_for_another_where_results_are_thinned(ident, pattern, count):
    assert len(values(f"detect {pattern}", ident)) == count


@pytest.mark.parametrize("thinned", ["", " at most 9 per 1 s"])
def test_windows_of_one_event_differ_by_their_numbers_beneath(thinned):
    """Both [1019, 1023) and [1022, 1026), for k of 341 and 342, hold 1022."""
    assert len(results(f"detect W1{thinned}", [("B", "b", 1022)])) == 2


@pytest.mark.parametrize("ident", IDS)
def test_the_case_of_what_they_are_made_of_decides_wherever_one_is_chosen(ident):
    """Case 0 comes before case 1, so of the two the first has 1 and the last 2."""
    assert values("detect D1 assign o = D1.o", ident) == [{"o": 1}, {"o": 2}]
    assert values("detect first D1 as d then E assign o = d.o", ident) == [{"o": 1}]
    assert values("detect last D1 as d then E assign o = d.o", ident) == [{"o": 2}]
    assert values("detect D1 as d and[recent] E assign o = d.o", ident) == [{"o": 2}]
    consumed = "detect D1 as d and E assign o = d.o consuming E"
    assert values(consumed, ident) == [{"o": 1}]


@pytest.mark.parametrize("ident", IDS)
@pytest.mark.parametrize("window", ["session 20 ms", "every 20 ms"])
def test_first_and_last_of_a_window_are_the_two_ends_of_one_order(ident, window):
    more = f"define W(x) aggr {window} detect D1 assign x = First(D1.o) * 10 + Last(D1.o)"
    assert values("detect W assign x = W.x", ident, more) == [{"x": 12}]


@pytest.mark.parametrize("ident", IDS)
def test_a_sliding_window_takes_them_in_order(ident):
    more = "define W(x) aggr range 20 ms detect D1 assign x = Sum(D1.o) * 10 + Last(D1.o)"
    assert values("detect W assign x = W.x", ident, more) == [{"x": 11}, {"x": 32}]


@pytest.mark.parametrize("ident", IDS)
def test_what_detected_events_open_and_close_goes_by_them_and_not_by_their_ids(ident):
    """Sessions of two groups, each of one event of the one A: only their cases tell them apart."""
    more = "define V(o) aggr session 5 ms detect D1 assign o = First(D1.o) group by o"
    assert values("detect V assign o = V.o", ident, more) == [{"o": 1}, {"o": 2}]
    more = "define V(o) aggr range 5 ms detect D1 assign o = Last(D1.o) group by o"
    assert values("detect V assign o = V.o", ident, more) == [{"o": 1}, {"o": 2}]


def test_silences_of_two_groups_are_two():
    more = """
    define S0(o) detect absent A for 5 ms assign o = group.n group by n
    """
    events = [("A", "a", 10), ("B", "b", 30)]
    engine = headwater.Engine(
        f"{TEXT}{more}\nsubscription S from me to x\ndetect S0 at most 9 per 1 s", lateness_ms=None
    )
    told = [{"type": kind, "id": ident, "timestamp": at, "n": 1} for kind, ident, at in events]
    told += [{"type": "A", "id": "a2", "timestamp": 10, "n": 2}]
    engine.push(told)
    silent = [(one["end"], one["values"]["S0"]["o"]) for one in engine.finish()]
    assert silent == [(15, 1), (15, 2)]


WINDOWS = ["range 2 ms", "every 3 ms", "session 2 ms", "every 3 ms range 4 ms"]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(
    "pattern",
    [
        "D as a and[recent] D{1} as b",
        "D as a and[recent] D+[1 ms..4 ms] as b",
        "D+[1 ms..4 ms] as a and[recent] D as b",
        "D as a and[chronicle] D{1} as b",
    ],
)
def test_an_event_compares_with_a_list_of_one_such(window, pattern):
    """A list of one of them that is the other is no partner; every partner comes before."""
    more = f"define D(o) aggr {window} detect C assign o = Count(C)"
    events = [("C", "c", 1), ("C", "d", 6), ("C", "e", 6), ("C", "f", 8)]
    for result in results(f"detect {pattern}", events, more):
        assert not set(result["events"]["a"]) & set(result["events"]["b"])


def test_one_event_alone_and_a_list_of_it_do_not_meet():
    more = "define D(o) aggr range 2 ms detect C assign o = Count(C)"
    for pattern in ("D as a and[recent] D{1} as b", "D as a and[recent] D+[1 ms..4 ms] as b"):
        assert results(f"detect {pattern}", [("C", "c", 5)], more) == []


def key_of(levels: int) -> tuple[Any, ...]:
    """An order key that is so deep, with parts before and behind what is below."""
    key: tuple[Any, ...] = ()
    for level in range(levels - 1):
        key = (level, (), key, ("x", level)) if level % 2 else (level, key)
    return key


def same(left: Any, right: Any) -> bool:
    """Compare without recursion, as tuples would not."""
    pairs = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
            pairs += zip(one, other, strict=True)
        elif one != other or isinstance(one, tuple):
            return False
    return True


@pytest.mark.parametrize("levels", [1, 2, 7, LEVELS_NESTED, LEVELS_NESTED + 1, 5_000])
def test_an_order_however_deep_is_plain_data_and_an_order_again(levels: int) -> None:
    key = key_of(levels)
    packed = msgspec.msgpack.encode(plain_order(key))
    assert same(order_of(msgspec.msgpack.decode(packed)), key)


def test_a_deep_order_that_was_written_nested_is_read() -> None:
    """Until now all were: what was made of many definitions could be saved, and not restored."""
    nested: list[Any] = []
    for level in range(900):
        nested = [level, nested]
    key = order_of(msgspec.msgpack.decode(msgspec.msgpack.encode(nested)))
    for level in reversed(range(900)):
        assert key[0] == level
        key = key[1]
    assert key == ()


@pytest.mark.parametrize("count", [3, 200, 400])
def test_what_many_definitions_made_of_each_other_goes_on_from_a_state(count: int) -> None:
    lines = ["event A()", "define D0(k) detect absent A as x for 1 s assign k = 1"]
    lines += [f"define D{at}(k) detect D{at - 1} as d assign k = d.k" for at in range(1, count)]
    lines.append(f"define W(c) aggr range 100 s detect D{count - 1} as d assign c = Last(d.k)")
    lines.append("subscription S from tester to out detect W")
    text = "\n".join(lines) + "\n"
    first, whole = headwater.Engine(text), headwater.Engine(text)
    for engine in (first, whole):
        engine.push([{"type": "A", "id": "a", "timestamp": 1_000}])
        engine.push([{"type": "A", "id": "b", "timestamp": 4_000}])
    again = headwater.Engine(text)
    again.restore(first.state())
    results = whole.finish()
    assert results
    assert again.finish() == results
