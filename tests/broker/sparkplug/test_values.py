"""Each type of Sparkplug B in each field that may carry it."""

import base64
import json
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.bridge.mapping import Mappings
from broker.config.mappings import MappingSection
from broker.core.messages import TopicRefused
from broker.engine.limits import Limits
from broker.mqtt.application import ClientInfo, InboundMessage
from tests.broker.sparkplug.encoder import payload

NOBODY = ClientInfo("c", None, "test:1", 5)
TOPIC = "spBv1.0/plant/DBIRTH/press/left"


def made(data, **keys):
    section = MappingSection(preset="sparkplug-b", type="T", **{"attributes": {"v": "m"}, **keys})
    taken = Mappings({"m": section}, Limits())
    return taken.read(InboundMessage(TOPIC, data, 0, False, False, NOBODY, None, None))


def value(datatype, /, **carried):
    """What a metric of that type says."""
    (one,) = made(payload({"name": "m", "datatype": datatype, **carried}))
    assert not isinstance(one, TopicRefused), one.found
    assert (one.type_name, one.source) == ("T", "plant/press/left")
    return json.loads(one.data)["v"]


def refusal(datatype, /, **carried):
    (one,) = made(payload({"name": "m", "datatype": datatype, **carried}))
    assert isinstance(one, TopicRefused)
    assert one.found.startswith("[mappings.m] ")
    return one.found.removeprefix("[mappings.m] ")


# Of each type how its bits are laid out, the carrier that the specification names, and its bits.
SIGNED = {
    1: ("b", "int_value"),
    2: ("h", "int_value"),
    3: ("i", "int_value"),
    4: ("q", "long_value"),
}
UNSIGNED = {5: ("B", "int_value"), 6: ("H", "int_value"), 7: ("I", "int_value")}
UNSIGNED[8] = ("Q", "long_value")
CARRIERS = {"int_value": "I", "long_value": "Q"}


@given(datatype=st.sampled_from(sorted(SIGNED)), data=st.data())
def test_a_number_with_a_sign_is_the_same_however_its_bits_were_widened(datatype, data):
    form, carrier = SIGNED[datatype]
    bits = 8 * struct.calcsize(form)
    number = data.draw(st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1))
    (narrow,) = struct.unpack(f"<{form.upper()}", struct.pack(f"<{form}", number))
    wide_form = CARRIERS[carrier]
    (wide,) = struct.unpack(f"<{wide_form}", struct.pack(f"<{wide_form.lower()}", number))
    (widest,) = struct.unpack("<Q", struct.pack("<q", number))
    assert value(datatype, **{carrier: narrow}) == number
    assert value(datatype, **{carrier: wide}) == number
    assert value(datatype, long_value=widest) == number


@given(datatype=st.sampled_from(sorted(UNSIGNED)), data=st.data())
def test_a_number_without_a_sign_is_what_it_is(datatype, data):
    form, carrier = UNSIGNED[datatype]
    number = data.draw(st.integers(0, 2 ** (8 * struct.calcsize(form)) - 1))
    assert value(datatype, **{carrier: number}) == number


@given(data=st.data())
def test_what_no_type_of_that_size_holds_is_refused_and_never_cut(data):
    datatype = data.draw(st.sampled_from([1, 2, 5, 6]))
    bits, signed = {1: (8, True), 2: (16, True), 5: (8, False), 6: (16, False)}[datatype]
    end = 2**32 - 2 ** (bits - 1) if signed else 2**32
    number = data.draw(st.integers(2**bits, end - 1))
    name = {1: "Int8", 2: "Int16", 5: "UInt8", 6: "UInt16"}[datatype]
    assert refusal(datatype, int_value=number) == (
        f'found {number}, which is beyond {name}, at the metric "m"'
    )


@given(number=st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_is_exactly_the_one_that_came(number):
    assert value(9, float_value=number) == number
    assert value(10, double_value=number) == number


@pytest.mark.parametrize(
    ("datatype", "carried", "expected"),
    [
        (11, {"boolean_value": True}, True),
        (11, {"boolean_value": False}, False),
        (12, {"string_value": "naïve"}, "naïve"),
        (12, {"string_value": ""}, ""),
        (14, {"string_value": "text"}, "text"),
        (15, {"string_value": "6f1c"}, "6f1c"),
        (13, {"long_value": 1_700_000_000_123}, 1_700_000_000_123),
        (13, {"long_value": 2**64 - 1}, -1),
        (10, {"float_value": 0.5}, 0.5),
    ],
)
def test_other_types(datatype, carried, expected):
    found = value(datatype, **carried)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize("datatype", [17, 18])
def test_bytes_and_files(datatype):
    assert base64.b64decode(value(datatype, bytes_value=b"\x00\xff")) == b"\x00\xff"


@pytest.mark.parametrize(
    ("datatype", "carried", "says"),
    [
        (9, {"float_value": math.nan}, "found a number beyond all"),
        (10, {"double_value": -math.inf}, "found a number beyond all"),
        (3, {"float_value": 1.5}, "found a number with a fraction where the type is Int32"),
        (9, {"int_value": 1}, "found a whole number where the type is Float"),
        (11, {"int_value": 1}, "found a whole number where the type is Boolean"),
        (12, {"bytes_value": b"x"}, "found bytes where the type is String"),
        (1, {"string_value": "1"}, "found a text where the type is Int8"),
        (9, {"boolean_value": True}, "found a truth value where the type is Float"),
        (0, {"int_value": 1}, "found a whole number without a type"),
        (99, {"int_value": 1}, "found a whole number without a type"),
        (16, {"dataset_value": b""}, "found a value of kind dataset"),
        (19, {"template_value": b""}, "found a value of kind template"),
        (22, {"bytes_value": b"\x01"}, "found a value of kind array"),
        (34, {"bytes_value": b"\x01"}, "found a value of kind array"),
    ],
)
def test_what_is_no_one_value_of_its_type_is_refused(datatype, carried, says):
    found = refusal(datatype, **carried)
    assert says in found
    assert '"m"' in found


def test_null_and_nothing_are_no_value():
    assert made(payload({"name": "m", "datatype": 3, "int_value": 5, "is_null": True})) == []
    assert made(payload({"name": "m", "datatype": 3, "is_null": True})) == []
    assert made(payload({"name": "m", "datatype": 3})) == []
    assert value(3, int_value=5, is_null=False) == 5


def test_a_text_that_stands_for_nothing_is_no_value():
    data = payload({"name": "m", "datatype": 12, "string_value": " n/a"})
    assert made(data, ignore="n/a,none") == []
    assert len(made(data)) == 1


def test_what_no_mapping_names_may_hold_whatever_it_wants():
    good = {"name": "m", "datatype": 11, "boolean_value": True}
    odd = {"name": "odd", "datatype": 9, "float_value": math.nan}
    many = {"name": "many", "datatype": 16, "dataset_value": b"\xff\xff"}
    (one,) = made(payload(good, odd, many))
    assert json.loads(one.data) == {"v": True}
    (one,) = made(
        payload(good, many, {**good, "name": "a/m"}, {**good, "name": "id"}), attributes={}
    )
    assert json.loads(one.data) == {"m": True}, "what can be an attribute becomes one"
