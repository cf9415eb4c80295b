"""The MQTT face on real sockets, with plain asyncio and with uvloop."""

import asyncio
import logging
import socket
import threading

import aiomqtt
import pytest

from broker.credentials import Users, hash_password
from broker.mqtt.codec import packets as p
from broker.mqtt.codec.reasons import ProtocolError, Reason
from broker.mqtt.limits import MqttLimits
from broker.mqtt.listeners import Listener, ListenError, Tls, files_allowed
from broker.mqtt.server import MqttServer
from tests.broker.mqtt.sockets import (
    Application,
    RawClient,
    make_certificates,
    serving,
    until,
)
from tests.loops import RUNNERS


@pytest.fixture(params=RUNNERS)
def run(request):
    return RUNNERS[request.param]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1", "example.org"])
def test_without_users_only_loopback_is_listened_on(run, host):
    async def scene():
        server = MqttServer(Application(), listeners=[Listener(port=0), Listener(host, 0)])
        with pytest.raises(ListenError, match="neither users nor a client CA are configured"):
            await server.start()
        assert server.addresses() == []

    run(scene())


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.3.2.1"])
def test_loopback_needs_no_users(run, host):
    async def scene():
        async with serving(Listener(host, 0)) as server:
            assert server.addresses()[0][1] > 0

    run(scene())


def test_with_users_any_address_may_be_listened_on(run):
    async def scene():
        users = Users({"ann": hash_password("secret")})
        async with serving(Listener("0.0.0.0", 0), users=users) as server:
            client = await RawClient.open(server.port, username="ann", password=b"secret")
            assert client.welcome.code == 0
            await client.close()

    run(scene())


def test_a_port_in_use_is_said_in_a_sentence_and_nothing_stays_open(run):
    async def scene():
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            listeners = [Listener(port=0), Listener(port=port)]
            server = MqttServer(Application(), listeners=listeners)
            with pytest.raises(ListenError, match=f"on 127.0.0.1:{port}: address already in use"):
                await server.start()
            assert server.addresses() == []

    run(scene())


def test_certificates_that_cannot_be_read_are_said_in_a_sentence(run, tmp_path):
    async def scene():
        tls = Tls(str(tmp_path / "no.pem"), str(tmp_path / "no.key"))
        server = MqttServer(Application(), listeners=[Listener(port=0, tls=tls)])
        with pytest.raises(ListenError, match=r"no\.pem: cannot be read: no such file"):
            await server.start()

    run(scene())


def test_the_application_answers_later_and_from_outside_of_a_read(run):
    async def scene():
        async with serving() as server:
            tokens = []
            server.application.on_publish = lambda batch: tokens.extend(m.token for m in batch)
            client = await RawClient.open(server.port)
            await client.send(p.Subscribe(1, (p.Filter("headwater/results/#", 1),)))
            await client.next()
            await client.send(p.Publish("headwater/events/T/s", b"{}", 1, packet_id=5))
            await until(lambda: tokens)
            assert server.publish("headwater/results/me/Frost", b"{}") == 1
            assert (await client.next()).topic == "headwater/results/me/Frost"
            server.complete(tokens[0], Reason.PAYLOAD_FORMAT_INVALID)
            assert await client.next() == p.Puback(5, Reason.PAYLOAD_FORMAT_INVALID)
            with pytest.raises(ProtocolError):
                server.publish("a/#", b"")
            await client.close()

    run(scene())


def test_a_failing_application_refuses_that_batch_and_goes_on(run, caplog):
    async def scene():
        async with serving() as server:
            server.application.fail_on = b"bad"
            client = await RawClient.open(server.port)
            for payload, code in ((b"bad", 0x80), (b"good", 0), (b"bad", 0x80)):
                await client.send(p.Publish("headwater/x", payload, 1, packet_id=1))
                assert await client.next() == p.Puback(1, code)
            await client.close()

    with caplog.at_level(logging.WARNING, logger="broker.mqtt"):
        run(scene())
    assert [record.getMessage() for record in caplog.records] == [
        "the application failed on a message (further ones are counted only)"
    ]


