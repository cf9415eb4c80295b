"""Rows: the index says of every event what asking key by key says."""

from math import inf, isnan
from random import Random

import pytest

from broker.engine.event.event import MetricPosition
from broker.engine.filter.cells import slots_of
from broker.network.routing.advertisement.operator import Key, Range, Region
from broker.network.routing.matching.rows import GATES_MAX, Held, RowIndex, row_of
from tests.broker.network.routing.events import event

# Of 2**53 and beyond there are integers that no two floats keep apart.
FAR = 2**53
ENDS = [None, -2.0, 0.0, 0.5, 1.0, 2.5, float(FAR), inf, -inf]
PLACES = [None, [46.0, 7.0], [47.5, 8.0], MetricPosition(1.0, 2.0), MetricPosition(5.0, 5.0, 3.0)]


def draw_region(random):
    if random.random() < 0.3:
        return Region("circle", (46.0, 7.0, 200_000.0))
    metric = random.random() < 0.5
    x, y = random.choice([(0.0, 0.0), (46.0, 7.0)])
    return Region("box", (x + random.randint(0, 2), y + 1.0, x, y + 3), metric=metric)


def draw_key(random):
    attributes = sorted(random.sample(["a", "b"], random.randint(0, 2)))
    return Key(
        "k",
        "T",
        source=random.choice([None, None, "s1", "s2"]),
        location=random.choice([None, None, "house", "house/hall", "yard"]),
        region=draw_region(random) if random.random() < 0.4 else None,
        ranges=tuple(
            Range(
                name,
                random.choice(ENDS),
                random.choice(ENDS),
                random.random() < 0.5,
                random.random() < 0.5,
            )
            for name in attributes
        ),
        equals=random.choice(
            [(), (), (("c", True),), (("c", 1),), (("d", "x"),), (("b", FAR + 1),), (("b", 1.0),)]
        ),
        condition=random.choice(["", "", "even"]),
    )


def draw_event(random, number):
    return event(
        f"e{number}",
        "T",
        random.randint(0, 20),
        source=random.choice([None, "s1", "s2"]),
        location=random.choice([None, "house", "house/hall", "household"]),
        position=random.choice(PLACES),
        a=random.choice([None, -2.0, 0.0, 0.25, 0.5, 1, 2.5, FAR, FAR + 1, inf, float("nan")]),
        b=random.choice([None, 0, 1.0, 3, FAR, FAR + 1, inf, -inf]),
        c=random.choice([None, True, 1, False]),
        d=random.choice([None, "x", "y"]),
    )


def passes(key, since_ms, via, held):
    """A key, asked in words of its own."""
    one = held.event
    asked = [
        since_ms is None or one.start >= since_ms,
        via is None or held.via == via,
        key.source is None or one.source == key.source,
        key.location is None or f"{one.location or ''}/".startswith(f"{key.location}/"),
        key.region is None or inside(key.region, one.position),
    ]
    if not all(asked):
        return False
    for each in key.ranges:
        value = getattr(one, f"a_{each.attribute}")
        if value is None or isnan(value):
            return False
        low, high = each.low, each.high
        if low is not None and (value <= low if each.low_open else value < low):
            return False
        if high is not None and (value >= high if each.high_open else value > high):
            return False
    for name, wanted in key.equals:
        value = getattr(one, f"a_{name}")
        if value != wanted or (value is True) != (wanted is True):
            return False
    return not key.condition or len(one.id) % 2 == 0


def inside(region, position):
    if position is None or isinstance(position, MetricPosition) != region.metric:
        return False
    if region.shape == "circle":
        return position in ([46.0, 7.0], [47.5, 8.0])  # 184 km away
    x, y = (position.x, position.y) if region.metric else position[:2]
    a, b, c, d = region.numbers
    return min(a, c) <= x <= max(a, c) and min(b, d) <= y <= max(b, d)


def condition(one):
    return len(one.id) % 2 == 0


@pytest.mark.parametrize("seed", range(6))
def test_an_event_passes_the_rows_that_it_passes_one_by_one(seed):
    random = Random(seed)
    index = RowIndex()
    kept = {}
    for number in range(150):
        for _ in range(random.choice([0, 0, 1, 5, 30])):
            slot = random.randrange(1_000)
            if slot in kept:
                index.remove(slot)
                del kept[slot]
            key, since_ms = draw_key(random), random.choice([None, None, 5, 15])
            via = random.choice([None, None, "west"])
            test = condition if key.condition else None
            index.add(slot, row_of(key, since_ms, via, test))
            kept[slot] = (key, since_ms, via)
        held = Held(draw_event(random, number), random.choice(["", "west"]))
        found = slots_of(index.lookup(held))
        wanted = [slot for slot, row in sorted(kept.items()) if passes(*row, held)]
        assert found == wanted
    assert len(kept) > GATES_MAX


@pytest.mark.parametrize("rows", [1, 3 * GATES_MAX])
@pytest.mark.parametrize("said", ["1.0", b"1.0", True, [1.0]])
def test_what_is_no_number_lies_in_no_range_and_troubles_no_other_event(rows, said):
    """Another broker may know an attribute of the name by another type."""
    index = RowIndex()
    for slot in range(rows):
        index.add(slot, row_of(Key("k", "T", ranges=(Range("a", 0.0, slot + 2.0),))))
    for value, wanted in ((said, 0), (1.0, rows), (said, 0)):
        found = slots_of(index.lookup(Held(event("e", "T", 0, a=value), "")))
        assert len(found) == wanted


def test_more_regions_than_are_asked_one_by_one():
    index = RowIndex()
    for slot in range(3 * GATES_MAX):
        box = Region("box", (slot, 0.0, slot + 2.0, 1.0), metric=True)
        index.add(slot, row_of(Key("k", "T", region=box)))
    for x in (0, 1, 50, 150):
        held = Held(event("e", "T", 0, position=MetricPosition(float(x), 1.0)), "")
        assert slots_of(index.lookup(held)) == [each for each in (x - 2, x - 1, x) if each >= 0]
    nowhere = Held(event("e", "T", 0, position=[1.0, 1.0]), "")
    assert index.lookup(nowhere) == 0


def test_many_rows_with_the_same_ends():
    """More rows than a step turns over begin and end at once, each beside a narrow one."""
    index = RowIndex()
    for slot in range(300):
        low = float(slot // 30)
        high = low + 0.5 if slot % 2 else low + 3.0
        index.add(slot, row_of(Key("k", "T", ranges=(Range("a", low, high),))))
    for value in (-1.0, 0.0, 0.5, 0.75, 4.25, 4.75, 9.5, 12.0, 12.5):
        held = Held(event("e", "T", 0, a=value), "")
        wanted = [slot for slot in range(300) if index.row(slot).test(held)]
        assert slots_of(index.lookup(held)) == wanted
