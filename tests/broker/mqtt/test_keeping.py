"""What is promised to MQTT clients outlasts the process, in virtual time and on a virtual disk."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.mqtt.codec import packets as p
from broker.mqtt.codec.decoder import encode
from broker.mqtt.codec.reasons import Reason
from broker.mqtt.storage.rows import Batch, MarkRow, QueueRow
from tests.broker.mqtt.world import VERSIONS, Disk, World, kept

ORDERLY = pytest.mark.parametrize("orderly", [True, False], ids=["ended", "killed"])
HOUR_MS = 3_600_000


@pytest.fixture
def world():
    return World(disk=Disk())


@VERSIONS
@ORDERLY
def test_a_session_its_subscriptions_and_its_queue_are_there_again(world, version, orderly):
    client = kept(world, version)
    client.subscribe("a/#", qos=1)
    client.subscribe("b", qos=2)
    client.lose()
    for number in range(50):
        world.publish("a/x" if number % 2 else "b", b"%d" % number, qos=2)
    world = world.after(orderly=orderly)
    client = kept(world, version)
    assert client.welcome.session_present
    got = client.take()
    assert [(x.topic, int(x.payload), x.qos, x.dup) for x in got] == [
        ("a/x", number, 1, False) if number % 2 else ("b", number, 2, False) for number in range(50)
    ]
    world.publish("a/y", b"on", qos=1)
    assert client.publishes() == [("a/y", b"on")]


@VERSIONS
@ORDERLY
def test_what_was_sent_and_not_confirmed_comes_again_and_is_marked(world, version, orderly):
    """MQTT-4.4.0-1, 3.3.1-1."""
    client = kept(world, version)
    client.subscribe("a", qos=2)
    world.publish("a", b"one", qos=1)
    world.publish("a", b"two", qos=2)
    world.publish("a", b"known", qos=1)
    first = client.take()
    client.send(p.Puback(first[2].packet_id))
    world = world.after(orderly=orderly)
    again = kept(world, version).take()
    assert sorted((x.payload, x.qos, x.dup) for x in again) == [
        (b"one", 1, True),
        (b"two", 2, True),
    ]
    two = next(x for x in again if x.qos == 2)
    assert two.packet_id == first[1].packet_id


@VERSIONS
@pytest.mark.parametrize("step", ["sent", "received", "completed"])
def test_the_handshake_of_qos_2_goes_on_where_it_was(world, version, step):
    client = kept(world, version)
    client.subscribe("a", qos=2)
    world.publish("a", b"x", qos=2)
    packet_id = client.take_one(p.Publish).packet_id
    if step != "sent":
        client.send(p.Pubrec(packet_id))
    if step == "completed":
        client.send(p.Pubcomp(packet_id))
    world = world.after(orderly=False)
    got = kept(world, version).take()
    if step == "sent":
        assert [(x.packet_id, x.dup) for x in got] == [(packet_id, True)]
    else:
        assert got == ([p.Pubrel(packet_id)] if step == "received" else [])


@VERSIONS
@pytest.mark.parametrize("topic", ["a", "headwater/events/T/s"])
def test_a_message_at_qos_2_that_was_taken_is_not_taken_again(world, version, topic):
    watcher = kept(world, p.V5, "w")
    watcher.subscribe(topic, qos=1)
    client = kept(world, version)
    client.publish(topic, b"x", qos=2, packet_id=9)
    assert client.take() == [p.Pubrec(9)]
    assert len(world.handed()) == (topic != "a")
    world = world.after(orderly=False)
    client = kept(world, version)
    client.send(p.Publish(topic, b"x", 2, dup=True, packet_id=9))
    assert client.take() == [p.Pubrec(9)]
    assert kept(world, p.V5, "w").publishes() == [(topic, b"x")]
    client.send(p.Pubrel(9))
    assert client.take() == [p.Pubcomp(9)]
    assert world.handed() == []
    world = world.after(orderly=False)
    client = kept(world, version)
    client.publish(topic, b"y", qos=2, packet_id=9)
    assert len(world.handed()) == (topic != "a")
    assert kept(world, p.V5, "w").publishes()[-1] == (topic, b"y")


@VERSIONS
def test_nothing_is_acknowledged_before_it_is_on_disk(version):
    world = World(disk=Disk())
    watcher = kept(world, p.V5, "w")
    watcher.subscribe("a", qos=1)
    watcher.lose()
    client = kept(world, version)
    world.syncs = False
    client.publish("a", b"1", qos=1, packet_id=1)
    client.publish("a", b"2", qos=2, packet_id=2)
    client.publish("r", b"3", qos=1, retain=True, packet_id=3)
    client.send(p.Subscribe(4, (p.Filter("s", 1),)))
    assert client.take() == []
    world.sync()
    kinds = [type(packet).__name__ for packet in client.take()]
    assert kinds == ["Puback", "Pubrec", "Puback", "Suback"]
    client.send(p.Pubrel(2))
    assert client.take() == []
    world.sync()
    assert client.take() == [p.Pubcomp(2)]
    client.send(p.Unsubscribe(5, ("s",)))
    assert client.take() == []
    world.sync()
    assert isinstance(client.take_one(p.Unsuback), p.Unsuback)
    client.lose()
    kept(world, version)
    world.syncs = True


def test_a_connack_that_tells_of_a_new_session_waits_for_the_disk(world):
    kept(world, p.V5).lose()
    world.syncs = False
    client = world.client(
        p.V5, clean_start=True, properties=p.Properties(session_expiry_interval=9)
    )
    assert client.welcome is None
    world.sync()
    (welcome,) = client.take()
    assert not welcome.session_present


def test_what_nobody_keeps_is_acknowledged_at_once(world):
    """QoS 0 subscribers, sessions that end with their connection, nobody at all."""
    passing = world.client(p.V5, "passing")
    passing.subscribe("a", qos=1)
    loose = kept(world, p.V5, "loose")
    loose.subscribe("a", qos=0)
    world.syncs = False
    client = world.client(p.V5)
    client.publish("a", b"1", qos=1, packet_id=1)
    client.publish("nobody", b"2", qos=1, packet_id=2)
    assert client.take() == [p.Puback(1), p.Puback(2, Reason.NO_MATCHING_SUBSCRIBERS)]
    assert passing.publishes() == loose.publishes() == [("a", b"1")]
    assert world.commits == []


def test_a_message_at_qos_1_goes_out_while_the_disk_works_and_its_rows_may_cancel_out(world):
    watcher = kept(world, p.V5, "w")
    watcher.subscribe("a", qos=1)
    client = world.client(p.V5)
    before = world.disk.count()
    world.syncs = False
    client.publish("b", b"0", qos=1, retain=True)  # begins a commit; the next changes gather
    client.publish("a", b"1", qos=1, packet_id=2)
    (got,) = [x for x in watcher.take() if isinstance(x, p.Publish)]
    assert got.payload == b"1"
    watcher.send(p.Puback(got.packet_id))
    world.sync()
    assert [x.packet_id for x in client.take()] == [1, 2]
    assert world.disk.count() == before | {"mqtt_retained": 1}


def test_what_cancels_out_whole_is_acknowledged_too(world):
    """Nothing is left to be written, and still somebody waits for it."""
    watcher = kept(world, p.V5, "w")
    watcher.subscribe("a", qos=1)
    client = world.client(p.V5)
    world.syncs = False
    data = encode(p.Publish("a", b"1", 1, packet_id=7), p.V5)
    world.hub.received(client.connection, data, world.now_ms)
    for connection in world.hub.dirty:
        world.write(connection)
    packet_id = watcher.take_one(p.Publish).packet_id
    world.hub.received(watcher.connection, encode(p.Puback(packet_id), p.V5), world.now_ms)
    assert not world.hub.keeping.batch.rows
    assert client.take() == []
    world.perform()
    world.sync()
    assert client.take() == [p.Puback(7)]


def test_a_message_at_qos_2_leaves_only_when_its_identifier_is_on_disk(world):
    watcher = kept(world, p.V5, "w")
    watcher.subscribe("a", qos=2)
    world.syncs = False
    world.publish("a", b"x", qos=2)
    assert watcher.take() == []
    world.sync()
    sent = watcher.take_one(p.Publish)
    watcher.send(p.Pubrec(sent.packet_id))
    assert watcher.take() == []  # a PUBREL that is forgotten would let the message come again
    world.sync()
    assert watcher.take() == [p.Pubrel(sent.packet_id)]


def test_each_batch_lets_go_what_waits_for_it_and_no_more(world):
    kept(world, p.V5, "w").subscribe("a", qos=1)
    client = world.client(p.V5)
    world.syncs = False
    for number in (1, 2, 3):
        client.publish("a", b"x", qos=1, packet_id=number)
    world.sync(1)
    assert client.take() == [p.Puback(1)]
    world.sync(1)  # what gathered meanwhile
    assert client.take() == [p.Puback(2), p.Puback(3)]


def test_what_waits_for_the_disk_goes_with_its_connection(world):
    watcher = kept(world, p.V5, "w")
    watcher.subscribe("a", qos=1)
    world.syncs = False
    client = world.client(p.V5)
    client.publish("a", b"1", qos=1)
    world.client(p.V5, "c")  # takes over
    assert client.closed == "session_taken_over"
    assert client.take() == [p.Disconnect(Reason.SESSION_TAKEN_OVER)]
    both = world.client(p.V5, "d")
    both.send(p.Publish("a", b"2", 1, packet_id=1), p.Disconnect())
    world.sync()
    assert both.take() == []
    assert client.take() == []
    assert world.hub.keeping.waiting == {}


def test_who_publishes_is_read_no_further_while_the_disk_is_far_behind():
    world = World(disk=Disk(), limits={"unkept_bytes_max": 2000})
    kept(world, p.V5, "w").subscribe("a", qos=1)
    client = world.client(p.V5)
    other = world.client(p.V5, "other")
    world.syncs = False
    client.send(*(p.Publish("a", b"x" * 500, 1, packet_id=number) for number in range(1, 9)))
    assert client.reads is False
    assert other.reads is True
    world.sync()
    assert client.reads is True
    assert len(client.take()) == 8


@pytest.mark.parametrize("away_ms", [0, HOUR_MS - 1, HOUR_MS, HOUR_MS * 5])
@ORDERLY
def test_the_time_that_is_left_goes_on_while_the_broker_is_away(world, away_ms, orderly):
    client = kept(world, p.V5)  # an hour
    client.subscribe("a", qos=1)
    client.lose()
    world = world.after(orderly=orderly, away_ms=away_ms)
    assert len(world.hub.sessions) == (away_ms < HOUR_MS)
    assert kept(world, p.V5).welcome.session_present == (away_ms < HOUR_MS)


def test_the_time_that_was_over_before_counts(world):
    client = kept(world, p.V5)
    client.subscribe("a", qos=1)
    client.lose()
    world.advance(HOUR_MS - 1000)
    world = world.after(orderly=False)
    world.advance(999)
    assert len(world.hub.sessions) == 1
    world.advance(1)
    assert len(world.hub.sessions) == 0
    assert world.disk.count() == {}


def test_a_clock_that_was_set_back_does_not_prolong_a_session(world):
    kept(world, p.V5).lose()
    world = world.after(orderly=True, away_ms=-10 * HOUR_MS)
    world.advance(HOUR_MS - 1)
    assert len(world.hub.sessions) == 1
    world.advance(1)
    assert len(world.hub.sessions) == 0


def test_messages_expire_while_the_broker_is_away(world):
    client = kept(world, p.V5)
    client.subscribe("a", qos=1)
    client.lose()
    publisher = world.client(p.V5, "p")
    publisher.publish("a", b"short", qos=1, packet_id=1, message_expiry_interval=10)
    publisher.publish("a", b"long", qos=1, packet_id=2, message_expiry_interval=100)
    publisher.publish("r", b"short", retain=True, message_expiry_interval=10)
    publisher.publish("s", b"long", retain=True, message_expiry_interval=100)
    world = world.after(orderly=True, away_ms=30_000)
    (got,) = kept(world, p.V5).take()
    assert (got.payload, got.properties.message_expiry_interval) == (b"long", 70)
    assert [message.topic for message in world.hub.retained("#")] == ["s"]
    world.advance(70_000)
    assert world.hub.retained("#") == []


@ORDERLY
def test_retained_messages_of_clients_stay_and_an_empty_one_takes_them_away(world, orderly):
    client = world.client(p.V5)
    for topic, payload in (("a", b"1"), ("b", b"2"), ("a", b"3"), ("b", b""), ("c", b"4")):
        client.publish(topic, payload, retain=True, content_type="t")
    world.publish("headwater/status/x", b"ready", retain=True)
    world = world.after(orderly=orderly)
    reader = world.client(p.V5, "r")
    reader.subscribe("#")
    got = reader.take()
    assert [(x.topic, x.payload, x.retain) for x in got] == [("a", b"3", True), ("c", b"4", True)]
    assert {x.properties.content_type for x in got} == {"t"}


def test_retained_messages_that_a_subscriber_did_not_get_yet_come_after_a_restart(world):
    client = world.client(p.V5)
    for number in range(5):
        client.publish(f"r/{number}", b"x", qos=1, retain=True)
    reader = kept(world, p.V5, "reader")
    reader.lose()
    reader = world.client(
        p.V5,
        "reader",
        clean_start=False,
        properties=p.Properties(session_expiry_interval=3600, receive_maximum=2),
    )
    reader.subscribe("r/#", qos=1)
    assert len(reader.publishes()) == 2
    world = world.after(orderly=False)
    topics = {topic for topic, _ in kept(world, p.V5, "reader").publishes()}
    assert topics == {f"r/{number}" for number in range(5)}


def willing(world, delay_s, expiry_s):
    return world.client(
        p.V5,
        "mortal",
        clean_start=False,
        will=p.Will("w", b"gone", 1, properties=p.Properties(will_delay_interval=delay_s)),
        properties=p.Properties(session_expiry_interval=expiry_s),
    )


@pytest.mark.parametrize("expiry_s", [0, 3600])
def test_a_broker_that_is_killed_publishes_the_wills_of_its_clients_when_it_is_back(
    world, expiry_s
):
    """MQTT 5, section 3.1.2.5: publication may be deferred until a restart."""
    watcher = kept(world, p.V5, "watcher")
    watcher.subscribe("w", qos=1)
    willing(world, 0, expiry_s)
    world = world.after(orderly=False)
    assert kept(world, p.V5, "watcher").publishes() == [("w", b"gone")]
    world = world.after(orderly=False)
    assert len(kept(world, p.V5, "watcher").take()) == 1  # the same, not confirmed


@pytest.mark.parametrize("expiry_s", [0, 3600])
def test_the_delay_of_a_will_begins_when_the_broker_that_was_killed_is_back(world, expiry_s):
    """Or it comes with the end of the session, where that is earlier."""
    watcher = kept(world, p.V5, "watcher")
    watcher.subscribe("w", qos=1)
    willing(world, 60, expiry_s)
    world = world.after(orderly=False, away_ms=100_000)
    watcher = kept(world, p.V5, "watcher")
    if expiry_s:
        world.advance(59_999)
        assert watcher.take() == []
        world.advance(1)
    assert watcher.publishes() == [("w", b"gone")]


def test_a_broker_that_ends_orderly_has_lost_nobody(world):
    watcher = kept(world, p.V5, "watcher")
    watcher.subscribe("w", qos=1)
    willing(world, 0, 3600)
    world = world.after(orderly=True)
    assert kept(world, p.V5, "watcher").take() == []


@ORDERLY
@pytest.mark.parametrize("back", [True, False])
def test_the_delay_of_a_will_goes_on_while_the_broker_is_away(world, orderly, back):
    watcher = kept(world, p.V5, "watcher")
    watcher.subscribe("w", qos=1)
    willing(world, 60, 3600).lose()
    world.advance(20_000)
    world = world.after(orderly=orderly, away_ms=20_000)
    watcher = kept(world, p.V5, "watcher")
    if back:
        willing(world, 60, 3600)
    world.advance(19_999)
    assert watcher.take() == []
    world.advance(1)
    assert watcher.publishes() == ([] if back else [("w", b"gone")])


def test_a_group_goes_on_and_what_a_member_that_ends_was_to_get_goes_to_another(world):
    for name, seconds in (("one", 100), ("two", 3600)):
        member = world.client(
            p.V5,
            name,
            clean_start=False,
            properties=p.Properties(session_expiry_interval=seconds, receive_maximum=5),
        )
        member.subscribe("$share/g/a", qos=1)
        member.lose()
    for number in range(10):
        world.publish("a", b"%d" % number, qos=1)
    world = world.after(orderly=False)
    world.advance(100_000)
    two = kept(world, p.V5, "two")
    assert sorted(int(payload) for _, payload in two.publishes()) == list(range(10))
    assert world.disk.count()["mqtt_messages"] == 10
    two.send(*(p.Puback(number) for number in range(1, 11)))
    assert world.disk.count() == {"mqtt_sessions": 1, "mqtt_subscriptions": 1}


def test_subscription_options_and_identifiers_stay(world):
    client = kept(world, p.V5)
    held = p.Properties(subscription_identifier=(7,))
    client.subscribe("a", qos=1, properties=held, no_local=True, retain_as_published=True)
    world.publish("a", b"waits", qos=1, retain=True)
    world = world.after(orderly=False)
    client = kept(world, p.V5)
    world.publish("a", b"new", qos=1, retain=True)
    for got in client.take():
        assert (got.properties.subscription_identifier, got.retain) == ((7,), True)
    client.publish("a", b"mine", qos=1)
    assert client.publishes() == []


def test_a_message_for_many_is_on_disk_once(world):
    for number in range(20):
        client = kept(world, p.V5, f"c{number}")
        client.subscribe("a", qos=1)
        client.lose()
    world.publish("a", b"x", qos=1)
    assert world.disk.count() == {
        "mqtt_sessions": 20,
        "mqtt_subscriptions": 20,
        "mqtt_queue": 20,
        "mqtt_messages": 1,
    }
    for some in (range(19), range(19, 20)):
        world = world.after(orderly=False)
        for number in some:
            client = kept(world, p.V5, f"c{number}")
            client.send(p.Puback(client.take_one(p.Publish).packet_id))
    assert set(world.disk.count()) == {"mqtt_sessions", "mqtt_subscriptions"}


def test_rights_that_were_taken_away_end_a_subscription(world):
    client = kept(world, p.V5)
    client.subscribe("a", "b", qos=1)
    world.options["authorize"] = lambda _client, topic, _action: topic == "b"
    world = world.after(orderly=True)
    client = kept(world, p.V5)
    world.publish("a", b"x", qos=1)
    world.publish("b", b"y", qos=1)
    assert client.publishes() == [("b", b"y")]
    assert world.hub.counters.refused == {"subscription_not_authorized": 1}


def test_a_session_belongs_to_its_user_after_a_restart(world):
    one = world.client(
        p.V5, "x", clean_start=False, properties=p.Properties(session_expiry_interval=99)
    )
    one.lose()
    world = world.after(orderly=True)
    assert world.hub.sessions["x"].client.user is None


def test_the_mark_of_the_results_is_stored_with_the_queues_that_they_are_in(world):
    client = kept(world, p.V5)
    client.subscribe("r", qos=1)
    client.lose()
    world.syncs = False
    keeping = world.hub.keeping
    for offset in range(5):
        world.hub.publish(p.Publish("r", b"%d" % offset, 1), world.now_ms)
        keeping.results_mark = offset + 1
        keeping.keep_mark()
        world.perform()
    world.sync(1)
    for count, number in ((1, 5), (0, 1)):
        disk = Disk()
        disk.tables = {table: dict(rows) for table, rows in world.disk.tables.items()}
        for _number, batch in world.commits[:count]:
            disk.take(batch)
        again = World(disk=disk)
        assert again.hub.keeping.results_mark == number
        got = [payload for _, payload in kept(again, p.V5).publishes()]
        assert got == [b"%d" % offset for offset in range(number)]


# --- batches --------------------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "put", "remove", "queue", "confirm"]), st.integers(0, 3)),
    max_size=30,
)


def changes(batch, steps, places):
    """What the steps do to a batch; places of queues are never used again."""
    for verb, number in steps:
        if verb == "put":
            batch.put(MarkRow(f"m{number}", len(places)))
        elif verb == "remove":
            batch.remove(MarkRow, f"m{number}")
        elif verb == "queue":
            places.append(len(places) + 1)
            batch.add(QueueRow(places[-1], "c", 1, 1, False, "", "", 0))
        elif verb == "confirm" and places:
            batch.remove(QueueRow, places[number % len(places)])


@given(STEPS, STEPS, STEPS)
def test_two_batches_as_one_do_what_they_do_one_after_the_other(first, second, third):
    separate, joined = Disk(), Disk()
    places, again = [], []
    one, two, three = Batch(), Batch(), Batch()
    for batch, steps in ((one, first), (two, second), (three, third)):
        changes(batch, steps, places)
        separate.take(batch)
    a, b, c = Batch(), Batch(), Batch()
    for batch, steps in ((a, first), (b, second), (c, third)):
        changes(batch, steps, again)
    joined.take(a)
    joined.take(b.before(c))
    assert separate.tables == joined.tables