def test_a_session_that_ends_full_is_told_with_what_is_lost_once_for_each_client(run, caplog):
    kept = p.Properties(session_expiry_interval=60)

    async def scene():
        async with serving(limits=MqttLimits(queue_messages_max=3)) as server:
            writer = await RawClient.open(server.port)
            for name in ("away", "away", "gone"):
                reader = await RawClient.open(server.port, client_id=name, properties=kept)
                await reader.send(p.Subscribe(1, (p.Filter(name, 1),)))
                await reader.next()
                await reader.close()
                codes = []
                for packet_id in range(1, 6):
                    await writer.send(p.Publish(name, b"x", 1, packet_id=packet_id))
                    codes.append((await writer.next()).code)
                assert codes == [0, 0, 0, Reason.QUOTA_EXCEEDED, Reason.NO_MATCHING_SUBSCRIBERS]
            await writer.close()

    with caplog.at_level(logging.WARNING, logger="broker.mqtt"):
        run(scene())
    assert [record.getMessage() for record in caplog.records] == [
        (
            f"the session of the MQTT client '{name}' ended, as its queue was full: 3 messages"
            " that waited are lost (further ones are counted only)"
        )
        for name in ("away", "gone")
    ]


def test_malformed_packets_close_that_client_alone_with_one_line_in_the_log(run, caplog):
    async def scene():
        async with serving() as server:
            good = await RawClient.open(server.port, client_id="good")
            for number in range(5):
                bad = await RawClient.open(server.port, client_id=f"bad-{number}")
                bad.writer.write(b"\x36\x00")
                assert await bad.next() == p.Disconnect(Reason.MALFORMED_PACKET)
                assert await bad.next() is None
                await bad.close()
            await good.send(p.Pingreq())
            assert await good.next() == p.Pingresp()
            await good.close()
            assert server.counters()["closed"]["malformed_packet"] == 5

    with caplog.at_level(logging.WARNING, logger="broker.mqtt"):
        run(scene())
    assert len(caplog.records) == 1
    assert "bad-0" in caplog.text


def test_a_subscriber_that_does_not_read_never_blocks_others(run):
    """Its socket and its queue fill; what else is meant for it is dropped and counted."""

    async def scene():
        limits = MqttLimits(queue_bytes_max=200_000, unsent_bytes_max=100_000)
        async with serving(limits=limits) as server:
            slow, quick, publisher = [
                await RawClient.open(server.port, client_id=name) for name in ("s", "q", "p")
            ]
            for client in (slow, quick):
                await client.send(p.Subscribe(1, (p.Filter("a", 0),)))
                await client.next()
            slow.writer.transport.pause_reading()
            count = 0
            while not server.counters()["dropped"].get("queue_full"):
                await publisher.send(p.Publish("a", bytes(50_000), 1, packet_id=1))
                assert isinstance(await publisher.next(), p.Puback)
                assert len((await quick.next()).payload) == 50_000
                count += 1
                assert count < 1000
            assert server.counters()["queued_bytes"] <= 200_000
            slow.writer.transport.resume_reading()
            received = 0
            while received < count - server.counters()["dropped"]["queue_full"]:
                assert isinstance(await slow.next(), p.Publish)
                received += 1
            for client in (slow, quick, publisher):
                await client.close()

    run(scene())


def test_a_socket_that_does_not_read_is_cut_when_its_connection_is_closed(run):
    async def scene():
        limits = MqttLimits(queue_messages_max=5, inflight_max=2000, close_timeout_ms=50)
        async with serving(limits=limits) as server:
            slow = await RawClient.open(server.port)
            await slow.send(p.Subscribe(1, (p.Filter("a", 1),)))
            await slow.next()
            slow.writer.transport.pause_reading()
            while not server.counters()["closed"]:
                server.publish("a", bytes(500_000))
                await asyncio.sleep(0)
            assert server.counters()["closed"] == {"queue_overflow": 1}
            await until(lambda: server.counters()["connections"] == 0)
            slow.writer.transport.abort()

    run(scene())


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "allowed"),
    [(100, 500, 80, 80), (100, 500, 300, 300), (100, 500, 900, 500), (100, -1, 900, 900)],
)
def test_the_system_is_asked_for_as_many_files_as_there_may_be_connections(
    soft, hard, wanted, allowed, monkeypatch
):
    resource = pytest.importorskip("resource")
    asked = []
    monkeypatch.setattr(resource, "RLIM_INFINITY", -1)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: asked.append(limits))
    assert files_allowed(wanted) == allowed
    assert asked == ([(allowed, hard)] if allowed > soft else [])


def test_too_few_files_are_told_in_a_sentence(run, monkeypatch, caplog):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (100, 500))

    def refuse(kind, limits):
        raise ValueError("planted")

    monkeypatch.setattr(resource, "setrlimit", refuse)

    async def scene():
        async with serving():
            pass

    with caplog.at_level(logging.WARNING, logger="broker.mqtt"):
        run(scene())
    (said,) = caplog.messages
    assert said == (
        "1000 MQTT connections may be open, but the system allows this process 100 files; "
        "allow it 1128, or lower connections_max"
    )


