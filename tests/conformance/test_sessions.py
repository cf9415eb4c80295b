"""Sessions, what they keep, and the order of messages: 3.1.2.4, 4.1, 4.5 and 4.6."""

from tests.conformance.statements import states


def absent(scene, version, topic, qos=1, **parts):
    """A client that has subscribed and gone; its session is kept."""
    client = scene.keep(version, **parts)
    scene.subscribe(client, topic, qos=qos)
    client.disconnect()
    return client.client_id


@states(
    "Without a clean session the session goes on, is made where there is none, and is kept.",
    v311="3.1.2-4",
)
def test_a_session_is_kept(scene, version):
    topic = scene.topic()
    name = absent(scene, version, topic)
    again = scene.keep(version, name)
    assert again.connack.present
    scene.connect(version).publish(topic, b"x", 1)
    assert again.payloads() == [b"x"]


@states("Messages of QoS 1 and 2 for a client that is away are kept.", v311="3.1.2-5")
def test_messages_wait_for_who_is_away(scene, version):
    topic = scene.topic()
    name = absent(scene, version, topic)
    sender = scene.connect(version)
    for number in range(5):
        sender.publish(topic, b"%d" % number, 1)
    sender.publish(topic, b"5", 2)
    assert scene.keep(version, name).payloads() == [b"%d" % number for number in range(6)]


@states("A clean session discards what was before, and ends with its connection.", v311="3.1.2-6")
def test_a_clean_session_ends(scene, version):
    topic = scene.topic()
    name = absent(scene, version, topic)
    clean = scene.connect(version, name, clean=True)
    scene.connect(version).publish(topic, b"x", 1)
    clean.nothing()
    scene.subscribe(clean, topic, qos=1)
    clean.disconnect()
    again = scene.keep(version, name)
    assert not again.connack.present
    scene.connect(version).publish(topic, b"x", 1)
    again.nothing()


@states("What is retained outlives the sessions.", v311="3.1.2-7")
def test_retained_messages_outlive_the_session(scene, version):
    topic = scene.topic()
    client = scene.connect(version)
    client.publish(topic, b"x", 1, retain=True)
    client.disconnect()
    assert scene.listen(version, topic).payloads() == [b"x"]


@states("A clean start discards the session that there was.", v5="3.1.2-4")
def test_a_clean_start_discards(scene, version):
    topic = scene.topic()
    name = absent(scene, version, topic)
    scene.connect(version).publish(topic, b"old", 1)
    clean = scene.keep(version, name, clean=True)
    assert not clean.connack.present
    scene.connect(version).publish(topic, b"new", 1)
    clean.nothing()
    clean.disconnect()
    again = scene.keep(version, name)
    assert again.connack.present
    again.nothing()


@states("Without a clean start the session that there is goes on.", v5="3.1.2-5")
def test_a_session_goes_on(scene, version):
    topic = scene.topic()
    name = absent(scene, version, topic)
    scene.connect(version).publish(topic, b"x", 1)
    again = scene.keep(version, name)
    assert again.connack.present
    assert again.payloads() == [b"x"]


@states("Without a clean start a session is made where there is none.", v5="3.1.2-6")
def test_a_session_is_made(scene, version):
    client = scene.keep(version)
    assert not client.connack.present
    client.subscribe(scene.topic(), qos=1)
    client.disconnect()
    assert scene.keep(version, client.client_id).connack.present


@states("With a session expiry above 0 the session is kept after its connection.", v5="3.1.2-23")
def test_the_session_outlives_the_connection(scene, version):
    topic = scene.topic()
    client = scene.keep(version, expiry_s=30)
    scene.subscribe(client, topic, qos=1)
    scene.lose(client)
    if scene.peer.turns_time:
        scene.pass_time(29)
    again = scene.keep(version, client.client_id, expiry_s=30)
    assert again.connack.present


@states("The session lasts while its connection is open.", v311="4.1.0-1", v5="4.1.0-1")
def test_the_session_lasts_with_its_connection(scene, version):
    topic = scene.topic()
    client = scene.connect(version)  # of a session that ends with it
    scene.subscribe(client, topic, qos=1)
    scene.pass_time(100_000 if scene.peer.turns_time else 0)
    scene.connect(version).publish(topic, b"x", 1)
    assert client.payloads() == [b"x"]


@states("A session lasts at least as long as its connection.", v311="4.1.0-2")
def test_a_clean_session_lasts_as_long_as_its_connection(scene, version):
    topic = scene.topic()
    client = scene.listen(version, topic, qos=1)
    for number in range(3):
        scene.connect(version).publish(topic, b"%d" % number, 1)
        assert client.payloads() == [b"%d" % number]


@states("The session is discarded once its expiry has passed after its connection.", v5="4.1.0-2")
def test_the_session_expires(scene, version):
    topic = scene.topic()
    name = absent(scene, version, topic, expiry_s=1)
    scene.connect(version).publish(topic, b"x", 1)
    scene.pass_time(2)
    again = scene.keep(version, name)
    assert not again.connack.present
    again.nothing()


@states(
    "A message is added to the session of every client with a matching subscription.",
    v311="4.5.0-1",
    v5="4.5.0-1",
    within="publishers are slowed before; a session whose queue is full all the same ends, and its "
    "client is told, instead of missing a message without knowing",
)
def test_a_message_is_added_to_all_sessions_that_match(scene, version):
    topic = scene.topic()
    away = [absent(scene, version, topic) for _ in range(2)]
    here = [scene.listen(version, item, qos=1) for item in (topic, scene.topic("#"))]
    other = scene.listen(version, scene.topic("other"), qos=1)
    scene.connect(version).publish(topic, b"x", 1)
    assert [client.payloads() for client in here] == [[b"x"]] * 2
    assert [scene.keep(version, name).payloads() for name in away] == [[b"x"]] * 2
    other.nothing()


def in_order(scene, version, qos):
    topic = scene.topic(str(qos))
    listener = scene.listen(version, topic, qos=qos)
    senders = [scene.connect(version) for _ in range(2)]
    for number in range(50):
        for at, sender in enumerate(senders):
            sender.publish(topic, b"%d %d" % (at, number), qos)
    for sender in senders:
        sender.ping()
    got = listener.payloads()
    for at in range(2):
        own = [payload for payload in got if payload.startswith(b"%d " % at)]
        assert own == [b"%d %d" % (at, number) for number in range(50)]


@states("Every topic is ordered unless somebody has arranged otherwise.", v311="4.6.0-5")
def test_every_topic_is_ordered(scene, version):
    in_order(scene, version, 0)
    in_order(scene, version, 1)


@states(
    "A publisher's messages of one topic and QoS come in its order, repetitions too.",
    v311="4.6.0-6",
    v5="4.6.0-5",
)
def test_messages_come_in_their_order(scene, version):
    in_order(scene, version, 1)
    topic = scene.topic()
    client = scene.keep(version)
    scene.subscribe(client, topic, qos=1)
    sender = scene.connect(version)
    for number in range(10):
        sender.publish(topic, b"%d" % number, 1)
    expected = [b"%d" % number for number in range(10)]
    assert [got.payload for got in client.rest()] == expected
    scene.lose(client)
    sender.publish(topic, b"10", 1)
    again = scene.keep(version, client.client_id)
    assert again.payloads() == [*expected, b"10"]


@states("Every topic is ordered for subscriptions that are not shared.", v5="4.6.0-6")
def test_every_topic_is_ordered_unless_shared(scene, version):
    in_order(scene, version, 0)
    in_order(scene, version, 1)
