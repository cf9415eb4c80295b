"""A chain that is searched among what waits is what its operator finds of the same readings."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.engine.event.event import event_class
from broker.engine.pattern.agent.search import ROWS_MAX, ChainSearch, search_of
from broker.engine.pattern.fused.sequence import SequencePlan
from broker.engine.pattern.fused.tree import Fusing
from broker.engine.pattern.layout.pattern import lay_out
from broker.engine.pattern.operators.build import Builder
from broker.engine.pattern.stage.base import Site
from broker.engine.pattern.times.durations import Durations, Foresight
from broker.engine.runtime.budget import Budget, TooMuchWorkError
from language import check_text

FEWER = settings(max_examples=settings.default.max_examples // 2)
LETTERS = "ABCDE"
DECLARED = " ".join(f"event {letter}(x: int)" for letter in LETTERS)
CHAINS = {
    "first": "detect[first] A then B then C within 9 ms",
    "first of five": "detect[first] A then B then C then D then E within 9 ms",
    "list": "detect A then B+ then C within 9 ms",
    "list that may be empty": "detect A then B* then C within 9 ms",
    "two lists": "detect A then B+ then C then D* then E within 9 ms",
    "two lists in one place": "detect A then B* then C* then D within 9 ms",
    "elements without lists between": "detect A then B then C+ then D within 9 ms",
}
Reading = event_class("Reading", {"x": "int"})


def both(pattern: str) -> tuple[ChainSearch, SequencePlan, Budget]:
    """Return the search of a pattern, its operator, and the budget of both."""
    text = f"{DECLARED}\nsubscription S seq 1 from me to log\n{pattern}"
    (task,) = check_text(text).demand().graph.tasks.values()
    layout = lay_out(task.node.case)
    foresight = Foresight(Durations(0, strict=True), dict(zip(LETTERS, LETTERS, strict=True)))
    operator = Fusing(Builder(layout, ()), foresight).plan(ordered=True)
    assert isinstance(operator, SequencePlan)
    search = search_of(operator.chain, layout.budget)
    assert search is not None
    return search, operator, layout.budget


def reading(name: str, at: int):
    return Reading(id=name, start=at, end=at)


@pytest.mark.parametrize("pattern", CHAINS.values(), ids=CHAINS)
@FEWER
@given(data=st.data(), after=st.integers(0, 4), far=st.sampled_from([0, -(2**61), 10**15]))
def test_a_search_finds_what_the_operator_does(pattern, data, after, far):
    """Also where several end together, with what completes them or too long before it."""
    search, plan, budget = both(pattern)
    drawn = data.draw(
        st.lists(st.tuples(st.integers(0, 14), st.integers(0, search.last - 1)), max_size=30)
    )
    # An event for the place of the last one never waits, and those of one end come in order.
    entries = [(place, reading(f"{n:02}", far + at)) for n, (at, place) in enumerate(sorted(drawn))]
    latest = max((at for at, _ in drawn), default=0)
    event = reading("last", far + latest + after)
    site = Site((), plan.foresight, None, budget=budget)
    wanted = plan.open((), site).step([*entries, (search.last, event)], event.end)
    # A run that was complete before would have spent what it took: here none is.
    assert sorted(search.find(entries, event), key=repr) == sorted(wanted, key=repr)


def pairs(count: int) -> list[tuple[int, object]]:
    """Return so many readings at each of two places, all of the second after all of the first."""
    entries = [(0, reading(f"a{at}", at)) for at in range(count)]
    return entries + [(1, reading(f"b{at}", 1_000 + at)) for at in range(count)]


def test_what_may_be_too_much_is_charged_before_it_is_made():
    search, _, budget = both("detect A then B then C* then D within 9 s")
    budget.candidates = ROWS_MAX - 1
    few = 31  # 961 matches: those are free
    assert len(search.find(pairs(few), reading("d", 5_000))) == few * few
    with pytest.raises(TooMuchWorkError):
        search.find(pairs(few + 2), reading("d", 5_000))
    # What lies too long before costs nothing.
    budget.candidates = ROWS_MAX - 1
    assert search.find(pairs(few + 2), reading("d", 50_000)) == []
