"""CONNECT, its flags and fields, and CONNACK: sections 3.1 and 3.2 but for wills and sessions."""

from broker.mqtt.limits import MqttLimits
from tests.conformance import wire as w
from tests.conformance.statements import states

LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@states("The first packet of a client is CONNECT.", v311="3.1.0-1", v5="3.1.0-1")
def test_what_begins_otherwise_is_closed(scene, version):
    topic = scene.topic()
    listener = scene.listen(version, topic)
    for first in (w.publish(version, topic, b"x"), w.packet(w.PINGREQ), w.disconnect()):
        client = scene.socket(version)
        client.send(first)
        assert client.ended() == []
    listener.nothing()


@states("A second CONNECT closes the connection.", v311="3.1.0-2", v5="3.1.0-2")
def test_a_second_connect_closes(scene, version):
    client = scene.connect(version)
    client.send(w.Login(version, client.client_id).encode())
    client.refused(0x82)


@states(
    "A protocol name other than MQTT is not taken for MQTT: the connection ends, nothing is done.",
    v311="3.1.2-1",
    v5="3.1.2-1",
)
def test_another_protocol_name_is_refused(scene, version):
    for name in (b"MQTX", b"mqtt", b""):
        client = scene.greet(version, name=name)
        client.send(w.packet(w.PINGREQ))
        said = client.ended()
        assert all(got.kind == w.CONNACK and got.code for got in said)
        assert len(said) <= 1


@states(
    "An unknown protocol level is answered with CONNACK 1, and the connection is closed.",
    v311="3.1.2-2",
)
def test_an_unknown_level_is_told_with_code_1(scene, version):
    client = scene.greet(version, level=9)
    assert [(got.kind, got.code) for got in client.ended()] == [(w.CONNACK, 1)]


@states("An unknown protocol version ends with the connection closed.", v5="3.1.2-2")
def test_an_unknown_version_is_closed(scene, version):
    client = scene.socket(w.V311)  # as that is how an answer to a stranger is to be read
    client.send(w.Login(w.V5, scene.client_id(), level=6).encode())
    said = client.ended()
    assert len(said) <= 1
    assert all(got.kind == w.CONNACK and got.code for got in said)


@states("The reserved bit of the connect flags has to be 0.", v311="3.1.2-3", v5="3.1.2-3")
def test_the_reserved_connect_flag_is_checked(scene, version):
    said = scene.greet(version, bits=1).ended()
    assert all(got.kind == w.CONNACK and got.code >= 0x80 for got in said)


@states(
    "The order in the payload is client identifier, will topic, will message, user, password.",
    v311="3.1.3-1",
    v5="3.1.3-1",
)
def test_the_payloads_order(scene, version):
    topic = scene.topic()
    listener = scene.listen(version, topic)
    will = w.Will(topic, b"the will")
    client = scene.connect(version, will=will, user="anna", password=b"pass")
    scene.lose(client)
    (got,) = listener.messages()
    assert got.payload == b"the will"


@states("What a server keeps of a client goes by its identifier.", v311="3.1.3-2", v5="3.1.3-2")
def test_the_session_goes_by_the_identifier(scene, version):
    first = scene.keep(version)
    first.subscribe(scene.topic(), qos=1)
    first.disconnect()
    other = scene.keep(version)
    assert not other.connack.present
    again = scene.keep(version, first.client_id)
    assert again.connack.present


@states("A CONNECT has a client identifier, first in its payload.", v311="3.1.3-3", v5="3.1.3-3")
def test_a_connect_without_an_identifier_is_closed(scene, version):
    head = w.binary(b"MQTT") + bytes((version, 2)) + w.u16(0) + w.held(version, ())
    client = scene.socket(version)
    client.send(w.packet(w.CONNECT, head))
    said = client.ended()
    assert all(got.kind == w.CONNACK and got.code >= 0x80 for got in said)


@states("The client identifier is well-formed UTF-8.", v311="3.1.3-4", v5="3.1.3-4")
def test_the_identifier_is_checked(scene, version):
    for bad in (b"\xff", b"a\0b"):
        said = scene.greet(version, bad).ended()
        assert all(got.kind == w.CONNACK and got.code for got in said)


@states("Identifiers of 1 to 23 letters and digits are allowed.", v311="3.1.3-5", v5="3.1.3-5")
def test_short_identifiers_of_letters_are_allowed(scene, version):
    for at in range(0, len(LETTERS), 23):
        scene.connect(version, LETTERS[at : at + 23])
    scene.connect(version, "Q")


