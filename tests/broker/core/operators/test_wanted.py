"""Who wants an event, asked of many operators at once."""

from __future__ import annotations

import random
from time import process_time

import pytest

from broker.core.operators.conditions import compile_condition
from broker.core.operators.wanted import Wanted
from broker.core.routing.operator import Key, Operator, Range
from broker.engine.event.event import event_class
from broker.engine.limits import LimitReachedError, make_limits
from tests.broker.core.operators.travels import drawn
from tests.growing import growth
from tests.oracles.travelling import passes

TEMP = event_class("Temp", {"val": "float", "unit": "text"})


def event(number, val, source="s1"):
    return TEMP(id=f"e{number}", source=source, start=number, end=number, a_val=val, a_unit="C")


def single(name, low, high, **more):
    key = Key("Temp", "Temp", ranges=(Range("val", low, high),), **more)
    return Operator(name, (key,), correlated=False)


def test_each_key_is_told_what_passes_it():
    wanted = Wanted()
    wanted.add(single("low", 0.0, 5.0))
    wanted.add(single("high", 5.0, 9.0, source="s2"))
    wanted.add(single("also low", 0.0, 5.0))
    events = [event(0, 5.0), event(1, 5.0, "s2"), event(2, 99.0)]
    told = [(one.keys, [each.id for each in one.events]) for one in wanted.push(events)]
    low = (("low", "Temp"), ("also low", "Temp"))
    assert told == [(low, ["e0", "e1"]), ((("high", "Temp"),), ["e1"])]
    assert [one.id for one in wanted.wanting(events, ["high"])] == ["e1"]


def test_one_operator_leaves_and_the_other_stays():
    wanted = Wanted()
    wanted.add(single("a", 0.0, 5.0))
    wanted.add(single("b", 0.0, 5.0))
    wanted.remove("a")
    assert [one.keys for one in wanted.push([event(0, 1.0)])] == [(("b", "Temp"),)]
    wanted.remove("b")
    assert wanted.push([event(0, 1.0)]) == []
    assert len(wanted) == 0
    with pytest.raises(KeyError):
        wanted.remove("b")


def test_an_operator_that_cannot_be_taken_leaves_nothing():
    wanted = Wanted(make_limits(contents_max=1))
    keys = (Key("Temp", "Temp"), Key("Temp#2", "Temp", ranges=(Range("val", 1.0),)))
    with pytest.raises(LimitReachedError):
        wanted.add(Operator("two", keys))
    with pytest.raises(ValueError, match="condition"):
        wanted.add(Operator("bad", (Key("Temp", "Temp", condition="val >"),)))
    assert len(wanted) == 0
    assert wanted.push([event(0, 1.0)]) == []
    wanted.add(Operator("one", keys[:1]))
    assert len(wanted.push([event(0, 1.0)])) == 1


@pytest.mark.parametrize("construct", ["atom", "and", "in", "regions", "functions", "then"])
def test_asked_at_once_or_key_by_key_is_the_same(construct):
    for seed in range(12):
        world = drawn(seed, construct, "unrestricted")
        operators = world.operators()
        wanted = Wanted()
        for one in operators:
            wanted.add(one)
        told = {
            (key, id(each))
            for one in wanted.push(world.events)
            for key in one.keys
            for each in one.events
        }
        assert told == {
            ((one.id, key.name), id(each))
            for one in operators
            for key in one.keys
            for each in world.events
            if passes(key, each, compile_condition)
        }


@pytest.mark.long
def test_what_nobody_wants_costs_no_more_with_many_operators():
    """Ten thousand operators against ten."""
    draw = random.Random(5)
    events = [event(number, draw.uniform(2_000.0, 3_000.0)) for number in range(20_000)]

    def among(count):
        wanted = Wanted()
        for number in range(count):
            low = draw.uniform(0.0, 1_000.0)
            wanted.add(single(str(number), low, low + 5.0))
        wanted.push(events[:100])
        return wanted

    few, many = among(10), among(10_000)
    assert growth(lambda: _seconds(few, events), lambda: _seconds(many, events), 4) < 4


def _seconds(wanted, events):
    begun = process_time()
    wanted.push(events)
    return process_time() - begun
