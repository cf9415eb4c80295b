"""One router against exhaustion: what goes to a neighbour and to whom of its own users.

Durative events out of order, several δt and δl at once, degrees and metres, keys of one type,
optional keys, operators that are not correlated, operators that come and go.
"""

from itertools import product
from random import Random

import pytest

from broker.engine.event.event import MetricPosition, distance_m
from broker.network.routing.advertisement.messages import LOCAL, Events, Results, Want
from broker.network.routing.advertisement.operator import Key, Operator, Range
from broker.network.routing.matching import matching
from broker.network.routing.matching.strategies import FILTER_SPLIT_FORWARD, NAIVE
from broker.network.routing.router import Router
from tests.broker.network.routing.events import event

TYPES = ("A", "B", "C")
SPOTS = [
    None,
    [46.0, 7.0],
    [46.0, 7.001],
    MetricPosition(0.0, 0.0),
    MetricPosition(3.0, 4.0),
    MetricPosition(6.0, 8.0),
]


def draw_operator(random, name):
    keys = []
    for number in range(random.randint(1, 3)):
        low = random.randint(0, 6)
        one = Range("x", float(low), float(low + random.randint(0, 5)), random.random() < 0.2)
        optional = number > 0 and random.random() < 0.3
        keys.append(Key(f"k{number}", random.choice(TYPES), ranges=(one,), optional=optional))
    return Operator(
        name,
        tuple(keys),
        random.choice([0, 2, 3, 5, 8]),
        random.choice([None, None, 5.0, 80.0, 10.0]),
        strict=random.random() < 0.5,
        correlated=random.random() < 0.85,
        since_ms=random.choice([None, None, None, 6]),
    )


