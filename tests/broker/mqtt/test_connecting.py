"""CONNECT, sessions, take-over, keep-alive and logins, in virtual time."""

import pytest

from broker.mqtt.codec import packets as p
from broker.mqtt.codec.decoder import encode
from broker.mqtt.codec.reasons import Reason
from broker.mqtt.limits import MqttLimits
from broker.mqtt.sessions.logins import Logins
from tests.broker.mqtt.world import VERSIONS, Client, World, kept

HOUR_MS = 3_600_000


@VERSIONS
def test_a_connect_is_answered_without_session_present(version):
    client = World().client(version)
    assert (client.welcome.code, client.welcome.session_present) == (0, False)
    assert client.closed is None


def test_a_v5_connack_tells_what_is_not_supported_and_the_limits():
    welcome = World().client(p.V5, "").welcome.properties
    limits = MqttLimits()
    assert welcome == p.Properties(
        receive_maximum=limits.receive_max,
        maximum_packet_size=limits.packet_bytes_max,
        assigned_client_identifier="made-1",
        topic_alias_maximum=limits.topic_alias_max,
    )


@VERSIONS
def test_a_clean_client_without_identifier_is_given_one_of_its_own(version):
    """MQTT-3.1.3-6."""
    world = World()
    first, second = world.client(version, ""), world.client(version, "")
    assert first.closed is second.closed is None
    assert [first.connection.client.client_id, second.connection.client.client_id] == [
        "made-1",
        "made-2",
    ]


def test_a_kept_session_without_identifier_is_refused_in_311():
    """MQTT-3.1.3-8: return code 2, then closed."""
    client = World().client(p.V311, "", clean_start=False)
    assert client.welcome == p.Connack(False, 2)
    assert client.closed == "client_identifier_not_valid"


@VERSIONS
def test_a_second_connect_closes(version):
    """MQTT-3.1.0-2."""
    client = World().client(version)
    client.send(p.Connect(version, "c"))
    assert client.closed == "protocol_error"
    if version == p.V5:
        assert client.take() == [p.Disconnect(Reason.PROTOCOL_ERROR)]


@pytest.mark.parametrize("second", [p.Connect(p.V5, "c" * 1000), p.Connect(6, "c")])
def test_a_second_connect_that_is_faulty_itself_is_told_what_a_disconnect_may_say(second):
    """Section 3.14.2.1: the reasons for refusing a CONNECT are no reasons for a DISCONNECT."""
    client = World().client(p.V5)
    client.send_bytes(encode(second, p.V5))
    assert client.closed == "protocol_error"
    assert client.take() == [p.Disconnect(Reason.PROTOCOL_ERROR)]


@VERSIONS
def test_a_connect_that_is_faulty_itself_is_answered_where_there_are_words(version):
    """MQTT-3.1.3-9 of 3.1.1: a client identifier that is refused is told; MQTT 5 tells all."""
    world = World()
    long_name = world.client(version, "c" * 300)
    invalid = Reason.CLIENT_IDENTIFIER_NOT_VALID if version == p.V5 else 2
    assert (long_name.welcome.code, long_name.closed) == (invalid, "client_identifier_not_valid")
    reserved = bytearray(encode(p.Connect(version, "c"), version))
    reserved[9] |= 1
    client = Client(world, version).send_bytes(bytes(reserved))
    assert client.closed == "malformed_packet"
    told = [p.Connack(False, Reason.MALFORMED_PACKET)] if version == p.V5 else []
    assert client.take() == told


@VERSIONS
def test_packets_that_follow_a_connect_at_once_are_handled(version):
    """Section 3.1.4: a client need not wait for its CONNACK."""
    world = World()
    client = Client(world, version)
    client.send(p.Connect(version, "c"), p.Subscribe(1, (p.Filter("a"),)), p.Publish("a", b"1"))
    kinds = [type(packet) for packet in client.take()]
    assert kinds == [p.Connack, p.Suback, p.Publish]


@pytest.mark.parametrize("level", [3, 6])
def test_an_unknown_protocol_level_is_told_so_and_closed(level):
    """MQTT-3.1.2-2."""
    client = Client(World(), p.V311)
    body = b"\0\x04MQTT" + bytes((level, 2, 0, 0)) + b"\0\x01c"
    client.send_bytes(bytes((0x10, len(body))) + body)
    assert client.take() == [p.Connack(False, 1)]
    assert client.closed == "unsupported_protocol_version"


def test_a_stranger_who_speaks_no_mqtt_is_closed_without_an_answer():
    """MQTT-3.1.0-1."""
    world = World()
    client = Client(world, p.V311)
    client.send_bytes(b"GET / HTTP/1.1\r\n\r\n")
    assert (client.bytes_got, client.closed) == (0, "protocol_error")
    assert world.hub.counters.closed == {"protocol_error": 1}


