"""Paper 000, section 6.3: a full store gives up the newest event of the oldest run, and so on.

The model below keeps a plain list and follows every path through it.
"""

from __future__ import annotations

import json
import random
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, NamedTuple

import pytest

from broker.core.intake import Intake, IntakeOptions
from broker.engine.event.agent import WATERMARK_END
from broker.engine.ledger import Ledger
from broker.engine.limits import Limits
from broker.engine.pattern.bounds.bounds import Inputs, bounds_of
from broker.engine.runtime.budget import in_one_go
from broker.engine.runtime.matcher import Matcher
from language import check_text

LETTERS = "ABCD"
DECLARED = "\n".join(f"event {letter}(n: int)" for letter in LETTERS)


class Step(NamedTuple):
    at: int
    letter: str
    group: str

    @property
    def name(self) -> str:
        return f"{self.letter.lower()}{self.at}{self.group}"


class Chain(NamedTuple):
    """`A then … D`, perhaps with a bound on each link and with `within`."""

    length: int
    bound_ms: int | None
    within_ms: int | None
    grouped: bool

    @property
    def text(self) -> str:
        link = " then " if self.bound_ms is None else f" then[..{self.bound_ms} ms] "
        pattern = link.join(LETTERS[: self.length])
        within = "" if self.within_ms is None else f" within {self.within_ms} ms"
        by = " group by source" if self.grouped else ""
        return f"{DECLARED} subscription S seq 1 from a to b detect {pattern}{within}{by}"


class Model:
    """A list of steps, oldest first."""

    def __init__(self, chain: Chain, capacity: int) -> None:
        self.chain = chain
        self.capacity = capacity
        self.stored: list[Step] = []
        self.overwritten = 0
        self.results: list[list[str]] = []

    def leads(self, a: Step, b: Step) -> bool:
        """Whether b may follow a directly."""
        near = self.chain.bound_ms is None or b.at - a.at <= self.chain.bound_ms
        same = a.group == b.group or not self.chain.grouped
        return same and near and a.at < b.at and ord(b.letter) == ord(a.letter) + 1

    def run_of(self, start: Step) -> list[Step]:
        found = [start]
        for one in found:
            found += [b for b in self.stored if self.leads(one, b) and b not in found]
        return sorted(found)

    def runs(self) -> list[list[Step]]:
        return [self.run_of(one) for one in self.stored if one.letter == "A"]

    def take(self, step: Step) -> None:
        place = LETTERS.index(step.letter)
        if place >= self.chain.length:
            return
        if self.chain.within_ms is not None:
            late = step.at - self.chain.within_ms
            self.stored = [s for s in self.stored if s.letter != "A" or s.at >= late]
            self.stored = sorted({one for run in self.runs() for one in run})
        if place == self.chain.length - 1:
            self.complete(step)
            return
        if place and not any(self.leads(one, step) for one in self.stored):
            return
        while len(self.stored) >= self.capacity:
            newest = self.runs()[0][-1]
            self.stored.remove(newest)
            self.overwritten += 1
        if place and not any(self.leads(one, step) for one in self.stored):
            self.overwritten += 1
        else:
            self.stored.append(step)

    def complete(self, step: Step) -> None:
        places = LETTERS[: self.chain.length - 1]
        for chosen in product(*([s for s in self.stored if s.letter == x] for x in places)):
            path = [*chosen, step]
            span = step.at - path[0].at
            if all(self.leads(a, b) for a, b in pairwise(path)) and (
                self.chain.within_ms is None or span <= self.chain.within_ms
            ):
                self.results.append([one.name for one in path])


class Run:
    """The tasks of a specification, in order or as events come."""

    def __init__(self, text: str, capacity: int) -> None:
        self.limits = Limits(chain_events_max=capacity)
        self.matcher = Matcher(self.limits, Ledger(), strict=False)
        self.intake = Intake(IntakeOptions(lateness_ms=100), self.limits)
        self.specification = check_text(text).demand()
        self.intake.declare(
            [one for one in self.specification.event_types.values() if not one.defined]
        )
        for task in self.specification.graph.tasks.values():
            self.matcher.install(task)
        self.results: list[list[str]] = []

    @property
    def agent(self) -> Any:
        return next(iter(self.matcher._seats.values())).agent

    @property
    def store(self) -> Any:
        return self.agent._patience.store

    def push(self, steps: list[Step], watermark: int, **more: Any) -> None:
        events = [
            {"type": one.letter, "id": one.name, "timestamp": one.at, "source": one.group, "n": 1}
            for one in steps
        ]
        decoded = self.intake.from_mappings([{**event, **more} for event in events])
        found = in_one_go(self.matcher.push(decoded.events, lambda _: watermark))
        for one in [result.to_dict() for result in found]:
            self.results.append([name for names in one["events"].values() for name in names])

    def finish(self) -> None:
        self.push([], WATERMARK_END)


