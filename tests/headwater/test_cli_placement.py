"""`headwater plan`: what is written, shown and refused."""

import copy
import json
import re
from xml.etree import ElementTree as ET

import pytest

from headwater.cli import main
from headwater.placement.picture import dot, svg
from headwater.placement.plan_document import read_plan
from planner.document import read_problem
from planner.flow import evaluate
from planner.layout import lay_out
from planner.plan import Plan
from tests.oracles import placement as oracle
from tests.planner.problems import EXAMPLE


@pytest.fixture
def problem(tmp_path):
    file = tmp_path / "problem.json"
    file.write_text(json.dumps(EXAMPLE))
    return str(file)


def planned(capsys, *words):
    status = main(["plan", *words])
    said = capsys.readouterr()
    return status, said.out, said.err


@pytest.mark.parametrize("method", ["tabu", "local", "hop", "central", "greedy", "optimal"])
def test_each_method_writes_a_plan_that_comes_to_what_it_says(problem, capsys, method):
    status, out, err = planned(capsys, problem, "--method", method, "--steps", "300")
    plan = json.loads(out)
    flow, feasible = oracle.judge(EXAMPLE, plan)
    assert (plan["flow"], plan["feasible"]) == (flow, feasible)
    assert status == (0 if feasible else 1)
    assert (err == "") == feasible
    assert feasible == (method != "central")  # Avg must not run at the server


def test_the_optimum_tells_its_bound_and_tabu_reaches_it(problem, capsys):
    best = json.loads(planned(capsys, problem, "--method", "optimal")[1])
    found = json.loads(planned(capsys, problem, "--steps", "300")[1])
    assert best["bound"] == pytest.approx(best["flow"])
    assert found["flow"] == best["flow"]


def test_the_same_seed_and_steps_give_the_same_bytes(problem, capsys):
    words = (problem, "--seed", "7", "--steps", "200")
    assert planned(capsys, *words) == planned(capsys, *words)


def test_an_infeasible_problem_ends_with_1_and_the_least_violating_plan(tmp_path, capsys):
    document = copy.deepcopy(EXAMPLE)
    for node in document["nodes"]:
        node["capacity"] = 1
    file = tmp_path / "tight.json"
    file.write_text(json.dumps(document))
    status, out, err = planned(capsys, str(file), "--steps", "300")
    plan = json.loads(out)
    assert status == 1
    assert plan["feasible"] is False
    assert plan["violations"]
    assert all(sentence in err for sentence in plan["violations"])
    assert oracle.judge(document, plan)[1] is False


FAULTY = [
    ('{"nodes": [', "not JSON"),
    ('{"nodes": [{"id": "a"}], "links": [], "contents": [], "tasks": [{"id": "T"}]}', "tasks[0]"),
    ('{"nodes": [{"id": "a", "capacity": "x"}]}', "nodes[0].capacity: not a number"),
    ('{"nodes": [{"id": "a", "capacity": NaN}]}', "nodes[0].capacity"),
    ("[" * 100_000, "not JSON"),
    ("[]", "not an object"),
    ("null", "the document is not an object"),
    ('{"nodes": [{"id": "a", "id": "b"}]}', 'faulty.json: an object has the key "id" twice'),
    (json.dumps(EXAMPLE).replace("Label", "\\ud800"), "tasks[1].id: has half of a surrogate"),
]


@pytest.mark.parametrize(("text", "said"), FAULTY)
def test_a_faulty_problem_is_a_sentence_with_the_path_of_the_key(tmp_path, capsys, text, said):
    file = tmp_path / "faulty.json"
    file.write_text(text)
    status, out, err = planned(capsys, str(file))
    assert (status, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["--time-limit", "0"],
        ["--time-limit", "nan"],
        ["--radius", "-1"],
        ["--seed", "x"],
        ["--picture", "plan.png"],
        ["--diff", "missing.json"],
        ["--method", "best"],
    ],
)
def test_wrong_use_is_told_before_anything_is_planned(problem, capsys, words):
    status, out, err = planned(capsys, problem, *words)
    assert (status, out) == (2, "")
    assert err


def test_central_needs_a_server(tmp_path, capsys):
    file = tmp_path / "problem.json"
    file.write_text(json.dumps({k: v for k, v in EXAMPLE.items() if k != "server"}))
    status, _, err = planned(capsys, str(file), "--method", "central")
    assert status == 2
    assert "server" in err


