"""Groups that are left alone until something may come of them report what others do, and when.

The yardstick is the same agent without that patience, whose stages get each event at once.
"""

from random import Random

import pytest

from broker.engine.pattern.agent import patience, staged_plan
from broker.engine.pattern.agent.search import search_of
from broker.engine.pattern.agent.staged_agent import StagedAgent
from broker.engine.pattern.agent.staged_partition import FRESH_MAX
from broker.engine.pattern.fused.sequence import SequencePlan
from broker.engine.pattern.fused.tree import Fusing
from broker.engine.pattern.layout.pattern import lay_out
from broker.engine.pattern.layout.prospects import prospect_of
from broker.engine.pattern.operators.build import Builder
from broker.engine.pattern.times.durations import Durations, Foresight
from headwater import Engine
from language import check_text

pytestmark = pytest.mark.usefixtures("both_ways")

DECLARED = "event A(x: int) event B(x: int) event C(x: int) event D(x: int)\n"
HEAD = "subscription S seq 1 from me to log\n"
PATTERNS = (
    "detect[first] A then B then C within 60 ms",
    "detect[first] A then B then C",
    "detect[first] A as a then B as b then C as c within 60 ms where c.x > a.x",
    "detect[first] A and B and C within 40 ms",
    "detect[first] A then[..20 ms] B then[5 ms..30 ms] C within 40 ms",
    "detect[latest] A then B then C within 60 ms",
    "detect[latest] A then B then C",
    "detect[latest] A as a then B+ then C as c within 60 ms where c.x > a.x",
    "detect[first] A then B as b then[..25 ms] C as c then D within 90 ms where c.x > b.x",
    "detect[chronicle] A as a then[2 ms..30 ms] B as b then C* then D within 60 ms where a.x > 2",
    "detect[chronicle] A then B then C within 60 ms",
    "detect[chronicle] (A and B) then C within 50 ms",
    "detect[first] (A or D) then B then C within 60 ms",
    "detect[first] (A then B within 20 ms) then C within 60 ms",
    "detect A then B+ then C within 60 ms",
    "detect A then B* then C within 60 ms",
    "detect A then B+ then C+ then D within 80 ms",
    "detect A+ then B within 60 ms",
    "detect[recent] A then B+ then[..30 ms] C",
    "detect[first] A then B+ then C within 60 ms",
    "detect[chronicle] A as a then B+ as b then C as c within 60 ms where Count(b) > 0",
    "detect (A and D) then B+ as b then C within 60 ms where b.x > 3",
    "detect A then (B parallel C) within 60 ms",
    "detect A and C and D within 25 ms",
    "detect A as a then[..20 ms] B as b then C as c where c.x > a.x",
    "detect (A or B) then (C and D) within 60 ms",
    "detect A then B then C within 30 ms",
    "detect A then[next] B then[chronicle] C within 60 ms",
    "detect[first] A then nth 2 B then C within 60 ms",
    "detect A without B",
    "detect (A then B) without D then C within 60 ms",
)


def case_of(pattern):
    text = f"{DECLARED}{HEAD}{pattern} group by source"
    (task,) = check_text(text).demand().graph.tasks.values()
    return task.node.case


def stream(random, count, lateness_ms, *, lasting):
    """Events of two sources, some ends alike; each up to so late."""
    now, made = 1_000, []
    for number in range(count):
        now += random.choice((0, 1, 2, 5, 7))
        lasts_ms = random.choice((0, 0, 4, 15)) if lasting and random.random() < 0.3 else 0
        name = random.choice("ABCD")
        event = {"type": name, "id": f"{name}{number}", "source": random.choice("uv")}
        event |= {"start": now - lasts_ms, "end": now, "x": random.randint(0, 9)}
        made.append((now + random.uniform(0, lateness_ms), number, event))
    return [event for _, _, event in sorted(made)]


def batches(random, events):
    at = 0
    while at < len(events):
        size = random.choice((1, 1, 2, 7, 40))
        yield events[at : at + size]
        at += size


def told(text, events, seed, lateness_ms, *, moved=False):
    """The results of each batch."""
    moves = Random(-seed)
    engine, found = Engine(text, lateness_ms, longest_ms=20), []
    for batch in batches(Random(seed), events):
        found.append(engine.push(batch))
        if moved and moves.random() < 0.1:
            state = engine.state()
            engine = Engine(text, lateness_ms, longest_ms=20)
            engine.restore(state)
    return [*found, engine.finish()]


def seats(engine):
    return list(engine._pipeline.matcher._seats.values())


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_has_a_prospect(pattern):
    assert prospect_of(lay_out(case_of(pattern)), in_order=True) is not None


