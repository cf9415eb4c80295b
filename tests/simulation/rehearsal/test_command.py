"""`headwater simulate --spec`: files, faults, report, status."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from headwater.cli import main
from simulation.rehearsal.faults import told
from simulation.rehearsal.site import RehearsalSite
from tests.simulation.rehearsal.small import NETWORK, written

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def files(tmp_path):
    return written(tmp_path)


def simulated(capsys, *words):
    status = main(["simulate", *words])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_brokers_take_energy_for_what_their_links_carried(files, tmp_path, capsys):
    model = tmp_path / "model.toml"
    model.write_text(
        "[transmit]\nmessage_j = 1.0\nbyte_j = 0.1\n[receive]\nmessage_j = 0.5\nbyte_j = 0.05\n"
        "[listen]\nsecond_j = 2.0\n[compute]\nmessage_j = 0.25\n"
    )
    status, out, _ = simulated(capsys, *files, "--energy", str(model), "--json")
    assert status == 0
    report = json.loads(out)
    span_s = report["energy"]["brokers"]["mid"]["listen_j"] / 2.0
    assert span_s > 60
    for name, energy in report["energy"]["brokers"].items():
        links = report["links"].items()
        sent = [one for link, one in links if link.startswith(f"{name} -> ")]
        received = [one for link, one in links if link.endswith(f" -> {name}")]
        transmit = sum(one["messages"] + 0.1 * one["bytes"] for one in sent)
        receive = sum(0.5 * one["messages"] + 0.05 * one["bytes"] for one in received)
        compute = 0.25 * report["per_broker"][name]["processed"]
        parts = (transmit, receive, 2.0 * span_s, compute)
        assert tuple(energy.values()) == pytest.approx((*parts, sum(parts)))
    status, out, _ = simulated(capsys, *files, "--energy", str(model))
    assert f"{report['energy']['total_j']:,.3f}" in out


def test_nothing_can_be_lost_in_a_rehearsal(files, capsys):
    status, out, err = simulated(capsys, *files, "--loss", "0.1")
    assert (status, out) == (2, "")
    assert "brokers repeat what was lost" in err


def test_a_rehearsal_writes_results_as_a_replay_does_and_a_report(files, tmp_path, capsys):
    results, output, picture = (tmp_path / name for name in ("r.jsonl", "out.json", "p.svg"))
    words = ("--cut", "east-mid@+30s+40s", "--end", "mid@+90s+10s", "--slow", "mid-west@+5s+9s:1s")
    written_to = ("--results", str(results), "--output", str(output), "--plot", str(picture))
    status, out, err = simulated(capsys, *files, *words, *written_to)
    assert (status, err) == (0, "")
    report = json.loads(output.read_text())
    assert report["equal"] is True
    assert [one["kind"] for one in report["faults"]] == ["slow", "cut", "end"]
    assert out.splitlines()[-1] == "every result came with these faults, once"
    for name, one in report["subscriptions"].items():
        assert f"{name} " in out
        assert one["found"] == one["expected"] > 0
    assert set(report["links"]) == {
        "east -> mid", "mid -> east", "mid -> west", "west -> mid"
    }  # fmt: skip
    assert report["per_broker"]["mid"]["ends"] == 1
    assert ET.fromstring(picture.read_text()).tag.endswith("svg")
    spec, events = files[1], files[5]
    assert main(["replay", spec, "--events", events]) == 0
    replayed = capsys.readouterr().out
    ids = [
        [json.loads(line)["id"] for line in text.splitlines()]
        for text in (results.read_text(), replayed)
    ]
    assert ids[0] == ids[1] != []


def test_json_is_the_report(files, tmp_path, capsys):
    output = tmp_path / "out.json"
    status, out, _ = simulated(capsys, *files, "--json", "--output", str(output))
    assert status == 0
    assert json.loads(out) == json.loads(output.read_text())
    assert json.loads(out)["faults"] == []


def test_a_part_of_the_recording_is_what_lies_between(files, tmp_path, capsys):
    everything = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    first = min(one["timestamp"] for one in everything)
    times = [one["timestamp"] for one in everything]
    status, out, _ = simulated(capsys, *files, "--since", "+40s", "--until", "+80s", "--json")
    assert status == 0
    report = json.loads(out)
    between = [one for one in times if first + 40_000 <= one < first + 80_000]
    assert report["events"] == len(between)
    assert report["from"] == told(min(between))
    status, _, err = simulated(capsys, *files, "--since", "+40s", "--until", "+40s")
    assert status == 2
    assert "no event is of" in err


def test_functions_of_ones_own_and_tables_are_at_all_brokers(files, tmp_path, capsys):
    (tmp_path / "places.csv").write_text("name,floor\nyard,0\nroof,3\n")
    (tmp_path / "own.py").write_text(
        "import headwater\nTwice = headwater.Function(lambda number: 2 * number, 'float')\n"
    )
    (tmp_path / "spec.hw").write_text(
        'event Temp(val: float)\ntable places from "places.csv" key name\n'
        "subscription Chill seq 1 from team to alarm\n"
        "  detect Temp as t where Twice(t.val) < 9 and places[t.location].floor > 1\n"
        "  assign twice = Twice(t.val)\n"
    )
    status, _, err = simulated(capsys, *files)
    assert status == 2
    assert "`Twice` is no function here" in err
    words = ("--functions", str(tmp_path / "own.py"), "--end", "mid@+50s+30s", "--json")
    status, out, _ = simulated(capsys, *files, *words)
    assert status == 0
    (one,) = json.loads(out)["subscriptions"].values()
    assert one["found"] == one["expected"] > 5


def test_a_result_that_is_lost_makes_the_status_1(files, capsys, monkeypatch):
    delivered = RehearsalSite.delivered
    monkeypatch.setattr(RehearsalSite, "delivered", lambda self, rows: delivered(self, rows[1:]))
    status, out, _ = simulated(capsys, *files)
    assert status == 1
    assert out.splitlines()[-1] == "the results differ from those of one engine"


def test_a_bad_line_is_named_or_passed_over(files, tmp_path, capsys):
    events = tmp_path / "events.jsonl"
    events.write_text(events.read_text() + "{not json\n")
    status, out, err = simulated(capsys, *files)
    assert (status, out) == (2, "")
    assert f"{events}:121: " in err
    status, out, err = simulated(capsys, *files, "--skip-bad")
    assert status == 0
    assert "bad lines 1" in err


FAULTY = [
    (["--cut", "east-west@+30s+40s"], "no link is called east-west"),
    (["--end", "mid@+30s+40s", "--end", "mid@+50s+1s"], "it has ended already"),
    (["--end", "mid@+30h+40s"], "the events are from"),
    (["--lateness", "soon"], "expected a duration"),
    (["--approach", "naive"], "--approach is for a SCENARIO.json"),
    (["scenario.json"], "tell either SCENARIO.json, or --spec"),
    (["--plot", "/"], "cannot be written"),
]


@pytest.mark.parametrize(("words", "said"), FAULTY)
def test_wrong_use_is_a_sentence(files, capsys, words, said):
    status, out, err = simulated(capsys, *words, *files)
    assert (status, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "tell either"),
        (("--spec", "s.hw"), "needs --network"),
        (("--spec", "s.hw", "--network", "n.json"), "needs --events"),
        (("scenario.json", "--cut", "a-b@+1s+1s"), "--cut is for a rehearsal"),
        (("scenario.json", "--skip-bad"), "--skip-bad is for a rehearsal"),
    ],
)
def test_what_does_not_go_together_is_told(capsys, words, said):
    status, out, err = simulated(capsys, *words)
    assert (status, out) == (2, "")
    assert said in err


def test_a_faulty_network_is_told_with_its_file_and_key(files, tmp_path, capsys):
    network = tmp_path / "net.json"
    for change, said in (
        ({"home": None}, "no home is told for the subscription Cold"),
        ({"sources": NETWORK["sources"][1:]}, "sources: no broker is told for the source t1"),
        ({"links": NETWORK["links"][:1]}, "no way leads from east to west"),
    ):
        network.write_text(json.dumps({**NETWORK, **change}))
        status, out, err = simulated(capsys, *files)
        assert (status, out) == (2, "")
        assert f"{network}: " in err
        assert said in err


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "events", "words"),
    [
        ("steam", "steam.csv.gz", ["--map", "source=mote", "--cut", "bridge-lab@+10m+5m"]),
        ("people", "people.jsonl.gz", ["--cut", "gate-office@12:00+20m"]),
    ],
)
def test_the_examples_come_out_as_the_replay_does(tmp_path, capsys, name, events, words):
    network = ROOT / "examples" / "rehearsal" / f"{name}.network.json"
    spec, data = ROOT / "examples" / f"{name}.hw", ROOT / "examples" / "data" / events
    results = tmp_path / "results.jsonl"
    words = [*words, "--end", f"{'lab' if name == 'steam' else 'canteen'}@+20m+3m"]
    status, out, _ = simulated(
        capsys, "--spec", str(spec), "--network", str(network), "--events", str(data),
        *words, "--results", str(results), "--json",
    )  # fmt: skip
    assert status == 0
    assert json.loads(out)["equal"] is True
    mapped = ["--map", "source=mote"] if name == "steam" else []
    assert main(["replay", str(spec), "--events", str(data), *mapped]) == 0
    replayed = capsys.readouterr().out
    found = [json.loads(line)["id"] for line in results.read_text().splitlines()]
    assert sorted(found) == sorted(json.loads(line)["id"] for line in replayed.splitlines())
