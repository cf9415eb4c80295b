"""What runs as one operator finds what its operators find one by one, and when.

The yardstick is the same agent with operators one by one (`Fusing` switched off). Each takes up
what the other has in a snapshot: the last release knew the operators alone, and where times are
uncertain they return.
"""

from contextlib import nullcontext
from fractions import Fraction
from random import Random
from unittest.mock import patch

import pytest

from broker.engine.pattern.fused.fusion import FusedPlan
from broker.engine.pattern.fused.sequence import SequencePlan
from broker.engine.pattern.fused.tree import Fusing, TreePlan
from broker.engine.pattern.layout.pattern import lay_out
from broker.engine.pattern.operators.build import Builder
from broker.engine.pattern.times.durations import Durations, Foresight
from broker.engine.pattern.uncertainty.verdicts import Doubt
from headwater import Engine
from tests.broker.core.test_patience import DECLARED, HEAD, batches, case_of, stream

CHAINS = (
    "detect[first] A then B then C",
    "detect[first] A then B as b then C as c within 60 ms where c.x > b.x",
    "detect[first] A then[..12 ms] B then[3 ms..30 ms] C within 50 ms",
    "detect[first] A then B* as b then C within 60 ms where b.x > 4",
    "detect[first] A as a then B+ as b then C within 60 ms where Count(b) > 1",
    "detect[latest] A then B",
    "detect[latest] A then B then C",
    "detect[latest] A then B then C within 40 ms",
    "detect[latest] A as a then B as b then C within 60 ms where b.x > a.x",
    "detect[latest] A then B+ then C then D within 90 ms",
    "detect[latest] A then[..20 ms] B",
    "detect[latest] A then[..12 ms] B then[3 ms..30 ms] C within 50 ms",
    "detect[latest] A as x then A as y within 60 ms where y.x > x.x",
    "detect[latest] A as x then A as y then[..20 ms] B",
    "detect[latest] A then[next] B within 60 ms",
    "detect[first] A as x then A as y then B within 60 ms",
    "detect[first] A then[next] B",
    "detect[first] A then nth 2 B then[next] C within 60 ms",
    "detect[first] A then B within 40 ms from A",
    "detect[first] A as a then B then C within 90 ms within 40 ms from a",
    "detect[first] A and B",
    "detect[first] A and B and C within 60 ms",
    "detect[first] A as x and A as y and B within 60 ms within 40 ms from x",
    "detect[first] A as a and[..20 ms] B as b within 60 ms where b.x > a.x",
    "detect[chronicle] A then B",
    "detect[chronicle] A then B then C within 60 ms",
    "detect[chronicle] (A then B within 20 ms) then[..40 ms] C",
    "detect[chronicle] A as a then B+ then C as c within 60 ms where c.x > a.x",
    "detect[chronicle] A as x then A as y",
    "detect[chronicle] A as x then B as v then A as y then B as z within 90 ms",
    "detect[chronicle] A then nth 2 B",
    "detect[chronicle] A then nth 2 B then[next] C within 60 ms",
    "detect[chronicle] A as x then[next] A as y within 60 ms",
    "detect[recent] A then B+ then C within 60 ms",
    "detect[recent] A as a then B as b then C* then[..30 ms] D within 90 ms where b.x > a.x",
    "detect A as a then B+ as b then[..20 ms] C within 60 ms where a.x > 2",
    "detect A then[..30 ms] B* then[..30 ms] C within 60 ms",
)
JOINED = (
    "detect A then nth 2 B within 60 ms",
    "detect A as a then B as b without C within 60 ms where a.source = group.source",
    "detect A then nth 2 B",
    "detect[recent] A then nth 2 B",
    "detect[recent] A then nth 3 B then[..30 ms] C within 60 ms",
    "detect A then[next] B within 60 ms",
    "detect A then[next] B",
    "detect[recent] A then[..20 ms, next] B then C within 60 ms",
    "detect A and[next] B within 30 ms",
    "detect A as a then nth 2 (A as c or B) within 60 ms",
    "detect (A then B) without C within 40 ms",
    "detect A as a then B as b without C as c within 60 ms where c.x > a.x",
    "detect (A without B) then C within 50 ms",
    "detect A(x > 3) as x then A as y without A as z within 60 ms",
    "detect ((A then B) without (C then D as e)) and D as d within 50 ms",
    "detect A then[next] B without (C or D) within 60 ms",
    "detect[one] A then B within 60 ms",
    "detect[collect] A then B then C within 60 ms",
    "detect[collect] (A then B) without C within 60 ms",
    "detect A then first B within 60 ms",
    "detect last A then nth 2 B within 60 ms",
    "detect[recent] last A then first (B and C) within 60 ms",
)
RELATED = (  # of what lasts
    "detect[first] A parallel B within 60 ms",
    "detect[first] A as a concat B as b where b.x > a.x",
    "detect[first] A during B",
)
MIXED = (  # operators over operators
    "detect[first] A then B then (C or D)",
    "detect[first] (A then B within 20 ms) then C",
    "detect[first] (A and[unrestricted] B) then C within 60 ms",
    "detect[latest] (A and[recent] B) then C then D within 90 ms",
    "detect[latest] A as a then (B or C) then D as d within 60 ms where d.x > a.x",
    "detect[chronicle] A then (B or C)",
    "detect[chronicle] A then (B and C) within 60 ms",
    "detect[chronicle] (A and[recent] B) and (C or D) within 60 ms",
    "detect A then[first] B then[chronicle] C",
    "detect A then[recent] B then[chronicle] C within 60 ms",
    "detect A then[chronicle] B then[recent] C within 60 ms",
    "detect (A then[first] B) then C within 60 ms",
    "detect (A then[latest] B) and (C then[chronicle] D) within 90 ms",
    "detect[chronicle] (A then B) without C within 60 ms",
    "detect[first] (A then B within 40 ms) without C",
    "detect[first] (A as a or B) then C as c within 60 ms where c.x > a.x",
    "detect[chronicle] (A as x and[recent] B) then A as y then (C or D) within 90 ms",
    "detect[first] (A as x and[recent] B) then A as y then (C or D) within 90 ms",
)
UNCERTAIN = (  # where times are
    "detect A then B",
    "detect A then[..20 ms] B within 60 ms",
    "detect[recent] A then B then C",
    "detect[recent] (A or B) then C within 60 ms",
    "detect[recent] A as x and A as y within 30 ms",
    "detect A as a and[..20 ms] (B or C) where a.x > 2",
    "detect A as a then B then C within 90 ms within 40 ms from a",
    "detect A during B",
)
LEFT_TO_OPERATORS = (
    "detect[first] A then (B and C)",
    "detect[first] A then[..20 ms] (B or C)",
    "detect[first] A then B+ within 60 ms",
    "detect[recent] A then B* then C",
    "detect A then[next] (B then C) within 60 ms",
    "detect A without[20 ms] B",
    "detect[first] (A without[20 ms] B) then C within 60 ms",
    "detect A then distinct(x) B within 60 ms",
)


