"""Tasks: shared by their canonical text, needed through others, told apart by all that matters."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from language import check_text, tree
from language.walk import descendants
from tests.language.corpus import EXAMPLES
from tests.oracles.worked_cases import WORKED_CASES

EVENTS = "event A(x: int, t: text)\nevent B(x: int, t: text)\n"
MEAN = "define Mean(m) aggr every 5 s\n  detect A(x in Good)\n  assign m = Avg(A.x)\n"
GOOD = "set Good = {1, 2, 3}\n"


def graph_of(text):
    return check_text(text).demand().graph


def keys(text):
    """The key of each definition and subscription, by name."""
    return {task.name: task.key for task in graph_of(text).tasks.values()}


def subscribed(detect, name="S"):
    return f"subscription {name} from u to a\ndetect {detect}\n"


# --- what is shared ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (MEAN + GOOD, GOOD + MEAN),
        (MEAN + GOOD, MEAN.replace("5 s", "5000 ms") + GOOD),
        (MEAN + GOOD, MEAN.replace("Good", "Fine") + GOOD.replace("Good", "Fine")),
        (MEAN + GOOD, MEAN.replace("Good", "{1, 2, 3}")),
        (MEAN + GOOD, "# why\n" + MEAN.replace("\n", "  # what\n") + GOOD),
        (MEAN + GOOD, MEAN.replace("A(x in Good)", "(A ((x) in Good))") + GOOD),
        (MEAN + GOOD, MEAN + GOOD + "set Other = {9}\nevent C()\n"),
    ],
)
def test_definitions_that_mean_the_same_as_written_share_a_task(one, other):
    assert keys(EVENTS + one)["Mean"] == keys(EVENTS + other)["Mean"]


@pytest.mark.parametrize(
    "changed",
    [
        MEAN.replace("5 s", "6 s") + GOOD,
        MEAN.replace("Avg", "Max") + GOOD,
        MEAN.replace("(x in", "(x + 1 in") + GOOD,
        MEAN + GOOD.replace("3", "4"),
        MEAN.replace("Avg(A.x)", "Avg(A.x)\n  group by t") + GOOD,
        MEAN.replace("A(", "B(").replace("A.x", "B.x") + GOOD,
        MEAN.replace("A(x in Good)", "A(x in Good) as a").replace("A.x", "a.x") + GOOD,
        MEAN.replace("aggr every 5 s", "aggr range 5 s") + GOOD,
        MEAN.replace("Mean", "Average") + GOOD,
    ],
)
def test_definitions_that_differ_do_not(changed):
    before = keys(EVENTS + MEAN + GOOD)["Mean"]
    assert before not in keys(EVENTS + changed).values()


def test_a_key_depends_on_what_the_inputs_are():
    """Two clients' definitions of one name do not meet, nor do those who use them."""
    use = "define Top()\n  detect Mean(m > 2)\n" + subscribed("Top")
    one = keys(EVENTS + GOOD + MEAN + use)
    other = keys(EVENTS + GOOD + MEAN.replace("5 s", "6 s") + use)
    typed = keys(EVENTS.replace("x: int", "x: float") + GOOD + MEAN + use)
    for name in ("Mean", "Top", "S"):
        assert len({one[name], other[name], typed[name]}) == 3


def test_the_order_of_a_types_attributes_does_not_matter():
    swapped = EVENTS.replace("x: int, t: text", "t: text, x: int")
    assert keys(EVENTS + GOOD + MEAN) == keys(swapped + GOOD + MEAN)


def test_a_region_counts_by_what_it_is():
    text = EVENTS + "region R = {}\n" + subscribed("A in R")
    circle = "circle(1, 2, 3 km)"
    assert keys(text.format(circle)) == keys(text.format("circle(1.0, 2.0, 3000 m)"))
    assert keys(text.format(circle)) == keys(EVENTS + subscribed(f"A in {circle}"))
    assert keys(text.format(circle)) != keys(text.format("circle(1, 2, 4 km)"))


