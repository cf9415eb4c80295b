"""What tasks are charged for what comes in: by bytes where nobody says, of all inputs together."""

from headwater.placing import placement_problem
from language import check_text
from simulation.rehearsal.description import read_network

NETWORK = {
    "nodes": [{"id": "b1"}, {"id": "b2"}],
    "links": [{"a": "b1", "b": "b2"}],
    "home": "b2",
    "sources": [
        {"source": "t", "broker": "b1", "types": {"Temp": {"rate": 2, "bytes": 100}}},
        {"source": "h", "broker": "b1", "types": {"Hum": {"rate": 6, "bytes": 50}}},
    ],
}
TEXT = """
event Temp(val: float)
event Hum(val: float)
define Pair(v) detect Temp as a then[..5 s] Hum as b assign v = b.val
subscription S from u to a detect Pair
"""


def tasks_of(**network):
    made = placement_problem(check_text(TEXT).demand(), read_network({**NETWORK, **network}))
    return {task["id"]: task for task in made.document["tasks"]}


def test_work_is_told_by_the_bytes_of_all_inputs_where_nobody_says():
    assert tasks_of()["Pair"]["cost"] == (2 * 100 + 6 * 50) / 1000  # of a unit: 1,000 bytes


def test_work_that_is_told_is_for_each_event_of_all_inputs():
    assert tasks_of(estimates={"Pair": {"work": 0.25}})["Pair"]["cost"] == (2 + 6) * 0.25


def test_a_part_that_passes_is_of_the_events_of_all_inputs():
    pair = tasks_of(estimates={"Pair": {"passes": 0.5, "bytes": 10}})["Pair"]
    assert pair["rate"] == (2 + 6) * 0.5 * 10
