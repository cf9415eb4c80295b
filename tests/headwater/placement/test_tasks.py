"""From texts and described networks to problems: modes, contents, rates, destinations."""

import pytest

from headwater.placing import kinds_of, placement_problem
from language import check_text
from planner.document import read_problem
from planner.problem import Mode, Problem, ProblemError
from simulation.rehearsal.description import read_network

LINE = {
    "nodes": [{"id": "b1", "capacity": 9}, {"id": "b2"}, {"id": "b3"}],
    "links": [{"a": "b1", "b": "b2"}, {"a": "b2", "b": "b3"}],
    "home": "b3",
}


def source(name: str, broker: str, location: str | None = None, **types: tuple[float, float]):
    entry = {"source": name, "broker": broker}
    if location is not None:
        entry["location"] = location
    sent = {event_type: {"rate": rate, "bytes": size} for event_type, (rate, size) in types.items()}
    return {**entry, "types": sent}


def made(text: str, **network) -> tuple[Problem, dict[str, dict], dict[str, dict]]:
    found = placement_problem(check_text(text).demand(), read_network({**LINE, **network}))
    document = found.document
    tasks = {task["id"]: task for task in document["tasks"]}
    return read_problem(document), tasks, {one["id"]: one for one in document["contents"]}


TEMPS = [source("t1", "b1", "a/1", Temp=(2, 100)), source("t2", "b2", "b/1", Temp=(3, 100))]


# --- modes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("definition", "mode"),
    [
        ("define X(v) detect Temp(val > 3) assign v = Temp.val", Mode.SHARDED),
        ("define X(v) detect Temp as a then[..5 s] Temp as b assign v = b.val", Mode.SINGLE),
        (
            "define X(v) detect Temp as a then[..5 s] Temp as b assign v = b.val group by source",
            Mode.SHARDED,
        ),
        ("define X(v) aggr every 1 min detect Temp assign v = Avg(Temp.val)", Mode.AGGREGATE),
        ("define X(v) aggr every 1 min detect Temp assign v = Median(Temp.val)", Mode.SINGLE),
    ],
)
def test_a_task_is_divided_as_its_text_allows(definition: str, mode: Mode) -> None:
    text = f"event Temp(val: float)\n{definition}\nsubscription S from u to a detect X"
    problem, _, _ = made(text, sources=TEMPS)
    (task,) = [task for task in problem.tasks if task.id == "X"]
    assert task.mode is mode


def test_what_comes_from_one_host_cannot_be_divided_further() -> None:
    text = """
    event Temp(val: float)
    define Pair(v) detect Temp as a then[..5 s] Temp as b assign v = b.val
    define High(v) detect Pair(v > 3) assign v = Pair.v
    define Mean(v) aggr every 1 min detect Pair assign v = Avg(Pair.v)
    subscription S from u to a detect High and Mean within 1 min
    """
    problem, _, _ = made(text, sources=TEMPS)
    assert {task.mode for task in problem.tasks} == {Mode.SINGLE}


def test_cases_that_may_be_divided_differently_are_not() -> None:
    text = """
    event Temp(val: float)
    define X(v)
    case 0: detect Temp(val > 3) assign v = 1
    case 1: detect Temp as a then[..5 s] Temp as b assign v = 2
    subscription S from u to a detect X
    """
    graph = check_text(text).demand().graph
    by_name = {graph.tasks[k].name: kind for k, kind in kinds_of(check_text(text).demand()).items()}
    assert by_name["X"] == "single"


def test_definitions_that_nobody_needs_are_no_tasks() -> None:
    text = """
    event Temp(val: float)
    define X(v) detect Temp assign v = 1
    subscription S from u to a detect Temp
    """
    problem, _, _ = made(text, sources=TEMPS)
    assert [task.id for task in problem.tasks] == ["S"]


# --- contents -----------------------------------------------------------------------------------


def test_rates_are_of_bytes_at_the_broker_where_sources_are() -> None:
    text = "event Temp(val: float)\nsubscription S from u to a detect Temp"
    sources = [*TEMPS, {**source("t3", "b1", Temp=(1, 10)), "count": 5}]
    _, _, contents = made(text, sources=sources)
    assert contents["Temp"]["rates"] == {"b1": 250, "b2": 300}


def test_a_measured_rate_goes_before_the_advertised() -> None:
    text = "event Temp(val: float)\nsubscription S from u to a detect Temp"
    told = {
        "source": "t",
        "broker": "b1",
        "types": {"Temp": {"rate": 2, "measured": 7, "bytes": 10}},
    }
    _, _, contents = made(text, sources=[told])
    assert contents["Temp"]["rates"] == {"b1": 70}