@pytest.mark.parametrize(("lateness_ms", "lasting"), [(25, False), (0, True)])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_results_are_those_of_one_that_waits_for_nothing(
    pattern, lateness_ms, lasting, monkeypatch
):
    text = f"{DECLARED}{HEAD}{pattern} group by source"
    total = 0
    for seed in range(1, 2):
        events = stream(Random(f"{pattern}{seed}"), 150, lateness_ms, lasting=lasting)
        patient = told(text, events, seed, lateness_ms)
        moved = told(text, events, seed, lateness_ms, moved=True)
        with monkeypatch.context() as patched:
            patched.setattr(staged_plan, "prospect_of", lambda _, **__: None)
            assert patient == told(text, events, seed, lateness_ms)
        assert moved == patient
        total += sum(map(len, patient))
    assert total


SEARCHED = (
    "detect[first] A then B then C within 60 ms",
    "detect[first] A then B then C then D within 80 ms",
    "detect[first] A before B within 30 ms",
    "detect A then B+ then C within 60 ms",
    "detect A then B+ then C+ then D within 80 ms",
    "detect A then B then C* then D within 60 ms",
    "detect A(x < 8) then B+ as b then C within 60 ms where b.x > 2",
)


@pytest.mark.parametrize("pattern", SEARCHED)
def test_plain_chains_of_readings_are_found_without_operators(pattern, monkeypatch):
    text = f"{DECLARED}{HEAD}{pattern} group by source"
    events = stream(Random(pattern), 500, 25, lasting=False)
    engine = Engine(text, 25)
    (seat,) = seats(engine)
    found = [engine.push(batch) for batch in batches(Random(4), events)]
    assert sum(map(len, found)) > 10
    assert not any(one.open for one in seat.agent._partitions.values())
    assert seat.agent.held() < 60
    monkeypatch.setattr(staged_plan, "search_of", lambda *_: None)
    again = Engine(text, 25)
    assert [again.push(batch) for batch in batches(Random(4), events)] == found


def test_a_group_with_what_lasts_gets_stages_and_loses_them_with_time():
    text = f"{DECLARED}{HEAD}detect A then B+ then C within 60 s group by source"
    engine = Engine(text, longest_ms=5_000)
    (seat,) = seats(engine)

    def push(kind, name, end, start=None):
        times = {"timestamp": end} if start is None else {"start": start, "end": end}
        event = {"type": kind, "id": name, "source": "u", "x": 1, **times}
        return [one["events"] for one in engine.push([event])]

    def opened():
        return [one.open for one in seat.agent._partitions.values()]

    push("A", "a1", 1_000)
    push("B", "b1", 2_000)
    push("B", "b2", 4_000, 3_000)
    assert not push("C", "c1", 6_000)
    assert push("D", "d1", 6_001) == [{"A": ["a1"], "B": ["b1", "b2"], "C": ["c1"]}]
    assert opened() == [True]
    push("A", "a2", 400_000)
    assert push("A", "a3", 470_000) == [] == push("A", "a4", 540_000)
    push("B", "b3", 541_000)
    push("C", "c3", 542_000)
    assert opened() == [False]
    assert push("A", "a5", 543_000) == [{"A": ["a4"], "B": ["b3"], "C": ["c3"]}]


NOT_SEARCHED = (
    "detect[first] A then B then C",
    "detect[first] A then[..20 ms] B then C within 60 ms",
    "detect[first] A as a then B as b then C within 60 ms where b.x > a.x",
    "detect[first] (A then B within 20 ms) then C within 60 ms",
    "detect[first] A and B within 60 ms",
    "detect[chronicle] A then B then C within 60 ms",
    "detect[first] A then B+ then C within 60 ms",
    "detect A+ then B within 60 ms",
    "detect A then[..20 ms] B+ then C within 60 ms",
    "detect A as a then B+ as b then C as c within 60 ms where Count(b) > 1",
    "detect A as x then B+ as b then A as y within 60 ms",
    "detect A then B+ then C within 60 ms spread 10 m",
    "detect A then B+ then C within 60 ms from A",
)


@pytest.mark.parametrize("pattern", NOT_SEARCHED)
def test_what_asks_for_more_is_left_to_stages(pattern):
    layout = lay_out(case_of(pattern))
    foresight = Foresight(Durations(0, strict=True), {letter: letter for letter in "ABCDE"})
    plan = Fusing(Builder(layout, ()), foresight).plan(ordered=True)
    assert not isinstance(plan, SequencePlan) or search_of(plan.chain, layout.budget) is None


NOT_PATIENT = (
    "detect[latest] A then[..20 ms] B then C within 60 ms",
    "detect[first] A then[next] B within 60 ms",
    "detect A then B+ within 60 ms",
    "detect[one] A then B then C within 60 ms",
    "detect A without[20 ms] B",
    "detect A without (B then C)",
    "detect absent A for 20 ms",
    "detect A{2} then[first] B",
)


@pytest.mark.parametrize("pattern", NOT_PATIENT)
def test_what_silence_or_any_event_may_decide_waits_for_nothing(pattern):
    engine = Engine(f"{DECLARED}{HEAD}{pattern} group by source")
    assert all(getattr(seat.agent, "_patience", None) is None for seat in seats(engine))


