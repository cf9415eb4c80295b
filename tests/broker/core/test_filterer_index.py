"""The filterer with many contents: it does not scan, stays bounded and takes changes cheaply."""

from __future__ import annotations

import random
import tracemalloc
from time import process_time
from typing import Any

import pytest

from broker.engine.event.event import event_class
from broker.engine.filter.cells import Column, slots_of
from broker.engine.filter.conditions import CHOICE_VALUES_MAX, alternatives_of
from broker.engine.filter.contents import ROWS_PLAIN, Content, TypeIndex, prefixes
from broker.engine.filter.filterer import Filterer
from broker.engine.limits import make_limits
from language.tree import (
    Comparison,
    Constant,
    Expression,
    Logical,
    Membership,
    Name,
    RegionLiteral,
    SetLiteral,
)

pytestmark = pytest.mark.usefixtures("both_ways")

ATTRIBUTES = [f"x{i}" for i in range(6)]
Reading = event_class("Reading", dict.fromkeys(ATTRIBUTES, "float"))


def between(name: str, low: float, high: float) -> Comparison:
    return Comparison((Constant(low), Name(name), Constant(high)), ("<=", "<"))


def equal(name: str, value: Any) -> Comparison:
    return Comparison((Name(name), Constant(value)), ("=",))


def ranges(seeded: random.Random) -> tuple[Expression, ...]:
    chosen = seeded.sample(ATTRIBUTES, seeded.randint(2, 5))
    lows = [seeded.random() for _ in chosen]
    return tuple(between(name, low, low + 0.3) for name, low in zip(chosen, lows, strict=True))


def reading(seeded: random.Random, **fields: Any) -> Any:
    values = {f"a_{name}": seeded.random() for name in ATTRIBUTES}
    return Reading(id="1", start=0, end=0, **values, **fields)


def in_bounds(condition: Comparison, event: Any) -> bool:
    low, name, high = condition.operands
    return low.value <= getattr(event, f"a_{name.name}") < high.value


@pytest.mark.parametrize("cells_max", [2, 5, 256])
def test_coarse_cells_find_what_fine_ones_find(cells_max):
    seeded = random.Random(1)
    filterer = Filterer(make_limits(filter_cells_max=cells_max))
    asked = {filterer.add("Reading", each): each for each in (ranges(seeded) for _ in range(500))}
    events = [reading(seeded) for _ in range(60)]
    expected = {
        key: hit
        for key, each in asked.items()
        if (hit := [event for event in events if all(in_bounds(one, event) for one in each)])
    }
    assert dict(filterer.route(events)) == expected
    assert len(expected) > 100


def _asked_for(filterer: Filterer, event: Any) -> int:
    """How many contents' conditions are looked at for an event."""
    looked: list[int] = []
    tests = {key: content.test for key, content in filterer._by_id.items()}
    for content in filterer._by_id.values():
        test = content.test

        def counting(*args: Any, test: Any = test, id_: int = content.id) -> bool:
            looked.append(id_)
            return bool(test(*args))

        content.test = counting
        _ask_anew(content)
    filterer.route([event])
    for key, content in filterer._by_id.items():
        content.test = tests[key]
        _ask_anew(content)
    return len(looked)


def _ask_anew(content: Content) -> None:
    """Rows that no index covers are asked by the tests that their group has noted."""
    for row in content.rows:
        row.group._stale = True


def _by_range(seeded: random.Random, _: int) -> tuple[Expression, ...]:
    return ranges(seeded)


def _by_source(seeded: random.Random, number: int) -> tuple[Expression, ...]:
    return (equal("source", f"s{number}"), between("x0", 0.0, 0.5))


def _by_path(seeded: random.Random, number: int) -> tuple[Expression, ...]:
    region = RegionLiteral("path", path=f"house/room-{number}")
    return (Membership(Name("location"), region),)


def _by_set(seeded: random.Random, number: int) -> tuple[Expression, ...]:
    members = tuple(Constant(f"s{number + i}") for i in range(3))
    return (Membership(Name("source"), SetLiteral(members)),)


def _by_region(seeded: random.Random, number: int) -> tuple[Expression, ...]:
    circle = (seeded.uniform(-60, 60), seeded.uniform(-170, 170), 5_000.0)
    return (Membership(Name("position"), RegionLiteral("circle", circle)),)


def _by_either(seeded: random.Random, number: int) -> tuple[Expression, ...]:
    low, high = seeded.uniform(0.0, 0.2), seeded.uniform(0.9, 1.0)
    sides = tuple(
        Comparison((Name("x0"), Constant(bound)), (operator,))
        for bound, operator in ((low, "<"), (high, ">"))
    )
    return (Logical("or", sides),)


