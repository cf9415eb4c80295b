"""What a PUBLISH of MQTT 5 carries: sections 3.3.2.3 and 3.3.4."""

from itertools import chain

from tests.conformance import wire as w
from tests.conformance.statements import states


def passed_on(scene, version, *props):
    """The message as a subscriber gets it that was published with these properties."""
    topic = scene.topic()
    listener = scene.listen(version, topic, qos=1)
    scene.connect(version).publish(topic, b"x", 1, props=props)
    (got,) = listener.messages()
    return got


@states("The payload format indicator is passed on as it is.", v5="3.3.2-4")
def test_the_payload_format_is_passed_on(scene, version):
    assert passed_on(scene, version, (w.PAYLOAD_FORMAT, 1)).of(w.PAYLOAD_FORMAT) == 1


@states("What has expired before its delivery began is deleted for that subscriber.", v5="3.3.2-5")
def test_an_expired_message_is_not_delivered(scene, version):
    topic = scene.topic()
    absent = scene.keep(version)
    absent.subscribe(topic, qos=1)
    absent.disconnect()
    sender = scene.connect(version)
    sender.publish(topic, b"short", 1, props=[(w.MESSAGE_EXPIRY, 1)])
    sender.publish(topic, b"long", 1, props=[(w.MESSAGE_EXPIRY, 600)])
    scene.pass_time(2)
    assert scene.keep(version, absent.client_id).payloads() == [b"long"]


@states("The expiry that is passed on is less the time that the message has waited.", v5="3.3.2-6")
def test_the_expiry_is_counted_down(scene, version):
    topic = scene.topic()
    absent = scene.keep(version)
    absent.subscribe(topic, qos=1)
    absent.disconnect()
    scene.connect(version).publish(topic, b"x", 1, props=[(w.MESSAGE_EXPIRY, 100)])
    scene.pass_time(3)
    (got,) = scene.keep(version, absent.client_id).messages()
    assert 90 <= got.of(w.MESSAGE_EXPIRY) <= 97


@states("Topic aliases do not outlive their connection.", v5="3.3.2-7")
def test_aliases_end_with_the_connection(scene, version):
    client = scene.keep(version)
    aliases(scene, client)
    client.publish(scene.topic(), b"x", 1, props=[(w.ALIAS, 1)])
    client.publish("", b"y", 1, props=[(w.ALIAS, 1)])
    client.disconnect()
    again = scene.keep(version, client.client_id)
    again.send(w.publish(version, "", b"z", props=[(w.ALIAS, 1)]))
    again.refused(0x82, 0x94)


def aliases(scene, client):
    """How many topic aliases the server takes, at least one."""
    most = client.connack.of(w.ALIAS_MAX, 0)
    if not most:
        scene.not_spoken("the server takes no topic aliases")
    return most


@states("A topic alias is never 0.", v5="3.3.2-8")
def test_alias_0_closes(scene, version):
    client = scene.connect(version)
    client.send(w.publish(version, scene.topic(), b"x", props=[(w.ALIAS, 0)]))
    client.refused(0x81, 0x82, 0x94)


@states("A client's topic alias is not above the maximum that the server told.", v5="3.3.2-9")
def test_an_alias_above_the_maximum_closes(scene, version):
    client = scene.connect(version)
    client.send(w.publish(version, scene.topic(), props=[(w.ALIAS, 65_535)]))
    client.refused(0x94, 0x82)


@states("The server's topic aliases are not above the maximum that the client told.", v5="3.3.2-11")
def test_the_servers_aliases_are_within_the_clients_maximum(scene, version):
    topic = scene.topic()
    for most in (1, 2):
        client = scene.connect(version, props=[(w.ALIAS_MAX, most)])
        client.subscribe(scene.topic("#"))
        sender = scene.connect(version)
        for name in ("a", "b", "c", "a", "b", "c"):
            sender.publish(f"{topic}/{name}", name.encode(), 1)
        known = {}
        for got, name in zip(client.messages(), "abcabc", strict=True):
            alias = got.of(w.ALIAS)
            assert alias is None or 1 <= alias <= most
            if alias and got.topic:
                known[alias] = got.topic
            assert (got.topic or known[alias]) == f"{topic}/{name}"


