"""A client library over connections that break all the time: what each QoS promises is counted.

Between aiomqtt's clients and the server there is a wire that is cut after some bytes, again and
again. Whoever publishes hands each message to its library once, and leaves all repetition to it.
The wire reads what passes: where the library repeats a PUBLISH of QoS 2 after its PUBREL, which
paho does at times after two broken connections, that is a new message, as the standard says.
"""

import asyncio
import random
from collections import Counter
from contextlib import suppress
from itertools import islice

import aiomqtt
import pytest
from aiomqtt.client import ProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from broker.mqtt.listeners import Listener
from broker.mqtt.server import MqttServer
from broker.mqtt.storage.rows import KEPT
from broker.store import Store
from tests.broker.mqtt.sockets import Application
from tests.conformance import wire as w

VERSIONS = (ProtocolVersion.V311, ProtocolVersion.V5)
PUBLISHERS, SUBSCRIBERS = 6, 4
LAST = b"last"
LEVEL_AT = 6  # of the protocol, in the body of a CONNECT
AT_ONCE = 8  # messages of one publisher
UP_S = 0.7  # the time between two stops of the server
NAPS_S = (0.0, 0.01, 0.05)  # between two connections
# The library does not notice that a connection has broken while it waits for an answer.
ANSWER_S = QUIET_S = 0.4
PATIENCE_S = 8  # to connect and to disconnect, within which nothing is cut


class Wire:
    """Passes bytes on between clients and a server; cut after some that a client has sent.

    What a client sends is counted, so that in each connection something is acknowledged.
    """

    def __init__(self, port, chance, bytes_between):
        self.far_port, self._chance, self._between = port, chance, bytes_between
        self._joined = set()
        self.cuts = 0
        self.repeated = Repeated()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._join, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close()
        joined = list(self._joined)
        for task in joined:
            task.cancel()
        await asyncio.gather(*joined, return_exceptions=True)

    async def _join(self, reader, writer):
        task = asyncio.current_task()
        self._joined.add(task)
        ends = [writer]
        with suppress(OSError, asyncio.CancelledError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.far_port)
            ends.append(far_writer)
            there = asyncio.ensure_future(self._pass(reader, far_writer, cut=True))
            back = asyncio.ensure_future(self._pass(far_reader, writer, cut=False))
            try:
                await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
            finally:
                there.cancel()
                back.cancel()
                await asyncio.gather(there, back, return_exceptions=True)
        for end in ends:
            end.transport.abort()
        self._joined.discard(task)

    async def _pass(self, reader, writer, *, cut):
        left = self._chance.randrange(*self._between)
        reading = Reading(self.repeated) if cut else None
        while data := await reader.read(1_000):
            left -= len(data)
            if cut and left < 0:
                self.cuts += 1
                data = data[: self._chance.randrange(len(data))]  # also within a packet
                reading.feed(data)
                writer.write(data)
                return
            if reading is not None:
                reading.feed(data)
            writer.write(data)
            await writer.drain()


class Repeated:
    """What clients send at QoS 2: which payloads they repeat though they have released them."""

    def __init__(self):
        self.payloads = Counter()
        self._sent = {}  # by client and packet identifier: payload, and whether it is released

    def packet(self, client, first, body):
        if first >> 4 == w.PUBLISH and first & 4:
            cursor = w.Cursor(body)
            cursor.take(cursor.number(2))
            pid = cursor.number(2)
            if client[LEVEL_AT] == w.V5:
                cursor.properties()
            payload = cursor.take(cursor.left())
            self.payloads[payload] += self._sent.get((client, pid)) == (payload, True)
            self._sent[client, pid] = (payload, False)
        elif first >> 4 == w.PUBREL:
            pid = int.from_bytes(body[:2], "big")
            self._sent[client, pid] = (self._sent.get((client, pid), (b"",))[0], True)


class Reading:
    """Reads what one client sends in one connection."""

    def __init__(self, repeated):
        self._repeated, self._buffer, self._client = repeated, bytearray(), None

    def feed(self, data):
        self._buffer += data
        while (found := w.split(self._buffer)) is not None:
            first, body, size = found
            del self._buffer[:size]
            if self._client is None:
                self._client = body  # its CONNECT: the same in each of its connections
            self._repeated.packet(self._client, first, body)


def client_of(port, name, version):
    """A client whose session outlives its connections."""
    options = {"identifier": name, "protocol": version, "timeout": PATIENCE_S}
    if version == ProtocolVersion.V5:
        properties = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = 3600
        options |= {"clean_start": False, "properties": properties}
    else:
        options["clean_session"] = False
    return aiomqtt.Client("127.0.0.1", port, **options)


class Line:
    """One client that connects again and again; `take` gets each of its messages."""

    def __init__(self, client, chance, take=lambda _message: None):
        self.client, self.chance, self.take = client, chance, take
        self._late = None

    async def following(self):
        """Take the next message; MqttError where none comes for a while.

        A connection that breaks as soon as it is open is not noticed by the library.
        """
        coming = asyncio.ensure_future(anext(self.client.messages))
        await asyncio.wait([coming], timeout=QUIET_S)
        if not coming.done():
            self._late = coming  # leaving the client ends it, maybe with a message
            raise aiomqtt.MqttError("it is quiet")
        self.take(await coming)

    async def always(self, todo):
        """Do it in one connection after the other until it comes to its end."""
        while True:
            with suppress(aiomqtt.MqttError):
                async with self.client:
                    await todo()
                    return
            late, self._late = self._late, None
            if late is not None:
                with suppress(aiomqtt.MqttError):
                    self.take(await late)
            await asyncio.sleep(self.chance.choice(NAPS_S))