@states("A client without an identifier gets one that is its own.", v311="3.1.3-6", v5="3.1.3-6")
def test_clients_without_an_identifier_do_not_take_each_other_over(scene, version):
    topic = scene.topic()
    many = [scene.connect(version, "") for _ in range(3)]
    for client in many:
        assert client.subscribe(topic) == [0]
    scene.connect(version).publish(topic, b"x", qos=1)
    assert [client.payloads() for client in many] == [[b"x"]] * 3


@states("An assigned identifier is told in CONNACK.", v5="3.1.3-7")
def test_the_assigned_identifier_is_told(scene, version):
    client = scene.connect(version, "")
    name = client.connack.of(w.ASSIGNED_ID)
    assert name
    again = scene.connect(version, name)
    assert again.connack.of(w.ASSIGNED_ID) is None
    client.refused(0x8E)


@states("Without an identifier a 3.1.1 client asks for a clean session.", v311="3.1.3-7")
def test_no_identifier_needs_a_clean_session(scene, version):
    assert scene.connect(version, "").connack.code == 0
    assert scene.greet(version, "", clean=False).expect(w.CONNACK).code == 2


@states(
    "No identifier and no clean session: CONNACK 2, and the connection is closed.", v311="3.1.3-8"
)
def test_no_identifier_to_be_kept_is_refused_with_code_2(scene, version):
    said = scene.greet(version, "", clean=False).ended()
    assert [(got.kind, got.code) for got in said] == [(w.CONNACK, 2)]


@states(
    "An identifier that is not accepted is told so in CONNACK, and the connection is closed.",
    v311="3.1.3-9",
    v5="3.1.3-8",
)
def test_an_identifier_that_is_refused(scene, version):
    """Only a server with a bound refuses one; MQTT leaves the bound to the server."""
    client = scene.greet(version, "x" * 60_000)
    said = client.ended() if scene.peer.bounded else client.rest()
    expected = 0 if not scene.peer.bounded else 0x85 if version == w.V5 else 2
    assert [(got.kind, got.code) for got in said] == [(w.CONNACK, expected)]


@states("The user's name is well-formed UTF-8.", v311="3.1.3-11", v5="3.1.3-12")
def test_the_users_name_is_checked(scene, version):
    said = scene.greet(version, user=b"\xff\xfe", password=b"").ended()
    assert all(got.kind == w.CONNACK and got.code for got in said)


@states(
    "Without the flag of a user name there is none in the payload.",
    v311="3.1.2-18",
    v5="3.1.2-16",
)
def test_a_user_name_without_its_flag_is_too_much(scene, version):
    said = connect_with(scene, version, 0x02, w.binary("anna")).ended()
    assert all(got.kind == w.CONNACK and got.code for got in said)


@states("With the flag of a user name there is one in the payload.", v311="3.1.2-19", v5="3.1.2-17")
def test_a_user_name_that_is_missing(scene, version):
    said = connect_with(scene, version, 0x82, b"").ended()
    assert all(got.kind == w.CONNACK and got.code for got in said)


@states(
    "Without the flag of a password there is none in the payload.",
    v311="3.1.2-20",
    v5="3.1.2-18",
)
def test_a_password_without_its_flag_is_too_much(scene, version):
    said = connect_with(scene, version, 0x82, w.binary("anna") + w.binary("pw")).ended()
    assert all(got.kind == w.CONNACK and got.code for got in said)


@states("With the flag of a password there is one in the payload.", v311="3.1.2-21", v5="3.1.2-19")
def test_a_password_that_is_missing(scene, version):
    said = connect_with(scene, version, 0xC2, w.binary("anna")).ended()
    assert all(got.kind == w.CONNACK and got.code for got in said)


@states("A password comes with a user name.", v311="3.1.2-22")
def test_a_password_alone_is_refused(scene, version):
    said = connect_with(scene, version, 0x42, w.binary("pw")).ended()
    assert all(got.kind == w.CONNACK and got.code for got in said)


def connect_with(scene, version, bits, after):
    """A CONNECT with these flags, and `after` behind its client identifier."""
    head = w.binary(b"MQTT") + bytes((version, bits)) + w.u16(0) + w.held(version, ())
    client = scene.socket(version)
    return client.send(w.packet(w.CONNECT, head + w.binary(scene.client_id()) + after))


