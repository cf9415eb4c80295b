"""A name may be written in backticks wherever a name stands, and then need not be an identifier."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.engine.event.event import event_class, slot_of, wire_name
from headwater import Engine

SPECIFICATION = """
event `Air temp`(`my-name`: float, `class`: int, `été ﬁ`: text, `20`: bool, lambda: float)
event `B-2`(`my-name`: float, `0`: int)

define `D-1`(`out put`, n)
detect `Air temp`(`my-name` > 1 and not `20`) as `e 1` then `B-2` as b2 within 10 s
assign `out put` = `e 1`.`my-name` + 1, n = b2.`0`

define `W in`(`mean-v`, `c`) aggr every 10 s
detect `Air temp`
assign `mean-v` = Avg(`Air temp`.`my-name`), `c` = Count(`Air temp`.`class`)

subscription `S one` from me to a
detect `D-1`(`out put` > 1) as `d 1`
assign `v a` = `d 1`.`out put`, w = `d 1`.n

subscription `S two` from me to a
detect `Air temp` as x where x.`my-name` > 0 and x.`été ﬁ` = "h"
assign g = group.`my-name`, q = x.lambda
group by `my-name`

subscription S3 from me to a
detect `W in`(`mean-v` > 0)

subscription S4 from me to a
detect `B-2` as `class` and `Air temp` as `0` within 5 s where `class`.`my-name` = `0`.`my-name`
consuming `0`
"""
EVENTS = [
    {
        "type": "Air temp",
        "id": "a",
        "timestamp": 1000,
        "my-name": 2.5,
        "class": 7,
        "été ﬁ": "h",
        "20": False,
        "lambda": 0.5,
    },
    {"type": "B-2", "id": "b", "timestamp": 2000, "my-name": 2.5, "0": 9},
]
EXPECTED = {
    "S one": {"v a": 3.5, "w": 9},
    "S two": {"g": 2.5, "q": 0.5},
    "S3": {"W in": {"mean-v": 2.5, "c": 1}},
    "S4": {"class": {"my-name": 2.5, "0": 9}, "0": {k: EVENTS[0][k] for k in list(EVENTS[0])[3:]}},
}


@pytest.mark.parametrize("lateness_ms", [0, None])
def test_names_in_backticks_work_wherever_a_name_stands(lateness_ms):
    engine = Engine(SPECIFICATION, lateness_ms=lateness_ms)
    results = engine.push(EVENTS) + engine.finish()
    assert {one["subscription"]: one["values"] for one in results} == EXPECTED


def test_letters_that_look_alike_are_different_names():
    """Python would read `ﬁ` in a program as `fi`."""
    engine = Engine(
        "event A(`ﬁ`: int, fi: int) subscription S from me to a detect A(`ﬁ` > fi)",
    )
    event = {"type": "A", "timestamp": 1}
    assert engine.push([event | {"ﬁ": 2, "fi": 1}, event | {"ﬁ": 1, "fi": 2}])[0]["values"] == {
        "A": {"ﬁ": 2, "fi": 1}
    }


NAMES = st.lists(st.text("_ -éﬁx6" + string.digits, min_size=1, max_size=6), unique=True)


@given(NAMES)
def test_each_name_has_a_slot_of_its_own_and_is_found_back(names):
    slots = [slot_of(name) for name in names]
    assert len(set(slots)) == len(names)
    assert all(slot.isascii() and slot.isidentifier() for slot in slots)
    assert [wire_name(slot) for slot in slots] == names
    assert event_class("T", dict.fromkeys(names, "int")).slots == tuple(slots)
