"""What aliases mean, who is gone and which events there are, against a slow reading of the history.

The slow reading keeps every message and looks back: an alias means what the last birth of its
device says, unless something since has ended that.
"""

import json
from collections import Counter
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.bridge.mapping import Mappings
from broker.bridge.sparkplug import mapping as asking
from broker.config.mappings import MappingSection
from broker.core.messages import EventsReceived, Payload, SourceWithdrawn, TopicRefused
from broker.engine.limits import Limits
from broker.mqtt.application import ClientInfo, InboundMessage
from tests.broker.core.machine import Machine
from tests.broker.sparkplug.encoder import payload, read

NOBODY = ClientInfo("c", None, "test:1", 5)
DEVICES = MappingSection(preset="sparkplug-b", type="T", attributes={"v": "a/m", "w": "n"})
NODES = MappingSection(
    preset="sparkplug-b",
    topic="spBv1.0/{group}/{message}/{edge}",
    source="{group}/{edge}",
    type="N",
    attributes={"v": "a/m", "w": "n"},
)


def message(topic, data, *, dup=False, retain=False):
    return InboundMessage(topic, data, 0, retain, dup, NOBODY, None, None)


def both(**more):
    return Mappings({"devices": DEVICES, "nodes": NODES}, Limits(), **more)


def took(made):
    """Type, source and events of each that was made."""
    found = []
    for one in made:
        assert isinstance(one, Payload), one
        said = json.loads(one.data)
        found.append((one.type_name, one.source, said if isinstance(said, list) else [said]))
    return found


INT = {"datatype": 3, "int_value": 1}
FLOAT = {"datatype": 9, "float_value": 0.5}


# --- the history ----------------------------------------------------------------------------------


class Sent(NamedTuple):
    kind: str
    edge: str
    device: str  # empty for the edge node
    seq: int | None
    session: int | None
    metrics: list[dict[str, Any]]
    dup: bool
    broken: bool = False

    @property
    def topic(self):
        return f"spBv1.0/g/{self.kind}/{self.edge}" + (f"/{self.device}" if self.device else "")

    @property
    def data(self):
        if self.broken:
            return b"\xff"
        session = self.session
        more = [] if session is None else [{"name": "bdSeq", "datatype": 4, "long_value": session}]
        return payload(*more, *self.metrics, timestamp=9, seq=self.seq)


def begins(history, at):
    """Where what is known of the edge node begins: behind its last death that concerned it."""
    for index in range(at - 1, -1, -1):
        if history[index].edge == history[at].edge and is_over(history, index):
            return index + 1
    return 0


def is_over(history, at):
    """Whether a message is a death, and of the life that goes on."""
    one = history[at]
    if one.kind != "NDEATH" or one.broken:
        return False
    for before in reversed(history[begins(history, at) : at]):
        if before.edge == one.edge and before.kind == "NBIRTH" and not before.broken:
            return None in {before.session, one.session} or before.session == one.session
    return True


def has_gap(history, at):
    """Whether a message was missed before this one, or is as good as missed."""
    one = history[at]
    if one.broken:
        return True
    if one.kind in {"NBIRTH", "NDEATH"} or one.seq is None or one.dup:
        return False
    for before in reversed(history[begins(history, at) : at]):
        if before.edge != one.edge or before.kind == "NDEATH" or before.broken:
            continue
        if before.kind == "NBIRTH" and before.seq is None:
            return False
        if before.seq is not None and (before.kind == "NBIRTH" or not before.dup):
            return one.seq not in {before.seq, (before.seq + 1) % 256}
    return False


def birth_of(history, at):
    """The metrics that the birth in force has announced, or None."""
    one = history[at]
    for index in range(at, begins(history, at) - 1, -1):
        other = history[index]
        if other.edge != one.edge:
            continue
        same = other.device == one.device
        if same and other.kind in {"NBIRTH", "DBIRTH"} and not other.broken:
            return other.metrics
        if (same and other.kind == "DDEATH") or other.kind == "NBIRTH" or has_gap(history, index):
            return None
    return None


FAULT = object()