def test_silent_sockets_are_closed_in_time(run):
    async def scene():
        async with serving(limits=MqttLimits(connect_timeout_ms=20)) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            assert await asyncio.wait_for(reader.read(), 5) == b""
            writer.close()
            assert server.counters()["closed"] == {"connect_timeout": 1}

    run(scene())


@pytest.mark.parametrize("begin", [b"", b"\x16\x03\x01\x02\x00\x01"])
def test_a_socket_that_never_shakes_hands_is_closed_in_time(run, begin, tmp_path, find_program):
    """The rest of a handshake is due when a CONNECT would be."""
    folder = make_certificates(tmp_path, find_program("openssl"))

    async def scene():
        listener = Listener(port=0, tls=Tls(str(folder / "server.pem"), str(folder / "server.key")))
        async with serving(listener, limits=MqttLimits(connect_timeout_ms=50)) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(begin)
            assert await asyncio.wait_for(reader.read(), 5) == b""
            writer.close()
            assert server.counters()["connections_total"] == 0

    run(scene())


def test_logins_are_checked_side_by_side_and_do_not_stop_the_others(run):
    """While a check hangs in its thread, open clients are served."""

    class Slow:
        def __init__(self):
            self.go = threading.Event()

        def __bool__(self):
            return True

        def remembered(self, name, password):
            return name == "known"

        def login(self, name, password):
            return self.go.wait(10)

    async def scene():
        users = Slow()
        async with serving(users=users) as server:
            known = await RawClient.open(server.port, username="known", client_id="k")
            opening = asyncio.ensure_future(RawClient.open(server.port, username="new"))
            await until(lambda: server.counters()["connections"] == 2)
            await known.send(p.Pingreq())
            assert await known.next() == p.Pingresp()
            assert not opening.done()
            users.go.set()
            fresh = await opening
            assert fresh.welcome.code == 0
            await fresh.close()
            await known.close()

    run(scene())


def test_guesses_are_not_looked_at_for_long_and_known_users_come_in(run):
    """Those that wait for their turn are dismissed too, once enough of them failed."""

    class Guarded:
        def __init__(self):
            self.go, self.asked = threading.Semaphore(0), 0

        def __bool__(self):
            return True

        def remembered(self, name, password):
            return name == "known"

        def login(self, name, password):
            self.asked += 1
            self.go.acquire(timeout=10)
            return False

    async def scene():
        users = Guarded()
        limits = MqttLimits(login_failures_max=3, password_checks_max=1)
        async with serving(users=users, limits=limits) as server:
            guesses = [
                asyncio.ensure_future(RawClient.open(server.port, username="x", client_id=f"{n}"))
                for n in range(10)
            ]
            await until(lambda: server.counters()["connections"] == 10)
            reason = "bad_user_name_or_password"
            for failed in range(1, 4):
                users.go.release()
                await until(lambda failed=failed: server.counters()["closed"].get(reason) == failed)
            users.go.release()
            codes = []
            for guess in guesses:
                client = await guess
                codes.append(client.welcome.code)
                await client.close()
            assert codes.count(Reason.BAD_USER_NAME_OR_PASSWORD) == 3
            assert codes.count(Reason.CONNECTION_RATE_EXCEEDED) == 7
            assert users.asked < len(guesses) // 2 + 1  # some may have begun meanwhile
            known = await RawClient.open(server.port, username="known")
            assert known.welcome.code == 0
            await known.close()

    run(scene())


def test_a_login_that_cannot_be_checked_is_refused(run):
    class Broken:
        def __bool__(self):
            return True

        def remembered(self, name, password):
            return False

        def login(self, name, password):
            raise MemoryError("planted")

    async def scene():
        async with serving(users=Broken()) as server:
            client = await RawClient.open(server.port, username="ann", password=b"\xff\xfe")
            assert client.welcome.code == Reason.BAD_USER_NAME_OR_PASSWORD
            await client.close()

    run(scene())


def test_a_fault_in_what_is_due_is_told_and_the_other_timers_go_on(run, caplog):
    def fail(_now_ms):
        raise RuntimeError("planted")

    async def scene():
        async with serving(limits=MqttLimits(connect_timeout_ms=50)) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            await until(lambda: server.counters()["connections"] == 1)
            server._hub.timers.at(0, fail)
            server._driver._arm()
            assert await asyncio.wait_for(reader.read(), 5) == b""
            writer.close()
            assert server.counters()["closed"] == {"connect_timeout": 1}

    with caplog.at_level(logging.WARNING, logger="broker.mqtt"):
        run(scene())
    assert "the MQTT face failed on what was due" in caplog.text


