"""Any bytes at all: an event, nothing or a refusal, and nothing that grows without bound."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.bridge import mapping
from broker.bridge.mapping import Mappings
from broker.bridge.sparkplug import births, messages, wire
from broker.config.mappings import MappingSection
from broker.core.messages import EventsReceived, Payload, SourceWithdrawn, TopicRefused
from broker.engine.limits import Limits
from broker.errors import StartError
from broker.mqtt.application import ClientInfo, InboundMessage
from tests.broker.core.machine import Machine
from tests.broker.sparkplug.encoder import FIELDS, field, metric, payload

NOBODY = ClientInfo("c", None, "test:1", 5)
SECTIONS = {
    "named": MappingSection(preset="sparkplug-b", type="T", attributes={"v": "m"}, location="l"),
    "all": MappingSection(preset="sparkplug-b", type="U"),
    "node": MappingSection(
        preset="sparkplug-b", topic="spBv1.0/{group}/+/{edge}", source="{group}/{edge}", type="N"
    ),
}


def message(topic, data, token=None):
    return InboundMessage(topic, data, 1, False, False, NOBODY, None, token)


def read(topic, data, **more):
    return Mappings(SECTIONS, Limits(), **more).read(message(topic, data))


SCALARS = {
    "text": st.text(max_size=3) | st.sampled_from(["m", "bdSeq", "timestamp", "x" * 300]),
    "varint": st.integers(0, 2**64 - 1) | st.integers(0, 40),
    "fixed32": st.floats(width=32),
    "fixed64": st.floats(),
    "bytes": st.binary(max_size=5),
}
METRICS = st.fixed_dictionaries(
    {}, optional={name: SCALARS[kind] for name, (_, kind) in FIELDS.items()}
).map(lambda said: metric(**said))
GOOD = st.builds(
    lambda metrics, timestamp, seq: payload(*metrics, timestamp=timestamp, seq=seq),
    st.lists(METRICS | st.binary(max_size=8), max_size=4),
    st.none() | SCALARS["varint"],
    st.none() | st.integers(0, 3) | SCALARS["varint"],
)


@st.composite
def broken(draw):
    """A payload with bytes overwritten, cut out or put in."""
    data = bytearray(draw(GOOD))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(data)


TOPICS = st.builds(
    lambda kind, edge, device: f"spBv1.0/g/{kind}/{edge}{device}",
    st.sampled_from(["NBIRTH", "NDATA", "NDEATH", "DBIRTH", "DDATA", "DDEATH", "NCMD", "X"]),
    st.sampled_from(["e", "f", ""]),
    st.sampled_from(["", "/d", "/e", "/", "/d/x"]),
)


@given(st.lists(st.tuples(TOPICS, st.binary(max_size=40) | broken()), max_size=8))
def test_of_any_bytes_comes_an_event_nothing_or_a_refusal(said):
    taken = Mappings(SECTIONS, Limits())
    machine = Machine()
    machine.submit("event T(v: float)\nsubscription Hot from a to b\ndetect T(v > 30)\n")
    for topic, data in said:
        made = taken.read(message(topic, data, "token"))
        assert [one.token for one in made] == [None] * (len(made) - 1) + ["token"]
        effects = []
        for one in made:
            if isinstance(one, TopicRefused):
                assert 0 < len(one.found) < 400
                assert one.found.isprintable()
                assert "a fault of the broker" not in one.found
            else:
                assert isinstance(one, Payload | SourceWithdrawn)
            effects += machine.tell(EventsReceived((one,)) if isinstance(one, Payload) else one)
        assert [t for e in effects for t in getattr(e, "tokens", ())] == ["token"]
    assert taken._sparkplug.hearing.births.weight <= births.WEIGHT_MAX


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\xff", "found no payload of Sparkplug B"),
        (b"{}", "found no payload of Sparkplug B"),
        (payload(b"\x0a\xff"), "found no payload of Sparkplug B"),
        (payload({"datatype": 11, "boolean_value": 1}), "neither name nor alias"),
        (payload(field(1, "bytes", b"\xff\xfe")), "found a text that is no UTF-8"),
        (
            payload({"name": "m", "datatype": 12}, field(15, "bytes", b"\xff")),
            "found a text that is no UTF-8",
        ),
        (payload(*[b""] * (wire.METRICS_MAX + 1)), "found 10001 metrics, at most 10000"),
        (
            payload({"name": "m", "datatype": 11, "boolean_value": 1, "timestamp": 2**63}),
            'found a time beyond all numbers at "m"',
        ),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_was_found(data, says):
    (first, *_) = read("spBv1.0/g/DDATA/e/d", data)
    assert isinstance(first, TopicRefused)
    assert says in first.found


def test_a_payload_that_is_too_large_is_not_even_read():
    taken = Mappings(SECTIONS, Limits(payload_bytes_max=10))
    (first, *_) = taken.read(message("spBv1.0/g/DDATA/e/d", b"\xff" * 11))
    assert "found 11 bytes, at most 10" in first.found


def test_a_topic_that_nobody_should_remember_is_refused():
    (first, *_) = read(f"spBv1.0/g/DDATA/e/{'d' * 1_025}", payload({"name": "m"}))
    assert "found a topic of more than 1024 characters" in first.found


def test_topics_that_are_remembered_are_bounded_in_number_and_length():
    taken = Mappings(SECTIONS, Limits())
    for number in range(mapping.TOPICS_CACHED + 5):
        taken.read(message(f"spBv1.0/g/DDATA/e/d{number}", b"\xff"))
    assert len(taken._places) == len(taken._sparkplug._addresses) == 5
    long = f"spBv1.0/g/DDATA/e/{'d' * 500}"
    assert isinstance(taken.read(message(long, b"\xff"))[0], TopicRefused)
    assert len(taken._places) == len(taken._sparkplug._addresses) == 5


@pytest.mark.parametrize(
    "topic",
    [
        "spBv1.0/STATE/host",
        "spBv1.0/g/NCMD/e",
        "spBv1.0/g/DCMD/e/d",
        "spBv1.0/g/NBIRTH/e/d",
        "spBv1.0/g/DBIRTH/e",
        "spBv1.0/g/DDATA/e/",
        "spBv1.0/g/DDATA/e/d/x",
        "spAv1.0/g/DDATA/e/d",
    ],
)
def test_what_says_nothing_of_how_things_are_is_passed_over(topic):
    taken = Mappings(SECTIONS, Limits())
    assert taken.read(message(topic, b"\xff")) == []
    assert len(taken._sparkplug.hearing.births) == 0


def test_births_are_bounded_and_the_one_silent_for_longest_is_forgotten():
    held = births.Births(weight_max=40)
    for number in range(100):
        with held.changing("g", f"e{number}") as edge:
            edge.put("d", births.Birth((f"m{n}", n, 3) for n in range(number % 5)))
        with held.changing("g", "steady") as edge:
            edge.put("d", births.Birth([("m", 1, 3)]))
        known = [one for _, one in held._edges.items()]
        assert held.weight == sum(one.weight for one in known) <= 40
        for one in known:
            assert one.weight == 1 + sum(1 if b is None else b.weight for b in one.births.values())
    assert held.known("g", "steady").births["d"].by_alias[1].name == "m"
    assert held.known("g", "e0") is None
    with held.changing("g", "huge") as edge:
        edge.put("d", births.Birth((f"m{n}", n, 3) for n in range(100)))
    assert (len(held), held.weight) == (0, 0), "one that is too large alone is not held either"
    held.forget("g", "huge")
    assert held.weight == 0


def test_what_nobody_wants_of_a_birth_is_not_held():
    heard = messages.Hearing()
    address = messages.address_of("spBv1.0/g/DBIRTH/e/d")
    long = "x" * 50_000
    born = payload(
        {"name": long, "alias": 1, "datatype": 3, "int_value": 1},
        {"name": "m", "alias": 2, "datatype": 3, "int_value": 1},
    )
    heard.hear(address, born, again=False)
    birth = heard.births.known("g", "e").births["d"]
    assert birth.by_alias == {1: ("", 3), 2: ("m", 3)}
    data = payload({"alias": 1, "int_value": 5})
    said = heard.hear(address._replace(message="DDATA"), data, again=False)
    assert said.readings == [("", None, 5)], "known, and nobody's"


def test_without_the_library_the_broker_says_what_to_install(monkeypatch):
    def missing():
        raise wire.NoProtobufError

    monkeypatch.setattr(wire, "_classes", missing)
    with pytest.raises(StartError, match=r"headwater\[sparkplug\]"):
        Mappings(SECTIONS, Limits())
    plain = MappingSection(topic="a/{source}", type="T")
    assert Mappings({"m": plain}, Limits()).read(message("a/s", b"1"))
    assert mapping.NEEDS_PROTOBUF.count("sparkplug") == 2


def test_a_fault_of_ours_is_told_once_and_costs_that_message_alone(monkeypatch, caplog):
    taken = Mappings({"all": SECTIONS["all"]}, Limits())
    good = payload({"name": "m", "datatype": 3, "int_value": 7})
    with monkeypatch.context() as patched:
        patched.setattr(wire, "read", lambda _: 1 / 0)
        for _ in range(2):
            (one,) = taken.read(message("spBv1.0/g/DDATA/e/d", good))
            assert one.found == "[mappings.all] a fault of the broker: ZeroDivisionError"
    assert len([one for one in caplog.records if one.exc_info]) == 2, "of the reading, the mapping"
    (one,) = taken.read(message("spBv1.0/g/DDATA/e/d", good))
    assert json.loads(one.data) == {"m": 7}