def test_cases_count_with_their_numbers_and_order():
    head = EVENTS + "define D()\n"
    texts = [
        "case 0:\n  detect A\ncase 1:\n  detect B\n",
        "case 1:\n  detect A\ncase 0:\n  detect B\n",
        "case 0:\n  detect B\ncase 1:\n  detect A\n",
        "case 0:\n  detect A\ncase 2:\n  detect B\n",
    ]
    assert len({keys(head + text)["D"] for text in texts}) == 4
    [task] = graph_of(head + texts[0]).tasks.values()
    assert [case.number for case in task.node.cases] == [0, 1]
    assert task.inputs == ("A", "B")


def test_a_key_is_the_same_in_every_process_and_release():
    """Written down, as keys stand in stores and results: if this changes, so do all of them."""
    text = EVENTS + subscribed("A(x > 1) and[recent] B within 5 mins")
    [task] = graph_of(text).tasks.values()
    assert task.text == (
        "# headwater task 1\n"
        "event A(t: text, x: int)\n"
        "event B(t: text, x: int)\n"
        "subscription S seq 1 from u to a\n"
        "  detect A(x > 1) and[recent] B within 5 mins\n"
    )
    assert re.fullmatch(r"[0-9a-f]{32}", task.key)


# --- what a task says -------------------------------------------------------------------------

TEXTS = [*EXAMPLES, *[case.text for case in WORKED_CASES if check_text(case.text).ok]]


@pytest.mark.parametrize("text", TEXTS)
def test_a_tasks_text_says_the_task(text):
    """Read on its own it gives the task's node; a definition's event stands there as declared."""
    for task in graph_of(text).tasks.values():
        alone = check_text(task.text)
        assert alone.ok, alone.report()
        [again] = alone.specification.graph.tasks.values()
        assert again.node == task.node
        assert again.inputs == task.inputs
        assert {n: dict(t.attributes) for n, t in again.types.items()} == {
            n: dict(t.attributes) for n, t in task.types.items()
        }
        if not task.needs:
            assert (again.key, again.text) == (task.key, task.text)


@pytest.mark.parametrize("text", TEXTS)
def test_definitions_stand_before_their_users(text):
    graph = graph_of(text)
    seen = set()
    for key, task in graph.tasks.items():
        assert set(task.needs.values()) <= seen
        assert (task.kind == "subscription") == (key in graph.roots) == (task.output is None)
        assert set(task.needs) <= set(task.inputs) == set(task.types)
        seen.add(key)


def test_contexts_are_filled_in_where_they_hold():
    text = EVENTS + subscribed(
        "[recent] (A as a1 and B as b1) or (A as a2 then[unrestricted] B as b2 then B as b3)"
    ).replace("detect [", "detect[")
    [task] = graph_of(text).tasks.values()
    detected = task.text.splitlines()[-1]
    assert detected == (
        "  detect[recent] A as a1 and[recent] B as b1"
        " or A as a2 then[unrestricted] B as b2 then[recent] B as b3"
    )


def test_an_alternative_has_no_context():
    text = EVENTS + subscribed("(A as a1 or B as b1) and B as b2").replace(
        "detect", "detect[recent]"
    )
    [task] = graph_of(text).tasks.values()
    links = [one for one in descendants(task.node) if isinstance(one, tree.Link)]
    contexts = {one.operator: one.context for one in links}
    assert contexts == {"and": "recent", "or": "unrestricted"}


# --- what is needed ---------------------------------------------------------------------------


def test_definitions_are_active_only_where_something_needs_them():
    text = EVENTS + (
        "define D1()\n  detect A\ndefine D2()\n  detect D1 or B\ndefine D3()\n  detect D2\n"
        "define Unused()\n  detect D3\ndefine Alone()\n  detect A\n"
        + subscribed("D3", "Far")
        + subscribed("A", "Near")
        + subscribed("D1 and D2", "Both")
    )
    graph = graph_of(text)
    names = {key: task.name for key, task in graph.tasks.items()}
    roots = {names[key]: key for key in graph.roots}

    def active(*wanted):
        return [names[key] for key in graph.active(roots[name] for name in wanted)]

    assert active("Near") == []
    assert active("Far") == ["D1", "D2", "D3"]
    assert active("Both") == ["D1", "D2"]
    assert active("Both", "Near", "Far") == ["D1", "D2", "D3"]
    assert active() == []


