"""What brokers take in joules, and what is lost on links that nobody acknowledges on."""

import json

import pytest

from headwater.cli import main
from simulation.energy import EnergyModel, read_model
from simulation.propagation.reading import read_scenario
from simulation.propagation.run import APPROACHES, Loss, simulate
from tests.simulation.propagation.drawn import draw, write
from tests.simulation.propagation.test_command import GOOD, ROWS, told

MODEL = """
[transmit]
message_j = 1.0
byte_j = 0.1
[receive]
message_j = 0.5
byte_j = 0.05
[listen]
second_j = 0.01
[compute]
message_j = 0.25
[size]
event_bytes = 10
operator_bytes = 20
"""
FAULTS = {
    "[transmit]\nmessage = 1": "unknown field `message`",
    "[transmit]\nmessage_j = -1": "$.transmit.message_j",
    "[receive]\nbyte_j = 'much'": "$.receive.byte_j",
    "[radio]": "unknown field `radio`",
    "[transmit": "at the end of a table declaration",
}


@pytest.fixture
def model(tmp_path):
    file = tmp_path / "model.toml"
    file.write_text(MODEL)
    return file


def test_each_message_byte_and_second_costs_what_the_model_says(tmp_path, model, capsys):
    """Counted by hand: two events go from 0 to the centre 1, one of them from there to 2.

    The operator goes from 2 to 1, and from the first event to the last nine seconds pass.
    """
    words = told(tmp_path, {}, ROWS, "--approach", "centralised", "--energy", str(model))
    assert main(words) == 0
    energy = json.loads(capsys.readouterr().out)["centralised"]["energy"]
    brokers = {
        "0": {"transmit_j": 4.0, "receive_j": 0.0, "listen_j": 0.09, "compute_j": 0.5},
        "1": {"transmit_j": 2.0, "receive_j": 3.5, "listen_j": 0.09, "compute_j": 1.0},
        "2": {"transmit_j": 3.0, "receive_j": 1.0, "listen_j": 0.09, "compute_j": 0.25},
    }
    for name, parts in brokers.items():
        assert energy["brokers"][name] == pytest.approx({**parts, "total_j": sum(parts.values())})
    assert energy["total_j"] == pytest.approx(sum(sum(one.values()) for one in brokers.values()))


def test_the_table_tells_the_sum_and_the_broker_whose_battery_is_empty_first(
    tmp_path, model, capsys
):
    output = tmp_path / "out.json"
    options = ("--energy", str(model), "--loss", "0.2", "--output", str(output))
    assert main(told(tmp_path, {}, ROWS, *options)) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split("  ")[-1] == "busiest link"
    assert all(name in head for name in ("lost", "energy, J", "most at one"))
    document = json.loads(output.read_text())
    for row in rows:
        assert f"{document[row.split()[0]]['energy']['total_j']:,.3f}" in row


@pytest.mark.parametrize("text", FAULTS)
def test_a_faulty_model_is_refused_with_its_key(text, tmp_path, capsys):
    file = tmp_path / "model.toml"
    file.write_text(text)
    assert main(told(tmp_path, {}, ROWS, "--energy", str(file))) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert FAULTS[text] in captured.err
    assert str(file) in captured.err


def test_a_model_that_is_not_there_is_told(tmp_path, capsys):
    assert main(told(tmp_path, {}, ROWS, "--energy", str(tmp_path / "none.toml"))) == 2
    assert "none.toml: No such file or directory" in capsys.readouterr().err


def test_what_a_model_leaves_out_costs_nothing(tmp_path):
    file = tmp_path / "model.toml"
    file.write_text("")
    assert read_model(file) == EnergyModel()


@pytest.mark.parametrize("share", ["-0.1", "1.1", "nan"])
def test_a_share_that_is_none_is_refused(share, tmp_path, capsys):
    assert main(told(tmp_path, {}, ROWS, f"--loss={share}")) == 2
    assert "--loss is a number from 0 to 1" in capsys.readouterr().err


@pytest.mark.parametrize("approach", APPROACHES)
def test_where_nothing_is_lost_all_is_as_without(approach, tmp_path):
    for seed in range(4):
        scenario = read_scenario(write(tmp_path, *draw(seed)))
        assert simulate(scenario, approach, loss=Loss(0.0)) == simulate(scenario, approach)


@pytest.mark.parametrize("approach", APPROACHES)
def test_where_all_is_lost_only_what_needs_no_link_is_delivered(approach, tmp_path):
    reached = 0
    for seed in range(8):
        scenario = read_scenario(write(tmp_path, *draw(seed, abstract=False)))
        outcome = simulate(scenario, approach, loss=Loss(1.0))
        at = {one.id: scenario.sensors[one.sensor].node for one in scenario.readings}
        for name, events in outcome.delivered.items():
            reached += len(events)
            assert {at[event] for event in events} <= {scenario.subscriptions[name].node}
        assert sum(outcome.lost.values()) == outcome.publication
    assert reached or approach == "centralised"


@pytest.mark.parametrize("approach", APPROACHES)
def test_lost_events_lower_recall_are_never_more_than_were_sent_and_go_by_the_seed(
    approach, tmp_path
):
    lower = 0
    for seed in range(8):
        scenario = read_scenario(write(tmp_path, *draw(seed)))
        outcome = simulate(scenario, approach, loss=Loss(0.3, seed))
        assert outcome == simulate(scenario, approach, loss=Loss(0.3, seed))
        for link, count in outcome.lost.items():
            assert 0 < count <= outcome.by_link[link][1]
        whole = {name: set(some) for name, some in simulate(scenario, approach).delivered.items()}
        assert all(set(some) <= whole[name] for name, some in outcome.delivered.items())
        lower += outcome.recall < 1.0
    assert lower


def test_over_three_links_as_many_arrive_as_chance_has_it(tmp_path):
    """Of 2,000 events 0.8³ are expected to arrive: 1,024, with a standard deviation of 22."""
    one = {"id": "s", "node": 3, "type": "identified", "delta_t": 1, "filters": {"1": [0, 9]}}
    line = {
        **GOOD,
        "nodes": 4,
        "edges": [[0, 1], [1, 2], [2, 3]],
        "sensors": GOOD["sensors"][:1],
        "subscriptions": [one],
        "center": 3,
    }
    rows = [[number, 1, number, 1.0] for number in range(2_000)]
    scenario = read_scenario(write(tmp_path, line, rows))
    for approach in APPROACHES:
        arrived = len(simulate(scenario, approach, loss=Loss(0.2, 5)).delivered["s"])
        assert abs(arrived - 1_024) < 5 * 22
