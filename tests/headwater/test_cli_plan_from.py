"""`headwater plan --from`: from a specification on a described network to a plan."""

import importlib.util
import json
from pathlib import Path

import pytest

from headwater.cli import main
from tests.oracles import placement as oracle

ROOT = Path(__file__).resolve().parents[2]
SPEC = str(ROOT / "examples" / "fog.hw")
NETWORK = str(ROOT / "examples" / "placement" / "brittany.network.json")
STEPS = ("--steps", "200")


def planned(capsys, *words):
    status = main(["plan", *words])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_the_plan_is_that_of_the_problem_that_was_written(tmp_path, capsys):
    problem, picture = tmp_path / "problem.json", tmp_path / "plan.svg"
    words = ("--write-problem", str(problem), "--picture", str(picture), *STEPS)
    status, out, _ = planned(capsys, "--from", SPEC, "--network", NETWORK, *words)
    assert status == 0
    plan = json.loads(out)
    document = json.loads(problem.read_text(encoding="utf-8"))
    flow, feasible = oracle.judge(document, plan)
    assert (float(flow), feasible) == (pytest.approx(plan["flow"]), True)
    assert json.loads(planned(capsys, str(problem), *STEPS)[1]) == plan
    assert picture.read_text(encoding="utf-8").startswith("<svg")


def test_the_problem_has_the_tasks_of_the_text_and_the_homes_of_the_network(tmp_path, capsys):
    problem = tmp_path / "problem.json"
    planned(capsys, "--from", SPEC, "--network", NETWORK, "--write-problem", str(problem), *STEPS)
    tasks = {task["id"]: task for task in json.loads(problem.read_text())["tasks"]}
    assert tasks.keys() == {"FogRisk", "FogHours", "FogBank", "PersistentFog"}
    assert tasks["FogBank"]["destinations"] == ["brest"]
    assert tasks["PersistentFog"]["destinations"] == ["rennes"]


def test_what_is_guessed_is_told_before_the_plan(tmp_path, capsys):
    network = json.loads(Path(NETWORK).read_text(encoding="utf-8"))
    bare = {key: value for key, value in network.items() if key != "estimates"}
    file = tmp_path / "net.json"
    file.write_text(json.dumps(bare))
    status, out, err = planned(capsys, "--from", SPEC, "--network", str(file), *STEPS)
    assert status == 0
    json.loads(out)
    lines = err.splitlines()
    assert any("FogRisk: taken to send as often as its rarest input" in line for line in lines)
    assert all(line.startswith("headwater: guessed: ") for line in lines)


def test_a_faulty_text_is_shown_with_its_place(tmp_path, capsys):
    spec = tmp_path / "faulty.hw"
    spec.write_text("event a(x: float)\nsubscription S seq 1 from u to v\n  detect b\n")
    status, out, err = planned(capsys, "--from", str(spec), "--network", NETWORK)
    assert (status, out) == (2, "")
    assert f"{spec}:3:10" in err
    assert "1 error" in err
    status, out, err = planned(capsys, "--from", str(spec), "--network", NETWORK, "--json")
    assert (status, err) == (2, "")
    (error,) = json.loads(out)["errors"]
    assert error["message"].startswith(f"{spec}:3:10: HW")


def test_functions_of_ones_own_are_taken_from_a_file(tmp_path, capsys):
    folder = ROOT / "examples" / "placement"
    words = ["--from", str(folder / "laboratory.hw"), *STEPS]
    words += ["--network", str(folder / "laboratory.network.json")]
    status, _, err = planned(capsys, *words)
    assert status == 2
    assert "`FaceDetect` is no function here" in err
    own, problem = tmp_path / "own.py", tmp_path / "problem.json"
    own.write_text(
        "import headwater\nFaceDetect = headwater.Function(lambda video: str(video), 'text')\n"
    )
    status, out, _ = planned(
        capsys, *words, "--functions", str(own), "--write-problem", str(problem)
    )
    assert status == 0
    assert "FaceOfArrival" in json.loads(out)["placement"]
    assert json.loads(problem.read_text()) == json.loads((folder / "laboratory.json").read_text())


FAULTY = [
    ({"sources": [{"source": "s", "broker": "nowhere", "types": {}}]}, "sources[0].broker"),
    ({"homes": {"FogBank": "brest"}, "home": None}, "PersistentFog"),
    ({"links": [{"a": "brest", "b": "brest"}]}, "links[0]"),
    ({"nodes": None}, "nodes"),
]


@pytest.mark.parametrize(("change", "said"), FAULTY)
def test_a_faulty_network_is_a_sentence_with_its_name_and_the_key(tmp_path, capsys, change, said):
    file = tmp_path / "net.json"
    network = json.loads(Path(NETWORK).read_text(encoding="utf-8"))
    file.write_text(json.dumps({**network, **change}))
    status, out, err = planned(capsys, "--from", SPEC, "--network", str(file))
    assert (status, out) == (2, "")
    assert err.startswith(f"headwater: {file}: ")
    assert said in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "tell either"),
        (("problem.json", "--from", SPEC, "--network", NETWORK), "tell either"),
        (("--from", SPEC), "go together"),
        (("problem.json", "--network", NETWORK), "go together"),
        (("problem.json", "--write-problem", "made.json"), "--write-problem"),
        (("--from", "-", "--network", "-"), "only once"),
        (("--from", SPEC, "--network", SPEC), "not JSON"),
        (("--from", SPEC, "--network", NETWORK, "--write-problem", "."), "cannot be written"),
    ],
)
def test_wrong_use_is_a_sentence(capsys, words, said):
    status, out, err = planned(capsys, *words)
    assert (status, out) == (2, "")
    assert said in err


def test_the_example_is_what_its_script_makes():
    folder = ROOT / "examples" / "placement"
    found = importlib.util.spec_from_file_location("make_brittany", folder / "make_brittany.py")
    assert found is not None
    assert found.loader is not None
    maker = importlib.util.module_from_spec(found)
    found.loader.exec_module(maker)
    assert maker.written() == (folder / "brittany.network.json").read_text(encoding="utf-8")