@pytest.mark.parametrize(
    ("condition", "origins"),
    [
        ('location in path("a")', {"b1"}),
        ('location in path("a/1")', {"b1"}),
        ('location in path("a/10")', set()),
        ('not location in path("a")', {"b2"}),
        ('source = "t2"', {"b2"}),
        ('source != "t2"', {"b1"}),
        ('source in {"t1", "t9"}', {"b1"}),
        ('source = "t1" or location in path("b")', {"b1", "b2"}),
        ('source = "t1" and val > 3', {"b1"}),
        ('source = "t1" or val > 3', {"b1", "b2"}),
    ],
)
def test_sources_that_a_task_does_not_take_are_no_origins(condition: str, origins: set) -> None:
    text = f"event Temp(val: float)\nsubscription S from u to a detect Temp({condition})"
    _, _, contents = made(text, sources=TEMPS)
    assert {origin for one in contents.values() for origin in one["rates"]} == origins


def test_a_region_around_a_pattern_holds_for_all_in_it() -> None:
    text = 'event Temp(val: float)\nsubscription S from u to a detect (Temp) in path("b")'
    _, _, contents = made(text, sources=TEMPS)
    assert contents["Temp"]["rates"] == {"b2": 300}


TWO = """
event Temp(val: float)
subscription Warm from u to a detect Temp(val > 20)
subscription Hot from u to a detect Temp(val > 30)
"""


def test_the_smaller_part_lies_within_the_larger_and_travels_once() -> None:
    estimates = {"Warm": {"only": {"Temp": 0.5}}, "Hot": {"only": {"Temp": 0.125}}}
    _, tasks, contents = made(TWO, sources=TEMPS[:1], estimates=estimates)
    assert {name: one["rates"]["b1"] for name, one in contents.items()} == {
        "Temp": 25,
        "Temp~2": 75,
    }
    assert tasks["Hot"]["inputs"] == ["Temp"]
    assert tasks["Warm"]["inputs"] == ["Temp", "Temp~2"]


def test_a_type_that_all_want_whole_is_one_content() -> None:
    _, tasks, contents = made(TWO, sources=TEMPS)
    assert list(contents) == ["Temp"]
    assert tasks["Hot"]["inputs"] == tasks["Warm"]["inputs"] == ["Temp"]


def test_what_passes_all_of_a_sources_events_has_no_part() -> None:
    """The estimate is for conditions on values; this source passes by where it is."""
    text = 'event Temp(val: float)\nsubscription S from u to a detect Temp(location in path("a"))'
    estimates = {"S": {"only": {"Temp": 0.5}}}
    _, _, contents = made(text, sources=TEMPS, estimates=estimates)
    assert contents["Temp"]["rates"] == {"b1": 200}


# --- what tasks send ------------------------------------------------------------------------------


def test_a_window_sends_once_for_each_group() -> None:
    text = """
    event Temp(val: float)
    define Mean(v, location) aggr every 10 s detect Temp
      assign v = Avg(Temp.val), location = group.location group by location
    subscription S from u to a detect Mean
    """
    estimates = {"Mean": {"bytes": 100, "work": 0.5}}
    problem, tasks, _ = made(text, sources=TEMPS, estimates=estimates)
    mean = tasks["Mean"]
    assert mean["rate"] == 20  # two places, every 10 s, 100 bytes
    assert mean["partial_rate"] == 10  # one place at each broker
    assert mean["cost"] == {"b1": 1, "b2": 1.5}
    assert mean["merge_cost"] == 0.1  # two partial results every 10 s
    assert problem.input_keys(problem.tasks[0]) == ("b1", "b2")


def test_estimates_go_before_guesses_and_guesses_are_told() -> None:
    text = """
    event Temp(val: float)
    define Pair(v) detect Temp as a then[..5 s] Temp as b assign v = b.val
    subscription S from u to a detect Pair
    """
    specification = check_text(text).demand()
    guess = placement_problem(specification, read_network({**LINE, "sources": TEMPS}))
    assert [one.split(":")[0] for one in guess.guessed] == ["Pair", "S"]
    told = {"Pair": {"per_s": 0.5, "bytes": 40}, "S": {"passes": 1, "bytes": 10}}
    network = read_network({**LINE, "sources": TEMPS, "estimates": told})
    known = placement_problem(specification, network)
    assert known.guessed == []
    assert [task["rate"] for task in known.document["tasks"]] == [20, 5]