@pytest.mark.parametrize("make", [_by_range, _by_source, _by_path, _by_set, _by_region, _by_either])
def test_an_event_that_nobody_wants_is_compared_with_few_contents_however_many_there_are(make):
    """Counted, not timed: the conditions of at most a handful of contents are looked at."""
    seeded = random.Random(2)
    filterer = Filterer()
    for number in range(5_000):
        filterer.add("Reading", make(seeded, number))
    stranger = Reading(
        id="1",
        start=0,
        end=0,
        source="stranger",
        location="garden/room-7",
        position=[80.0, 0.0],
        **dict.fromkeys((f"a_{name}" for name in ATTRIBUTES), 0.5 if make is _by_either else -1.0),
    )
    filterer.route([stranger])
    assert filterer.filtered_count == 1
    # A cell of 1,024 may hold the ends of a few ranges each of which may just miss the event.
    assert _asked_for(filterer, stranger) <= ROWS_PLAIN + 4 * 5_000 // 1_024


def test_an_event_without_the_value_is_compared_with_no_content_that_bounds_it():
    seeded = random.Random(7)
    filterer = Filterer()
    for number in range(1_000):
        bound = Constant(seeded.random())
        filterer.add("Reading", (Comparison((Name("x0"), bound), ("<" if number % 2 else ">",)),))
    event = reading(seeded)
    event.a_x0 = None
    filterer.route([event])
    assert _asked_for(filterer, event) == 0
    event.a_x0 = -1.0
    filterer.route([event])
    assert _asked_for(filterer, event) == 500


@pytest.mark.parametrize("value", [float, int, str])
def test_an_event_is_compared_with_few_large_sets(value):
    """A set with too many values to be hashed by each is indexed from its least to its greatest."""
    kind = event_class("Some", {"y": {float: "float", int: "int", str: "text"}[value]})
    size = CHOICE_VALUES_MAX + 1
    filterer = Filterer()
    for at in range(0, 200 * size, size):
        members = tuple(Constant(value(100_000 + each)) for each in range(at, at + size))
        filterer.add("Some", (Membership(Name("y"), SetLiteral(members)),))
    event = kind(id="1", start=0, end=0, a_y=value(100_000 + 50 * size))
    assert [hit for _, hit in filterer.route([event])] == [[event]]
    assert _asked_for(filterer, event) <= 2


def test_contents_on_a_hundred_attributes_are_not_scanned():
    """No index has a column for each of them; rows go to the index that restricts them."""
    seeded = random.Random(3)
    names = [f"y{i}" for i in range(100)]
    wide = event_class("Wide", dict.fromkeys(names, "float"))
    filterer = Filterer()
    for _ in range(3_000):
        low = seeded.random()
        filterer.add("Wide", (between(seeded.choice(names), low, low + 0.01),))
    event = wide(id="1", start=0, end=0, **{f"a_{name}": -1.0 for name in names})
    filterer.route([event])
    assert _asked_for(filterer, event) <= ROWS_PLAIN


def test_contents_added_one_by_one_between_events_are_found_and_cost_little():
    """An index is not built anew for each: 1,000 installs, an event after each."""
    seeded = random.Random(4)
    filterer = Filterer()
    event = reading(seeded, source="s1")
    began = process_time()
    for number in range(1_000):
        conditions = (*ranges(seeded), Comparison((Name("x0"), Constant(number)), ("!=",)))
        key = filterer.add("Reading", conditions)
        filterer.route([event])
    assert process_time() - began < 10  # some tenths of a second; a scan or rebuild takes minutes
    last = filterer.add("Reading", (between("x0", -1.0, 2.0),))
    assert dict(filterer.route([event]))[last] == [event]
    assert key < last


def test_churn_without_events_does_not_pile_up():
    """Contents that come and go leave nothing behind, whether events come or not."""
    seeded = random.Random(5)
    filterer = Filterer()
    for _ in range(40):
        filterer.add("Reading", ranges(seeded))
    filterer.route([reading(seeded)])
    index = filterer._types["Reading"]._index
    for _ in range(2_000):
        filterer.remove(filterer.add("Reading", ranges(seeded)))
        key = filterer.add("Reading", ranges(seeded))
        filterer.route([reading(seeded)])
        filterer.remove(key)
    rest = index._rest
    assert len(rest) == 40
    assert sum(len(layer.rows) for layer in rest._layers) <= 4 * 40 + 2 * ROWS_PLAIN
    for key in list(filterer._by_id):
        filterer.remove(key)
    assert filterer._types == {}
    assert filterer._by_key == {}


