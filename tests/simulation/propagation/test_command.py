"""`headwater simulate`: what is refused and with which words, and what is written."""

import json
import sys
from pathlib import Path

import pytest

from headwater.cli import main
from simulation.propagation.reading import read_scenario
from tests.simulation.propagation.drawn import write

SENSORS = [
    {"id": 1, "node": 0, "attr": "heat", "loc": [0, 0]},
    {"id": 2, "node": 1, "attr": "wind", "loc": [3, 4]},
]
ONE = {"id": "s", "node": 2, "type": "identified", "delta_t": 5, "filters": {"1": [0, 5]}}
GOOD = {
    "nodes": 3,
    "edges": [[0, 1], [1, 2]],
    "sensors": SENSORS,
    "subscriptions": [ONE],
    "center": 1,
}
ROWS = [[7, 1, 0, 3.0], [8, 2, 1, 4.0], [9, 1, 9, 6.0]]

FAULTS = {
    "`nodes` is missing": {"nodes": ...},
    "nodes: found 0, expected 1 to": {"nodes": 0},
    "nodes: expected the brokers 0, 1, 2": {"nodes": [1, 2, 3]},
    "edges: 2-0 closes a cycle": {"edges": [[0, 1], [1, 2], [2, 0]]},
    "edges: no way from broker 0 to broker 2": {"edges": [[0, 1]]},
    "edges[0]: found broker 5, expected 0 to 2": {"edges": [[0, 5]]},
    "edges[0]: expected two brokers": {"edges": [[0]]},
    "sensors[1]: a second sensor '1'": {"sensors": [SENSORS[0], SENSORS[0]]},
    "sensors[0]: loc: expected 2 numbers": {"sensors": [{**SENSORS[0], "loc": [1]}]},
    "sensors[0]: `attr` is missing": {"sensors": [{"id": 1, "node": 0, "loc": [0, 0]}]},
    "subscriptions[0]: type: found 'vague'": {"subscriptions": [{**ONE, "type": "vague"}]},
    "subscriptions[1]: a second subscription": {"subscriptions": [ONE, ONE]},
    "subscriptions[0]: id: has half of a surrogate": {"subscriptions": [{**ONE, "id": "\ud800"}]},
    "delta_t: found 0, expected more": {"subscriptions": [{**ONE, "delta_t": 0}]},
    "filters: 1: expected [lowest, highest]": {"subscriptions": [{**ONE, "filters": {"1": [0]}}]},
    "filters: expected at least one": {"subscriptions": [{**ONE, "filters": {}}]},
    "subscriptions[0]: node: found broker -1": {"subscriptions": [{**ONE, "node": -1}]},
    "center: found broker 3": {"center": 3},
    "script[0]: op: found 'sing'": {"script": [{"t": 0, "op": "sing", "id": "s"}]},
    "script[1]: subscribe names subscription 'x'": {
        "script": [{"t": 1, "op": "subscribe", "id": "s"}, {"t": 0, "op": "subscribe", "id": "x"}]
    },
    "script[0]: t: found 0.5, expected whole": {
        "script": [{"t": 0.5, "op": "subscribe", "id": "s"}]
    },
}
FAULTY_ROWS = {
    "events.csv:2: no sensor '3'": [[7, 3, 0, 1.0]],
    "events.csv:3: a second event '7'": [[7, 1, 0, 1.0], [7, 1, 1, 1.0]],
    "events.csv:2: found t 'x'": [[7, 1, "x", 1.0]],
    "events.csv:2: found t '1.5', expected whole seconds": [[7, 1, 1.5, 1.0]],
    "events.csv:2: found t '1_0', expected whole seconds": [[7, 1, "1_0", 1.0]],
    "events.csv:2: found t '1e1', expected whole seconds": [[7, 1, "1e1", 1.0]],
    "events.csv:2: found t '٣', expected whole seconds": [[7, 1, "٣", 1.0]],
    "events.csv:2: found t '', expected whole seconds": [[7, 1, "", 1.0]],
    "events.csv:2: found v '1_0', expected a finite number": [[7, 1, 1, "1_0"]],
    "events.csv:2: found v 'x', expected a finite number": [[7, 1, 1, "x"]],
    "events.csv:2: found v 'nan', expected a finite number": [[7, 1, 1, "nan"]],
    "events.csv:2: expected id,sensor,t,v": [[7, 1]],
}


