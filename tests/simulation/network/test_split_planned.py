"""Who merges what others have folded is elected by what travels, and elected anew."""

from functools import partial

import pytest

from broker.core.coordinator.seen import plan
from simulation import texts
from simulation.crashes.clients import Wish
from simulation.network import split
from simulation.network.place import Place
from simulation.network.planned import PlannedPlace
from simulation.network.scenario import Shape
from tests.simulation.network.test_planned import FAST, SLOW, Line, cells_of

# A group for each value: the more readings, the more rows of a broker, and hardly a result.
TEXT = (
    texts.DECLARATIONS
    + """
define Steps(val, n) aggr every 1 s
detect outer Temp as t and outer Humidity as h
assign val = group.val, n = Count(t) + Count(h)
group by val
subscription Many from client to alerts
detect Steps(n > 30) as s
"""
)


# Two windows of different length over the same input: neither has rows that the other could use.
LENGTHS = (
    texts.DECLARATIONS
    + """
define Steps(val, n) aggr every 1 s
detect outer Temp as t and outer Humidity as h
assign val = group.val, n = Count(t) + Count(h)
group by val
define Spans(val, n) aggr every 4 s
detect outer Temp as t and outer Humidity as h
assign val = group.val, n = Count(t) + Count(h)
group by val
subscription Many from client to alerts
detect Steps(n > 30) as s
subscription More from client to alerts
detect Spans(n > 90) as s
"""
)


class SplitLine(Line):
    """b0 to b4 in a row, with sources at both ends; b2 is the home."""

    exactly = True
    wish = Wish("submit", TEXT, {"Many": 1})

    def _place(self, name: str) -> Place:
        return split.split_at(super()._place(name))

    def plan_of(self, number: int) -> dict:
        """What a broker tells of the plan."""
        place = self.places[number]
        assert isinstance(place, PlannedPlace)
        assert place.planning is not None
        one = place.planning.coordinator
        return plan(one.running(), one.known, one.settings.price_percent)


@pytest.mark.timeout(300)
def test_rows_are_merged_where_most_of_them_are_made_and_the_plan_says_so() -> None:
    run = SplitLine(3, [(SLOW, FAST)])
    told = []
    run.happens[1] = [lambda: told.extend(run.plan_of(at)["tasks"][0] for at in (2, 0))]
    outcome = run.run()
    assert run.hosts == ["b4"]
    assert outcome.results > 0
    assert (told[0]["host"], told[0]["parts"]) == ("b4", ["b0", "b4"])
    assert told[0]["why"].startswith("it merges what 2 brokers fold; at b3, the next best, ")
    assert told[1]["why"] == "b4 is not in view of this broker; ask b2"


class TwoLengths(SplitLine):
    """The same with two windows of one text."""

    wish = Wish("submit", LENGTHS, {"Many": 1, "More": 1})

    def host(self) -> str:
        return " ".join(one.host for one in cells_of(self) if one.home == "b2")


@pytest.mark.timeout(300)
def test_windows_of_different_length_of_one_text_are_split_with_a_header_each() -> None:
    run = TwoLengths(3, [(SLOW, FAST)])
    told = []
    run.happens[1] = [lambda: told.append(run.plan_of(2)["tasks"])]
    outcome = run.run()
    (tasks,) = told
    assert [task["subscriptions"] for task in tasks] == ["Many", "More"]
    assert all(task["parts"] == ["b0", "b4"] for task in tasks)
    assert all(task["why"].startswith("it merges what 2 brokers fold") for task in tasks)
    assert run.hosts == [" ".join(task["host"] for task in tasks)]
    assert tasks[0]["host"] == "b4"
    assert outcome.results > 0


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_header_that_dies_has_another_elected_and_no_window_is_lost() -> None:
    run = SplitLine(2, [(SLOW, FAST)] * 3)
    run.places[4].away_ms = 8_000
    run.happens[1] = [run.places[4].end]
    outcome = run.run()
    assert run.hosts == ["b4"] * 3
    assert outcome.results > 0
    assert outcome.ends == 1


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_header_follows_the_load_and_leaves_who_is_drained() -> None:
    run = SplitLine(4, [(SLOW, FAST)] + [(FAST, SLOW)] * 3)
    run.happens[3] = [partial(run.drain, 0, drained=True)]
    outcome = run.run()
    assert run.hosts[0] == "b4"
    assert run.hosts[2] == "b0"
    assert run.hosts[3] != "b0"
    assert outcome.results > 0


@pytest.mark.timeout(120)
def test_drawn_networks_that_decide_find_what_one_engine_finds() -> None:
    outcome = split.run(9, Shape(events=200))
    assert outcome.split > 0
    assert outcome.of_run.results > 0
