"""Which of two filters asks for more, against the events that each takes."""

from random import Random

import pytest
from msgspec.msgpack import decode, encode

from broker.engine.event.event import Event, event_class
from broker.network.operators.filters import KEYS_MAX, covered_by, covers, filter_of, keys_told
from broker.network.operators.heard import judge
from broker.network.routing.advertisement.operator import Key, Operator, Range, Region

EVENTS = 60
TEMP = event_class("Temp", {"a": "float", "b": "float", "on": "bool"})


def ranged(low: float | None, high: float | None, attribute: str = "val", **more: bool) -> Key:
    return Key("", "Temp", ranges=(Range(attribute, low, high, **more),))


def asking(*keys: Key) -> Operator:
    return Operator("o", keys, correlated=False)


BELOW, ABOVE = ranged(None, 4), ranged(4, None, low_open=True)
NARROW, WIDE = ranged(1, 2), ranged(0, 3)


def test_a_wider_range_covers_a_narrower_one_and_not_the_reverse() -> None:
    assert covers((WIDE,), (NARROW,))
    assert not covers((NARROW,), (WIDE,))
    assert not covers((BELOW,), (ABOVE,))
    assert not covers((ABOVE,), (BELOW,))


def test_all_events_cover_any_filter_and_only_all_events_cover_all() -> None:
    assert covers((), (NARROW,))
    assert covers((), ())
    assert not covers((BELOW, ABOVE), ()), "an event may lack the attribute"


def test_what_two_ask_for_is_covered_by_who_asks_for_both() -> None:
    assert covers((BELOW, ABOVE), (ABOVE,))
    assert covered_by(((BELOW,), (ABOVE,), (BELOW, ABOVE))) == {
        (BELOW,): {},
        (ABOVE,): {},
        (BELOW, ABOVE): {(BELOW,): None, (ABOVE,): None},
    }


def test_what_the_fields_do_not_say_covers_only_the_same() -> None:
    odd = Key("", "Temp", condition="val * val < 9")
    assert covers((odd,), (odd,))
    assert not covers((odd,), (NARROW,))
    assert covers((WIDE,), (Key("", "Temp", ranges=NARROW.ranges, condition="val * val < 9"),))


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        (Key("", "Temp", location="hall"), Key("", "Temp", location="hall/1")),
        (Key("", "Temp", source="s"), Key("", "Temp", source="s", ranges=WIDE.ranges)),
        (Key("", "Temp", equals=(("on", True),)), Key("", "Temp", "s", equals=(("on", True),))),
    ],
)
def test_a_place_a_source_and_a_value_count(outer: Key, inner: Key) -> None:
    assert covers((outer,), (inner,))
    assert not covers((inner,), (outer,))


def test_halls_are_told_apart() -> None:
    assert not covers((Key("", "Temp", location="hall"),), (Key("", "Temp", location="hall2"),))


def test_a_range_that_ends_at_no_number_covers_nothing_else() -> None:
    assert not covers((ranged(float("nan"), 9),), (NARROW,))


def test_of_a_type_that_is_wanted_whole_and_of_too_many_keys_nothing_is_told() -> None:
    assert keys_told([asking(NARROW)], ["Temp"]) == (NARROW,)
    assert keys_told([asking(NARROW), asking(Key("t", "Temp"))], ["Temp"]) == ()
    assert keys_told([asking(NARROW)], ["Temp", "Wind"]) == (NARROW,)
    many = [asking(ranged(at, at)) for at in range(KEYS_MAX + 1)]
    assert len(keys_told(many[1:], ["Temp"])) == KEYS_MAX
    assert keys_told(many, ["Temp"]) == ()


def test_what_is_told_does_not_depend_on_the_order_of_operators() -> None:
    some = [asking(WIDE), asking(BELOW), asking(ABOVE)]
    assert keys_told(some, ["Temp"]) == keys_told(some[::-1], ["Temp"])


def test_what_is_told_is_written_alike_by_who_tells_it_and_by_who_has_read_it() -> None:
    keys = keys_told([asking(ranged(1, 2)), asking(ranged(None, 7.0))], ["Temp"])
    written = encode(keys)
    assert encode(decode(written, type=tuple[Key, ...])) == written
    assert keys == keys_told([asking(ranged(1.0, 2.0)), asking(ranged(None, 7))], ["Temp"])


def test_a_filter_has_no_key_that_asks_for_no_more_than_another() -> None:
    assert filter_of((NARROW, WIDE, Key("", "Wind")), "Temp") == (WIDE,)
    assert filter_of((WIDE, NARROW), "Temp") == (WIDE,)


def drawn_key(draw: Random) -> Key:
    ranges = []
    for attribute in draw.sample(("a", "b"), draw.randint(0, 2)):
        low, high = sorted(draw.choices((0.0, 1.0, 2.0, 3.0), k=2))
        ends = (draw.choice((low, None)), draw.choice((high, None)))
        ranges.append(Range(attribute, *ends, draw.random() < 0.5, draw.random() < 0.5))
    return Key(
        "",
        "Temp",
        draw.choice((None, None, "s", "t")),
        draw.choice((None, None, "hall", "hall/1")),
        draw.choice((None, None, Region("box", (0.0, 0.0, 1.0, 1.0)))),
        tuple(sorted(ranges)),
        draw.choice(((), (), (("on", True),), (("on", False),))),
        draw.choice(("", "", "", "a < 2")),
    )


def drawn_event(draw: Random, number: int) -> Event:
    values = {f"a_{name}": draw.choice((None, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0)) for name in "ab"}
    return TEMP(
        id=f"e{number}",
        source=draw.choice(("s", "t", None)),
        location=draw.choice((None, "hall", "hall/1", "hall2")),
        position=draw.choice((None, (0.5, 0.5), (2.0, 2.0))),
        start=number,
        end=number,
        a_on=draw.choice((None, True, False)),
        **values,
    )


def test_each_event_of_a_filter_is_one_of_each_that_covers_it() -> None:
    draw = Random(5)
    events = [drawn_event(draw, number) for number in range(EVENTS)]
    covering = 0
    for _ in range(3_000):
        one, other = [tuple(drawn_key(draw) for _ in range(draw.randint(1, 2))) for _ in range(2)]
        if one != other and covers(one, other):
            covering += 1
            takes = judge(one)
            assert all(map(takes, filter(judge(other), events))), (one, other)
    assert covering > 100