def told(folder, change, rows, *options):
    scenario = {name: value for name, value in {**GOOD, **change}.items() if value is not ...}
    return ["simulate", str(write(folder, scenario, rows)), *options]


@pytest.mark.parametrize("sentence", FAULTS)
def test_a_faulty_scenario_is_refused_with_the_place(sentence, tmp_path, capsys):
    assert main(told(tmp_path, FAULTS[sentence], ROWS)) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert said.out == ""


def test_a_file_of_events_is_told_by_the_name_that_the_scenario_gives(
    tmp_path, capsys, monkeypatch
):
    scenario = write(tmp_path, GOOD, ROWS)
    scenario.write_text(json.dumps({**GOOD, "events_file": "."}))
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", scenario.name]) == 2
    assert "events_file: .: is a directory" in capsys.readouterr().err


def test_a_scenario_on_standard_input_names_its_events_from_here(tmp_path, capsys, monkeypatch):
    _, named = told(tmp_path, {}, ROWS)
    assert main(["simulate", named]) == 0
    usual = capsys.readouterr().out
    monkeypatch.chdir(tmp_path)
    with Path(named).open(encoding="utf-8") as file:
        monkeypatch.setattr("sys.stdin", file)
        assert main(["simulate", "-"]) == 0
    assert capsys.readouterr().out == usual


@pytest.mark.parametrize("sentence", FAULTY_ROWS)
def test_a_faulty_line_of_events_is_refused_with_its_number(sentence, tmp_path, capsys):
    assert main(told(tmp_path, {}, FAULTY_ROWS[sentence])) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"filters": {"heat": [0, 5]}}, "filters: heat: there is no such sensor"),
        (
            {"type": "abstract", "filters": {"1": [0, 5]}, "region": [0, 0, 9, 9]},
            "filters: 1: there is no such attribute",
        ),
        ({"filters": {"1": [5, 0]}}, "filters: 1: the range [5, 0] holds no value"),
        ({}, ""),
        ({"filters": {"1": [None, 0]}}, ""),
    ],
)
def test_a_filter_that_nothing_can_meet_is_told_and_the_rest_runs(
    change, sentence, tmp_path, capsys
):
    assert main(told(tmp_path, {"subscriptions": [{**ONE, **change}]}, ROWS)) == 0
    captured = capsys.readouterr()
    assert set(json.loads(captured.out)) > {"naive", "centralised"}
    assert captured.err.count("\n") == bool(sentence)
    assert sentence in captured.err


