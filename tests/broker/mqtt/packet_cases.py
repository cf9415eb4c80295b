"""Strategies for every packet of both versions of MQTT, with every property where it may stand."""

from hypothesis import strategies as st

from broker.mqtt.codec import packets as p
from broker.mqtt.codec.properties import TABLE

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
blobs = st.binary(max_size=40)
packet_ids = st.integers(1, 0xFFFF)
levels = st.text(st.characters(exclude_characters="\0/+#$", exclude_categories=["Cs"]), max_size=6)
topic_names = st.lists(levels, min_size=1, max_size=5).map("/".join).filter(bool)


@st.composite
def topic_filters(draw):
    parts = draw(st.lists(st.one_of(levels, st.just("+")), min_size=1, max_size=5))
    if draw(st.booleans()):
        parts[-1] = "#"
    joined = "/".join(parts)
    return joined or "+"


def property_values(row):
    if row.name == "response_topic":
        return topic_names
    if row.kind == "text":
        return texts
    if row.kind == "binary":
        return blobs
    if row.kind == "pair":
        return st.lists(st.tuples(texts, texts), min_size=1, max_size=3).map(tuple)
    if row.name == "subscription_identifier":
        return st.integers(row.least, row.most).map(lambda value: (value,))
    if row.name == "topic_alias":
        return st.integers(1, row.most)
    return st.integers(row.least, row.most)


def properties(packet, *, without=()):
    """None, or at least one of the properties that may stand in this packet."""
    allowed = {
        row.name: property_values(row)
        for row in TABLE
        if packet in row.packets and row.name not in without
    }
    some = st.fixed_dictionaries({}, optional=allowed).filter(bool)
    return st.none() | some.map(lambda values: p.Properties(**values))


def _acks(version, kind, codes):
    name = kind.__name__.lower()
    if version == p.V311:
        return st.builds(kind, packet_ids)
    return st.builds(kind, packet_ids, st.sampled_from(codes), properties(name))


def _connects(version):
    v5 = version == p.V5
    will = st.builds(
        p.Will,
        topic_names,
        blobs,
        st.integers(0, 2),
        st.booleans(),
        properties("will") if v5 else st.none(),
    )
    usernames = st.none() | texts
    plain = st.builds(
        p.Connect,
        st.just(version),
        texts,
        st.booleans(),
        st.integers(0, 0xFFFF),
        st.none() | will,
        usernames if v5 else texts,
        st.none() | blobs,
        properties("connect", without=("authentication_data",)) if v5 else st.none(),
    )
    nameless = st.builds(p.Connect, st.just(version), texts)
    return plain | nameless


def _publishes(version):
    common = (topic_names, blobs)
    v5 = version == p.V5
    held = properties("publish") if v5 else st.none()
    loose = st.builds(p.Publish, *common, st.just(0), st.booleans(), properties=held)
    firm = st.builds(
        p.Publish, *common, st.integers(1, 2), st.booleans(), st.booleans(), packet_ids, held
    )
    return loose | firm


def _subscribes(version):
    v5 = version == p.V5
    flags = st.booleans() if v5 else st.just(False)
    handling = st.integers(0, 2) if v5 else st.just(0)
    item = st.builds(p.Filter, topic_filters(), st.integers(0, 2), flags, flags, handling)
    return st.builds(
        p.Subscribe,
        packet_ids,
        st.lists(item, min_size=1, max_size=4).map(tuple),
        properties("subscribe") if v5 else st.none(),
    )


def packets(version):
    """Any packet that either side may send in this version."""
    v5 = version == p.V5
    codes = st.lists(st.sampled_from([0, 1, 2, 0x80]), min_size=1, max_size=4).map(tuple)

    def held(name):
        return properties(name) if v5 else st.none()

    kinds = [
        _connects(version),
        st.builds(p.Connack, st.booleans(), st.integers(0, 255), held("connack")),
        _publishes(version),
        _acks(version, p.Puback, [0, 0x10, 0x87, 0x97]),
        _acks(version, p.Pubrec, [0, 0x10, 0x99]),
        _acks(version, p.Pubrel, [0, 0x92]),
        _acks(version, p.Pubcomp, [0, 0x92]),
        _subscribes(version),
        st.builds(p.Suback, packet_ids, codes, held("suback")),
        st.builds(
            p.Unsubscribe,
            packet_ids,
            st.lists(topic_filters(), min_size=1, max_size=4).map(tuple),
            held("unsubscribe"),
        ),
        st.builds(p.Unsuback, packet_ids, codes, held("unsuback"))
        if v5
        else st.builds(p.Unsuback, packet_ids),
        st.just(p.Pingreq()),
        st.just(p.Pingresp()),
        st.builds(p.Disconnect, st.sampled_from([0, 4, 0x81]), held("disconnect"))
        if v5
        else st.just(p.Disconnect()),
    ]
    if v5:
        kinds.append(st.builds(p.Auth, st.sampled_from([0, 0x18, 0x19]), held("auth")))
    return st.one_of(kinds)
