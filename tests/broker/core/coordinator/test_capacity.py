"""A broker that measures what it can take in: exact, remembered, and never restless."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.coordinator.bounds import CoordinatorSettings
from broker.core.coordinator.capacity import APART, BUSY, LEARNT_MS, MEAN_MS, ROOM, Capacity
from broker.core.coordinator.metering import Counts
from broker.core.coordinator.seen import violations
from tests.broker.core.coordinator.town import House, Town

LOOK_MS = 5_000
PIECE = ("b0", "b0/0")
PLACE = ("b0", "A")
BUSY_MS = st.integers(round(LOOK_MS * BUSY) + 1, LOOK_MS)  # of CPU between two looks


class Bench:
    """A broker with one task that costs what the test says; `stated` is each new capacity."""

    def __init__(self, granted: int = 1_000) -> None:
        self.capacity, self.granted = Capacity(), granted
        self.now = self.used_ms = self.taken = 0
        self.term = 1
        self.stated: list[int] = []
        self.look()

    def look(self) -> None:
        counts = {PIECE: Counts(self.term, {PLACE: self.taken}, 0)}
        if self.capacity.look(counts, self.used_ms, self.granted, self.now):
            self.stated.append(self.capacity.bytes_per_s)

    def work(self, cpu_ms: int, bytes_per_ms: float) -> None:
        self.now += LOOK_MS
        self.used_ms += cpu_ms
        self.taken += round(cpu_ms * bytes_per_ms)
        self.look()


@given(st.lists(BUSY_MS, min_size=8, max_size=20), st.integers(1, 5_000))
def test_at_a_steady_cost_it_is_bytes_for_a_second_of_cpu_less_the_room(spans, cost):
    """However busy the broker is: at half of its processor the same as at all of it."""
    bench = Bench()
    for cpu_ms in spans:
        bench.work(cpu_ms, cost)
    assert bench.stated == [pytest.approx(cost * 1_000 * ROOM, abs=1)]


@given(
    st.lists(st.tuples(BUSY_MS, st.floats(0.82, 1.18)), min_size=10, max_size=60),
    st.integers(100, 5_000),
)
def test_costs_that_go_up_and_down_by_a_sixth_are_stated_once(spans, cost):
    bench = Bench()
    for cpu_ms, factor in spans:
        bench.work(cpu_ms, cost * factor)
    assert len(bench.stated) == 1


@given(st.lists(st.tuples(BUSY_MS, st.integers(1, 10_000)), max_size=60))
def test_what_follows_is_always_clearly_another_and_between_what_was_seen(spans):
    bench = Bench()
    for cpu_ms, cost in spans:
        bench.work(cpu_ms, cost)
    for earlier, later in pairwise(bench.stated):
        assert max(earlier, later) >= APART * min(earlier, later) - 1
    for stated in bench.stated:
        least, greatest = (pick(cost for _, cost in spans) for pick in (min, max))
        assert least * 1_000 * ROOM - 1 <= stated <= greatest * 1_000 * ROOM + 1


@given(
    st.lists(BUSY_MS, min_size=1, max_size=40),
    st.sampled_from([0.25, 0.5, 2.0, 4.0]),
)
def test_another_cost_is_stated_once_it_has_lasted(spans, factor):
    bench = Bench()
    for cpu_ms in [LOOK_MS] * 6:
        bench.work(cpu_ms, 1_000)
    spans += [LOOK_MS] * (4 * MEAN_MS // LOOK_MS)
    for cpu_ms in spans:
        bench.work(cpu_ms, 1_000 * factor)
    truth = 1_000 * factor * 1_000 * ROOM
    assert truth / APART * 0.9 <= bench.stated[-1] <= truth * APART * 1.1
    assert len(bench.stated) > 1


def test_nothing_is_stated_before_the_broker_was_busy_for_long_enough():
    bench = Bench()
    bench.work(LEARNT_MS // 2, 100)
    assert not bench.stated
    assert bench.capacity.bytes_per_s == 0
    bench.work(LEARNT_MS, 100)
    assert bench.stated == [80_000]


def test_a_broker_that_idles_learns_nothing_and_forgets_nothing():
    """An hour with few events costs CPU that they are not to blame for."""
    bench = Bench()
    bench.work(LOOK_MS, 100)
    for _ in range(720):
        bench.work(round(LOOK_MS * BUSY) - 10, 1)
    assert bench.stated == [80_000]


def test_a_busy_broker_without_tasks_learns_nothing():
    bench = Bench()
    for _ in range(20):
        bench.work(LOOK_MS, 0)
    assert not bench.stated


def test_a_smaller_share_of_the_processor_is_stated_at_once():
    bench = Bench()
    bench.work(LOOK_MS, 100)
    bench.granted = 250
    bench.work(LOOK_MS // 4, 100)
    assert bench.stated == [80_000, 20_000]


def test_what_a_task_had_taken_before_it_began_here_again_is_not_counted():
    bench = Bench()
    bench.work(LOOK_MS, 100)
    bench.term, bench.taken = 2, 10**9
    bench.work(LOOK_MS, 0)
    assert bench.stated == [80_000]


# --- in a network ---------------------------------------------------------------------------


class BusyTown(Town):
    """Brokers use CPU for what their tasks take, at a cost each; `swing` is how far it varies."""

    def __init__(self, costs: dict[str, float], limits: dict[str, CoordinatorSettings]) -> None:
        super().__init__(1, 3, [(0, 1), (1, 2)], {("b1", "A"): 5_000.0}, limits)
        self.costs, self.swing = costs, 0.0
        self.used = dict.fromkeys(self.names, 0.0)
        self.looked = dict.fromkeys(self.names, self.world.now)
        for house in self.houses.values():
            self.report(house)

    def report(self, house: House) -> None:
        took_ms = self.world.now - self.looked[house.name]
        self.looked[house.name] = self.world.now
        factor = 1 + self.swing * self.world.random.uniform(-1, 1)
        busy = min(1.0, self.work(house.name) / 1_000 * self.costs[house.name] * factor)
        self.used[house.name] += busy * took_ms
        used_ms, now = round(self.used[house.name]), self.world.now
        house.do(lambda: house.coordinator.used(used_ms, 1_000, now))
        self.world.after(LOOK_MS, lambda: self.report(house))

    def stated(self) -> dict[str, int]:
        coordinator = self.houses["b0"].coordinator
        return {name: one.capacity for name, one in coordinator.known.brokers.items()}


def busy(limits: dict[str, CoordinatorSettings] | None = None) -> BusyTown:
    """A task at its source's broker b1, which it overloads; b0 and b2 are ten times as fast."""
    town = BusyTown({"b0": 0.018, "b1": 0.18, "b2": 0.018}, limits or {})
    town.submit("b1", {("b1", "A"): 1.0})
    return town


