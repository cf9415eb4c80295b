"""Problems at the edge of what a problem is: the best plan is found there too."""

import json

import pytest

from headwater.cli import main
from headwater.placement.plan_document import as_document
from planner.document import read_problem
from planner.flow import evaluate
from planner.layout import lay_out
from planner.methods import METHODS, Wanted, find
from tests.oracles import placement as oracle
from tests.planner.test_search_best import hold_against_all

AB = {"nodes": [{"id": "a"}, {"id": "b"}], "links": [{"a": "a", "b": "b"}]}
C = {"id": "C", "rates": {"a": 5}}
BOTH = {"id": "C", "rates": {"a": 5, "b": 3}}
NONE = {"id": "C", "rates": {}}
SINGLE = {"id": "T", "inputs": ["C"], "rate": 2, "destinations": ["b"]}
SHARDED = SINGLE | {"mode": "sharded"}
MERGED = SINGLE | {"mode": "aggregate", "partial_rate": 1, "merge_cost": 1}


def edge(contents=(C,), tasks=(SINGLE,), **network):
    return {**AB, "contents": list(contents), "tasks": list(tasks), **network}


EDGES = {
    "no task": edge(tasks=()),
    "nothing at all": edge((), ()),
    "one broker": edge(nodes=[{"id": "a"}], links=[], tasks=[SINGLE | {"destinations": ["a"]}]),
    "no origin, single": edge([NONE]),
    "no origin, sharded": edge([NONE], [SHARDED]),
    "no origin, aggregate": edge([NONE], [MERGED]),
    "no input": edge(tasks=[SINGLE | {"inputs": []}]),
    "an input twice": edge(tasks=[SINGLE | {"inputs": ["C", "C"]}]),
    "a destination twice": edge(tasks=[SINGLE | {"destinations": ["b", "b"]}]),
    "nobody wants it": edge(tasks=[SINGLE | {"destinations": []}]),
    "one key": edge(tasks=[MERGED]),
    "the header must be elsewhere": edge(
        [BOTH], [MERGED | {"hosts": ["b"], "destinations": ["a"]}]
    ),
    "the header fits nowhere beside": edge(
        [BOTH],
        [MERGED | {"cost": {"a": 2, "b": 2}, "merge_cost": 3}],
        nodes=[{"id": "a", "capacity": 4}, {"id": "b", "capacity": 3}],
    ),
    "no rate": edge([{"id": "C", "rates": {"a": 0, "b": 0}}], [SHARDED | {"rate": 0}]),
    "no way": edge(links=[]),
    "no way, but no need": edge([BOTH], [SHARDED | {"destinations": {"b": ["b"]}}], links=[]),
    "no room": edge(
        tasks=[SINGLE | {"cost": 9}],
        nodes=[{"id": "a", "capacity": 8}] * 1 + [{"id": "b", "capacity": 4}],
    ),
    "a limit of nothing": edge(links=[{"a": "a", "b": "b", "capacity": 0}]),
    "the wrong side": edge(
        [BOTH], [SINGLE | {"hosts": ["a"]}], nodes=[{"id": "a", "egress": 1}, {"id": "b"}]
    ),
    "consumers of shards": edge(
        [BOTH],
        [
            SHARDED | {"rate": {"a": 4, "b": 1}, "destinations": []},
            SHARDED | {"id": "U", "inputs": ["T", "C"], "destinations": {"a": ["b"]}},
            MERGED | {"id": "V", "inputs": ["U", "T"], "destinations": ["a"]},
            SINGLE | {"id": "W", "inputs": ["V", "U"]},
        ],
    ),
    "one stream for all shards": edge(
        [BOTH, {"id": "D", "rates": {"a": 7}}],
        [SINGLE | {"inputs": ["D"]}, SHARDED | {"id": "U", "inputs": ["C", "T"]}],
    ),
    "no rate beside far too much": edge(
        [{"id": "C", "rates": {"a": 0}}],
        [
            SINGLE | {"inputs": [], "rate": 1e13, "hosts": ["a"]},
            SINGLE | {"id": "U", "rate": 0, "hosts": ["b"], "destinations": []},
        ],
        links=[{"a": "a", "b": "b", "capacity": 1e12}],
    ),
    "names that hold the mark of a partial": {
        "nodes": [
            {"id": "p/partial@z", "egress": 50, "capacity": 0},
            {"id": "b", "capacity": 0},
            {"id": "a"},
        ],
        "links": [{"a": "p/partial@z", "b": "b", "capacity": 100}, {"a": "b", "b": "a"}],
        "contents": [{"id": "C#/partial@b", "rates": {"p/partial@z": 1, "b": 1}}],
        "tasks": [
            MERGED
            | {"id": name, "inputs": ["C#/partial@b"], "hosts": ["p/partial@z", "b"], "cost": 1}
            for name in ("t", "t/partial@x", "t@b")
        ],
    },
    "keys that the other input lacks": edge(
        [BOTH, {"id": "D", "rates": {"b": 7}}], [SHARDED | {"inputs": ["C", "D"]}]
    ),
}


@pytest.mark.parametrize("name", EDGES)
def test_the_best_plan_is_found(name):
    hold_against_all(EDGES[name], 400)


@pytest.mark.parametrize("name", EDGES)
def test_each_method_says_what_its_plan_comes_to(name):
    document = EDGES[name] | {"server": "a"}
    layout = lay_out(read_problem(document))
    for method in METHODS:
        found = find(layout, Wanted(method, steps=20, time_limit_s=1.0))
        assert found.evaluation == evaluate(layout, found.plan)
        written = json.loads(json.dumps(as_document(layout, found.plan)))
        assert oracle.judge(document, written) == (written["flow"], written["feasible"])


@pytest.mark.parametrize(
    ("name", "status"), [("one key", 0), ("no way", 1), ("no room", 1), ("a limit of nothing", 1)]
)
def test_the_exit_status_tells_whether_a_plan_keeps_all_limits(tmp_path, capsys, name, status):
    file = tmp_path / "problem.json"
    file.write_text(json.dumps(EDGES[name]))
    assert main(["plan", str(file), "--steps", "20"]) == status
    assert json.loads(capsys.readouterr().out)["feasible"] == (status == 0)