def text_of(pattern):
    return f"{DECLARED}{HEAD}{pattern} group by source"


def run(pattern, events, seed, lateness_ms, *, moves=0.0, apart=False):
    """Return the results of each batch; moved engines change between both ways."""
    random, results = Random(-seed), []

    def engine():
        if not apart:
            return Engine(text_of(pattern), lateness_ms, longest_ms=20)
        with patch.object(Fusing, "plan", lambda *_, ordered: None):
            return Engine(text_of(pattern), lateness_ms, longest_ms=20)

    running = engine()
    for batch in batches(Random(seed), events):
        results.append(running.push(batch))
        if random.random() < moves:
            state, apart = running.state(), not apart
            running = engine()
            running.restore(state)
    return [*results, running.finish()]


def plan_of(pattern, doubt=None):
    layout = lay_out(case_of(pattern))
    foresight = Foresight(Durations(20, strict=True), {letter: letter for letter in "ABCDE"})
    return Fusing(Builder(layout, (), doubt), foresight).plan(ordered=True)


@pytest.mark.parametrize("pattern", CHAINS + RELATED)
def test_a_chain_of_atoms_runs_as_one(pattern):
    assert isinstance(plan_of(pattern), SequencePlan)


@pytest.mark.parametrize("pattern", JOINED)
def test_joins_that_nothing_holds_up_run_as_one(pattern):
    assert isinstance(plan_of(pattern), FusedPlan)


