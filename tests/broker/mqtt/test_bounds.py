"""Slow clients and full queues: what is dropped, who is told, and who is not touched."""

import gc

import pytest

from broker.mqtt.codec import packets as p
from broker.mqtt.codec.decoder import encode
from broker.mqtt.codec.reasons import Reason
from broker.mqtt.limits import MqttLimits
from broker.mqtt.sessions.client_queue import ClientQueue
from broker.mqtt.sessions.timers import Timers
from tests.broker.mqtt.world import VERSIONS, World, kept


@VERSIONS
def test_qos_0_beyond_a_slow_clients_queue_is_dropped_and_counted(version):
    world = World(limits={"queue_messages_max": 5})
    slow = world.client(version)
    slow.subscribe("a", qos=0)
    slow.stall()
    for number in range(8):
        world.publish("a", b"%d" % number)
    assert slow.take() == []
    assert world.hub.counters.dropped == {"queue_full": 3}
    slow.flow()
    assert slow.publishes() == [("a", b"%d" % number) for number in range(5)]
    world.publish("a", b"again")
    assert slow.publishes() == [("a", b"again")]


def test_the_queue_is_bounded_in_bytes_too():
    world = World(limits={"queue_bytes_max": 5000})
    slow = world.client(p.V311)
    slow.subscribe("a", qos=0)
    slow.stall()
    for _ in range(10):
        world.publish("a", bytes(1000))
    assert world.hub.counters.queued_bytes <= 5000
    assert world.hub.counters.dropped == {"queue_full": 6}


@pytest.mark.parametrize("qos", [0, 1])
def test_all_queues_together_are_bounded_in_bytes(qos):
    world = World(limits={"queue_bytes_max": 5000, "queue_bytes_total_max": 7000})
    for name in "xyz":
        slow = world.client(p.V311, name)
        slow.subscribe("a", qos=qos)
        slow.stall()
    for _ in range(2):
        world.publish("a", bytes(1000), qos=qos)
    assert 4000 < world.hub.counters.queued_bytes <= 7000
    reason = ["queue_full", "queue_overflow"][qos]
    assert world.hub.counters.dropped[reason] >= 1


def test_without_a_queue_what_need_not_wait_is_still_sent():
    world = World(limits={"queue_messages_max": 0})
    client = world.client(p.V311)
    client.subscribe("a")
    for qos in (0, 1):
        world.publish("a", b"x", qos=qos)
    assert client.publishes() == [("a", b"x")] * 2


@VERSIONS
def test_a_slow_client_never_keeps_a_message_from_others(version):
    world = World(limits={"queue_messages_max": 5})
    slow, quick = world.client(version, "slow"), world.client(version, "quick")
    publisher = world.client(version, "p")
    for client in (slow, quick):
        client.subscribe("a")
    slow.stall()
    for number in range(20):
        publisher.publish("a", b"%d" % number, qos=1, packet_id=number + 1)
        quick.send(p.Puback(quick.got[-1].packet_id))
    assert quick.publishes() == [("a", b"%d" % number) for number in range(20)]
    codes = [packet.code for packet in publisher.take()]
    told = Reason.QUOTA_EXCEEDED if version == p.V5 else 0
    assert codes == [0] * 5 + [told] + [0] * 14  # of the one for which the slow one's session ended
    assert slow.closed == "queue_overflow"


@VERSIONS
def test_a_client_whose_qos_1_queue_overflows_is_closed_and_its_session_ends(version):
    """Never silently: the connection closes, and the next one hears that no session is there."""
    world = World(limits={"queue_messages_max": 3, "inflight_max": 2})
    client = kept(world, version)
    client.subscribe("a")
    for number in range(5):
        world.publish("a", b"%d" % number, qos=1)
    assert (client.closed, len(client.take())) == (None, 2)
    world.publish("a", b"5", qos=1)
    assert client.closed == "queue_overflow"
    assert client.take() == ([p.Disconnect(Reason.QUOTA_EXCEEDED)] if version == p.V5 else [])
    assert world.hub.counters.dropped == {"queue_overflow": 4}
    assert world.hub.counters.ended == {"queue_overflow": 1}
    assert not kept(world, version).welcome.session_present


@VERSIONS
def test_an_absent_clients_overflow_ends_its_session(version):
    world = World(limits={"queue_messages_max": 3})
    client = kept(world, version)
    client.subscribe("a")
    client.lose()
    for _ in range(5):
        world.publish("a", b"x", qos=1)
    assert world.hub.counters.ended == {"queue_overflow": 1}
    assert world.hub.counters.queued_bytes == 0
    assert not kept(world, version).welcome.session_present


def test_in_flight_bytes_count_for_the_bound():
    world = World(limits={"queue_bytes_max": 5000})
    client = world.client(p.V5)
    client.subscribe("a")
    for _ in range(4):
        world.publish("a", bytes(1000), qos=1)
    client.send(*(p.Puback(packet.packet_id) for packet in client.take()))
    for _ in range(4):
        world.publish("a", bytes(1000), qos=1)
    assert client.closed is None
    world.publish("a", bytes(1000), qos=1)
    assert client.closed == "queue_overflow"


