"""The flow and the limits of a plan, against a slow evaluator that shares nothing."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.placement.plan_document import as_document, read_plan
from planner.document import read_problem
from planner.flow import evaluate
from planner.layout import lay_out
from planner.network import Network
from planner.plan import Plan
from planner.problem import ProblemError
from tests.oracles import placement as oracle
from tests.planner.problems import EXAMPLE, documents


@given(documents(connected=False), st.data())
def test_any_plan_is_judged_as_the_slow_evaluator_judges_it(document, data):
    layout = lay_out(read_problem(document))
    hosts = tuple(data.draw(st.integers(0, len(document["nodes"]) - 1)) for _ in layout.pieces)
    found = evaluate(layout, Plan(hosts))
    written = as_document(layout, Plan(hosts))
    assert (Fraction(found.flow), found.feasible) == oracle.judge(document, written)
    assert read_plan(written, layout) == Plan(hosts)


@given(documents(limited=True), st.data())
def test_routes_that_are_given_are_charged_and_followed(document, data):
    layout = lay_out(read_problem(document))
    hosts = tuple(data.draw(st.integers(0, len(document["nodes"]) - 1)) for _ in layout.pieces)
    both = [(x["a"], x["b"]) for x in document["links"]]
    both += [(b, a) for a, b in both]
    names = sorted({stream.name for stream in layout.streams})
    for aggregate in layout.aggregates:
        at = sorted({hosts[piece] for piece in aggregate.partials})
        names += [f"{aggregate.task}/partial@b{host}" for host in at]
    if not names:
        return
    links = st.lists(st.sampled_from(both), max_size=6)
    routes = data.draw(st.dictionaries(st.sampled_from(names), links, max_size=2))
    plan = Plan(hosts, {name: tuple(dict.fromkeys(arcs)) for name, arcs in routes.items()})
    found = evaluate(layout, plan)
    assert (Fraction(found.flow), found.feasible) == oracle.judge(
        document, as_document(layout, plan)
    )


def test_a_route_is_charged_though_nobody_elsewhere_wants_the_stream():
    layout = lay_out(read_problem(EXAMPLE))
    routes = {name: [["b1", "b2"], ["b2", "b3"]] for name in ("Video@b1", "Avg/partial@b1")}
    read = read_plan({"placement": PLACED, "routes": routes}, layout)
    more = evaluate(layout, read).flow - evaluate(layout, Plan(read.hosts)).flow
    assert more == 2 * 9000 + 2 * 12


def test_a_route_that_forks_reaches_all_who_are_at_its_ends():
    document = {
        "nodes": [{"id": node} for node in ("a", "b", "c", "d")],
        "links": [{"a": "a", "b": "b"}, {"a": "b", "b": "c"}, {"a": "b", "b": "d"}],
        "contents": [{"id": "C", "rates": {"a": 5}}],
        "tasks": [{"id": f"T{node}", "inputs": ["C"], "rate": 0} for node in "cd"],
    }
    layout = lay_out(read_problem(document))
    written = {"placement": {"Tc": "c", "Td": "d"}}
    for links, flow, feasible in (
        ([["a", "b"], ["b", "c"], ["b", "d"]], 15, True),
        ([["a", "b"], ["b", "c"]], 10, False),
    ):
        given = written | {"routes": {"C@a": links}}
        found = evaluate(layout, read_plan(given, layout))
        assert (found.flow, found.feasible) == (flow, feasible) == oracle.judge(document, given)


def test_a_stream_is_paid_once_a_link_however_many_share_it():
    layout = lay_out(read_problem(EXAMPLE))
    document = {
        "placement": {
            "Face": "b1",
            "Label": "b2",
            "Clean": {"b1": "b1", "b2": "b2"},
            "Avg": {"partial": {"b1": "b1", "b2": "b2"}, "header": "b2"},
        },
    }
    found = evaluate(layout, read_plan(document, layout))
    # Face crosses two links, for consumer and destination together; Label one; one partial one.
    assert found.flow == 2 * 600 + 20 + 12
    assert found.work == (4 + 1 + 1, 2 + 1 + 1 + 2, 0)
    assert [v.sentence for v in found.violations] == ["b2 runs 6 of at most 5"]


def test_each_limit_is_named_when_it_is_broken():
    layout = lay_out(read_problem(EXAMPLE))
    document = {
        "placement": {
            "Face": "b2",
            "Label": "b2",
            "Clean": {"b1": "b2", "b2": "b2"},
            "Avg": {"partial": {"b1": "b3", "b2": "b3"}, "header": "b2"},
        },
        "routes": {"Video@b1": []},
    }
    found = evaluate(layout, read_plan(document, layout))
    kinds = [(v.kind, v.where) for v in found.violations]
    assert ("capacity", "b2") in kinds
    assert ("unreached", "b2") in kinds
    assert kinds.count(("host", "b3")) == 2
    assert found.excess > 3000


PLACED = {
    "Face": "b1",
    "Label": "b1",
    "Clean": {"b1": "b1", "b2": "b1"},
    "Avg": {"partial": {"b1": "b1", "b2": "b1"}, "header": "b1"},
}
ALL = dict.fromkeys(("b1", "b2", "b3"), "b1")


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("placement", {"placement": None}),
        ("placement.Face", {"placement": {}}),
        ("placement.Face", {"placement": {"Face": "b9"}}),
        ("routes", {"routes": []}),
        ("placement.Old", {"placement": PLACED | {"Old": "b1"}}),
        ("placement.Clean.b3", {"placement": PLACED | {"Clean": ALL}}),
        (
            "placement.Avg.partial.b3",
            {"placement": PLACED | {"Avg": {"partial": ALL, "header": "b1"}}},
        ),
        ("routes.Facee", {"routes": {"Facee": []}}),
        ("routes.Avg/partial@b2", {"routes": {"Avg/partial@b2": []}}),
        ("routes.Face[0]", {"routes": {"Face": [["b1", "b3"]]}}),
        ("routes.Face[1]", {"routes": {"Face": [["b1", "b2"], "b2"]}}),
    ],
)
def test_a_faulty_plan_is_refused_by_the_path_of_the_key(path, change):
    layout = lay_out(read_problem(EXAMPLE))
    good = as_document(layout, Plan((0,) * len(layout.pieces)))
    with pytest.raises(ProblemError) as caught:
        read_plan(good | change, layout)
    assert caught.value.path == path


def test_the_canonical_parent_is_the_first_listed_of_those_one_hop_nearer():
    square = {
        "nodes": [{"id": n} for n in "dcba"],
        "links": [{"a": x, "b": y} for x, y in ("ab", "ac", "bd", "cd")],
        "contents": [],
        "tasks": [],
    }
    network = Network.of(read_problem(square))
    # From a, broker d has b and c one hop nearer; c stands first among the brokers.
    assert network.canonical(3, [0])[0] == [(1, 0), (3, 1)]


def test_whole_numbers_are_summed_without_rounding():
    document = {
        "nodes": [{"id": n} for n in "abc"],
        "links": [{"a": "a", "b": "b"}, {"a": "b", "b": "c"}],
        "contents": [{"id": "C", "rates": {"a": 10**18 + 1}}, {"id": "D", "rates": {"a": 1}}],
        "tasks": [{"id": "T", "inputs": ["C", "D"], "rate": 0, "destinations": []}],
    }
    layout = lay_out(read_problem(document))
    assert evaluate(layout, Plan((2,))).flow == 2 * (10**18 + 2)
