"""How `headwater.publisher` gets events to a broker that fails, refuses, waits or goes away."""

import json
import random
import socket
import struct
import threading
import time
from contextlib import suppress
from itertools import pairwise

import pytest

import headwater
from headwater import publisher as publishing
from headwater.client import broker_for
from tests.broker.running import CONFIG, PATIENCE_S, RunningBroker

HOT = "event Temp(val: float)\nsubscription Hot from anna to fan\ndetect Temp(val > 30)\n"
NOT_AUTHORIZED = 0x87
CONNECT, PUBLISH = 1, 3


class Served:
    """A server of one client at a time; `received` has the numbers of the events by connection.

    `answer` gives the reason code of the PUBACK for an event's number, None for none; and raises
    OSError to end the connection.
    """

    def __init__(self, answer=lambda number: 0, *, port=0, properties=b"", connack=0):
        self.answer, self.properties, self.connack = answer, properties, connack
        self.received, self.begun = [], []
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port = self._listener.getsockname()[1]
        self._socket = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        while True:
            try:
                self._socket, _ = self._listener.accept()
            except OSError:
                return
            self.begun.append(time.monotonic())
            with self._socket, self._socket.makefile("rb") as stream, suppress(OSError):
                self._converse(stream)

    def _converse(self, stream):
        self.received.append([])
        while head := stream.read(1):
            body = stream.read(length(stream))
            if head[0] >> 4 == CONNECT and self.connack is not None:
                said = bytes([0, self.connack, len(self.properties)]) + self.properties
                self._socket.sendall(bytes([0x20, len(said)]) + said)
            elif head[0] >> 4 == PUBLISH:
                topic_end = 2 + int.from_bytes(body[:2], "big")
                payload = body[topic_end + 3 :]
                event = json.loads(payload) if payload else {}
                number = event.get("id")
                self.received[-1].append(number)
                if (code := self.answer(number)) is not None:
                    puback = body[topic_end : topic_end + 2] + bytes([code])
                    self._socket.sendall(bytes([0x40, len(puback)]) + puback)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with suppress(OSError):  # it is to end the wait for a client, and was called before
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


def length(stream):
    value = shift = 0
    while True:
        byte = stream.read(1)[0]
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value


@pytest.fixture
def opened():
    """Makes publishers that are connected to a port."""
    made = []

    def make(port, timeout_s=PATIENCE_S, **more):
        broker = broker_for(f"mqtt://127.0.0.1:{port}", None, None, "anna", timeout_s)
        made.append(publishing.Publisher(broker, f"publisher-{len(made)}", **more))
        made[-1].open()
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(autouse=True)
def still(caplog):
    """A program that publishes reads nothing of the libraries' own on its standard error."""
    yield
    assert [one.getMessage() for one in caplog.records] == []


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(publishing, "RECONNECT_S", (0.1, 0.4))


def send(publisher, numbers, **more):
    for number in numbers:
        event = {"id": number, "timestamp": 1_000, "val": 40.0} | more
        publisher.send("Temp", "t1", [event])


def until(holds):
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_was_not_acknowledged_comes_first_and_in_its_order(opened, quick):
    """Each connection acknowledges some and ends when all that may be under way has come."""
    acknowledged = 250
    connections = 4

    def answer(number):
        begun = len(server.received) - 1
        if begun == connections or number < acknowledged * (begun + 1):
            return 0
        if len(server.received[-1]) == acknowledged + publishing.INFLIGHT_MAX:
            raise OSError
        return None

    with Served(answer) as server:
        publisher = opened(server.port)
        send(publisher, range(2_000))
        publisher.wait(PATIENCE_S)
    assert publisher.refused == 0
    *broken, last = server.received
    assert len(broken) == connections
    for begin, numbers in enumerate(broken):
        first = begin * acknowledged
        assert numbers == list(range(first, first + acknowledged + publishing.INFLIGHT_MAX))
    assert last == list(range(connections * acknowledged, 2_000))


