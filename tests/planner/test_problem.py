"""Reading a problem: what is refused is refused by the path of its key."""

import copy

import pytest

from planner.document import read_problem
from planner.problem import ProblemError
from tests.planner.problems import EXAMPLE


def changed(*steps, value):
    """The example with one entry replaced; REMOVED takes it away."""
    document = copy.deepcopy(EXAMPLE)
    inner = document
    for step in steps[:-1]:
        inner = inner[step]
    if value is REMOVED:
        del inner[steps[-1]]
    else:
        inner[steps[-1]] = value
    return document


REMOVED = object()

FAULTY = [
    ("", []),
    ("nodes", changed("nodes", value=REMOVED)),
    ("nodes", changed("nodes", value=[])),
    ("nodes[0]", changed("nodes", 0, value="b1")),
    ("nodes[1].id", changed("nodes", 1, "id", value="b1")),
    ("nodes[1].id", changed("nodes", 1, "id", value=REMOVED)),
    ("nodes[0].capacity", changed("nodes", 0, "capacity", value=-1)),
    ("nodes[0].capacity", changed("nodes", 0, "capacity", value=True)),
    ("nodes[0].egress", changed("nodes", 0, "egress", value="much")),
    ("links[0].a", changed("links", 0, "a", value="b9")),
    ("links[0]", changed("links", 0, "a", value="b2")),
    ("links[1]", changed("links", 1, value={"a": "b2", "b": "b1"})),
    ("links[0].capacity", changed("links", 0, "capacity", value=float("nan"))),
    ("contents[0].rates", changed("contents", 0, "rates", value=5)),
    ("contents[0].rates", changed("contents", 0, "rates", value={"b9": 5})),
    ("contents[0].rates.b1", changed("contents", 0, "rates", value={"b1": float("inf")})),
    ("contents[1].id", changed("contents", 1, "id", value="Video")),
    ("tasks[0].id", changed("tasks", 0, "id", value="Video")),
    ("tasks[0].rate", changed("tasks", 0, "rate", value=REMOVED)),
    ("tasks[0].rate", changed("tasks", 0, "rate", value={"b1": 4})),
    ("tasks[0].inputs", changed("tasks", 0, "inputs", value=["Label"])),
    ("tasks[0].inputs[1]", changed("tasks", 0, "inputs", value=["Video", "Sound"])),
    ("tasks[0].mode", changed("tasks", 0, "mode", value="twice")),
    ("tasks[0].destinations", changed("tasks", 0, "destinations", value=["b4"])),
    ("tasks[0].hosts", changed("tasks", 0, "hosts", value=[])),
    ("tasks[2].rate.b2", changed("tasks", 2, "rate", value={"b1": 9})),
    ("tasks[2].destinations.b1", changed("tasks", 2, "destinations", value={"b1": ["b7"]})),
    ("tasks[2].inputs", changed("tasks", 2, "inputs", value=["Face"])),
    ("tasks[3].partial_rate", changed("tasks", 3, "partial_rate", value=REMOVED)),
    ("server", changed("server", value="b9")),
    ("tasks[0].cost", changed("tasks", 0, "cost", value=10**400)),
    ("nodes[0].capacity", changed("nodes", 0, "capacity", value=-(10**400))),
    ("name", changed("name", value=7)),
    ("name", changed("name", value="\ud800")),
    ("nodes[2].id", changed("nodes", 2, "id", value="b\udfff")),
    ("tasks[1].id", changed("tasks", 1, "id", value="t\ud800")),
    ("contents[0].id", changed("contents", 0, "id", value="\udc00\ud800")),
]


def test_what_is_no_object_at_all_is_told_as_that():
    for document in (None, [], "nodes"):
        with pytest.raises(ProblemError, match=r"^the document is not an object$"):
            read_problem(document)


@pytest.mark.parametrize(
    ("path", "document"), FAULTY, ids=[f"{p}-{i}" for i, (p, _) in enumerate(FAULTY)]
)
def test_what_is_wrong_is_named_by_its_path(path, document):
    with pytest.raises(ProblemError) as caught:
        read_problem(document)
    assert caught.value.path == path
    assert caught.value.reason


