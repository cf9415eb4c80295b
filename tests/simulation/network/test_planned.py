"""Whole networks whose brokers decide where tasks run: results are those of one engine."""

from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from broker.network.frames.messages import DrainRequested
from broker.network.placement.cell_messages import Hosted
from broker.network.placement.cell_view import CellView
from broker.network.placement.hosts import CellHosts, CellRefusedError
from simulation import texts
from simulation.crashes.clients import AskingClient, PublishingSensor, Wish
from simulation.network import planned
from simulation.network.links import Link
from simulation.network.place import Place
from simulation.network.planned import SETTINGS, PlannedPlace, PlannedRun
from simulation.network.scenario import Shape

# All readings travel to it, while it keeps and finds little: it is better off near the sources.
TEXT = (
    texts.DECLARATIONS
    + """
subscription Both from client to alerts
detect[recent] Temp as t and Humidity as h within 10 ms where t.val > h.val + 8
"""
)
PHASE_S = 40  # long enough to measure a rate, agree, and move
BATCH_MS = 500
# Two that have nothing in common but their text: each keeps and finds little of all that it needs.
APART = (
    texts.DECLARATIONS
    + """
subscription Colder from client to alerts
detect[recent] Temp as t then Temp as u within 80 ms where t.val > u.val + 7
subscription Drier from client to alerts
detect[recent] Humidity as h then Humidity as k within 80 ms where h.val > k.val + 7
"""
)
# Two windows of different length over one input, of which each needs about half.
WINDOWS = (
    texts.DECLARATIONS
    + """
define Short(n) aggr every 2 s
detect Temp(val <= 4)
assign n = Count(Temp)
define Long(n) aggr every 5 s
detect Temp(val > 4)
assign n = Count(Temp)
subscription Low from client to alerts
detect Short(n > 220)
subscription High from client to alerts
detect Long(n > 520)
"""
)


def cells_of(run: PlannedRun) -> tuple[CellView, ...]:
    process = run.places[2].process
    assert process is not None
    return process.network.cells()


class Line(PlannedRun):
    """b0 to b4 in a row; b2 wants what comes in at both ends, at rates that change."""

    wish = Wish("submit", TEXT, {"Both": 1})
    ends = (0, 4)  # where the sources are
    home = 2

    def __init__(self, seed: int, phases: list[tuple[int, int]]) -> None:
        self.phases = phases  # how many ms between two readings at b0 and at b4, in each
        self.happens: dict[int, list[tuple[int, object]]] = {}
        self.hosts: list[str] = []
        super().__init__(seed, Shape(brokers=max(self.ends) + 1, faults=0))

    def _link_all(self, more: int) -> None:
        for one, other in zip(self.places, self.places[1:], strict=False):
            link = Link(self.world, one, other, 30)
            one.links[other.name] = other.links[one.name] = link
            self.links.append(link)

    def _plan_askers(self) -> None:
        self._specifications["client"] = self.wish.text
        self._askers.append(AskingClient(self.places[self.home], "client", [self.wish]))  # type: ignore[arg-type]

    def _plan_sensors(self) -> None:
        for number, (place, name) in enumerate(zip(self.ends, ("Temp", "Humidity"), strict=True)):
            sensor = PublishingSensor(self.places[place], f"s{number}", name, 20)  # type: ignore[arg-type]
            self._places[sensor.name] = self._where(number)
            sensor.advertise(self._places[sensor.name])
            sensor.begun = True
            self._sensors.append(sensor)

    def _plan_readings(self) -> int:
        begin_ms = self.world.now
        for number, phase in enumerate(self.phases):
            for sensor, gap_ms in zip(self._sensors, phase, strict=True):
                for at in range(0, PHASE_S * 1_000, gap_ms):
                    time_ms = begin_ms + number * PHASE_S * 1_000 + at
                    event = self._reading(f"{sensor.name}-{time_ms}", time_ms, lasting=False)
                    self.world.at(time_ms, partial(sensor.publish, [event]))
                    place = {"type": sensor.type_name, "source": sensor.name}
                    self.arrived.append({**place, **self._places[sensor.name], **event})
            self.world.at(begin_ms + (number + 1) * PHASE_S * 1_000 - 1, self._note)
        return begin_ms + len(self.phases) * PHASE_S * 1_000 + BATCH_MS

    def _note(self) -> None:
        self.hosts.append(self.host())
        number = len(self.hosts)
        for action in self.happens.get(number, []):
            action()  # type: ignore[operator]

    def host(self) -> str:
        (cell,) = [one for one in cells_of(self) if one.home == "b2"]
        return cell.host

    def drain(self, number: int, *, drained: bool) -> None:
        self.places[number].hear(DrainRequested(drained))


class TwoParts(Line):
    """The same with two subscriptions of one text, one for each end."""

    wish = Wish("submit", APART, {"Colder": 1, "Drier": 1})

    def host(self) -> str:
        return " ".join(one.host for one in cells_of(self) if one.home == "b2")


