"""Dependence grouping: the paper's example by name, and generated forests against brute force."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.grouping import CircularForestError, Forest
from language import check_text

# Section 5 of the paper. The edges of the three requests are not told by its text; they
# follow from their names.
STRANGER = {"Face": ["Video"], "FaceLabel": ["Face"], "Stranger": ["FaceLabel"]}
MEMBERS = {"Face": ["Video"], "FaceLabel": ["Face"], "Members": ["FaceLabel"]}
ANOMALY = {"Body": ["Video"], "ActLabel": ["Body", "Motion"], "Anomaly": ["ActLabel"]}

NINE = {
    "Video alone (the paper's #1)": {"Video"},
    "Motion alone (the paper's #5)": {"Motion"},
    "both atomic events (the paper's #6)": {"Video", "Motion"},
    "Body or Face, which come together": {"Video", "Body", "Face"},
    "FaceLabel (the paper's #3)": {"Video", "Body", "Face", "FaceLabel"},
    "ActLabel": {"Video", "Motion", "Body", "Face", "ActLabel"},
    "Body and Motion": {"Video", "Motion", "Body", "Face"},
    "FaceLabel and Motion": {"Video", "Motion", "Body", "Face", "FaceLabel"},
    "FaceLabel and ActLabel": {"Video", "Motion", "Body", "Face", "FaceLabel", "ActLabel"},
}


@pytest.fixture(scope="module")
def paper() -> Forest:
    return Forest.merged([STRANGER, MEMBERS, ANOMALY])


@pytest.mark.parametrize("name", NINE)
def test_the_papers_example_has_this_alternative(paper: Forest, name: str) -> None:
    assert NINE[name] in [set(group) for group in paper.alternatives().groups]


def test_the_papers_example_has_nine_alternatives_by_one_and_two_events(paper: Forest) -> None:
    one, two = paper.alternatives(length=1), paper.alternatives(length=2)
    assert (len(one.groups), len(two.groups)) == (5, 9)
    assert two == paper.alternatives()
    assert two.complete


def test_choices_of_atomic_events_alone_are_told_by_one(paper: Forest) -> None:
    folded = [set(group) for group in paper.folded(paper.alternatives()).groups]
    assert len(folded) == 7
    assert {"Video", "Motion"} in folded
    assert {"Video"} not in folded
    assert {"Motion"} not in folded


def test_the_ancestors_that_the_paper_names(paper: Forest) -> None:
    assert set(paper.ancestors("ActLabel")) == {"Body", "Motion", "Video", "Face"}
    assert set(paper.ancestors("FaceLabel")) == {"Body", "Face", "Video"}
    assert set(paper.concatenating("ActLabel")) == {"Body", "Motion", "Video"}


def test_the_descendants_that_the_paper_names(paper: Forest) -> None:
    assert set(paper.descendants("Body", "ActLabel")) == {"ActLabel", "Motion"}
    with pytest.raises(KeyError):
        paper.descendants("Body", "Motion")


def test_the_papers_third_alternative_leaves_two_groups(paper: Forest) -> None:
    left = paper.left(paper.closure(["FaceLabel"]))
    assert [set(group) for group in left] == [
        {"Stranger", "Members"},
        {"Motion", "ActLabel", "Anomaly"},
    ]


def test_requests_and_atomic_events(paper: Forest) -> None:
    assert set(paper.requests) == {"Stranger", "Members", "Anomaly"}
    assert set(paper.atomic) == {"Video", "Motion"}


def test_an_event_that_comes_from_itself_is_refused() -> None:
    with pytest.raises(CircularForestError, match="C comes from itself"):
        Forest({"B": ["A", "C"], "C": ["B"]})


def test_past_the_limit_it_says_that_some_are_missing() -> None:
    forest = Forest({f"made-{n}": [f"raw-{n}"] for n in range(8)})
    found = forest.alternatives(limit=20)
    assert not found.complete
    assert len(found.groups) == 20
    assert forest.alternatives().complete


def test_the_forest_of_a_text_has_its_types_and_tasks() -> None:
    text = """
    event Video(frame: bytes)
    define Face(score) detect Video assign score = 1
    subscription A from u to a detect Face
    subscription B from u to b detect Video and Face within 1 s
    """
    graph = check_text(text).demand().graph
    forest = Forest.of_graph(graph)
    by_name = {task.name: key for key, task in graph.tasks.items()}
    assert forest.atomic == ("Video",)
    assert set(forest.requests) == {by_name["A"], by_name["B"]}
    assert set(forest.closure([by_name["Face"]])) == {"Video", by_name["Face"], *graph.roots}


# --- generated forests against brute force ---------------------------------------------------


@st.composite
def parents(draw: st.DrawFn) -> dict[str, list[str]]:
    count = draw(st.integers(1, 8))
    made: dict[str, list[str]] = {}
    for place in range(count):
        before = [f"e{n}" for n in range(place)]
        own = draw(st.lists(st.sampled_from(before), max_size=3, unique=True)) if before else []
        made[f"e{place}"] = own
    return made


def is_closed(forest: dict[str, list[str]], group: set[str]) -> bool:
    for name in group:
        for parent in forest[name]:
            if parent not in group:
                return False
            if any(parent in own and child not in group for child, own in forest.items()):
                return False
    return True


def closed_groups(forest: dict[str, list[str]]) -> list[set[str]]:
    names = list(forest)
    every = (set(one) for size in range(len(names) + 1) for one in combinations(names, size))
    return [group for group in every if is_closed(forest, group)]


@given(parents(), st.data())
@settings(max_examples=60, deadline=None)
def test_the_closure_is_the_least_closed_group(forest: dict[str, list[str]], data) -> None:
    chosen = set(data.draw(st.lists(st.sampled_from(list(forest)), max_size=3)))
    holding = [group for group in closed_groups(forest) if chosen <= group]
    least = set.intersection(*holding)
    assert set(Forest(forest).closure(chosen)) == least


@given(parents())
@settings(max_examples=60, deadline=None)
def test_the_alternatives_are_all_closed_groups(forest: dict[str, list[str]]) -> None:
    found = Forest(forest).alternatives(whole=True)
    expected = [group for group in closed_groups(forest) if group]
    assert found.complete
    assert sorted(map(sorted, found.groups)) == sorted(map(sorted, expected))


@given(parents())
@settings(max_examples=60, deadline=None)
def test_combining_events_of_one_parent_adds_nothing(forest: dict[str, list[str]]) -> None:
    """So the paper's condition, that they share no direct parent, leaves nothing out."""
    made = Forest(forest)
    for one, other in combinations(forest, 2):
        if set(forest[one]) & set(forest[other]):
            assert made.closure([one, other]) == made.closure([one])