@states("The server takes every topic alias from 1 to the maximum that it told.", v5="3.3.2-12")
def test_all_aliases_up_to_the_maximum_are_taken(scene, version):
    client = scene.connect(version)
    most = aliases(scene, client)
    listener = scene.listen(version, scene.topic("+"))
    numbers = sorted({1, 2, most // 2 or 1, most})
    for alias in numbers:
        client.publish(scene.topic(str(alias)), b"set", 1, props=[(w.ALIAS, alias)])
    for alias in numbers:
        client.publish("", b"used", 1, props=[(w.ALIAS, alias)])
    got = [(one.topic, one.payload) for one in listener.messages()]
    expected = [(scene.topic(str(alias)), b"set") for alias in numbers]
    assert got == expected + [(topic, b"used") for topic, _ in expected]


@states("A response topic is well-formed UTF-8.", v5="3.3.2-13")
def test_the_response_topic_is_checked(scene, version):
    client = scene.connect(version)
    client.send(w.publish(version, scene.topic(), props=[(w.RESPONSE_TOPIC, b"\xff")]))
    client.refused(0x81, 0x90)


@states("A response topic holds no wildcards.", v5="3.3.2-14")
def test_a_response_topic_with_wildcards_closes(scene, version):
    for bad in ("a/#", "+"):
        client = scene.connect(version)
        client.send(w.publish(version, scene.topic(), props=[(w.RESPONSE_TOPIC, bad)]))
        client.refused(0x81, 0x82, 0x90)


@states("The response topic is passed on as it is.", v5="3.3.2-15")
def test_the_response_topic_is_passed_on(scene, version):
    got = passed_on(scene, version, (w.RESPONSE_TOPIC, "an/answer é"))
    assert got.of(w.RESPONSE_TOPIC) == "an/answer é"


@states("Correlation data are passed on as they are.", v5="3.3.2-16")
def test_correlation_data_are_passed_on(scene, version):
    data = bytes(range(256))
    assert passed_on(scene, version, (w.CORRELATION, data)).of(w.CORRELATION) == data


@states("User properties are passed on as they are.", v5="3.3.2-17")
def test_user_properties_are_passed_on(scene, version):
    pairs = [("k", "v"), ("", ""), ("é", "日本")]
    got = passed_on(scene, version, *[(w.USER, pair) for pair in pairs])
    assert sorted(got.all_of(w.USER)) == sorted(pairs)


@states("User properties keep their order.", v5="3.3.2-18")
def test_user_properties_keep_their_order(scene, version):
    pairs = [("z", "1"), ("a", "2"), ("z", "1"), ("m", ""), ("a", "1")]
    got = passed_on(scene, version, *[(w.USER, pair) for pair in pairs])
    assert got.all_of(w.USER) == pairs


@states("A content type is well-formed UTF-8.", v5="3.3.2-19")
def test_the_content_type_is_checked(scene, version):
    client = scene.connect(version)
    client.send(w.publish(version, scene.topic(), props=[(w.CONTENT_TYPE, b"\xc3")]))
    client.refused(0x81)


@states("The content type is passed on as it is.", v5="3.3.2-20")
def test_the_content_type_is_passed_on(scene, version):
    got = passed_on(scene, version, (w.CONTENT_TYPE, "text/plain; ü"))
    assert got.of(w.CONTENT_TYPE) == "text/plain; ü"


@states("The identifier of a subscription comes with what it makes come.", v5="3.3.4-3")
def test_subscription_identifiers_come_along(scene, version):
    listener = scene.connect(version)
    listener.subscribe(scene.topic("a"), props=[(w.SUBSCRIPTION_ID, 7)])
    listener.subscribe(scene.topic("b"), props=[(w.SUBSCRIPTION_ID, 268_435_455)])
    listener.subscribe(scene.topic("c"))
    sender = scene.connect(version)
    for name in "abc":
        sender.publish(scene.topic(name), b"x", 1)
    got = [one.all_of(w.SUBSCRIPTION_ID) for one in listener.messages()]
    assert got == [[7], [268_435_455], []]


@states("A single copy bears the identifiers of all matching subscriptions.", v5="3.3.4-4")
def test_one_copy_bears_all_identifiers(scene, version):
    listener = scene.connect(version)
    for number, item in enumerate((scene.topic("#"), scene.topic("+"), scene.topic("a")), 1):
        listener.subscribe(item, props=[(w.SUBSCRIPTION_ID, number)])
    scene.connect(version).publish(scene.topic("a"), b"x", 1)
    copies = [got.all_of(w.SUBSCRIPTION_ID) for got in listener.messages()]
    assert sorted(chain(*copies)) == [1, 2, 3]


@states("A client's PUBLISH bears no subscription identifier.", v5="3.3.4-6")
def test_a_clients_subscription_identifier_closes(scene, version):
    client = scene.connect(version)
    client.send(w.publish(version, scene.topic(), props=[(w.SUBSCRIPTION_ID, 1)]))
    client.refused(0x81, 0x82)


@states(
    "More PUBLISHes above QoS 0 without an answer than the server's receive maximum close the "
    "connection.",
    v5="3.3.4-7",
)
def test_too_many_unfinished_publishes_close(scene, version):
    client = scene.connect(version)
    scene.needs_qos_2(client)
    most = client.connack.of(w.RECEIVE_MAX, 65_535)
    for pid in range(1, most + 1):
        client.send(w.publish(version, scene.topic(), b"x", 2, pid))
        assert client.expect(w.PUBREC).code < 0x80
    client.send(w.publish(version, scene.topic(), b"x", 2, most + 1))
    client.refused(0x93)


@states(
    "The server has no more PUBLISHes above QoS 0 on the way than the client's receive maximum.",
    v5="3.3.4-9",
)
def test_the_clients_receive_maximum_holds(scene, version):
    topic = scene.topic()
    client = scene.connect(version, props=[(w.RECEIVE_MAX, 2)])
    scene.subscribe(client, topic, qos=1)
    sender = scene.connect(version)
    for number in range(5):
        sender.publish(topic, b"%d" % number, 1)
    got = client.rest()
    assert [one.payload for one in got] == [b"0", b"1"]
    client.send(w.ack(w.PUBACK, got[0].pid))
    assert [one.payload for one in client.rest()] == [b"2"]
    client.send(w.ack(w.PUBACK, got[1].pid))
    assert [one.payload for one in client.rest()] == [b"3"]


@states("What is no PUBLISH above QoS 0 does not wait for the receive maximum.", v5="3.3.4-10")
def test_other_packets_do_not_wait_for_the_receive_maximum(scene, version):
    topic = scene.topic()
    client = scene.connect(version, props=[(w.RECEIVE_MAX, 1)])
    scene.subscribe(client, topic, qos=1)
    sender = scene.connect(version)
    sender.publish(topic, b"one", 1)
    sender.publish(topic, b"two", 1)
    assert client.take().payload == b"one"
    assert client.subscribe(scene.topic("else")) == [0]
    assert client.publish(scene.topic("else"), b"x", 1).kind == w.PUBACK
    sender.publish(topic, b"loose", 0)
    sender.ping()
    assert [got.qos for got in client.rest()] == [0, 0]
