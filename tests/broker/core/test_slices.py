"""In however many slices a broker does its work, and wherever it ends amid them: nothing shows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.core.broker import BrokerOptions
from broker.core.effects import Acknowledge, Emit
from broker.core.messages import EventsReceived, Message, Payload, SpecificationSubmitted, Woken
from broker.core.recovery.durable import CoreFaultError, DurableBroker
from broker.engine.limits import Limits, make_limits
from broker.engine.runtime.matcher import Matcher
from tests.broker.core.generated_runs import END_MS, Case, Site, drawn
from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE

BEGIN_MS = 1_700_000_000_000
TYPES = "event Fill(n: int)\nevent Go(n: int)\n"
EACH = (
    "subscription S{0} from me to actor{0} detect Fill as f and Go as g within 1 min\n"
    "  assign n = f.n\n"
)


class SlicedSite(Site):
    """Do the same in slices of so many candidates, between which somebody looks at all."""

    def __init__(self, case: Case, candidates: int) -> None:
        self.slices = 0
        self._candidates = candidates
        super().__init__(case)

    def tell(self, message: Message, now: int) -> None:
        """Handle one message; reads in between are to change nothing."""
        self.broker.core.budget.cut(self._candidates)
        work = self.broker.work(message, now)
        while True:
            try:
                next(work)
            except StopIteration as end:
                self._carry_out(end.value)
                break
            self.slices += 1
            self.broker.next_wake()
            self.broker.core.frontiers.is_due(now)
            self.broker.held()
        self.broker.check_invariants()


def told(case: Case, site: Site) -> None:
    """Tell a site all of a case, and that much time has passed."""
    for now, message in case.messages:
        while (due := site.broker.next_wake()) is not None and due < now:
            site.tell(Woken(), due)
        site.tell(message, max(now, site.broker.now))
    site.tell(Woken(), case.messages[-1][0] + END_MS)


def compare(seed: int, construct: str, context: Any, candidates: int) -> int:
    """Compare one in slices with one that does all in one go; how many slices there were."""
    case = drawn(seed, construct, context)
    whole, sliced = Site(case), SlicedSite(case, candidates)
    told(case, whole)
    told(case, sliced)
    assert sliced.records == whole.records
    assert sliced.results == whole.results
    assert sliced.said == whole.said
    assert sliced.broker.snapshot() == whole.broker.snapshot()
    return sliced.slices


CASES = {
    "seed": st.integers(0, 10**6),
    "construct": st.sampled_from(list(CONSTRUCTS_WHOLE)),
    "context": st.sampled_from(list(CONTEXTS_WHOLE)),
    "candidates": st.sampled_from((1, 7, 100)),
}


@settings(max_examples=3, deadline=None)
@given(**CASES)
def test_slices_show_in_nothing(seed: int, construct: str, context: Any, candidates: int) -> None:
    compare(seed, construct, context, candidates)


@pytest.mark.long
@pytest.mark.timeout(300)
@settings(max_examples=300, deadline=None)
@given(**CASES)
def test_slices_show_in_nothing_of_many(
    seed: int, construct: str, context: Any, candidates: int
) -> None:
    compare(seed, construct, context, candidates)


class Disk:
    """A broker with what it has written down; `fills` wait for what comes after them."""

    def __init__(self, subscriptions: int, fills: int, limits: Limits | None = None) -> None:
        self.records: list[Any] = []
        self.results: list[Any] = []
        self.acknowledged: list[Any] = []
        self._limits = limits or Limits()
        self.now = BEGIN_MS
        self.start()
        text = TYPES + "".join(map(EACH.format, range(subscriptions)))
        self.carry_out(self.broker.handle(SpecificationSubmitted("me", "1", text), self.now))
        rows = [{"n": number, "timestamp": self.now} for number in range(fills)]
        self.carry_out(self.broker.handle(events("Fill", rows, "fills"), self.now))

    def start(self) -> None:
        """Begin a process with what was written down."""
        options = BrokerOptions(lateness_ms=0)
        self.broker, effects = DurableBroker.recover(
            options, self._limits, None, self.records, len(self.results), self.now
        )
        self.carry_out(effects)

    def carry_out(self, effects: list[Any]) -> None:
        """Write down what is to be, and take results at their offsets."""
        for effect in effects:
            if type(effect).__name__ == "Append":
                assert effect.number == len(self.records) + 1
                self.records.append(effect)
            elif isinstance(effect, Emit):
                assert [one.offset for one in effect.results] == list(
                    range(len(self.results), len(self.results) + len(effect.results))
                )
                self.results += effect.results
            elif isinstance(effect, Acknowledge):
                self.acknowledged += effect.tokens


def events(type_name: str, rows: list[dict[str, Any]], token: Any) -> EventsReceived:
    return EventsReceived((Payload(type_name, "s", json.dumps(rows).encode(), token),))


def in_slices(disk: Disk, message: Message, candidates: int, most: int = 10**9) -> int:
    """Do so many slices of the work at most; how many it took, and -1 where it is not done."""
    disk.broker.core.budget.cut(candidates)
    work = disk.broker.work(message, disk.now)
    for count in range(most):
        try:
            next(work)
        except StopIteration as end:
            disk.carry_out(end.value)
            return count + 1
    return -1


@pytest.mark.parametrize("most", [1, 2, 4, 17, 60])
def test_what_ends_amid_a_message_is_done_once_when_it_comes_again(most: int) -> None:
    """Nothing of it was written down or acknowledged, so the sender has it still."""
    whole, ended = Disk(3, 20), Disk(3, 20)
    go = events("Go", [{"n": 1, "timestamp": BEGIN_MS + 5, "id": "go"}], "go")
    assert in_slices(whole, go, 1) > 60
    before = list(ended.results), list(ended.acknowledged), list(ended.records)
    assert in_slices(ended, go, 1, most) == -1
    assert (ended.results, ended.acknowledged, ended.records) == before
    ended.start()
    in_slices(ended, go, 1)
    assert len(whole.results) == 60
    assert ended.acknowledged == whole.acknowledged
    assert [one.id for one in ended.results] == [one.id for one in whole.results]
    results = list(ended.results)
    ended.start()  # from the journal, in one go
    assert ended.results == results


def test_results_of_one_event_come_in_slices_and_in_order() -> None:
    disk = Disk(8, 50)
    slices = in_slices(disk, events("Go", [{"n": 1, "timestamp": BEGIN_MS + 5}], "go"), 1_000)
    assert slices > 400 // 10  # of ten results each, and those between agents
    assert len(disk.results) == 400
    said = [json.loads(one.payload) for one in disk.results]
    numbers = [(one["values"]["n"], one["subscription"]) for one in said]
    assert sorted(numbers) == [(n, f"S{each}") for n in range(50) for each in range(8)]
    # All are of one span, so that they go by what they are made of, and then by their place.
    assert [one for one in numbers if one[0] == numbers[0][0]] == numbers[:8]


def test_a_step_that_exceeds_its_budget_amid_others_is_written_down_as_that() -> None:
    """And is not done again by a recovery; all others are."""
    limits = make_limits(step_candidates_max=12_000)
    disk = Disk(2, 20, limits)
    heavy = (
        "subscription Heavy from me to x detect (Fill as a and Fill as b and Fill as c) then Go\n"
    )
    submitted = SpecificationSubmitted("me", "2", TYPES + heavy)
    disk.carry_out(disk.broker.handle(submitted, disk.now))
    rows = [{"n": 100 + number, "timestamp": BEGIN_MS + 1} for number in range(60)]
    in_slices(disk, events("Fill", rows, "more"), 1)
    in_slices(disk, events("Go", [{"n": 1, "timestamp": BEGIN_MS + 5}], "go"), 1)
    suspended = {one.name: one.suspended for one in disk.broker.subscriptions}
    assert suspended == {"S0": "", "S1": "", "Heavy": "candidates"}
    results = list(disk.results)
    assert len(results) == 160
    disk.start()
    assert disk.results == results
    assert {one.name: one.suspended for one in disk.broker.subscriptions} == suspended


def test_a_fault_amid_a_message_is_written_down_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(1, 3)
    push = Matcher.push

    def failing(self: Matcher, *given: Any) -> Any:
        yield
        yield from push(self, *given)
        raise ZeroDivisionError

    monkeypatch.setattr(Matcher, "push", failing)
    count = len(disk.records)
    with pytest.raises(CoreFaultError) as caught:
        in_slices(disk, events("Go", [{"n": 1}], "go"), 1)
    disk.carry_out(caught.value.effects)
    assert len(disk.records) == count + 1