@given(parents())
@settings(max_examples=60, deadline=None)
def test_all_consumers_of_an_event_stand_together_in_the_finest_groups(
    forest: dict[str, list[str]],
) -> None:
    made = Forest(forest)
    for chosen in made.alternatives().groups:
        left = made.left(chosen)
        parts = [set(chosen), *map(set, left)]
        assert sorted(name for part in parts for name in part) == sorted(forest)
        for name in forest:
            consumers = set(made.children[name])
            assert not consumers or any(consumers <= part for part in parts)
        for group in left:
            assert reached(forest, set(chosen), group[0]) == set(group)


def reached(forest: dict[str, list[str]], taken: set[str], start: str) -> set[str]:
    """All that must stay with `start`, found step by step."""
    found = {start}
    while True:
        more = set()
        for event in forest:
            linked = {event, *(child for child, own in forest.items() if event in own)} - taken
            if linked & found:
                more |= linked
        if more <= found:
            return found
        found |= more


@given(parents(), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_the_order_of_the_requests_changes_no_group(forest: dict[str, list[str]], random) -> None:
    shuffled = list(forest.items())
    random.shuffle(shuffled)
    one, other = Forest(forest).alternatives(), Forest(dict(shuffled)).alternatives()
    assert sorted(map(sorted, one.groups)) == sorted(map(sorted, other.groups))