def test_a_connect_that_does_not_come_in_time_closes():
    world = World(limits={"connect_timeout_ms": 5000})
    client = Client(world, p.V311)
    client.send_bytes(b"\x10")
    world.advance(4999)
    assert client.closed is None
    world.advance(1)
    assert client.closed == "connect_timeout"


def test_more_connections_than_allowed_are_closed_at_once_and_counted():
    world = World(limits={"connections_max": 2})
    first, _second = world.client(p.V311, "a"), world.client(p.V311, "b")
    third = Client(world, p.V311)
    assert third.closed == "connections_max"
    assert third.fault == "there are 2 connections already (mqtt_limits.connections_max)"
    third.lose()
    first.disconnect()
    assert world.client(p.V311, "d").closed is None


@VERSIONS
def test_silence_for_one_and_a_half_keep_alives_closes_and_any_packet_prevents_it(version):
    """MQTT-3.1.2-22 (3.1.2-24 of 3.1.1)."""
    world = World()
    client = world.client(version, keep_alive_s=10)
    world.advance(14_999)
    client.send(p.Pingreq())
    assert client.take_one(p.Pingresp)
    world.advance(14_999)
    assert client.closed is None
    world.advance(1)
    assert client.closed == "keep_alive_timeout"
    told = [p.Disconnect(Reason.KEEP_ALIVE_TIMEOUT)] if version == p.V5 else []
    assert client.take() == told


@VERSIONS
def test_without_keep_alive_silence_lasts(version):
    world = World()
    client = world.client(version, keep_alive_s=0)
    world.advance(1000 * HOUR_MS)
    assert client.closed is None
    assert world.hub.next_wake() is None


@VERSIONS
def test_the_same_client_identifier_takes_the_session_over(version):
    """MQTT-3.1.4-3 (3.1.4-2 of 3.1.1): the older connection is closed."""
    world = World()
    old = world.client(version, clean_start=False)
    new = world.client(version, clean_start=False)
    assert old.closed == "session_taken_over"
    assert old.take() == ([p.Disconnect(Reason.SESSION_TAKEN_OVER)] if version == p.V5 else [])
    assert new.closed is None
    old.lose()
    new.send(p.Pingreq())
    assert new.take_one(p.Pingresp)
    assert world.hub.counters.connections == 1


@VERSIONS
def test_a_kept_session_gets_what_was_published_meanwhile(version):
    """MQTT-3.1.2-4, -5: subscriptions and QoS 1 messages are kept."""
    world = World()
    client = kept(world, version)
    client.subscribe("a")
    client.lose()
    world.client(version, "other").publish("a", b"1", qos=1).publish("a", b"lost", qos=0)
    back = kept(world, version)
    assert back.welcome.session_present
    (publish,) = back.take()
    assert (publish.payload, publish.qos, publish.dup) == (b"1", 1, False)
    assert world.hub.counters.dropped == {"offline": 1}


@VERSIONS
def test_a_clean_start_forgets_the_session(version):
    """MQTT-3.1.2-4 (3.1.2-6 of 3.1.1)."""
    world = World()
    client = kept(world, version)
    client.subscribe("a")
    client.lose()
    world.publish("a", b"1", qos=1)
    clean = world.client(version)
    assert not clean.welcome.session_present
    assert world.publish("a", b"2", qos=1) == 0
    assert clean.take() == []
    assert world.hub.counters.dropped == {"clean_start": 1}


@VERSIONS
def test_a_session_ends_when_its_time_is_over_and_not_before(version):
    """MQTT-3.1.2-23."""
    world = World(limits={"session_expiry_s_max": 3600})
    client = kept(world, version)
    client.subscribe("a")
    client.lose()
    world.advance(HOUR_MS - 1)
    assert world.hub.counters.sessions == 1
    world.advance(1)
    assert world.hub.counters.sessions == world.hub.counters.subscriptions == 0
    assert world.hub.counters.ended == {"expired": 1}
    assert not kept(world, version).welcome.session_present


def test_a_session_that_is_used_again_does_not_end():
    world = World()
    kept(world, p.V5).lose()
    world.advance(HOUR_MS - 1)
    client = kept(world, p.V5)
    world.advance(10 * HOUR_MS)
    assert client.closed is None
    assert world.hub.counters.sessions == 1


def test_a_v5_session_without_expiry_ends_with_its_connection():
    """MQTT 5, section 3.1.2.11.2: absent means 0, clean start or not."""
    world = World()
    world.client(p.V5, clean_start=False).lose()
    assert world.hub.counters.sessions == 0