def test_a_difference_tells_each_move_and_the_flow(problem, tmp_path, capsys):
    old = tmp_path / "old.json"
    planned(capsys, problem, "--method", "central", "--output", str(old))
    status, out, _ = planned(capsys, problem, "--steps", "300", "--diff", str(old), "--json")
    plan = json.loads(out)
    layout = lay_out(read_problem(EXAMPLE))
    before = read_plan(json.loads(old.read_text()), layout)
    after = read_plan(plan, layout)
    moved = sum(a != b for a, b in zip(before.hosts, after.hosts, strict=True))
    assert status == 0
    assert len(plan["diff"]["moves"]) == moved
    assert plan["diff"]["flow"] == [evaluate(layout, before).flow, plan["flow"]]
    _, out, _ = planned(capsys, problem, "--steps", "300", "--diff", str(old))
    assert out.splitlines()[0].startswith(f"{moved} move")


def test_a_difference_from_a_plan_for_what_was_before_tells_what_is_new_and_gone(
    problem, tmp_path, capsys
):
    old = tmp_path / "old.json"
    planned(capsys, problem, "--steps", "300", "--output", str(old))
    later = copy.deepcopy(EXAMPLE)
    lost = later["tasks"].pop(1)["id"]  # nothing consumes its output
    later["tasks"].append(
        {"id": "Fresh", "inputs": [later["contents"][0]["id"]], "rate": 1, "destinations": []}
    )
    file = tmp_path / "later.json"
    file.write_text(json.dumps(later))
    status, out, _ = planned(capsys, str(file), "--steps", "300", "--diff", str(old), "--json")
    diff = json.loads(out)["diff"]
    assert status == 0
    assert [one["what"] for one in diff["new"]] == ["Fresh"]
    assert [one["what"] for one in diff["gone"]] == [lost]
    assert diff["stay"] + len(diff["moves"]) + 1 == len(lay_out(read_problem(later)).pieces)
    assert diff["flow"] == [json.loads(old.read_text())["flow"], json.loads(out)["flow"]]


def test_a_difference_takes_an_older_plan_with_a_broker_that_was_lost(problem, tmp_path, capsys):
    old = tmp_path / "old.json"
    planned(capsys, problem, "--steps", "300", "--output", str(old))
    before = json.loads(old.read_text())
    before["placement"]["Face"] = "b9"
    old.write_text(json.dumps(before))
    _, out, _ = planned(capsys, problem, "--steps", "300", "--diff", str(old))
    assert "  Face: b9 -> " in out
    assert "the older plan is of another problem" in out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"routes": {"Labell": [["b1", "b2"]]}}, "routes.Labell: no stream is called Labell"),
        ({"placement": {"Old": "b1"}}, "placement.Old: no task is called Old"),
    ],
)
def test_a_difference_says_in_what_the_older_plan_is_of_another_problem(
    problem, tmp_path, capsys, change, said
):
    old = tmp_path / "old.json"
    planned(capsys, problem, "--steps", "100", "--output", str(old))
    before = json.loads(old.read_text())
    for key, value in change.items():
        before[key] = before.get(key, {}) | value
    old.write_text(json.dumps(before))
    status, out, _ = planned(capsys, problem, "--steps", "100", "--diff", str(old))
    assert status == 0
    assert said in out
    out = planned(capsys, problem, "--steps", "100", "--diff", str(old), "--json")[1]
    assert json.loads(out)["diff"]["differs"] == said


def test_a_difference_tells_pieces_apart_that_are_called_the_same(problem, tmp_path, capsys):
    document = copy.deepcopy(EXAMPLE)
    named = {"inputs": ["Video"], "rate": 1, "destinations": ["b3"]}
    document["tasks"] += [{"id": "Avg/header"} | named, {"id": "Avg/partial of b1"} | named]
    file, old = tmp_path / "more.json", tmp_path / "old.json"
    file.write_text(json.dumps(document))
    planned(capsys, str(file), "--steps", "100", "--output", str(old))
    said = planned(capsys, str(file), "--steps", "100", "--diff", str(old), "--json")[1]
    diff = json.loads(said)["diff"]
    assert (diff["moves"], diff["new"], diff["gone"]) == ([], [], [])
    assert diff["stay"] == len(lay_out(read_problem(document)).pieces)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "not an object"),
        ("{}", "placement: missing"),
        ('{"placement": {}, "flow": NaN}', "flow: found nan, expected a finite number"),
        ('{"placement": {}, "flow": -1e999}', "flow: found -inf"),
        ('{"placement": {"Face": 3}}', "placement.Face: not the name of a broker"),
        ('{"placement": {"Avg": {"partial": {"b1": 1}}}}', "placement.Avg.partial.b1"),
    ],
)
def test_what_is_no_older_plan_is_told(problem, tmp_path, capsys, text, said):
    old = tmp_path / "old.json"
    old.write_text(text)
    status, _, err = planned(capsys, problem, "--steps", "10", "--diff", str(old))
    assert status == 2
    assert said in err