@pytest.mark.parametrize("names", [range(6, 12), ["a", "A", "7", "10", "é", "z"]])
def test_events_come_by_time_and_id_in_whatever_order_they_stand(names, tmp_path, capsys):
    rows = [[name, 1 + place % 2, place // 4, 1.0] for place, name in enumerate(sorted(names))]
    orders = []
    for order in (rows, rows[::-1], rows[3:] + rows[:3]):
        path = Path(told(tmp_path, {}, order)[1])
        assert main(["simulate", str(path)]) == 0
        orders.append((read_scenario(path).readings, capsys.readouterr().out))
    assert [reading.id for reading in orders[0][0]] == [str(row[0]) for row in rows]
    assert orders[1:] == orders[:1] * 2


def test_files_may_begin_with_a_byte_order_mark(tmp_path, capsys):
    command = told(tmp_path, {}, ROWS)
    assert main(command) == 0
    plain = capsys.readouterr().out
    for path in tmp_path.iterdir():
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert main(command) == 0
    assert capsys.readouterr().out == plain


def test_a_file_that_is_not_there_or_not_json_is_refused(tmp_path, capsys):
    assert main(["simulate", str(tmp_path / "none.json")]) == 2
    assert "no such file" in capsys.readouterr().err
    (tmp_path / "odd.json").write_text("{")
    assert main(["simulate", str(tmp_path / "odd.json"), "--json"]) == 2
    assert "not JSON" in json.loads(capsys.readouterr().out)["errors"][0]["message"]
    assert main(told(tmp_path, {"events_file": "no.csv"}, ROWS)) == 0
    scenario = json.loads((tmp_path / "scenario.json").read_text())
    (tmp_path / "scenario.json").write_text(json.dumps({**scenario, "events_file": "no.csv"}))
    capsys.readouterr()
    assert main(["simulate", str(tmp_path / "scenario.json")]) == 2
    assert "events_file: no.csv: no such file" in capsys.readouterr().err


def test_the_form_is_that_of_the_format_and_ids_are_written_as_in_the_files(tmp_path, capsys):
    assert main(told(tmp_path, {}, ROWS, "--approach", "filter-split-forward")) == 0
    assert json.loads(capsys.readouterr().out) == {
        "filter-split-forward": {
            "delivered": {"s": [7]},
            "subscription": 2,
            "publication": 2,
            "recall": 1.0,
        }
    }
    rows = [[f"e{number}", sensor, t, v] for number, sensor, t, v in ROWS]
    assert main(told(tmp_path, {}, rows)) == 0
    for outcome in json.loads(capsys.readouterr().out).values():
        assert outcome["delivered"] == {"s": ["e7"]}


@pytest.mark.parametrize("other", ["9" * 5000, "٣", "²", "07", "+7", "-7", "--7", "7.0", "1_0", ""])
def test_ids_are_numbers_only_if_each_is_the_same_text_again(other, tmp_path, capsys):
    """Two events are two, whatever their ids would be as numbers."""
    rows = [[other, 1, 0, 3.0], ["3", 1, 1, 4.0]]
    assert main(told(tmp_path, {}, rows)) == 0
    for outcome in json.loads(capsys.readouterr().out).values():
        assert outcome["delivered"] == {"s": [other, "3"]}


def test_by_hand(tmp_path, capsys):
    """Two sensors at the ends of a chain, the user in the middle, the centre at one end."""
    both = {**ONE, "node": 1, "delta_t": 2, "filters": {"1": [0, 5], "2": [0, 5]}}
    sensors = [SENSORS[0], {**SENSORS[1], "node": 2}]
    change = {"subscriptions": [both], "sensors": sensors, "center": 0}
    assert (
        main(told(tmp_path, change, [[1, 1, 0, 1], [2, 2, 1, 9], [3, 2, 1, 2], [4, 1, 7, 0]])) == 0
    )
    out = json.loads(capsys.readouterr().out)
    assert all(each["delivered"] == {"s": [1, 3]} for each in out.values())
    loads = {name: (each["subscription"], each["publication"]) for name, each in out.items()}
    # Each sensor's own range is all that its broker can test: 1 and 4 come from 0, 3 from 2.
    assert loads["filter-split-forward"] == (2, 3)
    assert loads["naive"] == loads["operator-placement"] == loads["multi-join"] == (2, 3)
    # From 2 to the centre two links each for events 2 and 3; back to the user one each for 1 and 3.
    assert loads["centralised"] == (1, 4 + 2)


@pytest.mark.timeout(90)  # the first import of matplotlib on a machine looks for fonts
def test_a_drawing_is_made_or_the_extra_is_named(tmp_path, capsys, monkeypatch):
    drawn = tmp_path / "loads.svg"
    words = told(tmp_path, {}, ROWS, "--plot", str(drawn), "--output", str(tmp_path / "out.json"))
    assert main(words) == 0
    first = drawn.read_bytes()
    assert first.startswith(b"<?xml")
    assert b"filter-split-forward" in first
    assert main(words) == 0
    assert drawn.read_bytes() == first
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "headwater.simulations.loads_plot", raising=False)
    assert main(words) == 2
    assert "headwater[plots]" in capsys.readouterr().err


def test_the_bar_is_drawn_on_a_terminal_alone(tmp_path, capsys, monkeypatch):
    assert main(told(tmp_path, {}, ROWS)) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda stream: True, raising=False)
    assert main(told(tmp_path, {}, ROWS, "--approach", "naive")) == 0
    said = capsys.readouterr()
    assert "6 of 6  naive" in said.err
    assert said.err.endswith("\r\x1b[2K")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"nodes": 1, "edges": [], "nodes": 2}', "nodes"),
        ('{"nodes": 1, "edges": [], "sensors": [{"id": "s", "id": "s"}]}', "id"),
    ],
)
def test_a_key_told_twice_is_refused(tmp_path, capsys, text, key):
    path = tmp_path / "twice.json"
    path.write_text(text)
    assert main(["simulate", str(path)]) == 2
    assert f'{path}: an object has the key "{key}" twice' in capsys.readouterr().err