def test_an_expiry_beyond_the_limit_is_cut_and_told():
    """MQTT-3.2.2.3.2."""
    world = World(limits={"session_expiry_s_max": 60})
    forever = p.Properties(session_expiry_interval=0xFFFFFFFF)
    client = world.client(p.V5, properties=forever)
    assert client.welcome.properties.session_expiry_interval == 60
    client.lose()
    world.advance(60_000)
    assert world.hub.counters.sessions == 0


def test_disconnect_may_change_the_expiry_but_not_from_zero():
    """MQTT-3.14.2-2."""
    world = World()
    kept(world, p.V5).disconnect(session_expiry_interval=0)
    assert world.hub.counters.sessions == 0
    client = world.client(p.V5)
    client.send(p.Disconnect(0, p.Properties(session_expiry_interval=5)))
    assert client.closed == "protocol_error"


def test_the_longest_absent_session_makes_room_for_another():
    world = World(limits={"sessions_max": 2})
    kept(world, p.V5, "a").lose()
    kept(world, p.V5, "b").lose()
    kept(world, p.V5, "a").lose()
    world.client(p.V5, "c")
    assert list(world.hub.sessions) == ["a", "c"]
    assert world.hub.counters.ended == {"sessions_full": 1}


def test_sessions_with_connections_never_make_room():
    world = World(limits={"sessions_max": 1})
    world.client(p.V311, "a")
    refused = world.client(p.V311, "b")
    assert refused.welcome == p.Connack(False, 3)
    assert refused.closed == "quota_exceeded"


def test_extended_authentication_is_refused_with_its_reason():
    """MQTT-4.12.0-1."""
    asked = p.Properties(authentication_method="SCRAM-SHA-256")
    client = World().client(p.V5, properties=asked)
    assert client.welcome.code == Reason.BAD_AUTHENTICATION_METHOD
    assert client.closed == "bad_authentication_method"


@VERSIONS
@pytest.mark.parametrize(
    "packet",
    [
        p.Connack(False, 0),
        p.Suback(1, (0,)),
        p.Pingresp(),
        p.Unsuback(1, (0,)),
    ],
)
def test_a_packet_that_only_servers_send_closes_that_client_alone(version, packet):
    world = World()
    other, client = world.client(version, "other"), world.client(version)
    client.send(packet)
    assert client.closed == "protocol_error"
    assert other.closed is None
    assert world.hub.counters.closed == {"protocol_error": 1}


def test_an_auth_packet_without_a_method_is_a_protocol_error():
    """MQTT-4.12.0-6."""
    client = World().client(p.V5)
    client.send(p.Auth(0x18))
    assert client.take() == [p.Disconnect(Reason.PROTOCOL_ERROR)]


@VERSIONS
def test_a_malformed_packet_closes_that_client_alone_after_what_came_before_it(version):
    """MQTT-4.8.0-1 (4.13.1-1 of MQTT 5)."""
    world = World()
    other, client = world.client(version, "other"), world.client(version)
    other.subscribe("a")
    client.send_bytes(encode(p.Publish("a", b"1"), version) + b"\x36\x00")
    assert client.closed == "malformed_packet"
    assert client.take() == ([p.Disconnect(Reason.MALFORMED_PACKET)] if version == p.V5 else [])
    assert other.publishes() == [("a", b"1")]
    client.send_bytes(encode(p.Publish("a", b"2"), version))
    assert other.publishes() == []


@VERSIONS
def test_a_released_qos_2_message_of_another_server_is_let_go(version):
    client = World().client(version)
    client.send(p.Pubrel(7))
    code = Reason.PACKET_IDENTIFIER_NOT_FOUND if version == p.V5 else 0
    assert client.take() == [p.Pubcomp(7, code)]


# --- logins -----------------------------------------------------------------------------------


@VERSIONS
def test_a_good_login_opens_and_is_known_to_the_application(version):
    world = World(users_only=True)
    client = world.client(version, username="ann", password=b"secret")
    assert client.welcome is None
    check = world.checked(good=True)
    assert (check.username, check.password) == ("ann", b"secret")
    assert client.take_one(p.Connack).code == 0
    client.publish("headwater/events/T/s", b"{}")
    (message,) = world.handed()
    assert (message.client.user, message.client.client_id) == ("ann", "c")
    assert (message.client.version, message.client.address) == (version, "test:1")


