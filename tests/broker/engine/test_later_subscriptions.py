"""What a subscription gets that comes later to a definition which runs already.

Owns two facts. It gets what is found from then on, and begun since. A definition that runs already
gives the same as one of its own, begun with it, where it holds by then what a new one would: which
the states of their agents tell, as they say all that what comes later depends on.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from broker.core.intake import Intake, IntakeOptions
from broker.engine.event.agent import WATERMARK_END
from broker.engine.limits import Limits
from broker.engine.runtime.budget import in_one_go
from broker.engine.runtime.matcher import Matcher
from headwater.engine import Extent
from language import check_text
from tests.broker.core.machine import NOW, Machine
from tests.broker.engine.elsewhere import DEFINING, said
from tests.oracles.draw import SeededDraw
from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE, primitive_types, random_case
from tests.oracles.render import text_of
from tests.oracles.traces import trace
from tests.streams import end_of

FAST, LONG = range(1), range(1, 7)
LATER = "Later"
PAIR = """event A(n: int)
define Pair(n) detect A(n = 1) as a then A(n = 2) as b within 1 min assign n = a.n
"""
MEAN = """event A(n: int)
define Mean(avg) aggr every 1 min detect A assign avg = Avg(A.n)
"""


def told(name, definition):
    return f"subscription {name} from {name} to alerts detect {definition}\n"


def readings(machine, *numbers):
    found = []
    for number in numbers:
        machine.wait(20_000)
        one = {"timestamp": machine.now, "n": number, "id": str(machine.now)}
        found += machine.send(one, type_name="A", source="s")
    return found


def test_a_match_that_had_begun_before_is_none_of_a_later_subscription():
    machine = Machine()
    machine.submit(PAIR + told("first", "Pair"))
    assert readings(machine, 1) == []
    machine.submit(PAIR + told("later", "Pair"))
    assert [one["subscription"] for one in readings(machine, 2)] == ["first"]
    assert [one["subscription"] for one in readings(machine, 3, 1, 2)] == ["first", "later"]


def test_what_was_found_before_is_none():
    machine = Machine()
    machine.submit(PAIR + told("first", "Pair"))
    assert len(readings(machine, 1, 2)) == 1
    machine.submit(PAIR + told("later", "Pair"))
    assert machine.results() == []
    assert [one["subscription"] for one in readings(machine, 3, 1, 2)] == ["first", "later"]


def test_a_window_that_is_open_holds_for_a_later_subscription_what_came_after_it():
    machine = Machine()
    machine.submit(MEAN + told("first", "Mean"))
    machine.wait(120_000 - NOW % 60_000)
    readings(machine, 10)
    machine.submit(MEAN + told("later", "Mean"))
    means = [
        (one["subscription"], one["values"]["Mean"]["avg"])
        for one in readings(machine, 30, 50, 50, 50, 50, 50)
    ]
    assert sorted(means) == [("first", 20.0), ("first", 50.0), ("later", 30.0), ("later", 50.0)]
    assert machine.broker.catalogue.subscriptions["later", "later"].instances == {}, "one by now"


def joined(construct: str, context: Any, seed: int) -> tuple[bool, bool]:
    """(the shared definitions held nothing else than new ones, later results were the same)."""
    spec, _ = random_case(seed, construct, context)
    first = spec.subscriptions[0]
    spec = replace(spec, subscriptions=(first, replace(first, name=LATER)))
    name = f"later/{construct}/{context}/{seed}"
    draw = random.Random(name)
    specification = check_text(text_of(spec)).demand()
    tasks = specification.graph.tasks
    root, later = specification.graph.roots
    definitions = specification.graph.active([later])
    events = sorted(
        trace(SeededDraw(name), primitive_types(spec), CONSTRUCTS_WHOLE[construct].profile),
        key=end_of,
    )
    intake = Intake(IntakeOptions(lateness_ms=0), Limits())
    intake.declare([kind for kind in specification.event_types.values() if not kind.defined])
    extent = Extent()
    extent.add(intake.from_mappings(events).events)
    shared, own = Matcher(Limits()), Matcher(Limits())
    for matcher in (shared, own):
        matcher.durations.foresee(extent.longest_ms, extent.extent_ms)
        matcher.begins_from(WATERMARK_END)
        if extent.uncertainty_ms:
            matcher.doubt(most_ms=extent.uncertainty_ms)
    for key in (*definitions, root):
        shared.install(tasks[key], extent.begin)
    at = draw.randrange(len(events) + 1)
    now, alike = extent.begin or 0, False
    of_shared: list[str] = []
    of_own: list[str] = []
    for number, event in enumerate([*events, None]):
        if number == at:
            shared.install(tasks[later], now)
            for key in (*definitions, later):
                own.install(tasks[key], now)
            states = shared.state(), own.state()
            alike = all(
                len({msgspec.msgpack.encode(state[key]) for state in states}) == 1
                for key in (*definitions, later)
            )
        if event is None:
            intake.finish()
            admitted = []
        else:
            now = max(now, end_of(event))
            admitted = list(intake.admit(intake.from_mappings([event]).events).events)
        results = in_one_go(shared.push(admitted, intake.watermark))
        of_shared += said([each for each in results if each.subscription == LATER])
        if number >= at:
            of_own += said(in_one_go(own.push(admitted, intake.watermark)))
    assert of_shared == of_own or not alike, f"{name}, {at}\n{text_of(spec)}\n{events}"
    return alike, of_shared == of_own


def agree(context: Any, seeds: range) -> None:
    found = [joined(construct, context, seed) for construct in DEFINING for seed in seeds]
    assert (True, True) in found
    assert (False, False) in found


@pytest.mark.parametrize("context", ["unrestricted", "first"])
def test_who_shares_what_holds_no_more_than_a_new_one_gets_the_same(context):
    agree(context, FAST)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("context", CONTEXTS_WHOLE)
def test_in_many_texts_who_shares_what_holds_no_more_gets_the_same(context):
    agree(context, LONG)