def test_a_peer_that_vanishes_without_a_word_is_noticed_by_the_kernel(run):
    """A client need not have a keep-alive, and its machine may lose its power."""

    async def scene():
        async with serving() as server:
            client = await RawClient.open(server.port, keep_alive_s=0)
            (own,) = server._driver._sockets.values()
            option = own.transport.get_extra_info("socket").getsockopt
            assert option(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            if hasattr(socket, "TCP_KEEPIDLE"):
                idle, every, count = (
                    option(socket.IPPROTO_TCP, getattr(socket, f"TCP_KEEP{name}"))
                    for name in ("IDLE", "INTVL", "CNT")
                )
                assert idle + every * count <= 180
            await client.close()

    run(scene())


def test_stopping_tells_clients_and_ends_soon(run):
    async def scene():
        async with serving() as server:
            client = await RawClient.open(server.port)
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            await until(lambda: server.counters()["connections"] == 2)
        assert await client.next() == p.Disconnect(Reason.SERVER_SHUTTING_DOWN)
        assert await client.next() is None
        assert await asyncio.wait_for(reader.read(), 5) == b""
        assert server.counters()["connections"] == 0
        writer.close()
        await client.close()

    run(scene())


def test_the_intake_can_be_held_and_released(run):
    async def scene():
        async with serving() as server:
            client = await RawClient.open(server.port)
            await client.send(p.Publish("headwater/x", b"1", 1, packet_id=1))
            assert await client.next() == p.Puback(1)
            server.hold_intake(True)
            await client.send(p.Publish("headwater/x", b"2", 1, packet_id=2))
            assert await client.next() == p.Puback(2)
            await client.send(p.Publish("headwater/x", b"3", 1, packet_id=3))
            other = await RawClient.open(server.port, client_id="other")
            assert len(server.application.messages) == 2
            server.hold_intake(False)
            assert await client.next() == p.Puback(3)
            await other.close()
            await client.close()

    run(scene())


@pytest.mark.parametrize("version", [aiomqtt.ProtocolVersion.V311, aiomqtt.ProtocolVersion.V5])
def test_aiomqtt_publishes_subscribes_and_hears_answers(version):
    """Plain asyncio: the client library watches its socket by `add_reader`."""

    async def scene():
        async with serving() as server:
            will = aiomqtt.Will("w", b"gone")
            one = aiomqtt.Client("127.0.0.1", server.port, protocol=version, will=will)
            async with one as client, asyncio.timeout(8):
                await client.subscribe([("a/#", 1), ("headwater/events/#", 0)])
                for number in range(20):
                    await client.publish("a/b", f"{number}", qos=1)
                await client.publish("headwater/events/T/s", b"{}", qos=1)
                got = []
                async for message in client.messages:
                    got.append((str(message.topic), message.payload))
                    if len(got) == 21:
                        break
            expected = [("a/b", b"%d" % number) for number in range(20)]
            assert got == [*expected, ("headwater/events/T/s", b"{}")]
            assert [m.topic for m in server.application.messages] == ["headwater/events/T/s"]
            await until(lambda: server.counters()["connections"] == 0)
            assert server.counters()["closed"] == {"client_disconnected": 1}

    asyncio.run(scene())


def test_a_login_whose_client_has_gone_is_not_checked_any_more(run):
    """Else strangers could queue checks without end by connecting and leaving."""

    class Counting:
        def __init__(self):
            self.go, self.asked = threading.Event(), []

        def __bool__(self):
            return True

        def remembered(self, name, password):
            return False

        def login(self, name, password):
            self.asked.append(name)
            return self.go.wait(10)

    async def scene():
        users = Counting()
        async with serving(users=users, limits=MqttLimits(password_checks_max=1)) as server:
            tasks = []
            for name in ("first", "leaver", "last"):
                before = server.counters()["bytes_in"]
                opening = RawClient.open(server.port, username=name, client_id=name)
                tasks.append(asyncio.ensure_future(opening))
                await until(lambda before=before: server.counters()["bytes_in"] > before)
            tasks[1].cancel()
            with pytest.raises(asyncio.CancelledError):
                await tasks[1]
            await until(lambda: server.counters()["connections"] == 2)
            users.go.set()
            for client in (await tasks[0], await tasks[2]):
                assert client.welcome.code == 0
                await client.close()
            assert users.asked == ["first", "last"]

    run(scene())