@states(
    "A CONNECT that is not as the standard has it closes the connection, in 3.1.1 without a word.",
    v311="3.1.4-1",
    v5="3.1.4-1",
)
def test_a_faulty_connect_is_closed(scene, version):
    good = w.Login(version, scene.client_id()).encode()
    faulty = [good[:1] + w.varint(len(good) - 3) + good[2:-1], w.packet(w.CONNECT)]
    faulty.append(bytes((good[0] | 2,)) + good[1:])  # reserved flags of the fixed header
    for bad in faulty:
        said = scene.socket(version).send(bad).ended()
        assert version == w.V5 or said == []
        assert all(got.kind == w.CONNACK and got.code >= 0x80 for got in said)


@states(
    "A second connection of a client identifier takes the place of the first, which is closed.",
    v311="3.1.4-2",
    v5="3.1.4-3",
)
def test_the_second_connection_takes_over(scene, version):
    first = scene.connect(version)
    second = scene.connect(version, first.client_id)
    code = first.refused(0x8E)
    assert code is None if version == w.V311 else code == 0x8E
    second.ping()


class OnlyAnna:
    """Who may come in, for a server with users."""

    def __bool__(self):
        return True

    def remembered(self, name, password):
        return False

    def login(self, name, password):
        return (name, password) == ("anna", "right")


@states("Who fails a further check, as that of the password, is closed.", v5="3.1.4-2")
def test_who_may_not_come_in_is_closed(scene, version):
    with scene.another(users=OnlyAnna()) as inside:
        assert inside.connect(version, user="anna", password=b"right").connack.code == 0
        for user, password in (("anna", b"wrong"), ("bert", b"right"), (None, None)):
            said = inside.greet(version, user=user, password=password).ended()
            assert [(got.kind, got.code in {0x86, 0x87}) for got in said] == [(w.CONNACK, True)]


@states("A good CONNECT is processed as its clean flag says.", v311="3.1.4-3", v5="3.1.4-4")
def test_the_clean_flag_is_processed(scene, version):
    first = scene.keep(version)
    assert [scene.keep(version, first.client_id).connack.present for _ in range(2)] == [True] * 2
    assert not scene.keep(version, first.client_id, clean=True).connack.present


@states("A good CONNECT is answered with CONNACK 0.", v311="3.1.4-4", v5="3.1.4-5")
def test_a_good_connect_is_answered_with_0(scene, version):
    client = scene.greet(version)
    got = client.expect(w.CONNACK)
    assert got.code == 0
    client.nothing()


@states("What follows a CONNECT that is refused is not processed.", v311="3.1.4-5", v5="3.1.4-6")
def test_nothing_after_a_refused_connect_counts(scene, version):
    topic = scene.topic()
    listener = scene.listen(version, topic)
    client = scene.socket(version)
    bad = w.Login(version, scene.client_id(), bits=1).encode()
    client.send(bad + w.publish(version, topic, b"x") + w.publish(version, topic, b"y", 1, 1))
    client.ended()
    listener.nothing()


@states("The first packet of the server is CONNACK.", v311="3.2.0-1", v5="3.2.0-1")
def test_connack_comes_first(scene, version):
    """Also where messages wait for the client and it has sent more right after its CONNECT."""
    topic = scene.topic()
    kept = scene.keep(version)
    kept.subscribe(topic, qos=1)
    kept.disconnect()
    scene.connect(version).publish(topic, b"x", qos=1)
    client = scene.socket(version)
    props = ((w.SESSION_EXPIRY, 60),) if version == w.V5 else ()
    login = w.Login(version, kept.client_id, clean=False, props=props)
    client.send(login.encode() + w.packet(w.PINGREQ))
    said = [client.next().kind for _ in range(3)]
    assert said[0] == w.CONNACK
    assert sorted(said[1:]) == [w.PUBLISH, w.PINGRESP]


@states("There is one CONNACK in a connection.", v5="3.2.0-2")
def test_a_second_connect_gets_no_second_connack(scene, version):
    client = scene.connect(version)
    client.send(w.Login(version, client.client_id).encode())
    assert w.CONNACK not in [got.kind for got in client.ended()]


@states("The reserved bits of the acknowledge flags are 0.", v5="3.2.2-1")
def test_reserved_acknowledge_flags_are_0(scene, version):
    first = scene.keep(version)
    again = scene.keep(version, first.client_id)
    refused = scene.greet(version, bits=1).ended()
    assert first.connack.bits == 0
    assert again.connack.bits == 1
    assert all(got.bits == 0 for got in refused)