def expected(history, at):
    """The readings of the last message, or None where they cannot be told.

    A value is FAULT where it is none of its type.
    """
    one = history[at]
    if one.broken:
        return None
    if one.kind in {"NDEATH", "DDEATH"}:
        return []
    birth = birth_of(history, at)
    found = []
    for metric in one.metrics:
        name, value = metric.get("name"), metric.get("int_value", metric.get("float_value"))
        announced = None
        for said in birth or ():
            if said.get("alias") == metric["alias"] if name is None else said["name"] == name:
                announced = said
        if name is None and announced is None:
            return None
        kind = metric.get("datatype", announced and announced.get("datatype"))
        if kind is None and birth is None and "int_value" in metric:
            return None
        whole, broken = "int_value" in metric, "float_value" in metric
        if (whole and kind != 3) or (broken and kind == 3):
            value = FAULT
        found.append((name or announced["name"], metric.get("timestamp", 9), value))
    return found


def gone(history, at):
    one = history[at]
    if one.kind == "DDEATH" and not one.broken:
        return {f"g/{one.edge}/{one.device}"}
    if not is_over(history, at):
        return set()
    there = {}
    for before in history[begins(history, at) : at]:
        if before.edge == one.edge and before.device and not before.broken:
            there[before.device] = before.kind != "DDEATH"
    return {f"g/{one.edge}", *(f"g/{one.edge}/{d}" for d, is_there in there.items() if is_there)}


ANNOUNCED = st.lists(
    st.builds(
        lambda name, alias, kind: {"name": name, **kind, **({} if alias is None else alias)},
        st.sampled_from(["a/m", "n", "other"]),
        st.none() | st.integers(0, 3).map(lambda alias: {"alias": alias}),
        st.sampled_from([INT, FLOAT]),
    ),
    max_size=3,
    unique_by=(lambda one: one["name"], lambda one: one.get("alias", object())),
)
TOLD = st.lists(
    st.builds(
        lambda who, time, kind: {**who, **time, **kind},
        st.integers(0, 3).map(lambda alias: {"alias": alias})
        | st.sampled_from(["a/m", "n", "other"]).map(lambda name: {"name": name}),
        st.sampled_from([{}, {"timestamp": 5}, {"timestamp": 7}]),
        st.sampled_from([INT, FLOAT, {}, {"int_value": 2}, {"float_value": 1.5}]),
    ),
    max_size=3,
)


@st.composite
def histories(draw):
    found = []
    seqs = Counter()
    for _ in range(draw(st.integers(1, 14))):
        edge, device = draw(st.sampled_from("ef")), draw(st.sampled_from(["", "d", "h"]))
        kinds = ["DBIRTH", "DDATA", "DDATA", "DDEATH"] if device else ["NBIRTH", "NDATA", "NDEATH"]
        kind = draw(st.sampled_from(kinds))
        dup = draw(st.sampled_from([False] * 5 + [True]))
        seqs[edge] = 0 if kind == "NBIRTH" else (seqs[edge] + 1) % 256
        seq = draw(st.sampled_from([seqs[edge]] * 8 + [None, seqs[edge] - 1, 255, 4]))
        seq = None if kind == "NDEATH" or seq is None else seq % 256
        session = draw(st.sampled_from([None, 0, 1])) if kind in {"NBIRTH", "NDEATH"} else None
        metrics = draw({"DATA": TOLD, "IRTH": ANNOUNCED}.get(kind[-4:], st.just([])))
        broken = draw(st.sampled_from([False] * 9 + [True]))
        found.append(Sent(kind, edge, device, seq, session, metrics, dup, broken))
    return found


def check_weights(births):
    """Entries are counted as they are."""
    edges = births._edges.values()
    for edge in edges:
        said = [birth for birth in edge.births.values() if birth is not None]
        entries = sum(len(birth.by_alias) + len(birth.by_name) for birth in said)
        assert edge.weight == 1 + len(edge.births) + entries
    assert births.weight == sum(edge.weight for edge in edges)


