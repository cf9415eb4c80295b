"""Wills: section 3.1.2.5 and its flags, and what DISCONNECT does to them."""

from tests.conformance import wire as w
from tests.conformance.statements import states


@states("A will is kept with the session and published where its client is lost.", v5="3.1.2-7")
def test_a_will_is_kept_with_the_session(scene, version):
    """The network connection is long gone when its time comes: the session held it."""
    topic = scene.topic()
    listener = scene.listen(version, topic)
    will = w.Will(topic, b"kept", props=((w.WILL_DELAY, 2),))
    scene.lose(scene.keep(version, will=will))
    listener.nothing()
    scene.pass_time(2.5)
    assert listener.payloads() == [b"kept"]


@states(
    "The will is published when the connection is closed otherwise than by a good DISCONNECT, in "
    "MQTT 5 after its delay or at the session's end.",
    v311="3.1.2-8",
    v5="3.1.2-8",
    within="a delay longer than `will_delay_s_max`, an hour, is cut to that: later it is no news",
)
def test_a_lost_clients_will_is_published(scene, version):
    topic = scene.topic()
    listener = scene.listen(version, topic)
    scene.lose(scene.connect(version, will=w.Will(topic, b"network")))
    assert listener.payloads() == [b"network"]
    scene.connect(version, will=w.Will(topic, b"fault")).send(b"\x00\x00").ended()
    assert listener.payloads() == [b"fault"]
    if version == w.V5:
        client = scene.connect(version, will=w.Will(topic, b"wanted"))
        client.disconnect(4)
        assert listener.payloads() == [b"wanted"]
        delayed = w.Will(topic, b"session", props=((w.WILL_DELAY, 3600),))
        scene.lose(scene.connect(version, will=delayed))  # its session ends with its connection
        scene.pass_time(1)
        assert listener.payloads() == [b"session"]


@states(
    "With the will flag there are a will topic and a will message, and its QoS and retain count.",
    v311="3.1.2-9",
    v5="3.1.2-9",
)
def test_the_wills_fields(scene, version):
    topic = scene.topic()
    listener = scene.listen(version, topic, qos=1)
    for qos in (0, 1):
        scene.lose(scene.connect(version, will=w.Will(topic, b"x", qos)))
        assert [got.qos for got in listener.messages()] == [qos]
    head = w.binary(b"MQTT") + bytes((version, 0x06)) + w.u16(0) + w.held(version, ())
    client = scene.socket(version)
    client.send(w.packet(w.CONNECT, head + w.binary(scene.client_id())))
    assert all(got.kind == w.CONNACK and got.code for got in client.ended())


@states(
    "A will is forgotten once it was published, or DISCONNECT has come.",
    v311="3.1.2-10",
    v5="3.1.2-10",
)
def test_a_will_is_published_once_at_most(scene, version):
    topic = scene.topic()
    listener = scene.listen(version, topic)
    for leave, expected in ((scene.lose, [b"x"]), (lambda client: client.disconnect(), [])):
        client = scene.keep(version, will=w.Will(topic, b"x"))
        leave(client)
        assert listener.payloads() == expected
        scene.lose(scene.keep(version, client.client_id))
        listener.nothing()


@states(
    "Without the will flag, will QoS and will retain are 0, and there is no will in the payload.",
    v311="3.1.2-11",
)
def test_no_will_flag_no_will_fields(scene, version):
    head = w.binary(b"MQTT") + bytes((version, 0x02)) + w.u16(0)
    body = head + w.binary(scene.client_id()) + w.binary(scene.topic()) + w.binary(b"x")
    assert scene.socket(version).send(w.packet(w.CONNECT, body)).ended() == []
    assert scene.greet(version, bits=0x28).ended() == []


@states("Without the will flag nothing is published at the end.", v311="3.1.2-12")
def test_no_will_no_message(scene, version):
    listener = scene.listen(version, "#")
    scene.lose(scene.connect(version))
    assert not [got for got in listener.messages() if got.topic.startswith(scene.name)]


@states("Without the will flag, will QoS is 0.", v311="3.1.2-13", v5="3.1.2-11")
def test_no_will_flag_no_will_qos(scene, version):
    for qos in (1, 2):
        said = scene.greet(version, bits=qos << 3).ended()
        assert all(got.kind == w.CONNACK and got.code for got in said)


@states("Will QoS is never 3.", v311="3.1.2-14", v5="3.1.2-12")
def test_will_qos_3_is_refused(scene, version):
    said = scene.greet(version, will=w.Will(scene.topic(), qos=3)).ended()
    assert all(got.kind == w.CONNACK and got.code for got in said)


@states("Without the will flag, will retain is 0.", v311="3.1.2-15", v5="3.1.2-13")
def test_no_will_flag_no_will_retain(scene, version):
    said = scene.greet(version, bits=0x20).ended()
    assert all(got.kind == w.CONNACK and got.code for got in said)


@states("A will without retain is not retained.", v311="3.1.2-16", v5="3.1.2-14")
def test_a_plain_will_is_not_retained(scene, version):
    topic = scene.topic()
    scene.lose(scene.connect(version, will=w.Will(topic, b"x")))
    scene.listen(version, topic).nothing()


@states("A will with retain is retained.", v311="3.1.2-17", v5="3.1.2-15")
def test_a_retained_will_is_retained(scene, version):
    topic = scene.topic()
    scene.lose(scene.connect(version, will=w.Will(topic, b"x", retain=True)))
    (got,) = scene.listen(version, topic).messages()
    assert (got.payload, got.retain) == (b"x", True)


@states("A will topic is well-formed UTF-8.", v311="3.1.3-10", v5="3.1.3-11")
def test_the_will_topic_is_checked(scene, version):
    for bad in (b"\xff", b"a\0b"):
        said = scene.greet(version, will=w.Will(bad)).ended()
        assert all(got.kind == w.CONNACK and got.code for got in said)


@states(
    "A client that is back before its will delay is over does not get its will published.",
    v5="3.1.3-9",
)
def test_back_before_the_delay(scene, version):
    topic = scene.topic()
    listener = scene.listen(version, topic)
    client = scene.keep(version, will=w.Will(topic, props=((w.WILL_DELAY, 2),)))
    scene.lose(client)
    scene.keep(version, client.client_id)
    scene.pass_time(2.5)
    listener.nothing()


@states("User properties of a will keep their order.", v5="3.1.3-10")
def test_a_wills_user_properties_keep_their_order(scene, version):
    topic = scene.topic()
    pairs = [("b", "1"), ("a", "2"), ("b", "1"), ("a", "1")]
    listener = scene.listen(version, topic)
    will = w.Will(topic, b"x", props=[(w.USER, pair) for pair in pairs])
    scene.lose(scene.connect(version, will=will))
    (got,) = listener.messages()
    assert got.all_of(w.USER) == pairs


@states("A normal DISCONNECT discards the will.", v311="3.14.4-3", v5="3.14.4-3")
def test_disconnect_discards_the_will(scene, version):
    topic = scene.topic()
    listener = scene.listen(version, topic)
    delay = ((w.WILL_DELAY, 1),) if version == w.V5 else ()
    scene.keep(version, will=w.Will(topic, b"x", props=delay)).disconnect()
    scene.pass_time(1.5)
    listener.nothing()