@st.composite
def layered(draw):
    """Definitions that each use some of those before, written in any order."""
    count = draw(st.integers(1, 8))
    uses = {}
    for number in range(count):
        below = ["A", *(f"D{n}" for n in range(number))]
        uses[f"D{number}"] = draw(st.lists(st.sampled_from(below), min_size=1, unique=True))
    wanted = draw(st.lists(st.sampled_from(sorted(uses)), unique=True))
    return uses, draw(st.permutations(sorted(uses))), wanted


@settings(max_examples=100)
@given(layered())
def test_what_is_active_is_what_can_be_reached(drawn):
    uses, order, wanted = drawn
    text = "event A()\n" + "".join(
        f"define {name}()\n  detect {' or '.join(uses[name])}\n" for name in order
    )
    text += "".join(subscribed(name, f"S{name}") for name in wanted)
    graph = graph_of(text)
    reached, waiting = set(), list(wanted)
    while waiting:
        name = waiting.pop()
        if name != "A" and name not in reached:
            reached.add(name)
            waiting += uses[name]
    names = [graph.tasks[key].name for key in graph.active(graph.roots)]
    assert sorted(names) == sorted(reached)
    assert [graph.tasks[key].name for key in graph.roots] == [f"S{name}" for name in wanted]


def test_equal_definitions_under_one_key_run_once():
    """Two names are two event types; the same name in two texts is one task."""
    text = EVENTS + GOOD + MEAN + subscribed("Mean(m > 1)") + subscribed("Mean(m > 2)", "T")
    graph = graph_of(text)
    assert [task.kind for task in graph.tasks.values()].count("definition") == 1
    assert len(graph.active(graph.roots)) == 1


def test_circular_definitions_have_no_graph():
    checked = check_text("event A()\ndefine D()\n  detect A or E\ndefine E()\n  detect D\n")
    assert checked.specification is None
    assert [one.code for one in checked.diagnostics] == ["HW401"]
    assert checked.diagnostics[0].message == "`D` is defined by itself: D → E → D"


@pytest.mark.parametrize("text", EXAMPLES)
def test_a_tasks_tree_knows_its_own_place_and_no_other(text):
    """Places are more than half of a tree, and a broker keeps the trees of all that runs."""
    checked = check_text(text).demand()
    for task in checked.graph.tasks.values():
        assert task.node.span == checked.file.items[task.place].span
        for part in descendants(task.node):
            assert part is task.node or part.span == tree.NO_SPAN
            assert part.marks == ()


# --- waiting for brokers ----------------------------------------------------------------------


def test_who_waits_shorter_shares_nothing_with_who_waits_longer():
    """Their watermarks differ, and so do the windows that are complete."""
    text = EVENTS + GOOD + MEAN + "define Twice(m)\n  detect Mean\n  assign m = Mean.m\n"
    text += subscribed("Mean", "P") + subscribed("Twice", "Q") + "wait 5 mins\n"
    text += subscribed("Mean", "R") + "wait 300 s\n" + subscribed("Mean", "S") + "wait 5 s\n"
    graph = graph_of(text)
    mean = {}
    for root in graph.roots:
        needed = [graph.tasks[key] for key in graph.active([root])]
        assert {task.wait_ms for task in needed} == {graph.tasks[root].wait_ms}
        mean[graph.tasks[root].name] = next(task.key for task in needed if task.name == "Mean")
    assert mean["Q"] == mean["R"]
    assert len(set(mean.values())) == 3
    assert mean["P"] == keys(EVENTS + GOOD + MEAN)["Mean"]


def test_a_definition_that_nobody_needs_is_there_once():
    text = EVENTS + GOOD + MEAN + subscribed("A") + "wait 5 s\n"
    assert [task.wait_ms for task in graph_of(text).tasks.values()] == [None, 5_000]