def draw_events(random, count):
    found = []
    for number in range(count):
        start = max(0, number // 2 + random.randint(-4, 4))
        end = start + random.choice([0, 0, 0, 1, 3])
        spot = random.choice(SPOTS)
        x = random.choice([random.randint(0, 9), random.randint(0, 9), None])
        found.append(event(f"e{number}", random.choice(TYPES), start, end, position=spot, x=x))
    return found


def passes(operator, key, one):
    (ends,) = key.ranges
    if one.event_type != key.type_name or one.a_x is None:
        return False
    if operator.since_ms is not None and one.start < operator.since_ms:
        return False
    above = one.a_x > ends.low if ends.low_open else one.a_x >= ends.low
    return above and one.a_x <= ends.high


def fits(operator, choice):
    lasts = max(one.end for one in choice) - min(one.start for one in choice)
    if not (lasts < operator.delta_t_ms or (lasts == operator.delta_t_ms and not operator.strict)):
        return False
    if operator.delta_l is None:
        return True
    for place, one in enumerate(choice):
        for other in choice[:place]:
            d = distance_m(one.position, other.position)
            if d is None or d > operator.delta_l or (d == operator.delta_l and operator.strict):
                return False
    return True


def wanted(operator, events):
    """The events that an operator wants, by trying every choice."""
    if not operator.correlated or len(operator.keys) == 1:
        return {o.id for key in operator.keys for o in events if passes(operator, key, o)}
    must = [key for key in operator.keys if not key.optional]
    bodies = [must, *([*must, key] for key in operator.keys if key.optional)]
    found = set()
    for body in bodies:
        some = [[one for one in events if passes(operator, key, one)] for key in body]
        for choice in product(*some):
            if fits(operator, choice):
                found.update(one.id for one in choice)
    return found


def gathered(sends, to_neighbour, to_users):
    for send in sends:
        if isinstance(send.message, Events):
            assert send.to == "east"
            some = [one.id for one in send.message.events]
            assert not to_neighbour & set(some)
            assert len(set(some)) == len(some)
            to_neighbour.update(some)
        elif isinstance(send.message, Results):
            for one, names in send.message.events:
                for name in names:
                    assert one.id not in to_users.setdefault(name, set())
                    to_users[name].add(one.id)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_sent_is_what_belongs_to_a_complete_match(seed):
    random = Random(seed)
    router = Router(["east"], FILTER_SPLIT_FORWARD)
    neighbours = [draw_operator(random, f"n{number}") for number in range(random.randint(0, 6))]
    users = [draw_operator(random, f"u{number}") for number in range(random.randint(0, 6))]
    events = draw_events(random, 24)
    to_neighbour, to_users = set(), {}
    # Operators come first, between the events and last: what is held is released to them.
    calls = [("east", one) for one in neighbours] + [(LOCAL, one) for one in users]
    todo = events + calls
    late = random.sample(todo, len(todo)) if seed % 2 else calls + events
    for one in late:
        if isinstance(one, tuple):
            sends = router.operator_added(*one)
        else:
            sends = router.events(LOCAL, [one])
        gathered(sends, to_neighbour, to_users)
    assert to_neighbour == set().union(*(wanted(one, events) for one in neighbours))
    for one in users:
        assert to_users.get(one.id, set()) == wanted(one, events), one


@pytest.mark.parametrize("seed", range(15))
def test_with_many_shapes_rows_are_looked_up_at_once_to_the_same_effect(seed, monkeypatch):
    monkeypatch.setattr(matching, "SHAPES_FEW", seed % 3)
    test_what_is_sent_is_what_belongs_to_a_complete_match(seed)
    test_operators_that_have_gone_want_nothing_and_their_slots_are_taken_again(seed)


@pytest.mark.parametrize("seed", range(15))
def test_operators_that_have_gone_want_nothing_and_their_slots_are_taken_again(seed):
    random = Random(seed)
    router = Router(["east"], NAIVE)
    kept, now, to_users = {}, {}, {}
    for number in range(120):
        if random.random() < 0.3:
            name = f"u{number}"
            kept[name] = draw_operator(random, name)
            kept[name] = Operator(name, kept[name].keys, 4, None, since_ms=number)
            gathered(router.operator_added(LOCAL, kept[name]), set(), to_users)
            now[name] = []
        if now and random.random() < 0.25:
            name = random.choice(sorted(now))
            assert to_users.get(name, set()) == wanted(kept[name], now.pop(name))
            router.operator_removed(LOCAL, name)
        x = random.randint(0, 9)
        one = event(f"e{number}", random.choice(TYPES), number, x=x)
        for seen in now.values():
            seen.append(one)
        gathered(router.events(LOCAL, [one]), set(), to_users)
        router.expire(number - 4)
        assert len(router.releases) <= 5
    for name, seen in now.items():
        assert to_users.get(name, set()) == wanted(kept[name], seen)


def test_a_batch_gives_what_its_events_give_one_by_one():
    random = Random(5)
    events = draw_events(random, 30)
    operators = [draw_operator(random, f"n{number}") for number in range(5)]
    found = []
    for size in (1, 7, 30):
        router = Router(["east"])
        for one in operators:
            router.operator_added("east", one)
        got, users = set(), {}
        for first in range(0, 30, size):
            gathered(router.events(LOCAL, events[first : first + size]), got, users)
        found.append(got)
    assert found[0] == found[1] == found[2] != set()


def test_a_repeat_goes_nowhere_and_nothing_goes_back():
    router = Router(["east", "west"])
    key = Key("k", "A")
    router.operator_added("east", Operator("o", (key,)))
    router.operator_added("west", Operator("o", (key,)))
    one = event("e", "A", 1)
    (send,) = router.events("west", [one])
    assert (send.to, send.message) == ("east", Events([one], 1))
    assert router.events("west", [one]) == []
    assert router.events("east", [one]) == []


def test_past_its_limit_a_router_sends_too_much_rather_than_too_little():
    """An event whose partners may have been forgotten goes as if they had been there."""
    for seed in range(20):
        random = Random(seed)
        router = Router(["east"], held_max=6)
        operators = [draw_operator(random, f"n{number}") for number in range(3)]
        for one in operators:
            router.operator_added("east", one)
        events = draw_events(random, 30)
        got = set()
        for one in events:
            gathered(router.events(LOCAL, [one]), got, {})
            assert len(router.releases) <= 7
        needed = set().union(*(wanted(one, events) for one in operators))
        assert needed <= got
        passing = {e.id for o in operators for key in o.keys for e in events if passes(o, key, e)}
        assert got <= passing
        assert router.shed_count >= 30 - 7 - 4


def test_an_operator_without_a_bound_in_time_is_not_held_for_ever():
    router = Router(["east"])
    keys = (Key("a", "A"), Key("b", "B"))
    router.operator_added("east", Operator("o", keys, None))
    (send,) = router.events(LOCAL, [event("e", "A", 1)])
    assert isinstance(send.message, Events)
    assert not any(
        isinstance(each.message, Want) for each in router.operator_added(LOCAL, Operator("p", keys))
    )