def test_the_task_of_a_broker_that_is_too_busy_goes_elsewhere_and_stays_there() -> None:
    """Bytes alone would keep it where its only source is."""
    town = busy()
    town.run(180)
    job = town.jobs["b1/0"]
    assert job.host in {"b0", "b2"}
    assert town.stated()["b1"] == pytest.approx(5_000 / 0.9 * ROOM, rel=0.02)
    moves = town.moves
    town.run(600)
    assert town.moves == moves


def test_costs_that_vary_by_a_fifth_begin_no_plan() -> None:
    town = busy()
    town.run(180)
    town.swing = 0.2
    before = {name: dict(house.coordinator.counts) for name, house in town.houses.items()}
    stated = town.stated()
    town.run(600)
    for name, house in town.houses.items():
        for count in ("epochs", "statements", "placed"):
            assert house.coordinator.counts[count] == before[name][count]
    assert town.stated() == stated


def test_a_task_that_varies_where_it_runs_begins_no_plan() -> None:
    """Here the busy broker keeps its task, and goes on measuring."""
    town = BusyTown(dict.fromkeys(("b0", "b1", "b2"), 0.1), {})
    town.submit("b1", {("b1", "A"): 1.0})
    town.swing = 0.2
    town.run(180)
    assert town.jobs["b1/0"].host == "b1"
    assert town.stated()["b1"] > 5_000
    counts = dict(town.houses["b1"].coordinator.counts)
    town.run(900)
    now = town.houses["b1"].coordinator.counts
    assert (now["epochs"], now["statements"]) == (counts["epochs"], counts["statements"])


def test_what_is_configured_wins_over_what_is_measured() -> None:
    limits = CoordinatorSettings(measure_ms=6_000, capacity=100_000)
    town = busy({"b1": limits})
    town.run(180)
    assert town.stated()["b1"] == 100_000
    assert town.jobs["b1/0"].host == "b1"


def test_a_measured_limit_that_no_plan_keeps_is_broken_at_every_broker() -> None:
    town = BusyTown(dict.fromkeys(("b0", "b1", "b2"), 0.19), {})
    town.submit("b1", {("b1", "A"): 1.0})
    town.run(300)
    assert all(town.stated().values())
    for house in town.houses.values():
        coordinator = house.coordinator
        assert coordinator.laid is not None
        (row,) = violations(coordinator.laid, coordinator.known)
        assert (row["broker"], row["limit"]) == (town.jobs["b1/0"].host, "capacity_bytes_per_s")
    moves = town.moves
    town.run(900)
    assert town.moves == moves
