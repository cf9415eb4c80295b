"""The two processes of a bench of links: one sends batches of events, the other takes the time.

Owns the load, the ends of both transports and what is measured. Must not know what is compared.
Invariant: both carry the same bytes and decode them into the same structs.

    python -m bench.link_ends receive|send LOAD [PORT]
"""

import asyncio
import logging
import resource
import sys
import time
from typing import Any, cast

import msgspec
import uvloop

from broker.config.links import LinksSection
from broker.links.face import LinkFace
from broker.links.securing import load_security
from broker.network.session.told import Congested, Delivered, Up

PATIENCE_S = 120
WRITE_BYTES_HIGH = 1_048_576  # as a link's socket has it


class Event(msgspec.Struct, array_like=True, gc=False):
    """43 bytes on the wire; `sent_us` is when it left, of the first of a batch."""

    id: str
    type: str
    source: str
    sent_us: int
    start: int
    value: float
    unit: str


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """`batches` of `batch` events each; `every_s` apart, 0: as fast as they are taken."""

    transport: str
    batch: int
    batches: int
    every_s: float = 0.0
    certificates: str = ""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it: from the first to the last, CPU of the receiving process alone."""

    events: int
    seconds: float
    cpu_s: float
    p50_us: float = 0.0
    p99_us: float = 0.0

    @property
    def per_second(self) -> float:
        """Events in a second."""
        return self.events / self.seconds


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Event])


def message(batch: int) -> bytes:
    """A batch of events that leaves now."""
    sent_us = time.monotonic_ns() // 1000
    one = Event("a1b2c3d4", "Temp", "s17", sent_us, 1, 21.5, "C")
    return _encoder.encode([one] * batch)


def cpu_s() -> float:
    """What this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


# --- the receiving process --------------------------------------------------------------------


class Sink:
    """Decodes what comes and takes the time."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.events = 0
        self.done = asyncio.Event()
        self._began_s = self._began_cpu_s = 0.0
        self._waited_us: list[int] = []
        self._ended_s = self._ended_cpu_s = 0.0

    def take(self, data: bytes | memoryview) -> None:
        """One message."""
        events = _decoder.decode(data)
        if not self.events:
            self._began_s, self._began_cpu_s = time.monotonic(), cpu_s()
        self.events += len(events)
        if self.load.every_s:
            self._waited_us.append(time.monotonic_ns() // 1000 - events[0].sent_us)
        if self.events >= self.load.batch * self.load.batches:
            self._ended_s, self._ended_cpu_s = time.monotonic(), cpu_s()
            self.done.set()

    def measured(self) -> Measured:
        """When `done`."""
        waited = sorted(self._waited_us[len(self._waited_us) // 10 :]) or [0]
        return Measured(
            events=self.events,
            seconds=max(self._ended_s - self._began_s, 1e-6),
            cpu_s=self._ended_cpu_s - self._began_cpu_s,
            p50_us=waited[len(waited) // 2],
            p99_us=waited[len(waited) * 99 // 100],
        )


class BareReceiver(asyncio.Protocol):
    """Four bytes of length, then the message; nothing is said back."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._kept = b""

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self._kept:
            data = self._kept + data
        view, at, end = memoryview(data), 0, len(data)
        while end - at >= 4:
            after = at + 4 + int.from_bytes(data[at : at + 4], "big")
            if after > end:
                break
            self._sink.take(view[at + 4 : after])
            at = after
        self._kept = data[at:]