def drawn(seed: int, count: int = 60) -> list[Step]:
    draw, at, steps = random.Random(seed), 0, []
    for _ in range(count):
        at += draw.randint(1, 4)
        steps.append(Step(at, draw.choice("AABBCCDD"), draw.choice("st")))
    return steps


CHAINS = [
    Chain(length, bound, within, grouped)
    for length in (2, 3, 4)
    for bound in (None, 12)
    for within in (None, 30)
    for grouped in (False, True)
]


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain.text.partition("detect ")[2])
def test_what_goes_and_what_is_found_is_that_of_the_list(chain: Chain) -> None:
    overwritten = found = 0
    for seed in range(12):
        steps = drawn(seed)
        capacity = random.Random(seed).randint(1, 9)
        model, run = Model(chain, capacity), Run(chain.text, capacity)
        for step in steps:
            model.take(step)
            run.push([step], step.at)
            assert run.matcher.held() <= capacity
            assert run.store.overwritten == model.overwritten
            stored = sorted(one.event.id for own in run.store.groups.values() for one in own)
            assert stored == sorted(one.name for one in model.stored)
        assert sorted(run.results) == sorted(model.results)
        assert run.matcher.dropped()["chain_overwritten"] == model.overwritten
        overwritten += model.overwritten
        found += len(model.results)
    assert overwritten > 20
    assert found > 2


def test_the_newest_of_the_oldest_run_goes_until_only_its_first_is_left() -> None:
    """a1 b2 b3 a4 fill a store of four; b5 takes the place of b3, b6 that of b5: the newest."""
    run = Run(Chain(3, None, None, grouped=False).text, 4)
    trace = [(1, "A"), (2, "B"), (3, "B"), (4, "A"), (5, "B"), (6, "B"), (7, "A"), (8, "A")]
    told = []
    for at, letter in trace:
        run.push([Step(at, letter, "")], at)
        (own,) = run.store.groups.values()
        told.append(" ".join(one.event.id for one in own))
    assert told == [
        "a1",
        "a1 b2",
        "a1 b2 b3",
        "a1 b2 b3 a4",
        "a1 b2 a4 b5",
        "a1 b2 a4 b6",
        "a1 b2 a4 a7",
        "a1 a4 a7 a8",
    ]
    run.push([Step(9, "A", "")], 9)  # nothing but the first is left of the oldest: it ends
    assert [one.event.id for own in run.store.groups.values() for one in own] == [
        "a4",
        "a7",
        "a8",
        "a9",
    ]
    assert run.matcher.dropped()["chain_overwritten"] == 5


@pytest.mark.parametrize("pattern", ["A then B then C", "A then[..5 s] B within 9 s"])
def test_the_bound_of_a_chain_is_its_store_and_what_waits_for_the_watermark(pattern: str) -> None:
    text = f"{DECLARED} subscription S seq 1 from a to b detect {pattern}"
    graph = check_text(text).demand().graph
    inputs = Inputs({}, Fraction(20), lateness_ms=50)
    ((_, _, bound),) = bounds_of(graph, inputs, Limits(chain_events_max=7))
    assert bound.matches == 0
    assert bound.events is not None
    assert 7 < bound.events <= 7 + 2 * 3
    run = Run(text, 7)
    most = 0
    for number in range(200):  # twenty a second of each type
        at = 50 * number
        run.push([Step(at, letter, "s") for letter in "ABC"], at - 51)
        most = max(most, run.matcher.held())
    assert 7 < most <= bound.events


@pytest.mark.parametrize("seed", range(10))
def test_order_of_arrival_and_batches_do_not_show(seed: int) -> None:
    chain = CHAINS[seed % len(CHAINS)]
    steps, draw = drawn(seed), random.Random(seed)
    plain, other = Run(chain.text, 5), Run(chain.text, 5)
    for step in steps:
        plain.push([step], step.at)
    shuffled = sorted(steps, key=lambda step: step.at + draw.randint(0, 10))
    for start in range(0, len(shuffled), 7):
        rest = shuffled[start + 7 :]
        other.push(shuffled[start : start + 7], min([one.at for one in rest], default=999) - 1)
    plain.finish()
    other.finish()
    assert sorted(plain.results) == sorted(other.results)
    assert plain.store.overwritten == other.store.overwritten


@pytest.mark.parametrize("seed", range(10))
def test_a_snapshot_in_the_middle_changes_nothing(seed: int) -> None:
    chain = CHAINS[seed % len(CHAINS)]
    steps = drawn(seed)
    cut = random.Random(seed).randrange(len(steps))
    whole, first, second = (Run(chain.text, 4) for _ in range(3))
    for step in steps:
        whole.push([step], step.at - 3)
    whole.finish()
    for step in steps[:cut]:
        first.push([step], step.at - 3)
    second.agent.restore(json.loads(json.dumps(first.agent.state())))
    for step in steps[cut:]:
        second.push([step], step.at - 3)
    second.finish()
    assert first.results + second.results == whole.results
    assert second.store.overwritten == whole.store.overwritten


