"""A plan that breaks a limit says so at every broker, once."""

from itertools import combinations_with_replacement

import pytest

from broker.core.coordinator.bounds import CoordinatorSettings
from broker.core.coordinator.seen import plan, violations
from broker.core.coordinator.violations import CHECK_MS, Violations
from tests.broker.core.coordinator.town import Town, drawn

LINE = [(0, 1), (1, 2), (2, 3)]


def broken_at(town: Town, name: str) -> list[tuple[str, int, int]]:
    one = town.houses[name].coordinator
    assert one.laid is not None
    rows = violations(one.running(), one.known)
    assert rows == plan(one.running(), one.known, 10)["limits_broken"]
    return [(row["broker"], row["bytes_per_s"], row["at_most_bytes_per_s"]) for row in rows]


def test_a_limit_that_no_plan_keeps_is_seen_at_every_broker() -> None:
    """Three of four answered that all was at rest, and only the fourth knew of the limit."""
    limits = CoordinatorSettings(measure_ms=6_000, capacity=2_500)
    town = Town(1, 4, LINE, {("b3", "A"): 3978.0}, {f"b{n}": limits for n in range(4)})
    town.submit("b0", {("b3", "A"): 1.0}, 0.0)
    town.run(60)
    ((where, load, most),) = broken_at(town, "b0")
    assert (load, most) == (pytest.approx(3978, rel=0.02), 2_500)
    assert where == town.jobs["b0/0"].host
    for name in town.names:
        assert broken_at(town, name) == broken_at(town, "b0")


@pytest.mark.parametrize("seed", range(6))
def test_what_is_seen_is_what_a_count_of_the_tasks_finds(seed: int) -> None:
    town = drawn(seed, 5, 6, slack=0.7 if seed % 2 else 1.15)
    town.run(90)
    over = {
        name
        for name, limits in town.limits.items()
        if limits.capacity and town.work(name) > 1.03 * limits.capacity
    }
    near = {
        name
        for name, limits in town.limits.items()
        if limits.capacity and town.work(name) > 0.97 * limits.capacity
    }
    for name in town.names:
        assert over <= {row[0] for row in broken_at(town, name)} <= near


ROW = {"broker": "b1", "limit": "capacity_bytes_per_s", "bytes_per_s": 9, "at_most_bytes_per_s": 5}


@pytest.mark.parametrize("sizes", list(combinations_with_replacement([9, 8, 7], 3)))
def test_a_limit_that_stays_broken_is_one_line_and_one_that_is_kept_again_another(sizes) -> None:
    watch, now, lines = Violations(), 0, []
    for size in (*sizes, None, None):
        assert watch.is_due(now)
        rows = [] if size is None else [ROW | {"bytes_per_s": size}]
        note = watch.look(rows, now)
        assert not watch.is_due(now + CHECK_MS - 1)
        lines += [] if note is None else [note.event]
        now += CHECK_MS
    assert lines == ["limits_broken", "limits_kept"]


def test_a_limit_that_is_broken_while_a_task_is_on_its_way_gets_no_line() -> None:
    watch = Violations()
    assert [watch.look(rows, at) for at, rows in enumerate(([ROW], [], [ROW], []))] == [None] * 4
    assert watch.broken() == {}