def test_the_example_is_read_and_unknown_keys_are_passed_over():
    problem = read_problem(EXAMPLE | {"comment": "of ours"})
    assert problem.keys["Clean"] == ("b1", "b2")
    assert problem.keys["Avg"] is None
    assert [task.id for task in problem.in_order()] == ["Face", "Clean", "Label", "Avg"]
    assert problem.nodes[2].capacity is None


def test_no_two_streams_have_one_name():
    content = {"id": "A@x", "rates": {"b1": 1}}
    clash = changed("contents", value=[content, {"id": "A", "rates": {"b1": 1}}])
    clash["nodes"] += [{"id": "x@b1"}]
    clash["contents"][1]["rates"] = {"x@b1": 1}
    clash["tasks"] = []
    with pytest.raises(ProblemError, match="two streams"):
        read_problem(clash)
    taken = changed("tasks", 0, "id", value="Avg/partial@b1")
    taken["tasks"][1]["inputs"] = ["Avg/partial@b1"]
    with pytest.raises(ProblemError, match="two streams"):
        read_problem(taken)


def test_names_with_the_mark_of_a_partial_are_refused_only_where_two_streams_are_one():
    merged = EXAMPLE["tasks"][3] | {"hosts": None}
    problem = changed("tasks", value=[*EXAMPLE["tasks"], merged | {"id": "Avg/partial@x"}])
    read_problem(problem)
    read_problem(changed("tasks", 1, "id", value="Avg/partial@b9"))
    problem["nodes"] = [*EXAMPLE["nodes"], {"id": "x/partial@b1"}]
    with pytest.raises(ProblemError, match="could be called the same") as caught:
        read_problem(problem)
    assert caught.value.path == "tasks[4].id"
    single = EXAMPLE["tasks"][0] | {"id": "Avg/partial@x/partial@b1"}
    for tasks in ([merged, single], [merged | {"id": "Avg/partial@x"}, single]):
        problem["tasks"] = [EXAMPLE["tasks"][2], *tasks]
        with pytest.raises(ProblemError, match="two streams could be called"):
            read_problem(problem)


def test_null_is_the_same_as_left_out():
    left_out = changed("tasks", 0, value={"id": "Face", "inputs": ["Video"], "rate": 600})
    null = dict.fromkeys(("mode", "cost", "destinations", "hosts", "merge_cost", "partial_rate"))
    spelt_out = changed("tasks", 0, value=left_out["tasks"][0] | null)
    spelt_out["nodes"][2] |= {"capacity": None, "egress": None}
    assert read_problem(spelt_out) == read_problem(left_out)
    by_key = changed("tasks", 2, "destinations", value={"b1": None})
    assert read_problem(by_key).tasks[2].destinations_of("b1") == ()


@pytest.mark.parametrize("limit", [float("inf"), 1e300, 10**40])
def test_a_limit_that_no_load_comes_to_is_none(limit):
    document = changed("nodes", 0, "capacity", value=limit)
    document["links"][0]["capacity"] = limit
    problem = read_problem(document)
    assert problem.nodes[0].capacity is None
    assert problem.links[0].capacity is None


def test_what_is_said_of_a_faulty_number_is_what_would_be_taken():
    for limit in (-1, float("nan"), float("-inf")):
        with pytest.raises(ProblemError, match=r"expected 0 or more, or null for no limit$"):
            read_problem(changed("nodes", 0, "capacity", value=limit))
    with pytest.raises(ProblemError, match=r"expected 0 to 1e\+30$"):
        read_problem(changed("tasks", 0, "cost", value=float("inf")))


def test_a_circle_is_told_by_its_tasks_and_not_by_those_behind_it():
    document = changed("tasks", value=[
        {"id": "Behind", "inputs": ["First"], "rate": 1},
        {"id": "First", "inputs": ["Second"], "rate": 1},
        {"id": "Second", "inputs": ["Video", "First"], "rate": 1},
    ])  # fmt: skip
    with pytest.raises(ProblemError) as refused:
        read_problem(document)
    assert refused.value.path == "tasks[1].inputs"
    assert refused.value.reason == "First feeds itself: First <- Second <- First"