@states("With a clean start, session present is 0.", v311="3.2.2-1", v5="3.2.2-2")
def test_a_clean_start_has_no_session(scene, version):
    first = scene.keep(version)
    first.disconnect()
    again = scene.connect(version, first.client_id, clean=True)
    assert (again.connack.code, again.connack.bits) == (0, 0)


@states("Session present is 1 where there is a session.", v311="3.2.2-2", v5="3.2.2-3")
def test_a_kept_session_is_told(scene, version):
    first = scene.keep(version)
    assert (first.connack.code, first.connack.bits) == (0, 0)
    first.disconnect()
    again = scene.keep(version, first.client_id)
    assert (again.connack.code, again.connack.bits) == (0, 1)


@states("Session present is 0 where there is no session.", v311="3.2.2-3")
def test_no_session_is_told(scene, version):
    client = scene.keep(version)
    assert (client.connack.code, client.connack.bits) == (0, 0)


@states("A CONNACK that refuses has session present 0.", v311="3.2.2-4", v5="3.2.2-6")
def test_a_refusal_has_no_session(scene, version):
    said = refuse(scene, version).ended()
    assert said
    assert [got.bits for got in said] == [0]


@states("A CONNACK that refuses is the end of the connection.", v311="3.2.2-5", v5="3.2.2-7")
def test_a_refusal_closes(scene, version):
    said = refuse(scene, version).ended()
    assert [(got.kind, got.code != 0) for got in said] == [(w.CONNACK, True)]


def refuse(scene, version):
    """A CONNECT that every server refuses with a CONNACK."""
    if version == w.V311:
        return scene.greet(version, "", clean=False)
    return scene.greet(version, props=[(w.AUTH_METHOD, "no-such-method")])


@states(
    "Where no return code says why, the connection is closed without a CONNACK.", v311="3.2.2-6"
)
def test_no_connack_where_no_code_fits(scene, version):
    assert scene.greet(version, bits=1).ended() == []


@states("A CONNACK has one of the reason codes that the standard lists.", v5="3.2.2-8")
def test_connack_codes_are_listed(scene, version):
    listed = {0, *range(0x80, 0x8B), 0x8C, 0x90, 0x95, 0x97, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9F}
    assert scene.connect(version).connack.code in listed
    refused = [refuse(scene, version), scene.greet(version, bits=1)]
    refused.append(scene.greet(version, will=w.Will("a/#")))
    for client in refused:
        said = client.ended()
        assert [(got.kind, got.code in listed) for got in said] in ([], [(w.CONNACK, True)])


@states("A server without QoS 2 says so in CONNACK by the highest QoS that it has.", v5="3.2.2-9")
def test_the_highest_qos_is_told(scene, version):
    client = scene.connect(version)
    highest = client.connack.of(w.MAX_QOS, 2)
    assert highest in {0, 1, 2}
    assert w.MAX_QOS not in dict(client.connack.props) or highest < 2
    if highest == 2:
        assert client.publish(scene.topic(), b"x", qos=2).kind == w.PUBREC


@states("A SUBSCRIBE may ask for any QoS, whatever the server has.", v5="3.2.2-10")
def test_any_qos_may_be_asked_for(scene, version):
    client = scene.connect(version)
    highest = client.connack.of(w.MAX_QOS, 2)
    granted = [client.subscribe(scene.topic(str(qos)), qos=qos) for qos in (0, 1, 2)]
    assert granted == [[min(qos, highest)] for qos in (0, 1, 2)]


@states("A PUBLISH above the highest QoS that was told closes the connection.", v5="3.2.2-11")
def test_a_qos_above_the_highest_told_closes(scene, version):
    client = scene.connect(version)
    if client.connack.of(w.MAX_QOS, 2) == 2:
        client.send(w.publish(version, scene.topic(), b"x", 2, 1))
        assert client.expect(w.PUBREC).code < 0x80  # nothing is above 2
    else:
        client.send(w.publish(version, scene.topic(), b"x", 2, 1))
        client.refused(0x9B)


@states("A will above the highest QoS that the server has is refused.", v5="3.2.2-12")
def test_a_will_above_the_highest_qos(scene, version):
    highest = scene.connect(version).connack.of(w.MAX_QOS, 2)
    client = scene.greet(version, will=w.Will(scene.topic(), qos=2))
    got = client.expect(w.CONNACK)
    if highest == 2:
        assert got.code == 0
    else:
        assert got.code == 0x9B
        assert client.ended() == []