def test_connections_that_break_at_any_moment_lose_nothing_and_stay_unheard(opened, monkeypatch):
    """Also where a socket goes in the moment in which a message is given to it."""
    monkeypatch.setattr(publishing, "RECONNECT_S", (0.001, 0.002))
    count = 14_000
    drawn = random.Random(5)
    at_once = struct.pack("ii", 1, 0)
    ends = iter([drawn.randrange(100, 300) for _ in range(60)] + [count])

    def answer(number):
        if len(server.received[-1]) == 1:
            server.last = next(ends)
        if len(server.received[-1]) == server.last:
            server._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
            raise OSError
        return 0

    with Served(answer) as server:
        publisher = opened(server.port)
        send(publisher, range(count))
        publisher.wait(2 * PATIENCE_S)
    assert publisher.refused == 0
    assert len(server.received) == 61
    assert {number for numbers in server.received for number in numbers} == set(range(count))
    for numbers, after in pairwise(server.received):
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
        assert after[0] <= numbers[-1] + 1


def test_no_event_is_lost_or_late_where_the_broker_is_killed_under_load(tmp_path, opened):
    """One that comes after a later one is late here at once."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    config = CONFIG.replace("[mqtt]\nport = 0", f"[mqtt]\nport = {port}")
    flags = ("--set", f"broker.data_dir={tmp_path / 'data'}")
    count = 4_000
    sent = []

    def load(publisher):
        for number in range(count):
            event = {"id": f"e{number}", "timestamp": 1_000_000 + 10_000 * number, "val": 40.0}
            publisher.send("Temp", "t1", [event])
            sent.append(number)

    with RunningBroker(tmp_path, config, *flags) as broker:
        headwater.Client(f"http://127.0.0.1:{broker.port('http')}", name="anna").submit(HOT)
        publisher = opened(port)
        sender = threading.Thread(target=load, args=(publisher,))
        sender.start()
        until(lambda: len(sent) - publisher._left() > 500)
        broker.process.kill()
        broker.process.wait(PATIENCE_S)
    with RunningBroker(tmp_path, config, *flags) as broker:
        client = headwater.Client(f"http://127.0.0.1:{broker.port('http')}", name="anna")
        sender.join(PATIENCE_S)
        publisher.wait(PATIENCE_S)
        assert publisher.refused == 0
        found = set()

        def all_found():
            found.update(one["events"]["Temp"][0] for _, one in client.log())
            return len(found) == count

        until(all_found)


def test_what_is_refused_or_too_large_is_counted_and_the_rest_goes_on(opened):
    large_max = b"\x27" + (1_000).to_bytes(4, "big")
    with Served(lambda n: NOT_AUTHORIZED if n % 3 == 0 else 0, properties=large_max) as server:
        publisher = opened(server.port)
        send(publisher, range(10))
        send(publisher, [10], note="n" * 1_000)
        send(publisher, [11])
        publisher.wait(PATIENCE_S)
    assert publisher.refused == 4 + 1
    assert server.received == [[*range(10), 11]]


def test_no_more_is_under_way_than_the_broker_takes(opened):
    most = b"\x21" + (5).to_bytes(2, "big")
    with Served(lambda n: None, properties=most) as server:
        publisher = opened(server.port)
        send(publisher, range(20))
        until(lambda: len(server.received[0]) == 5)
        time.sleep(0.2)
        assert server.received == [list(range(5))]


def test_to_wait_in_vain_is_an_error_and_so_is_no_room(opened, monkeypatch):
    monkeypatch.setattr(publishing, "WAITING_MAX", 5)
    monkeypatch.setattr(publishing, "INFLIGHT_MAX", 2)
    with Served(lambda n: None) as server:
        publisher = opened(server.port, patience_s=0.2)
        send(publisher, range(2))
        until(lambda: len(server.received[0]) == 2)
        send(publisher, range(2, 7))
        with pytest.raises(headwater.ClientError, match="7 messages were not acknowledged in time"):
            publisher.wait(0.2)
        with pytest.raises(headwater.ClientError, match="5 messages wait for mqtt://"):
            send(publisher, [7])
        publisher.close()
        with pytest.raises(headwater.ClientError, match="7 messages were not acknowledged"):
            publisher.wait()
        with pytest.raises(headwater.ClientError, match="is closed"):
            send(publisher, [8])


@pytest.mark.parametrize("returns", ["nobody", "one that is silent"])
def test_closing_does_not_wait_for_a_broker_that_is_gone(returns, opened, quick):
    with Served(lambda n: None) as server:
        publisher = opened(server.port, timeout_s=publishing.CLOSE_S + 1)
        send(publisher, range(publishing.INFLIGHT_MAX + 5))
        until(lambda: len(server.received[0]) == publishing.INFLIGHT_MAX)
        if returns == "nobody":
            server.__exit__()
            time.sleep(0.3)  # it is dialled again, or in between
        else:
            server.connack = None
            server._socket.shutdown(socket.SHUT_RDWR)
            until(lambda: len(server.begun) == 2)
        begun = time.monotonic()
        publisher.close()
        assert time.monotonic() - begun < publishing.CLOSE_S + 3
        with pytest.raises(headwater.ClientError, match="105 messages were not acknowledged"):
            publisher.wait()


def test_a_broker_that_lets_nobody_in_is_dialled_more_and_more_seldom(opened, monkeypatch):
    monkeypatch.setattr(publishing, "RECONNECT_S", (0.1, 1.6))
    with Served() as server:
        publisher = opened(server.port)
        send(publisher, [0])
        publisher.wait(PATIENCE_S)
        server.connack = NOT_AUTHORIZED
        server._socket.shutdown(socket.SHUT_RDWR)
        until(lambda: len(server.begun) == 5)
        server.connack = 0
        send(publisher, [1])
        publisher.wait(PATIENCE_S)
    gaps = [after - before for before, after in pairwise(server.begun[1:])]
    for gap, least in zip(gaps, (0.2, 0.4, 0.8), strict=False):
        assert gap > 0.9 * least  # the server's clock begins when it comes to it


def test_what_answers_nothing_or_no_mqtt_is_told(opened, monkeypatch):
    silent = Served(connack=None)
    with silent:
        broker = broker_for(f"mqtt://127.0.0.1:{silent.port}", None, None, "anna", 0.3)
        # Whoever of the two that wait for it notices first says so.
        late = r"cannot reach .* (in time|timed out); is it"
        with pytest.raises(headwater.ClientError, match=late) as told:
            publishing.Publisher(broker, "publisher").open()
        assert not told.value.reached


class Endless(headwater.Driver):
    """A device that has readings until it is stopped, or `count`."""

    def __init__(self, count):
        super().__init__("device-1", "Temp")
        self.count, self.reads = count, 0

    def read(self):
        if self.reads == self.count:
            return None
        self.reads += 1
        return {"id": self.reads, "val": 40.0}


def test_a_device_is_read_no_further_while_too_much_waits():
    going = threading.Event()
    most = publishing.WAITING_MAX + publishing.INFLIGHT_MAX
    device = Endless(most + 500)

    def answer(number):
        assert number is None or going.wait(PATIENCE_S)
        return 0

    with Served(answer) as server:
        running = threading.Thread(target=device.run, args=(f"mqtt://127.0.0.1:{server.port}",))
        running.start()
        until(lambda: device.reads > most)  # the last of them has no room
        time.sleep(0.3)
        assert device.reads == most + 1
        going.set()
        running.join(PATIENCE_S * 2)
        assert not running.is_alive()
    assert server.received == [[None, *range(1, device.count + 1), None]]
    assert device.refused == 0
