"""The filterer against a naive reading of the conditions, content by content."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.engine.event.event import Event, MetricPosition, event_class
from broker.engine.filter import candidates, cells, conditions
from broker.engine.filter.conditions import CHOICE_VALUES_MAX
from broker.engine.filter.filterer import FEW, Filterer
from broker.engine.ledger import Ledger
from broker.engine.limits import LimitReachedError, make_limits
from language.tree import (
    Arithmetic,
    Call,
    Comparison,
    Constant,
    Logical,
    Membership,
    Name,
    RegionLiteral,
    SetLiteral,
    Unary,
)

pytestmark = pytest.mark.usefixtures("both_ways")

ATTRIBUTES = {"n": "int", "x": "float", "t": "text", "open": "bool"}
Reading = event_class("Reading", ATTRIBUTES)
Other = event_class("Other", ATTRIBUTES)

# --- a naive reading of conditions, which shares nothing with the code under test -------------


def value_of(node: Any, event: Event) -> Any:  # noqa: PLR0911 - one for each kind of node
    """The value of an expression, None being null."""
    match node:
        case Constant(value=value):
            return value
        case Name(name="timestamp"):
            return event.end
        case Name(name="duration"):
            return event.end - event.start
        case Name(name="source" | "location" | "position" | "uncertainty" as name):
            return getattr(event, name)
        case Name(name=name):
            return getattr(event, "a_" + name)
        case Unary(operator="-", operand=operand):
            value = value_of(operand, event)
            return None if value is None else -value
        case Arithmetic(operator=operator, left=left, right=right):
            a, b = value_of(left, event), value_of(right, event)
            if a is None or b is None:
                return None
            if operator == "/":
                return None if b == 0 else a / b
            return {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b}[operator]()
        case Call(function=function, arguments=(argument,)):
            value = value_of(argument, event)
            return None if value is None else {"abs": abs, "length": len}[function](value)
    return holds(node, event)


def holds(node: Any, event: Event) -> bool:
    """Whether a condition holds."""
    match node:
        case Logical(operator="and", operands=operands):
            return all(holds(part, event) for part in operands)
        case Logical(operands=operands):
            return any(holds(part, event) for part in operands)
        case Unary(operator="not", operand=operand):
            return not holds(operand, event)
        case Comparison(operands=operands, operators=operators):
            values = [value_of(operand, event) for operand in operands]
            if any(value is None for value in values):
                return False
            return all(
                {
                    "=": a == b,
                    "!=": a != b,
                    "<": operator in "<<=" and a < b,
                    "<=": operator == "<=" and a <= b,
                    ">": operator in ">>=" and a > b,
                    ">=": operator == ">=" and a >= b,
                }[operator]
                for operator, a, b in zip(operators, values, values[1:], strict=False)
            )
        case Membership(item=item, container=SetLiteral(members=members)):
            value = value_of(item, event)
            return value is not None and any(value == member.value for member in members)
        case Membership(item=item, container=RegionLiteral() as region):
            return inside(value_of(item, event), region)
    return value_of(node, event) is True


def inside(value: Any, region: RegionLiteral) -> bool:
    """Whether a location or position is in a region."""
    if value is None:
        return False
    if region.shape == "path":
        steps, wanted = value.split("/"), region.path.split("/")
        return steps[: len(wanted)] == wanted
    if region.metric != isinstance(value, MetricPosition):
        return False
    u, v = (value.x, value.y) if isinstance(value, MetricPosition) else value[:2]
    if region.shape == "box":
        a, b, c, d = region.numbers
        return min(a, c) <= u <= max(a, c) and min(b, d) <= v <= max(b, d)
    a, b, radius = region.numbers
    if region.metric:
        return math.dist((u, v), (a, b)) <= radius
    # the angle between two unit vectors: another formula than the one under test
    angles = [(math.radians(lat), math.radians(lon)) for lat, lon in ((u, v), (a, b))]
    vectors = [
        (math.cos(p) * math.cos(q), math.cos(p) * math.sin(q), math.sin(p)) for p, q in angles
    ]
    chord = math.dist(*vectors)
    return 6_371_008.8 * 2 * math.asin(min(1.0, chord / 2)) <= radius


# --- generated conditions and events ----------------------------------------------------------

ints = st.integers(-3, 6) | st.sampled_from([2**53, 2**53 + 1, -(2**63), 2**63 - 1])
floats = st.sampled_from([-2.5, -1.0, 0.0, 0.5, 1.0, 2.0, 2.5, 1e300, -1e300, 2.0**53])
texts = st.sampled_from(["", "a", "a\0", "b", "ab", "é"])
places = st.sampled_from(["a", "a/b", "a/b/c", "ab", "b", "/a", "", "a/"])
sources = st.sampled_from([f"s{i}" for i in range(4)])
points = st.sampled_from(
    [[46.0, 7.0], [46.0, 7.1], [89.5, 100.0], [0.0, 179.9], [0.0, -179.9], [46.2, 7.0, 800.0]]
) | st.builds(
    MetricPosition, x=st.sampled_from([0.0, 5.0, 10.0]), y=st.sampled_from([0.0, 7.0, -7.0])
)


@st.composite
def events(draw: Any, kind: type[Event] = Reading) -> Event:
    end = draw(st.integers(0, 9))
    return kind(
        id="e",
        start=end - draw(st.integers(0, 2)),
        end=end,
        source=draw(st.none() | sources),
        location=draw(st.none() | places),
        position=draw(st.none() | points),
        uncertainty=draw(st.integers(0, 3)),
        a_n=draw(st.none() | ints),
        a_x=draw(st.none() | floats),
        a_t=draw(st.none() | texts),
        a_open=draw(st.none() | st.booleans()),
    )


def constants(values: Any) -> Any:
    return values.map(Constant)


numbers = constants(ints | floats) | constants(st.integers(1, 5)).map(lambda c: Unary("-", c))
numeric_names = st.sampled_from([Name("n"), Name("x"), Name("timestamp"), Name("duration")])
numeric = st.one_of(
    numeric_names,
    numeric_names,
    st.builds(
        Arithmetic,
        st.sampled_from(["+", "-", "/"]),
        st.sampled_from([Name("n"), Name("x")]),
        constants(st.sampled_from([1, 1.0, 2, 0])),
    ),
    st.builds(Call, st.just("abs"), st.tuples(st.sampled_from([Name("n"), Name("x")]))),
    st.just(Call("length", (Name("t"),))),
)
orders = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
regions = st.one_of(
    st.builds(
        lambda lat, lon, r: RegionLiteral("circle", (lat, lon, r)),
        st.sampled_from([46.0, 89.0, 0.0]),
        st.sampled_from([7.0, 179.95, 100.0]),
        st.sampled_from([0.0, 7000.0, 30_000.0, 200_000.0, 2e7]),
    ),
    st.just(RegionLiteral("box", (46.0, 7.0, 47.0, 7.05))),
    st.just(RegionLiteral("circle", (0.0, 0.0, 8.0), metric=True)),
    st.just(RegionLiteral("box", (0.0, -7.0, 5.0, 7.0), metric=True)),
)
text_names = st.sampled_from([Name("t"), Name("source"), Name("location")])
some_text = texts | sources | places


def compared(left: Any, right: Any) -> Any:
    return st.builds(lambda a, o, b: Comparison((a, b), (o,)), left, orders, right)


leaves = st.one_of(
    compared(numeric, numbers),
    compared(numbers, numeric),
    compared(numeric_names, numeric_names),
    st.builds(
        lambda a, o, n, p, b: Comparison((a, n, b), (o, p)),
        numbers,
        orders,
        numeric,
        orders,
        numbers,
    ),
    compared(text_names, constants(some_text)),
    st.builds(
        lambda n, v: Membership(n, SetLiteral(tuple(map(Constant, v)))),
        text_names,
        st.lists(some_text, min_size=1, max_size=4),
    ),
    st.builds(
        lambda n, v: Membership(n, SetLiteral(tuple(map(Constant, v)))),
        numeric_names,
        st.lists(ints, min_size=1, max_size=4) | st.just(list(range(-80, 80, 2))),
    ),
    st.builds(lambda r: Membership(Name("position"), r), regions),
    st.builds(
        lambda p: Membership(Name("location"), RegionLiteral("path", path=p)),
        st.sampled_from(["a", "a/b", "b"]),
    ),
    st.just(Name("open")),
    st.builds(
        lambda o, b: Comparison((Name("open"), Constant(b)), (o,)),
        st.sampled_from(["=", "!="]),
        st.booleans(),
    ),
    st.booleans().map(Constant),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda o: Unary("not", o), inner),
        st.builds(
            lambda k, parts: Logical(k, tuple(parts)),
            st.sampled_from(["and", "or"]),
            st.lists(inner, min_size=2, max_size=3),
        ),
    ),
    max_leaves=4,
)
wanted = st.lists(trees, max_size=3).map(tuple)


def expected(contents: dict[int, tuple[str, Any]], batch: list[Event]) -> Any:
    found = []
    for key, (name, conjunction) in sorted(contents.items()):
        hit = [
            event
            for event in batch
            if event.event_type == name and all(holds(part, event) for part in conjunction)
        ]
        if hit:
            found.append((key, hit))
    return found


def same(found: Any, naive: Any) -> bool:
    """The same contents with the very same events in the same order."""
    return [(key, list(map(id, hit))) for key, hit in found] == [
        (key, list(map(id, hit))) for key, hit in naive
    ]


# --- properties -------------------------------------------------------------------------------


@given(st.lists(wanted, max_size=40), st.lists(events(), min_size=1, max_size=12))
def test_an_event_goes_exactly_where_its_conditions_hold(asked, batch):
    filterer = Filterer()
    contents = {filterer.add("Reading", each): ("Reading", each) for each in asked}
    naive = expected(contents, batch)
    assert same(filterer.route(batch), naive)
    reached = {id(event) for _, hit in naive for event in hit}
    assert filterer.filtered_count == len(batch) - len(reached)
    single = [pair for event in batch for pair in filterer.route([event])]
    assert sorted((key, id(event)) for key, hit in single for event in hit) == sorted(
        (key, id(event)) for key, hit in naive for event in hit
    )


@given(
    st.lists(
        st.tuples(st.just("add"), st.sampled_from(["Reading", "Other"]), wanted)
        | st.tuples(st.just("remove"), st.integers(0, 99), st.none())
        | st.tuples(st.just("route"), st.lists(events() | events(Other), max_size=4), st.none()),
        max_size=60,
    )
)
def test_changes_between_batches_show_in_the_next_batch(steps):
    filterer = Filterer()
    held: list[int] = []
    contents: dict[int, tuple[str, Any]] = {}
    for step, first, second in steps:
        if step == "add":
            key = filterer.add(first, second)
            held.append(key)
            contents[key] = (first, second)
        elif step == "remove" and held:
            key = held.pop(first % len(held))
            filterer.remove(key)
            if key not in held:
                del contents[key]
        elif step == "route":
            assert same(filterer.route(first), expected(contents, first))
    assert len(filterer) == len(contents)


# --- where an index alone decides who is asked -----------------------------------------------


def goes_where_it_should(asked: list[Any], batch: list[Event]) -> bool:
    """And to somebody, or it would say nothing."""
    filterer = Filterer()
    contents = {filterer.add("Reading", each): ("Reading", each) for each in asked}
    naive = expected(contents, batch)
    return bool(naive) and same(filterer.route(batch), naive)


@pytest.mark.parametrize(
    ("name", "value"), [("n", int), ("x", lambda at: at / 4), ("t", lambda at: f"{at:04}")]
)
def test_sets_too_large_to_hash_are_found_to_their_ends(name, value):
    size = CHOICE_VALUES_MAX + 2
    asked = [
        (Membership(Name(name), SetLiteral(tuple(map(Constant, map(value, each))))),)
        for each in (range(at, at + size) for at in range(0, 12 * size, size))
    ]
    known = [value(at) for at in range(12 * size + 1)]
    batch = [Reading(id="i", start=0, end=0, **{f"a_{name}": one}) for one in [*known, None]]
    assert goes_where_it_should(asked, batch)


def test_what_is_equal_is_found_behind_the_hash_of_something_else_that_is():
    asked = [
        (
            Comparison((Name("source"), Constant("s1")), ("=",)),
            Comparison((Name("n"), Constant(value % 2)), ("=",)),
            above("x", value / 2),
        )
        for value in range(60)
    ]
    batch = [
        Reading(id="i", start=0, end=0, source=source, a_n=n, a_x=x)
        for source in ("s1", "s2", None)
        for n in (0, 1, 2, None)
        for x in (-1.0, 0.5, 12.25, 99.0, None)
    ]
    assert goes_where_it_should(asked, batch)


def test_what_an_index_held_is_still_found_where_it_is_built_anew():
    """As more contents come, and as most of them go again."""
    filterer = Filterer()
    batch = [Reading(id="i", start=0, end=0, a_n=n, a_x=9.0) for n in (-1, 5, 50, 500)]
    contents: dict[int, tuple[str, Any]] = {}
    for value in range(300):
        each = (above("n", value), above("x", value % 7))
        contents[filterer.add("Reading", each)] = ("Reading", each)
        if value % 20 == 19:
            assert same(filterer.route(batch), expected(contents, batch))
    for key in list(contents)[::-1][:280]:
        filterer.remove(key)
        del contents[key]
    assert same(filterer.route(batch), expected(contents, batch))
    assert len(expected(contents, batch)) == 20


@pytest.mark.parametrize("latitude", [0.0, 60.0, -80.0])
def test_a_circle_reaches_over_the_date_line_from_either_side(latitude):
    longitudes = [179.0, 179.6, 179.95, 180.0, -180.0, -179.95, -179.6, -179.0, 0.0]
    asked = [
        (Membership(Name("position"), RegionLiteral("circle", (latitude, longitude, radius_m))),)
        for longitude in longitudes
        for radius_m in (6_000.0, 60_000.0, 120_000.0)
    ]
    batch = [
        Reading(id="i", start=0, end=0, position=[latitude + north, east])
        for north in (-0.3, 0.0, 0.3)
        for east in longitudes
    ]
    assert goes_where_it_should(asked, batch)


# --- what is said in words --------------------------------------------------------------------


def above(name: str, value: float) -> Comparison:
    return Comparison((Name(name), Constant(value)), (">",))


def test_equal_contents_share_an_id_and_are_counted():
    filterer = Filterer()
    first = filterer.add("Reading", (above("n", 1),))
    assert filterer.add("Reading", (above("n", 1),)) == first
    assert filterer.add("Other", (above("n", 1),)) != first
    filterer.remove(first)
    event = Reading(id="1", start=0, end=0, a_n=2)
    assert filterer.route([event]) == [(first, [event])]
    filterer.remove(first)
    assert filterer.route([event]) == []
    with pytest.raises(KeyError):
        filterer.remove(first)


@pytest.mark.parametrize("factors", [(1, 1.0), (1.0, 1)])
def test_constants_that_only_python_takes_for_equal_make_contents_of_their_own(factors):
    """1 and 1.0 are one key of a dict, but `n * 1.0 > 2^53` rounds and `n * 1 > 2^53` does not."""
    filterer = Filterer()
    products = [Arithmetic("*", Name("n"), Constant(factor)) for factor in factors]
    ids = [
        filterer.add("Reading", (Comparison((product, Constant(2**53)), (">",)),))
        for product in products
    ]
    event = Reading(id="1", start=0, end=0, a_n=2**53 + 1)
    exact = next(one for one, factor in zip(ids, factors, strict=True) if isinstance(factor, int))
    assert filterer.route([event]) == [(exact, [event])]


def test_the_account_tells_detected_events_from_those_that_came_in():
    ledger = Ledger()
    filterer = Filterer(ledger=ledger)
    detected = event_class("Frost@k1", ATTRIBUTES, detected=True)
    filterer.add("Frost@k1", (above("n", 1),))
    filterer.route([detected(start=0, end=0, a_n=2), detected(start=0, end=0, a_n=0)])
    filterer.route([Reading(id="1", start=0, end=0)])
    assert (ledger.detected.out, ledger.detected.filtered) == (1, 1)
    assert (ledger.events.out, ledger.events.filtered) == (0, 1)


def test_more_contents_than_allowed_are_refused_and_change_nothing():
    filterer = Filterer(make_limits(contents_max=1))
    first = filterer.add("Reading", (above("n", 1),))
    assert filterer.add("Reading", (above("n", 1),)) == first
    with pytest.raises(LimitReachedError, match="contents_max"):
        filterer.add("Reading", (above("n", 2),))
    assert len(filterer) == 1


def test_a_failing_condition_leaves_no_event_for_the_next_batch():
    """Conditions do not raise by themselves; should one do so, its batch alone is lost."""
    filterer = Filterer()
    for value in range(FEW + 4):
        filterer.add("Reading", (above("n", value),))
    good = Reading(id="1", start=0, end=0, a_n=100)
    bad = Reading(id="2", start=0, end=0, a_n="no number")
    with pytest.raises(TypeError):
        filterer.route([good, bad])
    assert all(hit == [good] for _, hit in filterer.route([good]))


# --- the comparison with the naive reading can fail -------------------------------------------


def _planted(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    if fault == "an end that is included is left out":
        monkeypatch.setattr(conditions, "past", lambda value: value)
    elif fault == "a beginning that is left out skips a step":
        monkeypatch.setattr(conditions, "after", lambda value: value + 1)
    elif fault == "a range begins a cell too late":
        reach = cells.reach_of

        def late(edges: list[Any], low: Any, high: Any) -> tuple[int, int]:
            first, last = reach(edges, low, high)
            return first + 1, last

        monkeypatch.setattr(cells, "reach_of", late)
        monkeypatch.setattr(candidates, "reach_of", late)
    elif fault == "the latitude's reach is forgotten":
        monkeypatch.setattr(conditions, "_widened", lambda value, sign: value - sign)
    elif fault == "an alternative is lost":
        monkeypatch.setattr(conditions, "_both", lambda a, b: [x + y for x in a for y in b[:1]])


def _disagree() -> bool:
    """Many contents of all kinds, as a small table, with events at the ends of their ranges."""
    near = RegionLiteral("circle", (46.0, 7.0, 9_000.0))
    asked: list[Any] = []
    for value in range(12):
        low = Comparison((Name("n"), Constant(value)), (">=",))
        high = Comparison((Name("n"), Constant(value)), ("<=",))
        asked += [(low, high), (above("n", value), Comparison((Name("x"), Constant(9)), ("<",)))]
        asked.append((Membership(Name("position"), near), low))
        asked.append((above("x", value),))
        asked.append((Logical("or", (high, above("n", value + 3))),))
    filterer = Filterer()
    contents = {filterer.add("Reading", each): ("Reading", each) for each in asked}
    batch = [
        Reading(id=str(n), start=0, end=0, a_n=n, a_x=x, position=[46.0, lon])
        for n in (None, -1, 0, 1, 5, 6, 11, 12, 15)
        for x in (0.5, None)
        for lon in (7.0, 7.1, 8.0)
    ]
    return not same(filterer.route(batch), expected(contents, batch))


@pytest.mark.parametrize(
    "fault",
    [
        "an end that is included is left out",
        "a beginning that is left out skips a step",
        "a range begins a cell too late",
        "the latitude's reach is forgotten",
        "an alternative is lost",
    ],
)
def test_planted_faults_are_found(monkeypatch, fault):
    assert not _disagree()
    _planted(monkeypatch, fault)
    assert _disagree()