@pytest.mark.parametrize("pattern", MIXED)
def test_operators_that_decide_at_once_run_over_each_other(pattern):
    assert isinstance(plan_of(pattern), TreePlan)


@pytest.mark.parametrize("pattern", UNCERTAIN)
def test_joins_run_as_one_where_times_are_uncertain(pattern):
    assert isinstance(plan_of(pattern, Doubt(Fraction(0))), FusedPlan)
    count = 0
    for seed in (1, 2):
        random = Random(f"{pattern}{seed}")
        events = stream(random, 100, 15, lasting=True)
        events = [{**event, "uncertainty": random.choice((0, 0, 4, 11))} for event in events]
        wanted = run_apart_first(pattern, events, seed, apart=1_000)
        assert run_apart_first(pattern, events, seed, apart=0) == wanted
        assert run_apart_first(pattern, events, seed, apart=12) == wanted
        count += sum(map(len, wanted))
    assert count


def run_apart_first(pattern, events, seed, *, apart):
    """Return the results of each batch, the first so many of them by operators one by one."""
    results, running = [], None
    apart_yet = patch.object(Fusing, "plan", lambda *_, ordered: None)
    for number, batch in enumerate([*batches(Random(seed), events), None]):
        with apart_yet if number < apart else nullcontext():
            if number in {0, apart}:
                state = None if running is None else running.state()
                running = Engine(text_of(pattern), 15, longest_ms=20)
                if state is not None:
                    running.restore(state)
            results.append(running.finish() if batch is None else running.push(batch))
    return results


@pytest.mark.parametrize("pattern", ["detect A then B without C", "detect[first] A then B"])
def test_what_may_come_after_it_counts_is_left_to_operators(pattern):
    assert plan_of(pattern, Doubt(Fraction(0))) is None


@pytest.mark.parametrize("pattern", LEFT_TO_OPERATORS)
def test_what_time_or_more_decides_is_left_to_operators(pattern):
    assert plan_of(pattern) is None


@pytest.mark.parametrize(("lateness_ms", "lasting"), [(25, False), (0, True), (15, True)])
@pytest.mark.parametrize("pattern", CHAINS + JOINED)
def test_one_operator_finds_what_many_find(pattern, lateness_ms, lasting):
    assert_same(pattern, lateness_ms, lasting=lasting)


@pytest.mark.parametrize(("lateness_ms", "lasting"), [(25, False), (0, True), (15, True)])
@pytest.mark.parametrize("pattern", MIXED)
def test_operators_over_each_other_find_it_no_later(pattern, lateness_ms, lasting):
    """One that holds nothing back lets those above it go on at once."""
    count = 0
    for seed in (1, 2):
        events = stream(Random(f"{pattern}{seed}"), 140, lateness_ms, lasting=lasting)
        wanted = run(pattern, events, seed, lateness_ms, apart=True)
        for found in (
            run(pattern, events, seed, lateness_ms),
            run(pattern, events, seed, lateness_ms, moves=0.1),
            run(pattern, events, seed, lateness_ms, moves=0.1, apart=True),
        ):
            assert ids_of(found) == ids_of(wanted)
        count += sum(map(len, wanted))
    assert count


def ids_of(batches):
    return sorted(result["id"] for batch in batches for result in batch)


@pytest.mark.parametrize("lateness_ms", [0, 15])
@pytest.mark.parametrize("pattern", RELATED)
def test_one_operator_finds_what_many_find_of_what_lasts(pattern, lateness_ms):
    assert_same(pattern, lateness_ms, lasting=True)


def assert_same(pattern, lateness_ms, *, lasting):
    count = 0
    for seed in (1, 2):
        events = stream(Random(f"{pattern}{seed}"), 140, lateness_ms, lasting=lasting)
        wanted = run(pattern, events, seed, lateness_ms, apart=True)
        assert run(pattern, events, seed, lateness_ms) == wanted
        assert run(pattern, events, seed, lateness_ms, moves=0.1) == wanted
        assert run(pattern, events, seed, lateness_ms, moves=0.1, apart=True) == wanted
        count += sum(map(len, wanted))
    assert count


BLOCKED = [("A", 0, 9), ("B", 1, 0), ("A", 2, 1), ("B", 3, 0), ("C", 4, 5), ("D", 10, 0)]
WAITS = "detect[first] A as a then B as b then C as c within 60 ms where c.x > a.x"


