"""An event that was sorted on disk is the event that it was."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.intake import IntakeOptions, to_mapping
from headwater.engine import Pipeline
from headwater.replays.event_bytes import Packer
from language import check_text

SPECIFICATION = check_text("""
event Temp(val: float, count: int, note: text, ok: bool, raw: bytes, `a b`: int)
event Bare()
subscription S from me to a detect Temp or Bare
""").demand()

TEXT = st.text(max_size=5)
INT64 = st.integers(-(2**63), 2**63 - 1)
TIME = st.integers(0, 10**12)
RESERVED = st.fixed_dictionaries(
    {},
    optional={
        "id": TEXT.filter(bool),
        "source": TEXT,
        "location": TEXT,
        "position": st.tuples(st.floats(-90, 90), st.floats(-180, 180))
        | st.tuples(st.floats(-90, 90), st.floats(-180, 180), st.floats(0, 9000))
        | st.fixed_dictionaries(
            {"x": st.floats(-1e9, 1e9), "y": st.floats(-1e9, 1e9)},
            optional={"z": st.floats(-1e9, 1e9)},
        ),
        "uncertainty": st.integers(0, 1000),
    },
)
TIMES = st.builds(lambda t: {"timestamp": t}, TIME) | st.builds(
    lambda t, length: {"start": t, "end": t + length}, TIME, st.integers(0, 10**6)
)
VALUES = st.fixed_dictionaries(
    {"type": st.just("Temp")},
    optional={
        "val": st.floats(allow_nan=False, allow_infinity=False),
        "count": INT64,
        "note": TEXT,
        "ok": st.booleans(),
        "raw": st.binary(max_size=9),
        "a b": INT64,
    },
) | st.just({"type": "Bare"})


@given(st.builds(lambda *parts: parts[0] | parts[1] | parts[2], RESERVED, TIMES, VALUES))
def test_an_event_comes_back_as_it_was(said):
    intake = Pipeline(SPECIFICATION, IntakeOptions()).intake
    said = msgspec.convert(said, dict)
    if "position" in said and isinstance(said["position"], tuple):
        said["position"] = list(said["position"])
    (event,) = intake.from_mappings([said]).events
    packer = Packer(SPECIFICATION.event_types)
    back = packer.unpack(packer.pack(event))
    assert to_mapping(back) == to_mapping(event)
    assert (back.order, back.start, back.id) == (event.order, event.start, event.id)


@pytest.mark.parametrize("payload", [b'{"type":"Temp","timestamp":5,"id":"a","val":1}'])
def test_so_does_one_that_came_as_a_line(payload):
    """Its class is the one that lines are decoded into, which differs on the wire."""
    intake = Pipeline(SPECIFICATION, IntakeOptions()).intake
    (event,) = intake.decode_lines([payload]).events
    packer = Packer(SPECIFICATION.event_types)
    back = packer.unpack(packer.pack(event))
    assert to_mapping(back) == {**msgspec.json.decode(payload), "uncertainty": 0}