def test_what_can_come_to_nothing_is_forgotten_without_stages():
    text = f"{DECLARED}{HEAD}detect[first] A then B then C within 60 ms group by source"
    engine = Engine(text)
    (seat,) = seats(engine)
    for number in range(2_000):
        kind = "CB"[number % 2]  # no A: nothing begins
        event = {"type": kind, "id": f"e{number}", "source": "u", "timestamp": number, "x": 1}
        assert engine.push([event]) == []
        waiting = seat.agent._patience.count
        assert waiting <= max(FRESH_MAX, 62)
        assert waiting == sum(len(one.fresh) for one in seat.agent._partitions.values())
    assert seat.agent.held() <= 62


@pytest.mark.parametrize("context", ["first", "latest", "chronicle"])
def test_a_group_of_an_older_snapshot_may_report_anything(context, monkeypatch):
    """Agents did not always wait, nor write down what their groups were given."""
    pattern = "A as a then B as b then C as c within 60 ms where c.x >= a.x"
    text = f"{DECLARED}{HEAD}detect[{context}] {pattern} group by source"
    read = [
        {"type": kind, "id": kind, "source": "u", "timestamp": at, "x": 1}
        for at, kind in enumerate("ABCD", 1)
    ]
    of_now = StagedAgent.state
    with monkeypatch.context() as patched:
        patched.setattr(staged_plan, "prospect_of", lambda _, **__: None)
        patched.setattr(StagedAgent, "state", lambda self: _without(of_now(self), "patience"))
        engine = Engine(text)
        assert engine.push(read[:2]) == []
        state = engine.state()
    engine = Engine(text)
    engine.restore(state)
    assert len(engine.push(read[2:])) == 1


def _without(state, key):
    return {name: value for name, value in state.items() if name != key}


def test_groups_without_prospects_are_let_go_with_time():
    text = f"{DECLARED}{HEAD}detect[first] A then B then C within 60 s group by source"
    engine = Engine(text)
    (seat,) = seats(engine)
    for number in range(600):
        event = {
            "type": "B",
            "id": f"e{number}",
            "source": f"s{number}",
            "timestamp": number * 1_000,
        }
        engine.push([{**event, "x": 1}])
    assert (
        len(seat.agent._partitions) <= 130
    )  # a minute's, and those of a minute until it is looked
    assert seat.agent._patience.count <= 130


def test_groups_that_hold_nothing_go_when_nothing_has_come_for_long():
    text = f"{DECLARED}{HEAD}detect A and B within 60 ms group by source"
    engine = Engine(text)
    (seat,) = seats(engine)

    def push(minute, sources):
        for number, source in enumerate(sources):
            event = {"type": "A", "id": f"{minute}{source}", "source": source, "x": 1}
            engine.push([{**event, "timestamp": 61_000 * minute + number}])
        return dict(seat.agent._partitions)

    first = push(1, "uvw")
    assert push(2, "u").keys() == {("u",), ("v",), ("w",)}
    assert push(3, "u").keys() == {("u",)}
    assert push(4, "u")["u",] is first["u",]
    seat.agent.groups_max = 2
    assert push(5, "v").keys() == {("v",)}


def test_near_its_limit_an_agent_is_not_patient(monkeypatch):
    """Which events go first is as without patience, and so are the results."""
    text = f"{DECLARED}{HEAD}detect A then B+ then C group by source"
    found = []
    for patient in (True, False):
        with monkeypatch.context() as patched:
            if not patient:
                patched.setattr(staged_plan, "prospect_of", lambda _, **__: None)
            engine = Engine(text)
        (seat,) = seats(engine)
        seat.agent._occurrences_max = 12
        random = Random(5)
        events = stream(random, 200, 0, lasting=False)
        each = batches(random, events)
        found.append([(engine.push(batch), seat.agent.dropped()) for batch in each])
    assert found[0] == found[1]
    assert found[0][-1][1]["occurrences_overflow"] > 0


@pytest.mark.parametrize("pattern", ["detect A and B within 60 ms", "detect[first] A then B"])
def test_where_most_events_complete_something_nothing_waits_any_more(pattern, monkeypatch):
    monkeypatch.setattr(patience, "TRIAL_EVENTS", 40)
    text = f"{DECLARED}{HEAD}{pattern} group by source"
    events = [one for one in stream(Random(2), 300, 0, lasting=False) if one["type"] in "AB"]
    engine = Engine(text)
    (seat,) = seats(engine)
    assert seat.agent._patience is not None
    found = [engine.push([event]) for event in events]
    assert seat.agent._patience is None
    monkeypatch.setattr(patience, "TRIAL_EVENTS", 10_000)
    again = Engine(text)
    assert [again.push([event]) for event in events] == found
    assert sum(map(len, found)) > 20