class TightLine(TwoParts):
    """b0, b1, b2 in a row, of which none can take all that is needed of the source at b0."""

    ends = (0, 2)
    capacity = 18_000
    wish = Wish("submit", WINDOWS, {"Low": 1, "High": 1})

    def __init__(self, seed: int) -> None:
        super().__init__(seed, [(FAST, SLOW)] * 2)

    def _place(self, name: str) -> Place:
        machine = super()._place(name).machine
        return PlannedPlace(self.world, machine, replace(SETTINGS, capacity=self.capacity))

    def plan(self) -> dict[str, Any]:
        """What a broker tells of all tasks and limits."""
        place = self.places[1]
        assert isinstance(place, PlannedPlace)
        assert place.planning is not None
        return place.planning.plan()


class FarLine(TightLine):
    """The same, but that only the home has room: both windows are fed over both links."""

    def _place(self, name: str) -> Place:
        place = super()._place(name)
        limits = replace(SETTINGS, capacity=0 if name == "b2" else 1)
        return PlannedPlace(self.world, place.machine, limits)


# ms between two readings; a snapshot holds the last thousand, so that less often is not worth it.
SLOW, FAST = 500, 5


@pytest.mark.timeout(300)
def test_what_has_nothing_in_common_goes_its_own_way() -> None:
    run = TwoParts(4, [(20, 20)])
    outcome = run.run()
    assert run.hosts == ["b0 b4"]
    assert outcome.results > 0


@pytest.mark.timeout(300)
def test_two_windows_of_a_text_that_no_broker_has_room_for_are_at_two() -> None:
    run = TightLine(3)
    told: list[dict[str, Any]] = []
    run.happens[2] = [lambda: told.append(run.plan())]
    outcome = run.run()
    (plan,) = told
    assert sum(task["takes_bytes_per_s"] for task in plan["tasks"]) > run.capacity
    assert sorted(task["host"] for task in plan["tasks"]) == ["b0", "b1"]
    assert not plan["limits_broken"]
    assert not plan["infeasible"]
    assert outcome.results > 0


@pytest.mark.timeout(300)
def test_windows_of_which_neither_takes_what_the_other_does_are_both_counted_on_a_link() -> None:
    run = FarLine(3)
    told: list[dict[str, Any]] = []
    run.happens[2] = [lambda: told.append(run.plan())]
    run.run()
    (plan,) = told
    assert [task["host"] for task in plan["tasks"]] == ["b2", "b2"]
    loads = {(one["from"], one["to"]): one["bytes_per_s"] for one in plan["links"]}
    takes = [task["takes_bytes_per_s"] for task in plan["tasks"]]
    assert min(takes) > 10_000
    assert loads["b0", "b1"] == loads["b1", "b2"] == sum(takes)
    assert not any(planning.coordinator.rounds.unclear for planning in run._plannings())


@pytest.mark.timeout(300)
def test_a_host_that_refuses_is_asked_once_and_the_next_best_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin, refused = CellHosts._begin_cell, []

    def lacking(self: CellHosts, one: Hosted) -> None:
        if self._lent.me == "b4":
            refused.append(one)
            raise CellRefusedError("it lacks a function")
        begin(self, one)

    monkeypatch.setattr(CellHosts, "_begin_cell", lacking)
    run = Line(1, [(SLOW, FAST)] * 2)
    outcome = run.run()
    assert run.hosts[-1] == "b3"
    assert len(refused) == 1
    assert outcome.results > 0


@pytest.mark.long
@pytest.mark.timeout(300)
def test_what_a_host_that_dies_ran_goes_on_and_comes_back_with_it() -> None:
    run = Line(2, [(SLOW, FAST)] * 2)
    run.places[4].away_ms = 8_000
    run.happens[1] = [run.places[4].end]
    outcome = run.run()
    assert run.hosts == ["b4", "b4"]
    assert outcome.results > 0
    assert outcome.ends == 1


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_task_goes_to_where_more_comes_in_than_before_and_its_results_go_on() -> None:
    run = Line(1, [(SLOW, SLOW), (SLOW, FAST)])
    outcome = run.run()
    assert run.hosts[0] == "b2"
    process = run.places[4].process
    assert process is not None
    assert process.network.counts["cells_begun"] > 0
    assert outcome.results > 0


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_drained_host_is_left_and_results_go_on() -> None:
    run = Line(3, [(SLOW, FAST)] * 3)
    run.happens[1] = [partial(run.drain, 4, drained=True)]
    run.happens[2] = [partial(run.drain, 4, drained=False)]
    outcome = run.run()
    assert run.hosts == ["b4", "b3", "b4"]
    assert outcome.results > 0


@pytest.mark.parametrize("seed", range(1, 2))
def test_drawn_networks_with_faults_find_what_one_engine_finds(seed: int) -> None:
    assert planned.run(seed, Shape(events=200)).results > 0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_drawn_networks_with_faults_find_what_one_engine_finds(seed: int) -> None:
    planned.run(seed)