def test_the_table_names_every_piece_and_the_flow(problem, capsys):
    status, out, _ = planned(capsys, problem, "--steps", "300", "--table")
    layout = lay_out(read_problem(EXAMPLE))
    lines = out.splitlines()
    assert status == 0
    assert [line.split("  ")[0] for line in lines[1 : 1 + len(layout.pieces)]] == [
        str(piece) for piece in layout.pieces
    ]
    assert "total flow" in out


def test_a_picture_draws_every_broker_link_and_piece(problem, tmp_path, capsys):
    for name in ("plan.svg", "plan.dot"):
        planned(capsys, problem, "--steps", "300", "--picture", str(tmp_path / name))
    layout = lay_out(read_problem(EXAMPLE))
    root = ET.fromstring((tmp_path / "plan.svg").read_text())
    space = "{http://www.w3.org/2000/svg}"
    texts = [element.text for element in root.iter(f"{space}text")]
    assert {"b1", "b2", "b3", *map(str, layout.pieces)} <= set(texts)
    assert len(list(root.iter(f"{space}line"))) == len(EXAMPLE["links"])
    drawn = (tmp_path / "plan.dot").read_text()
    assert drawn.count(" -- ") == len(EXAMPLE["links"])
    assert all(str(piece) in drawn for piece in layout.pieces)


FORBIDDEN = "".join(map(chr, [*range(32), 0x7F, 0xFFFE, 0xFFFF]))  # most of these in XML


def test_a_picture_takes_any_name_for_text():
    document = {
        "name": f"n{FORBIDDEN}",
        "nodes": [{"id": '<a&"'}, {"id": f"b\\{FORBIDDEN}"}],
        "links": [{"a": '<a&"', "b": f"b\\{FORBIDDEN}"}],
        "contents": [{"id": "C", "rates": {'<a&"': 1}}],
        "tasks": [{"id": f"</svg>{FORBIDDEN}", "inputs": ["C"], "rate": 1}],
    }
    layout = lay_out(read_problem(document))
    plan = Plan((0,))
    ET.fromstring(svg(layout, plan, evaluate(layout, plan)))
    lines = dot(layout, plan, evaluate(layout, plan)).split("\n")
    assert len(lines) == 1 + 1 + len(document["nodes"]) + len(document["links"]) + 1 + 1
    assert all(line.isprintable() for line in lines)


def test_names_that_differ_in_what_cannot_be_seen_are_two_in_dot():
    document = {
        "nodes": [{"id": "a\nb"}, {"id": "a b"}, {"id": "a\tb"}],
        "links": [{"a": "a\nb", "b": "a b"}, {"a": "a b", "b": "a\tb"}],
        "contents": [{"id": "C", "rates": {"a b": 1}}],
        "tasks": [{"id": "T", "inputs": ["C"], "rate": 1}],
    }
    layout = lay_out(read_problem(document))
    plan = Plan((1,))
    text = dot(layout, plan, evaluate(layout, plan))
    assert len(set(re.findall(r'^  "([^"]*)" \[', text, re.MULTILINE))) == 3


def test_what_no_plan_can_keep_is_told_before_the_search_and_reasons_after(tmp_path, capsys):
    document = copy.deepcopy(EXAMPLE)
    for node in document["nodes"]:
        node["capacity"] = 3
    file = tmp_path / "tight.json"
    file.write_text(json.dumps(document))
    status, out, err = planned(capsys, str(file), "--steps", "50")
    lines = err.splitlines()
    assert status == 1
    assert json.loads(out)["feasible"] is False
    assert "no plan keeps all limits: tasks[0].cost: Face costs 4, which is 1 more than" in lines[0]
    assert any("of at most 3 (nodes[" in line and "; raise it to" in line for line in lines)


def test_an_interrupted_search_is_said_to_be_one(problem, capsys, monkeypatch):
    def interrupt(self, stop, observer=None):
        raise KeyboardInterrupt

    monkeypatch.setattr("planner.search.search.Search.run", interrupt)
    status, out, err = planned(capsys, problem, "--steps", "50")
    assert status in {0, 1}
    assert oracle.judge(EXAMPLE, json.loads(out))[0] == json.loads(out)["flow"]
    assert "interrupted after 0 steps; the best plan so far" in err


def test_the_search_is_drawn_beside_the_plan(problem, tmp_path, capsys):
    picture = tmp_path / "search.svg"
    status, out, _ = planned(capsys, problem, "--steps", "100", "--search-picture", str(picture))
    assert status == 0
    assert json.loads(out)["steps"] == 100
    ET.fromstring(picture.read_text())
