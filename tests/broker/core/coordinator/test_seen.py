"""What people are told of a plan: where, why there, and what else would cost."""

import pytest

from broker.core.coordinator.bounds import CoordinatorSettings
from broker.core.coordinator.seen import plan, violations
from tests.broker.core.coordinator.town import Town, drawn

LINE = [(0, 1), (1, 2), (2, 3), (3, 4)]


def seen(town: Town, name: str = "b1") -> dict:
    one = town.houses[name].coordinator
    assert one.laid is not None
    return plan(one.running(), one.known, one.settings.price_percent)


def test_a_plan_tells_the_flow_and_the_next_best_broker() -> None:
    town = Town(1, 5, LINE, {("b4", "A"): 1000.0, ("b0", "B"): 300.0})
    town.submit("b2", {("b4", "A"): 1.0, ("b0", "B"): 1.0}, 0.0)
    town.run(60)
    told = seen(town)
    (task,) = told["tasks"]
    assert (task["home"], task["host"]) == ("b2", "b4")
    assert task["takes_bytes_per_s"] == 1300
    assert told["flow_bytes_per_s"] == 4 * 300
    assert task["next"] == {"broker": "b3", "more_bytes_per_s": 700, "breaks_limits": False}
    assert "700" in task["why"]
    loads = {(one["from"], one["to"]): one["bytes_per_s"] for one in told["links"]}
    assert loads["b1", "b2"] == 300
    assert loads["b2", "b1"] == 0
    brokers = {one["broker"]: one for one in told["brokers"]}
    assert brokers["b4"]["tasks"] == 1
    assert brokers["b4"]["takes_bytes_per_s"] == 1300


LIMIT = 1_500


@pytest.mark.parametrize(("limit", "host"), [(0, "b0"), (LIMIT, "b1"), (2_100, "b0")])
def test_a_link_that_may_carry_little_moves_a_task(limit: int, host: str) -> None:
    """What b2 sends would pass from b1 to b0; with the task at b1 nothing comes from there."""
    limits = {"b1": CoordinatorSettings(measure_ms=6_000, link=limit)}
    town = Town(1, 3, LINE[:2], {("b0", "A"): 3000.0, ("b2", "B"): 2000.0}, limits)
    town.submit("b1", {("b0", "A"): 1.0, ("b2", "B"): 1.0}, 0.0)
    town.run(60)
    told = seen(town)
    (task,) = told["tasks"]
    assert task["host"] == host
    assert not told["limits_broken"]
    assert (task["next"]["broker"], task["next"]["breaks_limits"]) == (
        ("b0", True) if host == "b1" else ("b1", False)
    )
    most = {(one["from"], one["to"]): one["at_most_bytes_per_s"] for one in told["links"]}
    assert most == dict.fromkeys([("b0", "b1"), ("b2", "b1")]) | dict.fromkeys(
        [("b1", "b0"), ("b1", "b2")], limit or None
    )


def test_a_link_that_cannot_but_carry_too_much_is_told_of_everywhere() -> None:
    """It is the link of who sends that is too narrow; the way back may carry more."""
    limits = {name: CoordinatorSettings(measure_ms=6_000, link=LIMIT) for name in ("b0", "b1")}
    town = Town(1, 3, LINE[:2], {("b0", "A"): 3000.0, ("b2", "B"): 2000.0}, limits)
    town.submit("b1", {("b0", "A"): 1.0, ("b2", "B"): 1.0}, 0.0)
    town.run(60)
    for name in town.names:
        told = seen(town, name)
        (row,) = told["limits_broken"]
        one = town.houses[name].coordinator
        assert one.laid is not None
        assert violations(one.running(), one.known) == [row]
        assert (row["broker"], row["limit"]) == ("b1", "link_bytes_per_s (b0)")
        assert (row["bytes_per_s"], row["at_most_bytes_per_s"]) == (2_000, LIMIT)
        assert told["tasks"][0]["host"] == "b0"


def test_every_broker_tells_the_same_and_the_true_flow() -> None:
    town = drawn(4, settings=CoordinatorSettings(measure_ms=6_000, radius=8))
    town.run(60)
    told = [seen(town, name) for name in town.names]
    assert all(one == told[0] for one in told)
    assert abs(told[0]["flow_bytes_per_s"] - town.flow()) <= 0.02 * town.flow()
    for task in told[0]["tasks"]:
        assert town.jobs[task["key"]].host == task["host"]
        hosts = {key: job.host for key, job in town.jobs.items()}
        more = town.flow(hosts | {task["key"]: task["next"]["broker"]}) - town.flow()
        assert abs(task["next"]["more_bytes_per_s"] - more) <= 0.02 * town.flow()


def test_a_broker_tells_what_lies_in_its_view() -> None:
    """Of what it knows the loads are the true ones, and it knows as far as it plans."""
    whole = drawn(4, settings=CoordinatorSettings(measure_ms=6_000, radius=8))
    whole.run(60)
    town = drawn(4, settings=CoordinatorSettings(measure_ms=6_000, radius=2))
    town.run(60)
    hosts = {key: job.host for key, job in town.jobs.items()}
    assert hosts == {key: job.host for key, job in whole.jobs.items()}
    full = seen(whole)
    for name in town.names:
        told = seen(town, name)
        tree = town.houses[name].topology.tree
        near = [broker for broker, hops in tree.hops.items() if hops <= 2]
        assert [row["broker"] for row in told["brokers"]] == sorted(near)
        for kind in ("brokers", "links"):
            who = "broker" if kind == "brokers" else "from"
            assert told[kind] == [row for row in full[kind] if row[who] in near]


def test_asking_changes_nothing() -> None:
    town = drawn(4)
    town.run(60)
    assert seen(town) == seen(town)
    words = town.words
    town.run(60)
    assert town.words == words


def test_a_task_that_nothing_was_measured_of_says_so() -> None:
    town = Town(1, 3, [(0, 1), (1, 2)], {})
    town.submit("b0", {})
    town.run(20)
    assert "no rate of what it takes is known" in seen(town)["tasks"][0]["why"]