def test_many_contents_take_bounded_memory():
    seeded = random.Random(6)
    asked = [(equal("location", f"l{i % 30}"), *ranges(seeded)) for i in range(3_000)]
    event = reading(seeded, location="l1")
    tracemalloc.start()
    try:
        filterer = Filterer()
        for each in asked:
            filterer.add("Reading", each)
        for number in range(30):
            filterer.route([reading(seeded, location=f"l{number}")])
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert filterer.route([event]) is not None
    assert size / 3_000 < 2_000  # bytes for each content


# --- the parts --------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 63, 64, 65, 1_024, 5_000])
@pytest.mark.parametrize("share", [0.001, 0.1, 1.0])
def test_the_places_of_bits_are_read_alike_by_both_ways(size, share):
    seeded = random.Random(size)
    places = sorted({place for place in range(size) if seeded.random() <= share} | {size - 1})
    assert slots_of(sum(1 << place for place in places)) == places
    assert slots_of(0) == []


def test_a_column_has_every_row_in_the_cells_of_its_range_and_no_other_row_where_cells_are_fine():
    spans = [(0, 1.0, 3.0), (1, 2.0, None), (2, None, 2.0), (3, 5.0, 5.0)]
    column = Column("x", spans, free=1 << 4, cells_max=64)

    def rows(value: float) -> set[int]:
        from bisect import bisect_right

        return set(slots_of(column.cells[bisect_right(column.edges, value)]))

    assert rows(0.5) == {2, 4}
    assert rows(1.0) == {0, 2, 4}
    assert rows(2.0) == {0, 1, 4}
    assert rows(2.9) == {0, 1, 4}
    assert rows(3.0) == {1, 4}
    assert rows(5.0) == {1, 4}
    assert set(slots_of(column.cells[-1])) == {4}


def test_a_location_is_beneath_itself_and_all_that_it_begins_with_by_segments():
    assert list(prefixes("a/b/c")) == ["a/b/c", "a/b", "a"]
    assert list(prefixes("a")) == ["a"]
    assert list(prefixes("/a")) == ["/a", ""]
    assert list(prefixes("")) == [""]


def test_alternatives_stay_bounded_and_impossible_ones_are_gone():
    either = Logical("or", tuple(equal("x0", float(i)) for i in range(5)))
    assert len(alternatives_of((either,))) == 5
    assert len(alternatives_of((either, either))) == 5  # 25 are too many: the second is tested only
    assert alternatives_of((Logical("or", (either, Name("x1"))), Constant(1))) != []
    assert alternatives_of(()) == [()]


def test_a_row_is_hashed_by_the_term_that_tells_most_apart():
    """`kind = 1` of all and `source = …` of one each: the source is what is hashed."""
    index = TypeIndex(256)
    for number in range(100):
        conditions = (equal("x0", 1.0), equal("source", f"s{number}"))
        content = Content(number, None, conditions)
        index.add(content)
    assert list(index._tables) == ["source"]
    assert max(len(group) for group in index._tables["source"].values()) == 1


def drawn_narrow(seeded: random.Random) -> tuple[Comparison, ...]:
    """A narrow range of x0, some with one of x1; few are open to one side."""
    low = seeded.randrange(400) / 4
    if seeded.random() < 0.05:
        return (Comparison((Name("x0"), Constant(99.0 + low / 100)), (">",)),)
    asked = [between("x0", low, low + seeded.choice([0.25, 0.5, 2.0]))]
    if seeded.random() < 0.3:
        asked.append(between("x1", 0.2, 0.7))
    return tuple(asked)


def holds_for(asked: tuple[Comparison, ...], event: Any) -> bool:
    if len(asked[0].operands) == 2:
        name, low = asked[0].operands
        return getattr(event, f"a_{name.name}") > low.value
    return all(in_bounds(each, event) for each in asked)


@pytest.mark.parametrize("seed", range(4))
def test_narrow_ranges_come_and_go_and_are_found_where_they_hold(seed):
    """Whatever the cells: events stand at the ends of ranges, and beyond all of them."""
    seeded = random.Random(seed)
    filterer = Filterer()
    kept: list[tuple[int, tuple[Comparison, ...]]] = []
    for _ in range(12):
        for _ in range(60):
            asked = drawn_narrow(seeded)
            kept.append((filterer.add("Reading", asked), asked))
        for _ in range(25):
            filterer.remove(kept.pop(seeded.randrange(len(kept)))[0])
        for _ in range(40):
            values = {f"a_{name}": 0.5 for name in ATTRIBUTES}
            values["a_x0"] = seeded.randrange(-8, 430) / 4 + seeded.choice([0.0, 0.0, 0.1])
            values["a_x1"] = seeded.choice([0.1, 0.2, 0.5, 0.7])
            event = Reading(id="1", start=0, end=0, **values)
            wanted = sorted({content for content, asked in kept if holds_for(asked, event)})
            assert [content for content, _ in filterer.route([event])] == wanted