def readings(*rows):
    return [
        {"type": kind, "id": f"{kind}{at}", "source": "u", "timestamp": at, "x": x}
        for kind, at, x in rows
    ]


def test_a_run_that_time_ends_lets_the_next_one_complete():
    """C is too little for the first A, and completes the second once the first's time is over."""
    engine = Engine(text_of(WAITS))
    assert engine.push(readings(*BLOCKED)) == []
    elsewhere = {"type": "D", "id": "late", "source": "v", "timestamp": 62, "x": 0}
    (one,) = engine.push([elsewhere])
    assert one["events"] == {"a": ["A2"], "b": ["B3"], "c": ["C4"]}


def test_under_latest_nothing_replaces_what_its_bound_has_left_behind():
    """The second B comes when the time of the first one is over, and C is near the second alone."""
    engine = Engine(text_of("detect[latest] A then B then[..10 ms] C within 60 ms"))
    rows = [("A", 0, 1), ("B", 5, 1), ("B", 20, 1), ("C", 25, 1)]
    assert engine.push(readings(*rows)) + engine.finish() == []
    engine = Engine(text_of("detect[latest] A then B then[..10 ms] C within 60 ms"))
    rows[2] = ("B", 15, 1)
    (match,) = engine.push(readings(*rows)) + engine.finish()
    assert match["events"] == {"A": ["A0"], "B": ["B15"], "C": ["C25"]}


def test_a_run_whose_time_is_over_leaves_its_events_to_the_next():
    """The first A is too long ago for C; the second takes a B that the first one had.

    So many wait that the operator is given them before C comes.
    """
    engine = Engine(text_of("detect[first] A then B then C within 100 ms"), longest_ms=20)
    lasts = {"type": "A", "id": "A0", "source": "u", "start": 0, "end": 1, "x": 1}
    found = engine.push([lasts])
    for row in (("A", 45, 1), *(("B", at, 1) for at in range(46, 90)), ("C", 140, 1)):
        found += engine.push(readings(row))
    (match,) = found + engine.finish()
    assert match["events"] == {"A": ["A45"], "B": ["B46"], "C": ["C140"]}


def test_what_waits_behind_a_run_is_waited_for_further_on():
    """The match ends before D, and is passed on long after it has come."""
    defined = f"define P(x)\n{WAITS}\nassign x = c.x\n"
    engine = Engine(f"{DECLARED}{defined}{HEAD}detect[first] P then D within 100 ms")
    found = engine.push(readings(*BLOCKED))
    found += engine.push(readings(("B", 20, 0)))
    found += engine.push(readings(("D", 90, 0), ("D", 300, 0)))
    assert [one["events"]["D"] for one in found + engine.finish()] == [["D10"]]


def test_pairs_past_their_limit_drop_the_oldest_and_count_them():
    engine = Engine(text_of("detect[chronicle] A then B then C"))
    (seat,) = engine._pipeline.matcher._seats.values()
    seat.agent._occurrences_max = 5

    def push(kind, at):
        event = {"type": kind, "id": f"{kind}{at}", "source": "u", "timestamp": at, "x": 1}
        return [one["events"] for one in engine.push([event])]

    for at in range(12):
        assert push("A", at) == []
        assert seat.agent.held() <= 6  # one waits until its instant is over
    push("B", 20)
    push("C", 30)
    (one,) = engine.finish()
    assert one["events"]["A"] == ["A7"]
    assert seat.agent.dropped()["occurrences_overflow"] == 7


def test_pairs_that_end_together_stand_by_when_they_began():
    """The later A of the two that B takes is the longer one: it ends last and began first."""
    engine = Engine(text_of("detect[chronicle] A then B then C"), longest_ms=20)
    spans = [("A", 10, 11), ("A", 5, 12), ("B", 20, 20), ("B", 20, 20), ("C", 30, 30)]
    engine.push(
        [
            {"type": kind, "id": f"{kind}{at}", "source": "u", "start": start, "end": end, "x": 1}
            for at, (kind, start, end) in enumerate(spans)
        ]
    )
    (match,) = engine.finish()
    assert match["events"] == {"A": ["A1"], "B": ["B3"], "C": ["C4"]}
