"""The small scenarios that are shipped, and the page that shows them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from broker.network.routing.matching.strategies import FILTER_SPLIT_FORWARD
from headwater.cli import main
from simulation.propagation.reading import read_scenario
from simulation.propagation.run import APPROACHES, PropagationNetwork, operator_of, simulate
from tests.oracles import propagation as oracle

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples/propagation"


def table_1():
    """A network as in figure 3 with the subscriptions of table I, and what each put on links."""
    scenario = read_scenario(EXAMPLES / "table-1.json")
    network = PropagationNetwork(scenario, FILTER_SPLIT_FORWARD)
    for sensor in scenario.sensors.values():
        network.advertise(sensor)
    loads = {}
    for subscription in scenario.subscriptions.values():
        before = dict(network.by_link)
        network.subscribe(subscription.node, operator_of(subscription, scenario.sensors, None))
        loads[subscription.id] = {
            link: count[0] - before.get(link, (0, 0))[0]
            for link, count in network.by_link.items()
            if count != before.get(link)
        }
    return network, loads


def test_the_third_subscription_goes_no_further_than_where_its_parts_are_met():
    """Paper 002, table I: s1 and s2 cover s3 only together, and only part by part."""
    network, loads = table_1()
    assert loads["s1"] == {(5, 3): 1, (3, 0): 1, (3, 4): 1, (4, 1): 1}
    assert loads["s2"] == {(5, 3): 1, (3, 4): 1, (4, 1): 1, (4, 2): 1}
    # a meets s1 at broker 3; b and c, which part at 4, meet s1 and s2 there.
    assert loads["s3"] == {(5, 3): 1, (3, 4): 1}
    asked = {(at, to): network.router(at).asked(str(to)) for at, to in ((3, 0), (4, 1), (4, 2))}
    assert {
        link: [each.id for each, covered_by in wanted if not covered_by]
        for link, wanted in asked.items()
    } == {
        (3, 0): ["s1"],
        (4, 1): ["s1", "s2"],
        (4, 2): ["s2"],
    }


@pytest.mark.parametrize("name", ["table-1", "two-slopes", "comings-and-goings"])
def test_the_examples_deliver_what_the_definition_says(name):
    told = json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    lines = (EXAMPLES / told["events_file"]).read_text(encoding="utf-8").split()[1:]
    rows = [
        [number, sensor, int(t), float(v)]
        for number, sensor, t, v in (line.split(",") for line in lines)
    ]
    wanted = oracle.delivered(told, rows)
    assert all(wanted.values())
    for approach in ("filter-split-forward", "multi-join", "operator-placement", "centralised"):
        outcome = simulate(read_scenario(EXAMPLES / f"{name}.json"), approach)
        assert {key: set(some) for key, some in outcome.delivered.items()} == wanted


def test_the_page_shows_what_the_command_prints(tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs/simulate.md").read_text(encoding="utf-8")
    shown, *_ = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    scenario = str(EXAMPLES / "table-1.json")
    assert main(["simulate", scenario, "--output", "loads.json"]) == 0
    assert capsys.readouterr().out == shown
    assert main(["simulate", scenario, "--approach", "naive"]) == 0
    written = json.loads(Path("loads.json").read_text(encoding="utf-8"))
    assert json.loads(capsys.readouterr().out) == {"naive": written["naive"]}


def test_the_same_scenario_gives_the_same_bytes_whatever_hashes_are(tmp_path):
    told = []
    for hashes in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-m", "headwater.cli", "simulate", str(EXAMPLES / "two-slopes.json")],
            env=os.environ | {"PYTHONHASHSEED": hashes, "PYTHONPATH": str(ROOT)},
            cwd=tmp_path,
            capture_output=True,
            timeout=60,
            check=True,
        )
        told.append(done.stdout)
    assert told[0] == told[1]
    assert set(json.loads(told[0])) == set(APPROACHES)