@states("A retained will is taken where the server retains messages.", v5="3.2.2-13")
def test_a_retained_will_is_taken_or_refused(scene, version):
    client = scene.greet(version, will=w.Will(scene.topic(), retain=True))
    got = client.expect(w.CONNACK)
    available = scene.connect(version).connack.of(w.RETAIN_AVAILABLE, 1)
    assert got.code == (0 if available else 0x9A)


@states("A packet larger than the server's maximum closes the connection.", v5="3.2.2-15")
def test_a_packet_above_the_servers_maximum(scene, version):
    client = scene.connect(version)
    most = client.connack.of(w.MAX_PACKET)
    if most is None:
        scene.not_spoken("the server has no maximum packet size")
    client.send(bytes((w.PUBLISH << 4,)) + w.varint(most))  # the head of one five bytes too large
    client.refused(0x95)


@states("An assigned identifier is no other session's.", v5="3.2.2-16")
def test_assigned_identifiers_are_new(scene, version):
    names = [scene.connect(version, "").connack.of(w.ASSIGNED_ID) for _ in range(10)]
    assert all(names)
    assert len(set(names)) == 10


@states("A topic alias above the server's maximum closes the connection.", v5="3.2.2-17")
def test_an_alias_above_the_servers_maximum(scene, version):
    client = scene.connect(version)
    most = client.connack.of(w.ALIAS_MAX, 0)
    client.send(w.publish(version, scene.topic(), props=[(w.ALIAS, most + 1)]))
    client.refused(0x94)


@states("Where the server told no alias maximum, or 0, a topic alias closes.", v5="3.2.2-18")
def test_no_alias_where_none_may_be(scene, version):
    with scene.another(limits=MqttLimits(topic_alias_max=0)) as inside:
        client = inside.connect(version)
        assert client.connack.of(w.ALIAS_MAX, 0) == 0
        client.send(w.publish(version, scene.topic(), props=[(w.ALIAS, 1)]))
        client.refused(0x94)


@states("Response information comes only where the client asked for it.", v5="3.1.2-28")
def test_no_response_information_unasked(scene, version):
    for props in ((), ((w.RESPONSE_WANTED, 0),)):
        client = scene.connect(version, props=props)
        assert client.connack.of(w.RESPONSE_INFO) is None


@states(
    "With request problem information 0, no reason string nor user property comes on an "
    "acknowledgement.",
    v5="3.1.2-29",
)
def test_no_problem_information_unwanted(scene, version):
    client = scene.connect(version, props=[(w.PROBLEM_INFO, 0)])
    client.send(
        w.subscribe(version, 1, [("$share//x", 0), (scene.topic(), 1)]),
        w.publish(version, scene.topic("nobody"), b"", 1, 2),
        w.unsubscribe(version, 3, [scene.topic("none")]),
    )
    for kind in (w.SUBACK, w.PUBACK, w.UNSUBACK):
        got = client.next()
        assert got.kind == kind
        assert got.all_of(w.REASON_STRING) == got.all_of(w.USER) == []


@states("Without a server keep-alive in CONNACK, the client's own holds.", v5="3.2.2-22")
def test_the_clients_keep_alive_holds(scene, version):
    client = scene.connect(version, keep_alive_s=2)
    keep_alive_s = client.connack.of(w.SERVER_KEEP_ALIVE, 2)
    scene.pass_time(keep_alive_s * 1.2)
    client.ping()
    scene.pass_time(keep_alive_s * 1.2)
    client.ping()
    scene.pass_time(keep_alive_s * 1.7)
    client.refused(0x8D)
    # With one in CONNACK that holds, for a client that asked for none.
    with scene.another(limits=MqttLimits(keep_alive_s_max=3)) as inside:
        client = inside.connect(version)
        assert client.connack.of(w.SERVER_KEEP_ALIVE) == 3
        inside.pass_time(5)
        client.refused(0x8D)


@states(
    "Who is silent for one and a half times its keep-alive is closed as if the network had failed.",
    v311="3.1.2-24",
    v5="3.1.2-22",
)
def test_silence_closes_and_publishes_the_will(scene, version):
    topic = scene.topic()
    listener = scene.listen(version, topic)
    patient = scene.connect(version)  # a keep-alive of 0 is none
    client = scene.connect(version, keep_alive_s=1, will=w.Will(topic, b"silent"))
    scene.pass_time(1.6)
    client.refused(0x8D)
    assert listener.payloads() == [b"silent"]
    patient.ping()