@VERSIONS
def test_a_bad_login_is_refused_and_told(version):
    """MQTT-3.1.4-2: reason 0x86, return code 4."""
    world = World(users_only=True)
    client = world.client(version, username="ann", password=b"wrong")
    world.checked(good=False)
    code = Reason.BAD_USER_NAME_OR_PASSWORD if version == p.V5 else 4
    assert client.take_one(p.Connack).code == code
    assert client.closed == "bad_user_name_or_password"
    assert world.hub.counters.sessions == 0


@VERSIONS
def test_an_address_with_too_many_failed_logins_is_barred_for_a_while(version):
    world = World(users_only=True, limits={"login_failures_max": 3, "login_window_ms": 60_000})

    def attempt(address, good):
        client = Client(world, version, address=address)
        client.send(p.Connect(version, "c", username="ann", password=b"guess"))
        barred = world.checks[0].barred
        if barred:
            world.hub.barred(world.checks.pop(0).connection, world.now_ms)
            world.perform()
            assert client.closed == "connection_rate_exceeded"
            code = Reason.CONNECTION_RATE_EXCEEDED if version == p.V5 else 3
            assert client.take_one(p.Connack).code == code
        else:
            world.checked(good)
        client.lose()
        return barred

    assert [attempt("bad:1", False), attempt("bad:2", True)] == [False, False]
    world.advance(30_000)
    assert [attempt(f"bad:{port}", False) for port in range(4)] == [False, False, True, True]
    assert not attempt("other:1", True)
    world.advance(29_999)
    assert attempt("bad:1", True)
    world.advance(1)
    assert not attempt("bad:1", True)


def test_addresses_with_failed_logins_are_remembered_within_a_bound():
    logins = Logins(MqttLimits(login_failures_max=1, login_addresses_max=3))
    for number in range(5):
        logins.failed(f"10.0.0.{number}:7", 0)
    assert [logins.barred(f"10.0.0.{number}:9", 1) for number in range(5)] == [False] * 2 + [
        True
    ] * 3
    logins.failed("10.0.0.2:7", 60_000)  # anew, and now the youngest
    logins.failed("10.0.0.9:7", 60_001)
    assert logins.barred("10.0.0.2:7", 60_002)


@VERSIONS
def test_no_login_where_users_are_configured_is_refused(version):
    client = World(users_only=True).client(version)
    assert client.welcome.code == (Reason.NOT_AUTHORIZED if version == p.V5 else 5)
    assert client.closed == "not_authorized"


def test_what_follows_a_connect_waits_for_the_check_of_its_login_within_a_bound():
    world = World(users_only=True)
    client = Client(world, p.V5)
    client.send(p.Connect(p.V5, "c", username="ann"), p.Pingreq())
    client.send(p.Pingreq())
    assert client.take() == []
    world.checked(good=True)
    assert [type(packet) for packet in client.take()] == [p.Connack, p.Pingresp, p.Pingresp]
    flood = Client(world, p.V5)
    flood.send(p.Connect(p.V5, "d", username="ann"))
    for _ in range(10):
        flood.send_bytes(bytes(100_000))
    assert flood.closed == "packet_too_large"


def test_a_login_that_is_checked_after_its_client_has_gone_is_nothing():
    world = World(users_only=True)
    client = world.client(p.V5, username="ann")
    client.lose()
    world.checked(good=True)
    assert client.take() == []
    assert world.hub.counters.sessions == 0


def test_an_unproven_user_name_is_no_user():
    """Without configured users anybody may call himself anything."""
    world = World()
    client = world.client(p.V311, username="ann", password=b"")
    client.publish("headwater/x")
    assert world.handed()[0].client.user is None


def test_a_client_certificate_is_a_login_of_its_own():
    world = World(users_only=True)
    client = Client(world, p.V5, certificate_user="pump-7")
    client.send(p.Connect(p.V5, "c"))
    assert client.take_one(p.Connack).code == 0
    assert client.connection.client.user == "pump-7"
    assert world.checks == []


def test_another_user_may_not_take_a_session_over():
    world = World(users_only=True)
    mine = world.client(p.V5, username="ann")
    world.checked(good=True)
    theirs = world.client(p.V5, username="bob")
    world.checked(good=True)
    assert theirs.take_one(p.Connack).code == Reason.NOT_AUTHORIZED
    assert mine.closed is None


def test_shutting_down_tells_v5_clients_and_publishes_no_will():
    world = World()
    watcher = world.client(p.V5, "watcher")
    watcher.subscribe("w")
    client = world.client(p.V5, will=p.Will("w", b"gone"))
    world.hub.shut_down(world.now_ms)
    world.perform()
    assert client.take() == [p.Disconnect(Reason.SERVER_SHUTTING_DOWN)]
    assert watcher.take() == [p.Disconnect(Reason.SERVER_SHUTTING_DOWN)]