def test_the_wills_of_overflowing_clients_may_overflow_others_and_all_end():
    world = World(limits={"queue_messages_max": 2, "inflight_max": 1})
    chain = []
    for number in range(5):
        will = p.Will(f"t/{number + 1}", b"x", 1)
        client = world.client(p.V5, f"c{number}", will=will)
        client.subscribe(f"t/{number}")
        chain.append(client)
    for number in range(1, 5):
        for _ in range(3):
            world.publish(f"t/{number}", b"x", qos=1)
    assert [client.closed for client in chain] == [None] * 5
    for _ in range(4):
        world.publish("t/0", b"x", qos=1)
    assert [client.closed for client in chain] == ["queue_overflow"] * 5
    assert world.hub.counters.sessions == world.hub.counters.queued_bytes == 0


def test_a_session_that_overflows_while_it_is_replaced_does_not_end_its_successor():
    """The will of the connection that is taken over fills the old session's own queue."""
    world = World(limits={"queue_messages_max": 1, "inflight_max": 1})
    old = kept(world, p.V5, will=p.Will("a", b"mine", 1))
    old.subscribe("a")
    for _ in range(2):
        world.publish("a", b"x", qos=1)
    assert old.closed is None
    new = world.client(p.V5)
    assert (old.closed, new.closed) == ("session_taken_over", None)
    new.subscribe("a")
    world.publish("a", b"y", qos=1)
    assert new.publishes() == [("a", b"y")]


def test_a_message_larger_than_the_queue_is_sent_where_nothing_waits():
    world = World(limits={"queue_bytes_max": 100})
    client = world.client(p.V5)
    client.subscribe("a")
    world.publish("a", bytes(1000), qos=1)
    assert len(client.take_one(p.Publish).payload) == 1000
    world.publish("a", bytes(1000), qos=1)
    assert client.closed == "queue_overflow"


def test_packets_that_never_become_whole_are_bounded_over_all_clients():
    world = World(limits={"partial_bytes_max": 250, "packet_bytes_max": 200})
    first, second, third = (world.client(p.V311, name) for name in "abc")
    start = b"\x30\xbe\x01\x00\x01a"
    for client in (first, second):
        client.send_bytes(start + bytes(110))
    assert world.hub.counters.partial_bytes == 232
    third.send_bytes(start + bytes(110))
    assert third.closed == "quota_exceeded"
    first.send_bytes(bytes(77))
    assert (first.closed, second.closed) == (None, None)
    assert world.hub.counters.partial_bytes == 116
    second.lose()
    assert world.hub.counters.partial_bytes == 0


def test_one_read_with_more_than_a_socket_takes_is_sent_piece_by_piece():
    """No more is given to a socket at once than the limit, and nothing is lost."""
    world = World(limits={"unsent_bytes_max": 2000, "inflight_max": 1000})
    client, publisher = world.client(p.V5, "s"), world.client(p.V5, "p")
    client.subscribe("a")
    sent = [p.Publish("a", b"%03d" % n + bytes(500), 1, packet_id=n + 1) for n in range(100)]
    publisher.send(*sent)
    assert [packet.payload for packet in client.take()] == [packet.payload for packet in sent]


def test_a_client_that_stalls_in_the_middle_gets_the_rest_later():
    world = World(limits={"unsent_bytes_max": 2000, "inflight_max": 1000})
    client = world.client(p.V311)
    client.subscribe("a")
    client.stall()
    for number in range(50):
        world.publish("a", b"%d" % number, qos=number % 2)
    assert client.take() == []
    client.flow()
    got = client.take()
    assert [x.payload for x in got if x.qos == 0] == [b"%d" % n for n in range(0, 50, 2)]
    assert [x.payload for x in got if x.qos == 1] == [b"%d" % n for n in range(1, 50, 2)]
    assert world.hub.counters.dropped == {}


def test_resubscribing_while_stalled_does_not_pile_up_retained_messages():
    world = World()
    for number in range(100):
        world.publish(f"r/{number}", b"x", retain=True)
    client = world.client(p.V5)
    client.stall()
    for _ in range(50):
        client.send(p.Subscribe(1, (p.Filter("r/#"),)))
    client.got.clear()
    client.flow()
    assert len(client.publishes()) == 100


@pytest.mark.parametrize("topic_filter", ["#", "+/+/none", "r/#"])
@pytest.mark.parametrize("size_max", [None, 25], ids=["taken", "too large"])
def test_a_few_bytes_do_not_make_the_broker_look_through_all_that_is_retained(
    topic_filter, size_max
):
    """Hundreds of times, in one read; whether anything is to be sent for it or not."""
    world = World()
    for number in range(5_000):
        world.publish(f"r/{number % 50}/{number}", bytes(20), retain=True)
    looked = 0
    steps = world.hub.router.retained._steps

    def counted(wanted):
        nonlocal looked
        for step in steps(wanted):
            looked += 1
            yield step

    world.hub.router.retained._steps = counted
    client = world.client(p.V5, properties=p.Properties(maximum_packet_size=size_max))
    again = p.Subscribe(1, (p.Filter(topic_filter, 0),))
    world.hub.received(client.connection, encode(again, p.V5) * 500, world.now_ms)
    assert 0 < looked < 6_000
    world.perform()
    assert looked < 12_000  # it ends, once more at most
    heard = [packet for packet in client.take() if isinstance(packet, p.Publish)]
    finds = topic_filter != "+/+/none" and size_max is None
    assert len({packet.topic for packet in heard}) == (5_000 if finds else 0)