class Soak:
    """The publishers and subscribers of one run, and what they have counted."""

    def __init__(self, seed, messages):
        self.chance = random.Random(seed)
        self.messages = messages
        self.sent = {qos: Counter() for qos in (0, 1, 2)}
        self.got = []  # of each subscriber: how often each payload came
        self.done = asyncio.Event()  # all that has to come has come
        self.ended = asyncio.Event()  # so has what was published after it

    async def publish(self, number, port):
        client = client_of(port, f"publisher-{number}", VERSIONS[number % 2])
        line = Line(client, self.chance)
        payloads = iter([b"%d %d" % (number, at) for at in range(self.messages)])

        async def hand_over(payload):
            qos = self.chance.choice((0, 1, 2))
            self.sent[qos][payload] += 1
            await client.publish(f"soak/{qos}/{number}", payload, qos, timeout=ANSWER_S)

        async def todo():
            while some := list(islice(payloads, AT_ONCE)):  # goes on where it was: none twice
                ended = await asyncio.gather(*map(hand_over, some), return_exceptions=True)
                for fault in filter(None, ended):
                    raise fault  # the others go to their ends in the next connection
            while not self.done.is_set():  # stay: the library has to bring it all to its end
                await line.following()

        await line.always(todo)

    async def subscribe(self, number, port, ready):
        client = client_of(port, f"subscriber-{number}", VERSIONS[number // 2 % 2])
        got = Counter()
        self.got.append(got)

        def take(message):
            got[bytes(message.payload)] += 1
            self.look()

        async def todo():
            if not ready.is_set():
                for qos in (0, 1, 2):
                    await client.subscribe(f"soak/{qos}/#", qos=qos, timeout=ANSWER_S)
                ready.set()
            while True:
                await line.following()

        line = Line(client, self.chance, take)
        await line.always(todo)

    def missing(self, got):
        return [one for qos in (1, 2) for one in self.sent[qos] if one not in got]

    def look(self):
        if all(LAST in got for got in self.got):
            self.ended.set()
        whole = sum(map(len, self.sent.values())) == PUBLISHERS * self.messages
        if whole and not self.done.is_set() and not any(map(self.missing, self.got)):
            self.done.set()

    async def run(self, port, meanwhile):
        ready = [asyncio.Event() for _ in range(SUBSCRIBERS)]
        listening = [
            asyncio.ensure_future(self.subscribe(number, port, one))
            for number, one in enumerate(ready)
        ]
        await asyncio.gather(*(one.wait() for one in ready))
        await asyncio.gather(*(self.publish(number, port) for number in range(PUBLISHERS)))
        await meanwhile
        async with aiomqtt.Client("127.0.0.1", port, protocol=ProtocolVersion.V5) as last:
            await last.publish("soak/2/last", LAST, 2)
            await self.ended.wait()
        for one in listening:
            one.cancel()
        await asyncio.gather(*listening, return_exceptions=True)


class Server:
    """A server that can be stopped and started again; what it promises is on disk, given a folder.

    `counters` are those of all that were stopped.
    """

    def __init__(self, folder):
        self._folder, self._store = folder, None
        self.counters = Counter()
        self.stops = 0

    async def __aenter__(self):
        application = Application()
        self._server = application.server = MqttServer(application, listeners=[Listener(port=0)])
        if self._folder is not None:
            self._store = Store.open(f"sqlite:///{self._folder}/headwater.db", parts=(KEPT,))
            await self._server.keep_in(self._store)
        await self._server.start()
        self.port = self._server.addresses()[0][1]
        return self

    async def __aexit__(self, *_):
        await self._server.stop()
        if self._store is not None:
            await self._store.close()
        counted = self._server.counters()
        self.counters.update({name: counted[name] for name in ("sent", "resent")})

    async def restarts(self, wire, done):
        """Again and again until all has come; nothing without a folder."""
        while self._folder is not None and not done.is_set():
            await asyncio.sleep(UP_S)
            self.stops += 1
            await self.__aexit__()
            await self.__aenter__()
            wire.far_port = self.port


def soak(seed, messages, bytes_between, patience_s, folder=None):
    """The run, its wire and its server; with a folder the server is stopped now and then."""

    async def scene():
        run = Soak(seed, messages)
        async with (
            Server(folder) as server,
            Wire(server.port, random.Random(seed), bytes_between) as wire,
        ):
            restarts = asyncio.ensure_future(server.restarts(wire, run.done))
            with suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    await run.run(wire.port, restarts)
        return run, wire, server

    return asyncio.run(scene())


def check(seed, run, repeated):
    for got in run.got:
        lost = run.missing(got)
        assert not lost, f"seed {seed}: {len(lost)} lost, as {lost[:3]}"
        twice = [one for one in run.sent[0] if got[one] > 1]
        twice += [one for one in run.sent[2] if got[one] > 1 + repeated.payloads[one]]
        assert not twice, f"seed {seed}: {len(twice)} came twice, as {twice[:3]}"
        assert got.keys() <= {LAST, *run.sent[0], *run.sent[1], *run.sent[2]}
        assert got[LAST] == 1


def test_promises_hold_where_connections_break():
    run, wire, server = soak(1, 60, (300, 1_000), 15)
    check(1, run, wire.repeated)
    assert wire.cuts > 10
    assert server.counters["resent"] > 0


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(10, 14))
def test_promises_hold_for_long_where_connections_break(seed):
    run, wire, server = soak(seed, 1_500, (300, 5_000), 240)
    check(seed, run, wire.repeated)
    assert wire.cuts > 50
    assert server.counters["resent"] > 0


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(20, 23))
def test_promises_hold_where_the_server_is_stopped_too(seed, tmp_path):
    run, wire, server = soak(seed, 400, (300, 5_000), 240, tmp_path)
    check(seed, run, wire.repeated)
    assert server.stops > 3
    assert server.counters["resent"] > 0