@given(histories())
def test_readings_refusals_and_who_is_gone_are_those_of_the_history(history):
    taken = both()
    for at, one in enumerate(history):
        made = taken.read(message(one.topic, one.data, dup=one.dup))
        withdrawn = [each.source for each in made if isinstance(each, SourceWithdrawn)]
        assert len(withdrawn) == len(set(withdrawn))
        assert set(withdrawn) == gone(history, at)
        check_weights(taken._sparkplug.hearing.births)
        rest = [each for each in made if not isinstance(each, SourceWithdrawn)]
        readings = expected(history, at)
        faulty = any(n in {"a/m", "n"} and v is FAULT for n, _, v in readings or ())
        if readings is None or faulty:
            (refused,) = rest
            assert isinstance(refused, TopicRefused)
            continue
        found = Counter()
        for type_name, source, events in took(rest):
            assert type_name == ("T" if one.device else "N")
            assert source == f"g/{one.edge}" + (f"/{one.device}" if one.device else "")
            times = [event["timestamp"] for event in events]
            assert times == sorted(times)
            for event in events:
                time = event.pop("timestamp")
                assert event, "an event says something"
                found.update((key, time, value) for key, value in event.items())
            for time in set(times):
                of_time = Counter(n for n, t, v in readings if t == time and v is not None)
                most = max(of_time[name] for name in ("a/m", "n"))
                assert times.count(time) == most, "no more events than values of one metric"
        keys = {"a/m": "v", "n": "w"}
        wanted = Counter((keys[n], t, v) for n, t, v in readings if n in keys and v is not None)
        assert found == wanted


# --- what is said of it ---------------------------------------------------------------------------

BORN = payload(
    {"name": "a/m", "alias": 1, "datatype": 1, "int_value": 0xFE, "timestamp": 3},
    {"name": "n", "alias": 2, "datatype": 9, "float_value": 1.5},
    timestamp=5,
    seq=1,
)
DATA = payload({"alias": 1, "int_value": 0xFFFFFFFF, "timestamp": 7}, timestamp=9, seq=2)


def test_a_birth_tells_values_and_what_aliases_stand_for():
    taken = both()
    assert took(taken.read(message("spBv1.0/g/DBIRTH/e/d", BORN))) == [
        ("T", "g/e/d", [{"v": -2, "timestamp": 3}, {"w": 1.5, "timestamp": 5}])
    ]
    assert took(taken.read(message("spBv1.0/g/DDATA/e/d", DATA))) == [
        ("T", "g/e/d", [{"v": -1, "timestamp": 7}])
    ]


def found(made):
    (one,) = made
    assert isinstance(one, TopicRefused)
    return one.found


def test_a_refusal_says_what_is_missing():
    taken = both()
    topic = "spBv1.0/g/DDATA/e/d"
    says = 'and only a birth of "g/e/d" tells what it stands for: none is in force'
    assert (
        found(taken.read(message(topic, DATA))) == f"[mappings.devices] found the alias 1, {says}"
    )
    untyped = payload({"name": "n", "int_value": 5}, seq=3)
    assert "found a metric without a type, and" in found(taken.read(message(topic, untyped)))
    taken.read(message("spBv1.0/g/DBIRTH/e/d", payload(seq=4)))
    says = 'found the alias 8, which the last birth of "g/e/d" does not tell'
    assert says in found(taken.read(message(topic, payload({"alias": 8}, seq=5))))
    says = 'of edge node "e" number 9 came after 5, and what was missed may have been a birth'
    assert says in found(taken.read(message(topic, payload({"alias": 8}, seq=9))))


def session(number):
    return {"name": "bdSeq", "datatype": 4, "long_value": number}


@pytest.mark.parametrize(("ended", "over"), [(6, False), (7, True), (None, True)])
def test_a_death_of_an_earlier_birth_ends_nothing(ended, over):
    taken = both()
    taken.read(message("spBv1.0/g/NBIRTH/e", payload(session(7), seq=0)))
    taken.read(message("spBv1.0/g/DBIRTH/e/d", BORN))
    death = payload({"name": "x"} if ended is None else session(ended))
    made = taken.read(message("spBv1.0/g/NDEATH/e", death))
    assert [one.source for one in made] == (["g/e", "g/e/d"] if over else [])
    after = taken.read(message("spBv1.0/g/DDATA/e/d", DATA))[-1]
    assert isinstance(after, TopicRefused if over else Payload)


def test_numbers_begin_anew_behind_255_and_none_is_missed():
    taken = both()
    taken.read(message("spBv1.0/g/NBIRTH/e", payload(seq=0)))
    taken.read(message("spBv1.0/g/DBIRTH/e/d", BORN))
    for number in range(2, 600):
        data = payload({"alias": 1, "int_value": 3}, seq=number % 256)
        assert len(took(taken.read(message("spBv1.0/g/DDATA/e/d", data)))) == 1
    assert "came after 87" in found(taken.read(message("spBv1.0/g/DDATA/e/d", DATA)))