class LinkReceiver:
    """The receiving end of a link."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def on_link(self, news: object) -> None:
        """What a link says."""
        if isinstance(news, Delivered):
            for one in news.messages:
                self._sink.take(one)


async def receive(load: Load) -> None:
    """Print the port, take all, print what was measured."""
    sink = Sink(load)
    loop = asyncio.get_running_loop()
    if load.transport.startswith("bare"):
        context = load_security(_settings(load, "a", listen=True)).listening
        server = await loop.create_server(lambda: BareReceiver(sink), "127.0.0.1", 0, ssl=context)
        print(server.sockets[0].getsockname()[1], flush=True)
        await sink.done.wait()
    else:
        face = LinkFace("a", 1, _settings(load, "a", listen=True), LinkReceiver(sink))
        await face.start()
        print(face.port, flush=True)
        await sink.done.wait()
    print(msgspec.json.encode(sink.measured()).decode(), flush=True)


# --- the sending process ----------------------------------------------------------------------


class Gate:
    """Open while more may be sent."""

    def __init__(self) -> None:
        self._open = asyncio.Event()

    def set(self, *, on: bool) -> None:
        """Open or shut."""
        (self._open.set if on else self._open.clear)()

    @property
    def shut(self) -> bool:
        """Whether nothing may be sent."""
        return not self._open.is_set()

    async def wait(self) -> None:
        """Until it is open."""
        await self._open.wait()


class BareSender(asyncio.Protocol):
    """The other end of `BareReceiver`."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there."""
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=WRITE_BYTES_HIGH)
        self._gate.set(on=True)

    def pause_writing(self) -> None:
        """It takes no more."""
        self._gate.set(on=False)

    def resume_writing(self) -> None:
        """It does again."""
        self._gate.set(on=True)

    def send(self, data: bytes) -> None:
        """One message."""
        self.transport.write(len(data).to_bytes(4, "big") + data)


class LinkSender:
    """The sending end of a link."""

    def __init__(self, gate: Gate, load: Load) -> None:
        self._gate = gate
        self._load = load
        self.face: LinkFace

    def on_link(self, news: object) -> None:
        """What a link says."""
        if isinstance(news, Up):
            self._gate.set(on=True)
        elif isinstance(news, Congested):
            self._gate.set(on=not news.on)

    def send(self, data: bytes) -> None:
        """One message, or one for each of its events."""
        if self._load.transport == "link-each":
            one = data if self._load.batch == 1 else message(1)
            self.face.offer("a", [one] * self._load.batch, events=self._load.batch)
        else:
            self.face.offer("a", [data], events=self._load.batch)


async def send(load: Load, port: int) -> None:
    """Send all, then wait to be ended."""
    loop, gate = asyncio.get_running_loop(), Gate()
    sender: Any
    if load.transport.startswith("bare"):
        context = load_security(_settings(load, "b", port)).dialling
        hostname = "" if context is not None else None
        _, sender = await loop.create_connection(
            lambda: BareSender(gate), "127.0.0.1", port, ssl=context, server_hostname=hostname
        )
    else:
        sender = LinkSender(gate, load)
        sender.face = LinkFace("b", 1, _settings(load, "b", port), sender)
        await sender.face.start()
    await gate.wait()
    data, due_s = message(load.batch), loop.time()
    for number in range(load.batches):
        if load.every_s:
            due_s += load.every_s
            await asyncio.sleep(max(0.0, due_s - loop.time()))
            data = message(load.batch)
        if gate.shut:
            await gate.wait()
        elif number % 64 == 63:
            await asyncio.sleep(0)
        sender.send(data)
    await asyncio.sleep(PATIENCE_S)


def _settings(load: Load, name: str, port: int = 0, *, listen: bool = False) -> LinksSection:
    peers = {} if listen else {"a": f"127.0.0.1:{port}"}
    host, folder = "127.0.0.1" if listen else "", load.certificates
    if not load.transport.endswith("-tls"):
        return LinksSection(host=host, port=0, peers=peers)
    return LinksSection(
        host=host,
        port=0,
        peers=peers,
        tls_cert=f"{folder}/{name}.pem",
        tls_key=f"{folder}/{name}.key",
        tls_ca=f"{folder}/ca.pem",
    )


def main() -> None:
    """One of the two."""
    logging.disable(logging.WARNING)  # each run ends with a cut
    load = msgspec.json.decode(sys.argv[2], type=Load)
    receiving = sys.argv[1] == "receive"
    uvloop.run(receive(load) if receiving else send(load, int(sys.argv[3])))


if __name__ == "__main__":
    main()
