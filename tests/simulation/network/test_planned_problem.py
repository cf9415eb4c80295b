"""`headwater plan --from` and brokers that plan while they run: one problem, and the same flow.

The described network has what the running brokers tell of themselves: the rates that they measured,
their limits and homes. Every broker sees the whole network.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from headwater.cli import main
from planner.layout import Stream
from simulation import texts
from simulation.crashes.clients import Wish
from simulation.network.planned import PlannedPlace
from tests.simulation.network.test_planned import TightLine

# What one takes of the readings at b0 lies within what the other takes; no broker but the home has
# room for both, and of both more comes in than goes out.
NESTED = (
    texts.DECLARATIONS
    + """
subscription Fall from client to alerts
detect[recent] Temp(val > 1) as t then Temp(val > 1) as u within 8 ms where t.val > u.val + 6
subscription Slip from client to alerts
detect[recent] Temp(val > 4) as t then Temp(val > 4) as u within 8 ms where t.val > u.val + 3
"""
)


class NestedLine(TightLine):
    """b0, b1, b2 in a row; the sources at b0, the home at b2, and room for one of two at each."""

    capacity = 22_000
    wish = Wish("submit", NESTED, {"Fall": 1, "Slip": 1})

    def streams(self) -> list[Stream]:
        """Return the streams that a broker plans with."""
        place = self.places[1]
        assert isinstance(place, PlannedPlace)
        assert place.planning is not None
        return list(place.planning.coordinator.running().layout.streams)


def described(plan: dict[str, Any]) -> dict[str, Any]:
    """Return the network as `headwater plan` takes it: an event is a byte, and so is its work."""
    rates: dict[str, dict[str, int]] = {}
    for task in plan["tasks"]:
        for one in task["inputs"]:
            by_type = rates.setdefault(one["origin"], {})
            by_type[one["type"]] = max(one["bytes_per_s"], by_type.get(one["type"], 0))
    estimates = {}
    for task in plan["tasks"]:
        only = {
            one["type"]: one["bytes_per_s"] / rates[one["origin"]][one["type"]]
            for one in task["inputs"]
        }
        sends = {"per_s": task["sends_bytes_per_s"], "bytes": 1}
        estimates[task["subscriptions"]] = {**sends, "work": 1, "only": only}
    nodes = [
        {"id": row["broker"], "capacity": row["capacity_bytes_per_s"]} for row in plan["brokers"]
    ]
    return {
        "nodes": nodes,
        "links": [
            {"a": row["from"], "b": row["to"]} for row in plan["links"] if row["from"] < row["to"]
        ],
        "sources": [
            {
                "source": f"source at {origin}",
                "broker": origin,
                "types": {name: {"rate": rate, "bytes": 1} for name, rate in by_type.items()},
            }
            for origin, by_type in rates.items()
        ],
        "homes": {task["subscriptions"]: task["home"] for task in plan["tasks"]},
        "estimates": estimates,
    }


@pytest.mark.timeout(300)
def test_a_plan_of_a_described_network_is_that_of_the_running_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = NestedLine(3)
    told: list[tuple[dict[str, Any], list[Stream]]] = []
    run.happens[2] = [lambda: told.append((run.plan(), run.streams()))]
    run.run()
    ((running, streams),) = told
    text, network, problem = (tmp_path / name for name in ("text.hw", "network.json", "p.json"))
    text.write_text(NESTED)
    network.write_text(json.dumps(described(running)))
    words = ["--network", str(network), "--write-problem", str(problem), "--steps", "400"]
    capsys.readouterr()
    status = main(["plan", "--from", str(text), *words])
    plan = json.loads(capsys.readouterr().out)
    assert (status, plan["feasible"], running["infeasible"]) == (0, True, False)

    hosts = {task["subscriptions"]: task["host"] for task in running["tasks"]}
    assert plan["placement"] == hosts
    assert sorted(hosts.values()) == ["b0", "b1"], "else limits have not been planned with"
    assert plan["flow"] == pytest.approx(running["flow_bytes_per_s"], rel=0.01)

    made = json.loads(problem.read_text())
    tasks = {task["id"]: (task["cost"], task["rate"]) for task in made["tasks"]}
    assert tasks == {
        task["subscriptions"]: (task["takes_bytes_per_s"], task["sends_bytes_per_s"])
        for task in running["tasks"]
    }
    contents = [(sum(one["rates"].values()), len(one["for"])) for one in made["contents"]]
    laid = [(one.rate, len(one.consumers)) for one in streams if one.origin is not None]
    assert sorted(contents) == sorted(laid)
    assert {takers for _, takers in laid} == {1, 2}
