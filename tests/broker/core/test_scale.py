"""Contents that ranges of one attribute tell apart, and what is made of their events at once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.engine.event.event import Event, event_class
from broker.engine.filter.filterer import FEW, Filterer
from broker.engine.filter.scale import says_all
from headwater import Engine
from language.tree import (
    Comparison,
    Constant,
    Expression,
    Logical,
    Membership,
    Name,
    RegionLiteral,
    Unary,
)

pytestmark = pytest.mark.usefixtures("both_ways")

Reading = event_class("Reading", {"n": "int", "x": "float", "t": "text"})
HOLDS = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
numbers = st.integers(-3, 3) | st.sampled_from([0.5, 2.0, -0.0, 1e-300, 2**53, 2**53 + 1, 1e300])
texts = st.sampled_from(["", "a", "a\0", "b"])
ORDERS = ["<", "<=", ">", ">="]


def compared(names: Any, orders: Any, values: Any) -> Any:
    """Also with the constant first."""
    return st.builds(
        lambda name, order, value, turned: (
            Comparison((Constant(value), Name(name)), (order,))
            if turned
            else Comparison((Name(name), Constant(value)), (order,))
        ),
        names,
        orders,
        values,
        st.booleans(),
    )


one_term = st.sampled_from(["n", "x"]).flatmap(
    lambda name: st.lists(compared(st.just(name), st.sampled_from(ORDERS), numbers), max_size=3)
)
others = st.lists(
    compared(st.sampled_from(["t", "location"]), st.sampled_from(sorted(HOLDS)), texts)
    | compared(st.just("x"), st.sampled_from(sorted(HOLDS)), numbers),
    max_size=2,
)
conjunctions = st.tuples(one_term, others).map(lambda parts: tuple(parts[0] + parts[1]))
readings = st.builds(
    lambda n, x, t, location: Reading(
        id="i", start=0, end=0, a_n=n, a_x=x, a_t=t, location=location
    ),
    st.none() | st.integers(-4, 4) | st.sampled_from([2**53, 2**53 + 1]),
    st.none() | st.sampled_from([-1.0, -0.0, 0.5, 2.0, 3.5, float(2**53), 1e300]),
    st.none() | texts,
    st.none() | texts,
)


def value_of(node: Expression, event: Any) -> Any:
    if isinstance(node, Constant):
        return node.value
    assert isinstance(node, Name)
    return event.location if node.name == "location" else getattr(event, f"a_{node.name}")


def holds(part: Comparison, event: Event) -> bool:
    left, right = (value_of(node, event) for node in part.operands)
    return left is not None and right is not None and HOLDS[part.operators[0]](left, right)


@settings(max_examples=50)
@given(
    st.lists(conjunctions, min_size=FEW + 1, max_size=24),
    st.lists(readings, min_size=1, max_size=12),
    st.sets(st.integers(0, 23)),
)
def test_each_event_is_found_or_made_for_each_content_that_wants_it_once(asked, batch, at_once):
    filterer = Filterer()
    keys = [filterer.add("Reading", each) for each in asked]
    contents = dict(zip(keys, asked, strict=True))
    for key in contents:
        if key in at_once:
            filterer.make_at_once(key, (lambda start, end, group, event, key=key: (key, event),))
    made: list[Any] = []
    found = [(key, event) for key, hits in filterer.route(batch, None, made) for event in hits]
    assert sorted((key, batch.index(event)) for key, event in found + made) == sorted(
        (key, batch.index(event))
        for key, conditions in contents.items()
        for event in batch
        if all(holds(part, event) for part in conditions)
    )
    assert not [key for key, _ in made if key not in at_once]


def found_of(asked: list[str], *values: Any) -> list[list[str]]:
    """For each value of `v` at one of three places, None being left out, who reports it there."""
    conditions = [f'location = "{place}", {one}' for one in asked for place in "abc"]
    subscriptions = [
        f"subscription S{number // 3}_{number % 3} from a to b detect T({each})\n"
        for number, each in enumerate(conditions)
    ]
    engine = Engine("event T(v: int)\n" + "".join(subscriptions))
    found = []
    for at, value in enumerate(values):
        event = {"type": "T", "id": f"e{at}", "timestamp": at, "location": "b"}
        results = engine.push([event | ({} if value is None else {"v": value})])
        found.append([asked[int(one["subscription"][1])] for one in results])
    return found


def test_what_has_no_value_lies_below_no_bound():
    asked = ["v < 3", "v <= 9", "v > 5", "v >= -2"]
    assert found_of(asked, None, 4) == [[], ["v <= 9", "v >= -2"]]


def test_of_two_bounds_on_one_side_the_narrower_holds_whichever_stands_first():
    asked = ["v < 3, v < 5", "v < 5, v < 3", "v > 3, v > 1", "v > 1, v > 3"]
    assert found_of(asked, 2, 3, 4) == [asked[:2], [], asked[2:]]


places = st.sampled_from(["", "a", "b"])
few_of_one_term = st.sampled_from(["n", "x", "t"]).flatmap(
    lambda name: st.lists(
        st.tuples(
            places,
            st.lists(
                compared(st.just(name), st.sampled_from(ORDERS), texts if name == "t" else numbers),
                min_size=1,
                max_size=3,
            ),
        ),
        min_size=FEW + 1,
        max_size=2 * FEW,
    )
)


@settings(max_examples=100)
@given(few_of_one_term, st.lists(readings, min_size=1, max_size=12))
def test_few_behind_each_location_find_what_lies_between_all_their_bounds(asked, batch):
    """Of two bounds on one side the narrower holds, and null lies between none."""
    filterer = Filterer()
    contents = {}
    for place, parts in asked:
        at_place = Comparison((Name("location"), Constant(place)), ("=",))
        conditions = (at_place, *parts)
        contents[filterer.add("Reading", conditions)] = conditions
    found = dict(filterer.route(batch))
    for key, conditions in contents.items():
        wanted = [one for one in batch if all(holds(part, one) for part in conditions)]
        assert found.get(key, []) == wanted


def test_what_two_alternatives_find_is_made_once():
    beneath = [Membership(Name("location"), RegionLiteral("path", path=p)) for p in ("a", "a/b")]
    filterer = Filterer()
    key = filterer.add("Reading", (Logical("or", tuple(beneath)),))
    for number in range(FEW):
        filterer.add("Reading", (Comparison((Name("n"), Constant(number)), (">",)),))
    filterer.make_at_once(key, (lambda start, end, group, event: event,))
    event = Reading(id="i", start=0, end=0, location="a/b/c")
    made: list[Any] = []
    found = filterer.route([event], None, made)
    assert [event for _, events in found for event in events] + made == [event]


@given(st.sampled_from(["n", "x"]), st.sampled_from(ORDERS), numbers)
def test_a_range_says_all_while_floats_tell_its_end_from_what_follows(name, order, value):
    part = Comparison((Name(name), Constant(value)), (order,))
    assert says_all((part,)) == (abs(value) < 2**53)
    assert not says_all((part, Unary("not", part)))
    assert not says_all((part, Comparison(part.operands, ("!=",))))
    assert not says_all((Comparison(part.operands, ("=",)),))  # `n = 1` may mean a choice of others


ASKED = [
    (place, low, low + width)
    for place in ("here", "there")
    for low, width in ((0, 0), (1, 3), (3, 0), (3, 1), (4, 3), (-1, 6))
]
DECLARED = "event T(v: int)\n" + "".join(
    f"subscription S{number} seq 1 from a to b\n"
    f'detect T(location = "{place}", {low} <= v <= {high})\n'
    for number, (place, low, high) in enumerate(ASKED)
)


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from(["here", "there"]), st.integers(-1, 9)),
        max_size=24,
    ),
    st.integers(1, 9),
    st.sampled_from([0, 3]),
)
def test_results_of_many_subscriptions_leave_in_order(trace, cut, uncertainty):
    events = [
        {"type": "T", "id": f"e{at:02}", "timestamp": at_ms, "location": place, "v": v}
        | ({"uncertainty": uncertainty} if uncertainty and at == 2 else {})
        for at, (at_ms, place, v) in enumerate(trace)
    ]
    engine = Engine(DECLARED, 40)
    for start in range(0, len(events), cut):
        batch = events[start : start + cut]
        found = [
            (one["end"], *one["events"]["T"], one["subscription"]) for one in engine.push(batch)
        ]
        wanted = [
            (event["timestamp"], event["id"], number)
            for event in batch
            for number, (place, low, high) in enumerate(ASKED)
            if event["location"] == place and low <= event["v"] <= high
        ]
        assert found == [(end, name, f"S{number}") for end, name, number in sorted(wanted)]