def test_what_is_named_has_the_type_of_its_birth():
    taken = both()
    taken.read(message("spBv1.0/g/DBIRTH/e/d", BORN))
    for value in (0xFF, 0xFFFFFFFF):
        data = payload({"name": "a/m", "int_value": value, "timestamp": 7})
        made = taken.read(message("spBv1.0/g/DDATA/e/d", data))
        assert took(made) == [("T", "g/e/d", [{"v": -1, "timestamp": 7}])]


def test_several_values_of_one_metric_at_one_time_are_events_each():
    one = {"name": "n", "datatype": 3, "timestamp": 4}
    two = {"name": "a/m", "datatype": 3, "timestamp": 4, "int_value": 9}
    data = payload({**one, "int_value": 1}, {**one, "int_value": 2}, two)
    ((_, _, events),) = took(both().read(message("spBv1.0/g/DDATA/e/d", data)))
    assert events == [{"w": 1, "v": 9, "timestamp": 4}, {"w": 2, "timestamp": 4}]


def test_readings_without_any_time_are_stamped_on_arrival_and_come_last():
    born = payload(
        {"name": "n", "datatype": 3, "int_value": 1},
        {"name": "a/m", "datatype": 3, "int_value": 2, "timestamp": 4},
    )
    ((_, _, events),) = took(both().read(message("spBv1.0/g/DBIRTH/e/d", born)))
    assert events == [{"v": 2, "timestamp": 4}, {"w": 1}]


def test_values_of_the_past_are_events_of_the_past():
    old = {"name": "n", "datatype": 3, "int_value": 1, "timestamp": 4, "is_historical": True}
    new = {"name": "n", "datatype": 3, "int_value": 2, "timestamp": 6}
    ((_, _, events),) = took(both().read(message("spBv1.0/g/DDATA/e/d", payload(new, old))))
    assert events == [{"w": 1, "timestamp": 4}, {"w": 2, "timestamp": 6}]


def test_a_mapping_of_one_device_hears_the_births_and_deaths_of_its_edge_node():
    one = MappingSection(
        preset="sparkplug-b", topic="spBv1.0/g/{message}/e/d", source="press", type="T"
    )
    taken = Mappings({"one": one}, Limits())
    assert taken.filters() == ["spBv1.0/g/+/e/#"]
    taken.read(message("spBv1.0/g/DBIRTH/e/d", BORN))
    assert taken.read(message("spBv1.0/g/NDATA/f", payload(seq=77))) == []
    assert taken.read(message("spBv1.0/g/NBIRTH/e", payload(seq=0))) == []
    after = payload({"alias": 1, "int_value": 5}, seq=1)
    assert "none is in force" in found(taken.read(message("spBv1.0/g/DDATA/e/d", after)))
    assert taken.read(message("spBv1.0/g/NDEATH/e", payload({"name": "x"}))) == [
        SourceWithdrawn("press")
    ]


def test_a_source_that_said_what_it_is_outlasts_its_deaths():
    taken = both()
    taken.advertised = lambda source: source == "g/e/d"
    for device in "dh":
        taken.read(message(f"spBv1.0/g/DBIRTH/e/{device}", BORN))
    ends = payload({"name": "bdSeq", "datatype": 4, "long_value": 0})
    assert taken.read(message("spBv1.0/g/NDEATH/e", ends)) == [
        SourceWithdrawn("g/e"),
        SourceWithdrawn("g/e/h"),
    ]


def test_a_death_of_a_birth_that_may_have_been_missed_counts():
    taken = both()
    taken.read(message("spBv1.0/g/NBIRTH/e", payload(session(7), seq=0)))
    taken.missed()
    death = message("spBv1.0/g/NDEATH/e", payload(session(8)))
    assert taken.read(death) == [SourceWithdrawn("g/e")]


def test_no_alias_is_believed_once_messages_may_have_been_missed():
    taken = both()
    data = payload({"alias": 1, "int_value": 5}, seq=2)
    for lose in (taken.missed, lambda: taken.read(message("spBv1.0/g/NBIRTH/e", b"\xff"))):
        taken.read(message("spBv1.0/g/NBIRTH/e", payload(session(7), seq=0)))
        taken.read(message("spBv1.0/g/DBIRTH/e/d", BORN))
        assert took(taken.read(message("spBv1.0/g/DDATA/e/d", data)))
        lose()
        assert "none is in force" in found(taken.read(message("spBv1.0/g/DDATA/e/d", data)))
        check_weights(taken._sparkplug.hearing.births)
    big = Mappings({"devices": DEVICES}, Limits(payload_bytes_max=70))
    big.read(message("spBv1.0/g/DBIRTH/e/d", BORN))
    assert took(big.read(message("spBv1.0/g/DDATA/e/d", data)))
    big.read(message("spBv1.0/g/DBIRTH/e/d", BORN + payload(seq=1) * 30))
    assert "none is in force" in found(big.read(message("spBv1.0/g/DDATA/e/d", data)))