def test_what_a_network_tells_of_names_that_the_text_has_not_is_told() -> None:
    text = """
    event Temp(val: float)
    define Idle(v) detect Temp assign v = Temp.val
    subscription S from u to a detect Temp
    """
    homes = {"S": "b1", "u/S": "b2", "v/S": "b2", "Idle": "b1"}
    estimates = {"S": {"passes": 1}, "Idle": {"passes": 1}, "Sx": {"passes": 1}}
    network = read_network({**LINE, "sources": TEMPS, "homes": homes, "estimates": estimates})
    in_vain = placement_problem(check_text(text).demand(), network).in_vain
    assert [one.split(":")[0] for one in in_vain] == ["homes.v/S", "homes.Idle", "estimates.Sx"]


def test_shards_send_for_their_own_origin() -> None:
    text = """
    event Temp(val: float)
    define X(v) detect Temp(val > 3) assign v = Temp.val
    subscription S from u to a detect X
    """
    estimates = {"X": {"passes": 0.5, "bytes": 10}, "S": {"bytes": 10}}
    problem, tasks, _ = made(text, sources=TEMPS, estimates=estimates)
    assert tasks["X"]["rate"] == {"b1": 10, "b2": 15}
    assert problem.keys["X"] == ("b1", "b2")


# --- where results go -----------------------------------------------------------------------------


def test_results_go_home_and_to_where_their_actor_listens() -> None:
    text = """
    event Temp(val: float)
    subscription A from u to Fan detect Temp
    subscription B from u to Fan of group.location detect Temp group by location
    subscription C from u to nearest Tablet detect Temp
    subscription D from v to nobody detect Temp
    """
    network = {
        "sources": TEMPS,
        "homes": {"A": "b1", "v/D": "b2"},
        "actors": [
            {"actor": "Fan", "broker": "b2"},
            {"actor": "Fan/a", "broker": "b1"},
            {"actor": "Fan/b", "broker": "b2"},
            {"actor": "Tablet/x", "broker": "b1"},
            {"actor": "Tablet/z", "broker": "b2"},
            {"actor": "Tablet/y", "broker": "b2"},
        ],
    }
    _, tasks, _ = made(text, **network)
    assert tasks["A"]["destinations"] == ["b1", "b2"]
    assert tasks["B"]["destinations"] == ["b3", "b1", "b2"]
    assert tasks["C"]["destinations"] == ["b3", "b2"]
    assert tasks["D"]["destinations"] == ["b2"]


def test_limits_of_brokers_and_links_are_taken_over() -> None:
    text = "event Temp(val: float)\nsubscription S from u to a detect Temp"
    problem, _, _ = made(text, sources=TEMPS, server="b2")
    assert [node.capacity for node in problem.nodes] == [9, None, None]
    assert problem.server == "b2"


# --- faulty descriptions --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ({"sources": [source("t", "b9", Temp=(1, 1))]}, "sources[0].broker"),
        ({"sources": [source("t", "b1", Temp=(-1, 1))]}, "sources[0].types.Temp.rate"),
        ({"sources": [source("t", "b1", Temp=(10**400, 1))]}, "sources[0].types.Temp.rate"),
        ({"sources": [{**source("t", "b1", Temp=(1, 1)), "count": 0}]}, "sources[0].count"),
        ({"sources": {}}, "sources"),
        ({"homes": {"S": "b9"}}, "homes.S"),
        ({"home": 3}, "home"),
        ({"actors": [{"broker": "b1"}]}, "actors[0].actor"),
        ({"estimates": {"S": {"only": {"Temp": 2}}}}, "estimates.S.only.Temp"),
        ({"estimates": {"S": {"work": "much"}}}, "estimates.S.work"),
        ({"estimates": {"S": {"hosts": ["b7"]}}}, "estimates.S.hosts[0]"),
        ({"links": [{"a": "b1", "b": "b7"}]}, "links[0].b"),
    ],
)
def test_a_faulty_description_is_refused_with_the_path_of_the_key(entry: dict, path: str) -> None:
    with pytest.raises(ProblemError) as error:
        read_network({**LINE, **entry})
    assert error.value.path == path


def test_without_a_home_for_a_subscription_there_is_no_problem() -> None:
    text = "event Temp(val: float)\nsubscription S from u to a detect Temp"
    bare = {key: value for key, value in LINE.items() if key != "home"}
    with pytest.raises(ProblemError, match="no home is told for the subscription S"):
        placement_problem(check_text(text).demand(), read_network(bare))
