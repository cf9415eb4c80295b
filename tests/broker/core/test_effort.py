"""What a text costs to be installed is counted beforehand, and held to a limit."""

import gc
from time import process_time

import pytest

from broker.core.broker import Broker
from broker.core.effort import effort
from broker.core.messages import SpecificationSubmitted
from broker.engine.limits import Limits
from language import check_text
from tests.broker.core.machine import NOW, Machine

HEAD = "event T(v: float) event U(v: float)\n"


def many(pattern, count):
    return HEAD + "\n".join(
        f"subscription S{n} seq 1 from b to l detect {pattern.replace('$', str(n))}"
        for n in range(count)
    )


def wide(groups, each):
    """One pattern of groups of alternatives."""
    names = iter(range(10_000))
    parts = [
        "(" + " or ".join(f"T as x{next(names)}" for _ in range(each)) + ")" for _ in range(groups)
    ]
    return f"{HEAD}subscription S seq 1 from b to l detect {' and '.join(parts)} within 5 s"


def terms(count):
    both = " and ".join(f"(v > $ + {n} or v < {n})" for n in range(count))
    return f"T({both})"


TEXTS = {
    "single events": many("T(v > $)", 200),
    "pairs": many("T(v > $) as a then U(v > $) as b within 5 s", 100),
    "chosen in turn": many("[chronicle] T(v > $) as a then U+ as b then T as c within 5 s", 100),
    "one wide pattern": wide(8, 8),
    "long conditions": many(terms(30), 30),
    "many attributes": "\n".join(
        f"event E{n}({', '.join(f'a{k}: int' for k in range(200))})" for n in range(40)
    )
    + "\nsubscription S seq 1 from b to l detect E1",
    "windows": HEAD
    + "\n".join(
        f"define D{n}(m) aggr every 5 s range {n + 1} mins detect T assign m = Median(T.v) + {n}\n"
        f"subscription S{n} seq 1 from b to l detect D{n}"
        for n in range(50)
    ),
}


def units_of(text):
    specification = check_text(text).demand()
    declared = [one for one in specification.event_types.values() if not one.defined]
    return effort(specification.graph.tasks.values(), declared)


@pytest.mark.parametrize("name", TEXTS)
def test_what_costs_more_counts_more(name):
    """Some 25 µs a unit on a quiet machine; at twenty times that the limit would be of no use."""
    checked = check_text(TEXTS[name])
    units = units_of(TEXTS[name])
    assert 500 < units < 40_000
    broker = Broker()
    gc.collect()
    began = process_time()
    broker.handle(SpecificationSubmitted("me", "1", checked.text, checked=checked), NOW)
    seconds = process_time() - began
    assert len(broker.subscriptions) == len(checked.specification.subscriptions)
    assert seconds / units < 500e-6


@pytest.mark.parametrize("name", TEXTS)
def test_past_the_limit_a_text_is_refused_with_its_measure_and_nothing_is_installed(name):
    units = units_of(TEXTS[name])
    machine = Machine(Limits(install_effort_max=units - 1))
    reply = machine.submit(TEXTS[name])
    (error,) = reply["errors"]
    assert error["code"] == "HW504"
    assert f"takes {units:,} units of work, so submit it in parts" in error["message"]
    assert f"at most {units - 1} are allowed (install_effort_max)" in error["message"]
    assert machine.broker.subscriptions == []
    machine = Machine(Limits(install_effort_max=units))
    assert machine.submit(TEXTS[name])["ok"]


def test_what_runs_already_costs_nothing_again():
    text = many("T(v > $)", 20)
    units = units_of(text)
    machine = Machine(Limits(install_effort_max=units))
    assert machine.submit(text)["ok"]
    assert machine.submit(text)["ok"]
    more = text + "\nsubscription More seq 1 from b to l detect T(v < 1)"
    assert units_of(more) > units
    assert machine.submit(more)["ok"]


def test_a_thousand_usual_subscriptions_may_come_in_one_text():
    pattern = "T(v > $) as a then U(v > $) as b within 5 s where a.v < b.v group by location"
    assert units_of(many(pattern, 1_000)) < Limits().install_effort_max