@pytest.mark.parametrize("retained", [False, True])
def test_what_a_joined_server_had_retained_is_old_for_births_too(retained):
    section = MappingSection(preset="sparkplug-b", type="T", retained=retained)
    taken = Mappings({"m": section}, Limits(), joined=True)
    made = taken.read(message("spBv1.0/g/DBIRTH/e/d", BORN, retain=True))
    assert len(made) == retained
    assert len(taken._sparkplug.hearing.births) == retained


# --- asking for births ----------------------------------------------------------------------------


def asked(*, rebirth):
    section = MappingSection(preset="sparkplug-b", type="T", rebirth=rebirth)
    taken = Mappings({"m": section}, Limits())
    sent = []
    taken.publish = lambda *said: sent.append(said)
    now_s = [100.0]
    taken._sparkplug._clock_s = lambda: now_s[0]
    return taken, sent, now_s


def test_births_are_asked_for_where_they_are_needed_and_not_again_for_a_minute():
    taken, sent, now_s = asked(rebirth=True)
    taken.read(message("spBv1.0/g/DDATA/e/d", DATA))
    ((topic, command),) = sent
    assert topic == "spBv1.0/g/NCMD/e"
    (_, now_ms), (_, metric) = read(command)
    assert now_ms > 1_700_000_000_000
    assert read(metric) == [(1, b"Node Control/Rebirth"), (3, now_ms), (4, 11), (14, 1)]
    taken.read(message("spBv1.0/g/DDATA/e/d", DATA))
    taken.read(message("spBv1.0/g/DDATA/f/d", DATA))
    assert [topic for topic, _ in sent] == ["spBv1.0/g/NCMD/e", "spBv1.0/g/NCMD/f"]
    now_s[0] += asking.ASK_AGAIN_S
    taken.read(message("spBv1.0/g/DDATA/e/d", DATA))
    assert len(sent) == 3


def test_nobody_is_asked_where_that_does_not_help_or_is_not_allowed():
    taken, sent, _ = asked(rebirth=True)
    taken.read(message("spBv1.0/g/DDATA/e/d", b"\xff"))
    taken.read(message("spBv1.0/g/DBIRTH/e/d", BORN))
    taken.read(message("spBv1.0/g/DDATA/e/d", DATA))
    taken.read(message("spBv1.0/g/NDATA/e", payload({"alias": 1})))  # no mapping wants it
    assert sent == []
    taken, sent, _ = asked(rebirth=False)
    taken.read(message("spBv1.0/g/DDATA/e/d", DATA))
    assert sent == []


# --- in the core ----------------------------------------------------------------------------------


def test_events_and_deaths_go_the_way_of_all_others():
    machine = Machine()
    machine.submit(
        "event T(v: int, w: float)\nsubscription Low from anna to alerts\ndetect T(v < 0)"
    )
    taken = both()
    effects = []
    ends = payload({"name": "bdSeq", "datatype": 4, "long_value": 0})
    said = [("DBIRTH/e/d", BORN), ("DDATA/e/d", DATA), ("DDATA/e/h", DATA), ("NDEATH/e", ends)]
    for topic, data in said:
        for one in taken.read(message(f"spBv1.0/g/{topic}", data)):
            effects += machine.tell(EventsReceived((one,)) if isinstance(one, Payload) else one)
    results = [json.loads(r.payload) for e in effects for r in getattr(e, "results", ())]
    assert [one["start"] for one in results] == [3, 7]
    published = [one for e in effects for one in getattr(e, "publications", ())]
    refused = [json.loads(one.payload) for one in published if one.topic == "rejected"]
    assert [(one["topic"], one["reason"]) for one in refused] == [
        ("spBv1.0/g/DDATA/e/h", "not_mapped")
    ]
    assert machine.broker.ledger.notes["payloads_not_mapped"] == 1
    ended = [one.topic for one in published if one.topic.startswith("sources/")]
    assert ended == ["sources/g/e", "sources/g/e/d", "sources/g/e/h"]