def test_unsubscribing_ends_what_was_still_to_come_of_it():
    world = World(limits={"unsent_bytes_max": 2_000})
    for number in range(100):
        world.publish(f"r/{number:02}", bytes(100), retain=True)
    client = world.client(p.V5)
    client.takes = False
    client.send(p.Subscribe(1, (p.Filter("r/#"),)))
    client.send(p.Unsubscribe(2, ("r/#",)))
    client.flow()
    kinds = [type(packet) for packet in client.take()]
    assert kinds.count(p.Publish) < 25
    assert kinds.count(p.Unsuback) == 1


def test_who_goes_in_the_middle_gets_all_that_is_retained_when_back():
    world = World(limits={"unsent_bytes_max": 2_000})
    for number in range(100):
        world.publish(f"r/{number:02}", bytes(100), retain=True)
    client = kept(world, p.V5)
    client.takes = False
    client.send(p.Subscribe(1, (p.Filter("r/#", 0),)))
    client.lose()
    back = kept(world, p.V5)
    assert [topic for topic, _ in back.publishes()] == [f"r/{number:02}" for number in range(100)]


def test_retained_messages_in_flight_are_bounded_in_bytes_and_the_rest_follows():
    """Else a client that confirms nothing could make ever more versions of them be kept."""
    world = World(limits={"queue_bytes_max": 5_000, "queue_bytes_total_max": 20_000})
    for number in range(20):
        world.publish(f"r/{number:02}", bytes(1000), qos=1, retain=True)
    client = world.client(p.V5)
    client.subscribe("r/#")
    heard, waiting = [], client.take()
    assert len(waiting) == 4
    while waiting:
        assert world.hub.counters.queued_bytes <= 5_000
        heard += [packet.topic for packet in waiting]
        client.send(*(p.Puback(packet.packet_id) for packet in waiting))
        waiting = client.take()
    assert heard == [f"r/{number:02}" for number in range(20)]
    assert client.closed is None


def test_sessions_that_have_ended_are_not_kept_by_topics_that_were_theirs():
    """Each with a topic of its own that nobody uses again."""

    def alive():
        gc.collect()
        return sum(isinstance(item, ClientQueue) for item in gc.get_objects())

    before = alive()
    world = World()
    for number in range(5_000):
        client = world.client(p.V311, f"c{number}")
        client.subscribe(f"t/{number}")
        client.publish(f"t/{number}", b"x")
        assert client.publishes() == [(f"t/{number}", b"x")]
        client.disconnect()
        del world.clients[client.connection]
    assert len(world.hub.router.routes) == 5_000
    assert alive() - before < 1_500


def test_qos_0_messages_waiting_for_a_lost_client_are_counted():
    world = World()
    client = kept(world, p.V5)
    client.subscribe("a")
    client.stall()
    world.publish("a", b"0", qos=0)
    world.publish("a", b"1", qos=1)
    client.lose()
    assert world.hub.counters.dropped == {"connection_lost": 1}
    back = kept(world, p.V5)
    assert back.publishes() == [("a", b"1")]


def test_cancelled_timers_do_not_pile_up():
    """A client that connects again and again with a long keep-alive leaves nothing behind."""
    world = World()
    for _ in range(1000):
        world.client(p.V311, keep_alive_s=60_000).disconnect()
    assert len(world.hub.timers._heap) < 200
    world.client(p.V311, keep_alive_s=60_000)
    assert world.hub.next_wake() == world.now_ms + 90_000_000


def test_timers_due_together_fire_in_the_order_they_were_set():
    timers, fired = Timers(), []
    for name in "abc":
        timers.at(5, lambda now, name=name: fired.append((name, now)))
    timers.at(3, lambda now: timers.at(4, lambda now: fired.append(("d", now))))
    assert timers.next_wake() == 3
    timers.fire(2)
    assert fired == []
    timers.fire(7)
    assert fired == [("d", 7), ("a", 7), ("b", 7), ("c", 7)]
    assert timers.next_wake() is None


def test_every_limit_says_its_reason_and_refuses_nonsense():
    texts = MqttLimits().texts()
    assert len({item.name for item in texts}) == len(texts) > 20
    assert all(len(item.reason) > 20 for item in texts)
    with pytest.raises(ValueError, match="sessions_max"):
        MqttLimits(sessions_max=-1)
    with pytest.raises(ValueError, match=r"receive_max is 70000: it must lie in 1\.\.65535"):
        MqttLimits(receive_max=70_000)
    with pytest.raises(ValueError, match="password_checks_max"):
        MqttLimits(password_checks_max=0)