def test_an_agent_goes_on_from_one_without_such_a_store_and_back() -> None:
    chain = Chain(3, None, None, grouped=True)
    steps = [Step(at, letter, "st"[at % 2]) for at, letter in enumerate("AAABBBBB", 1)]
    free, bounded, again = Run(chain.text, 0), Run(chain.text, 4), Run(chain.text, 0)
    for step in steps:
        free.push([step], step.at)
    seat = next(iter(bounded.matcher._seats.values()))
    bounded.agent.restore(free.agent.state())
    assert 0 < bounded.agent.held() <= 4
    assert bounded.store.overwritten > 0
    one = next(iter(again.matcher._seats.values()))
    one.agent = again.matcher._agents.maker.restored(
        seat.instance, seat.case, one.agent, bounded.agent.state()
    )
    assert again.agent.held() == bounded.agent.held()
    for run in (bounded, again):
        run.push([Step(900, "C", "s"), Step(901, "C", "t")], 950)
    assert again.results == bounded.results != []


def test_what_the_watermark_has_not_passed_waits_for_what_may_yet_come() -> None:
    """Without a store C is taken as it comes; with one it is found for a B that comes later."""
    chain = Chain(3, None, None, grouped=False)
    free, bounded = Run(chain.text, 0), Run(chain.text, 4)
    free.push([Step(1, "A", "s"), Step(4, "C", "s")], 1)
    bounded.agent.restore(free.agent.state())
    assert [entry.event.id for entry in bounded.store.groups[()]] == ["a1s"]
    bounded.push([Step(2, "B", "s")], 9)
    assert bounded.results == [["a1s", "b2s", "c4s"]]


def test_a_snapshot_is_that_of_the_release_before() -> None:
    """A store in the middle of its runs, in the form that an agent of its own wrote."""
    chain = Chain(3, 12, None, grouped=True)
    run, again = Run(chain.text, 4), Run(chain.text, 4)
    for at, letter in enumerate("AABCB", 1):
        run.push([Step(at, letter, "s")], at - 1)
    state = run.agent.state()
    assert [fields["id"] for _, fields in state.pop("events")] == ["b5s", "a1s", "a2s", "b3s"]
    assert state == {
        "version": 1,
        "watermark": 4,
        "pending": [[1, 0]],
        "chain": [[["s"], 0, 1], [["s"], 0, 2], [["s"], 1, 3]],
        "overwritten": 0,
        "dropped": {
            "occurrences_overflow": 0,
            "start_after_end": 0,
            "outlasting": 0,
            "groups_overflow": 0,
        },
    }
    again.agent.restore(json.loads(json.dumps(run.agent.state())))
    for other in (run, again):
        other.push([Step(7, "C", "s")], 9)
    assert run.results[2:] == again.results
    assert len(again.results) == 4


def test_where_times_are_uncertain_the_ordinary_limit_holds() -> None:
    run = Run(Chain(3, None, 30, grouped=False).text, 4)
    run.push([Step(1, "A", "s"), Step(5, "B", "s")], 3)
    run.matcher.doubt(Fraction(0))
    run.push([Step(9, "C", "s")], 8, uncertainty=2)
    run.finish()
    assert run.results == [["a1s", "b5s", "c9s"]]
    assert "chain_overwritten" not in run.matcher.dropped()


@pytest.mark.parametrize(
    ("assigned", "known"), [("timestamp = start", {"A": 20}), ("timestamp = B.timestamp", {})]
)
def test_how_long_events_last_is_looked_at_where_a_beginning_is_assigned(
    assigned: str, known: dict[str, int]
) -> None:
    """The pair begins with the first A, and the second may last as long."""
    text = f"{DECLARED} define X(n) detect A then[..30 ms] B assign n = 1, {assigned}\n"
    run = Run(text + "subscription S from a to b detect X", 4)
    lasting = {"type": "A", "id": "a", "start": 100, "end": 120}
    in_one_go(run.matcher.push(run.intake.from_mappings([lasting]).events, lambda _: 120))
    assert run.matcher.durations.state() == known
    assert run.agent.watermark_out(200) == (200 - 20 - 30 if known else 200)


@pytest.mark.parametrize(
    "pattern",
    [
        "A and B",
        "A then[recent] B",
        "A then[next] B",
        "(A then B) or C",
        "A then B+ within 1 s",
        "A then (B then C)",
        "last A then B within 1 s",
        "A then B consuming B",
        "A",
    ],
)
def test_other_patterns_keep_the_ordinary_limit(pattern: str) -> None:
    text = f"{DECLARED} subscription S seq 1 from a to b detect {pattern}"
    assert Run(text, 4).agent.plan.links is None
