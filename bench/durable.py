"""What durability costs: QoS 1 beside mosquitto with persistence, the outbox, and recovery.

Owns the loads and the tables. Must not know the broker but as a process, nor the disk but as the
journal and the store use it. Invariant: all servers get the same messages, in turns, on the same
disk; what is counted is acknowledgements, not what was sent.

The broker acknowledges an event once it is synced. mosquitto with persistence acknowledges one that
it has in memory, and writes its database every half hour; told to save changes it does so once a
second, and acknowledges without waiting for that either.

    python -m bench.durable [--quick] [--repeats N] [--json]
"""

import asyncio
import itertools
import os
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from bench import wire
from bench.acks import Acked, AckLoad, measure
from bench.report import Options, Report, Table, run
from bench.servers import Server, broker, mosquitto
from broker.core.broker import BrokerOptions
from broker.core.effects import Append
from broker.core.messages import EventsReceived, Payload, SpecificationSubmitted
from broker.core.recovery.durable import DurableBroker
from broker.engine.limits import Limits
from broker.journal import Journal, read
from broker.store import RESULTS, Outbox, Row, Store

EVENTS = "event Temp(val: float, sent_us: int)\n"
HOT = (
    EVENTS + "subscription Hot from bench to bench detect Temp(val > 26) as t\n"
    "assign sent_us = t.sent_us\n"
)
STATEFUL = (
    HOT + "subscription Pair from bench to bench\n"
    "detect Temp(val > 26) as hot then[..15 ms] Temp(val < 26) as cold group by source\n"
    "define Mean(mean) aggr every 10 s detect Temp assign mean = Avg(Temp.val)\n"
    "subscription Means from bench to bench detect Mean\n"
)
MANY = 200  # of each publisher
SLOW_MS = 20  # an SD card or a hard disk
PERSISTENT = "user root\npersistence true\npersistence_location {folder}/\n"
SAVES = PERSISTENT + "autosave_on_changes true\nautosave_interval 1\n"
LOADS_NOTE = (
    "Messages a second: ten publishers, 20 messages of each on their way, so that no more than 200 "
    "are acknowledged in the time of one to two syncs; and with {many} of each. Times: at 1,000 "
    "messages a second. Medians of {times}; ratios are to mosquitto with persistence in the same "
    "round."
)
MOSQUITTO_NOTE = (
    "mosquitto's acknowledgement promises nothing about its disk: it writes its database every "
    "half hour or, saving changes, once a second."
)
BASE_MS = 1_700_000_000_000


class Way(NamedTuple):
    """A server and how much of what it gets is a result."""

    name: str
    make: Callable[[], AbstractContextManager[Server | None]]
    one_in: int = 10


def ways() -> list[Way]:
    """Two of mosquitto, and ours without a disk, on this one and on a slow one."""
    slow = {"journal.sync_delay_ms": str(SLOW_MS)}
    return [
        Way("mosquitto, persistence", partial(mosquitto, PERSISTENT)),
        Way("mosquitto, persistence, saving changes", partial(mosquitto, SAVES)),
        Way("broker without a data directory", partial(broker, HOT)),
        Way("broker, no result", partial(broker, HOT, settings={}), 10**9),
        Way("broker, one message in ten a result", partial(broker, HOT, settings={})),
        Way("broker, each message a result", partial(broker, HOT, settings={}), 1),
        Way(
            f"broker, one in ten, each sync {SLOW_MS} ms more", partial(broker, HOT, settings=slow)
        ),
    ]


class Measured(NamedTuple):
    """Of one way: as fast as it goes with few and with many on their way, and at a steady rate."""

    closed: list[Acked]
    many: list[Acked]
    paced: list[Acked]


def acknowledged(options: Options) -> list[tuple[Way, Measured | None]]:
    """Every way, in turns; None where the server is not installed."""
    seconds = 1.0 if options.quick else 2.0
    runs = itertools.count(1)
    found: list[tuple[Way, Measured | None]] = []
    with ExitStack() as stack:
        servers = [(way, stack.enter_context(way.make())) for way in ways()]
        for way, server in servers:
            if server is not None and way.name.startswith("mosquitto"):
                keep_for_somebody(server.port)
            found.append((way, None if server is None else Measured([], [], [])))
        for _ in range(options.times(3)):
            for (way, server), (_, measured) in zip(servers, found, strict=True):
                if server is None or measured is None:
                    continue
                load = AckLoad(seconds=seconds, one_in=way.one_in)
                measured.closed.append(measure(server.port, replace(load, run=next(runs))))
                many = replace(load, inflight=MANY, run=next(runs))
                measured.many.append(measure(server.port, many))
                paced = replace(load, rate=1000.0, run=next(runs))
                measured.paced.append(measure(server.port, paced))
    return found


def keep_for_somebody(port: int) -> None:
    """Leave a session behind that messages have to be kept for: else there is nothing to keep."""
    with socket.create_connection(("127.0.0.1", port), timeout=wire.CONNECT_S) as connection:
        head = wire.short_text("MQTT") + bytes((4, 0, 0, 0))
        connection.sendall(wire.packet(0x10, head + wire.short_text("somebody")))
        connection.recv(16)
        wire.subscribe(connection, "headwater/events/#", 1, 4)
        connection.sendall(b"\xe0\0")


def rates_table(found: list[tuple[Way, Measured | None]]) -> Table:
    """Rates and latencies, and their ratios to mosquitto's of the same round."""
    columns = ["", "messages/s", "to mosquitto's", f"with {MANY}", "to mosquitto's"]
    columns += ["p50, ms", "p99", "p50 to mosquitto's"]
    first = found[0][1]
    rows = []
    for way, measured in found:
        if measured is None:
            rows.append([way.name, *["-"] * 7])
            continue
        few, many = (
            statistics.median(one.per_second for one in ran)
            for ran in (measured.closed, measured.many)
        )
        p50, p99 = (
            statistics.median(getattr(one, name) for one in measured.paced) / 1000
            for name in ("p50_us", "p99_us")
        )
        ratios = ["-", "-", "-"]
        if first is not None:
            ratios = [
                f"{_ratio(measured.closed, first.closed, lambda one: one.per_second):.2f}",
                f"{_ratio(measured.many, first.many, lambda one: one.per_second):.2f}",
                f"{_ratio(measured.paced, first.paced, lambda one: one.p50_us):.1f}",
            ]
        rates = [f"{few:,.0f}", ratios[0], f"{many:,.0f}", ratios[1]]
        rows.append([way.name, *rates, f"{p50:.2f}", f"{p99:.1f}", ratios[2]])
    return Table("From PUBLISH to PUBACK, QoS 1", columns, rows)


def _ratio(here: list[Acked], there: list[Acked], figure: Callable[[Acked], float]) -> float:
    """The median of the rounds' ratios."""
    pairs = zip(here, there, strict=True)
    return statistics.median(figure(one) / figure(other) for one, other in pairs)


# --- the outbox -------------------------------------------------------------------------------


async def rows_per_second(folder: str, count: int, group: int) -> float:
    """Rows stored in a second, `group` of them at a time, as long as there is room."""
    store = Store.open(f"sqlite:///{folder}/outbox-{group}.db", parts=(RESULTS,))
    outbox = await Outbox.open(store)
    done, room = asyncio.Event(), asyncio.Event()
    store.on_room = room.set
    stored = 0

    def told(error: BaseException | None) -> None:
        nonlocal stored
        assert error is None
        stored += group
        if stored >= count:
            done.set()

    began_s = time.perf_counter()
    for begin in range(0, count, group):
        offsets = range(begin, begin + group)
        rows = [
            Row(at, f"{at:032x}", "Hot", "bench", "bench", BASE_MS + at, b"x" * 250)
            for at in offsets
        ]
        outbox.append(rows, BASE_MS, told)
        if store.full():
            room.clear()
            await room.wait()
        elif begin % 500 == 0:
            await asyncio.sleep(0)
    await done.wait()
    took_s = time.perf_counter() - began_s
    await store.close()
    return stored / took_s


def outbox_table(options: Options, folder: str) -> Table:
    """By how many results became durable together."""
    count = 5_000 if options.quick else 20_000
    rows = []
    for group in (1, 10, 100):
        rates = [
            asyncio.run(rows_per_second(tempfile.mkdtemp(dir=folder), count, group))
            for _ in range(options.times(3))
        ]
        rows.append([f"{group} at a time", f"{statistics.median(rates):,.0f}"])
    return Table("Results into the outbox", ["", "rows/s"], rows)


# --- recovery ---------------------------------------------------------------------------------


async def journal_of(folder: Path, text: str, events: int) -> tuple[int, int]:
    """Write the journal of a broker that was told so many events, ten at a time.

    Its bytes, and how many results came of them.
    """
    found = read(folder)
    core, effects = DurableBroker.recover(BrokerOptions(), Limits(), None, [], 0, BASE_MS)
    durable = asyncio.Event()

    def told(number: int) -> None:
        if number == core.number:
            durable.set()

    journal = Journal(found, told, lambda why: print(why, file=sys.stderr))
    message = SpecificationSubmitted("bench", "1", text)
    effects += core.handle(message, BASE_MS)
    for begin in range(0, events, 10):
        payloads = tuple(payload(number) for number in range(begin, begin + 10))
        effects += core.handle(EventsReceived(payloads), BASE_MS + begin)
        for effect in effects:
            if isinstance(effect, Append):
                journal.append(effect.number, effect.data)
        effects = []
        if begin % 1000 == 0:
            await asyncio.sleep(0)
    await durable.wait()
    size = journal.size_bytes
    await journal.close()
    return size, core.outbox_end


def payload(number: int) -> Payload:
    """An event as a client publishes it, about 100 bytes; one in ten is wanted."""
    value = 30 if (number + number // 10) % 10 == 0 else 20  # each source's turn comes
    data = (
        f'{{"id":"r-{number:07d}","timestamp":{BASE_MS + number},"val":{value}.5,'
        f'"sent_us":{1_000_000 + number},"note":"{"x" * 20}"}}'
    )
    return Payload("Temp", f"s{number % 10}", data.encode(), None)


def recovery_table(options: Options, folder: str) -> Table:
    """By what the journal holds, without a snapshot."""
    columns = ["", "journal, MB", "recovered in, s", "events/s"]
    rows = []
    sizes = (1_000, 10_000) if options.quick else (1_000, 10_000, 100_000, 300_000)
    for name, text in (("one filter", HOT), ("filter, sequence and window", STATEFUL)):
        for events in sizes:
            where = Path(tempfile.mkdtemp(dir=folder))
            size, results = asyncio.run(journal_of(where, text, events))
            times = []
            for _ in range(options.times(3)):
                began_s = time.perf_counter()
                found = read(where)
                # The outbox has all results, as it has nearly all after a crash.
                what = (None, found.records(), results, BASE_MS + events)
                DurableBroker.recover(BrokerOptions(), Limits(), *what)
                times.append(time.perf_counter() - began_s)
            took_s = statistics.median(times)
            cells = [f"{size / 2**20:.2f}", f"{took_s:.2f}", f"{events / took_s:,.0f}"]
            rows.append([f"{events:,} events, {name}", *cells])
    return Table("Recovery", columns, rows)


def report(options: Options) -> Report:
    """Measure, and put it into tables."""
    found = acknowledged(options)
    with tempfile.TemporaryDirectory() as folder:
        tables = [
            rates_table(found),
            outbox_table(options, folder),
            recovery_table(options, folder),
        ]
        notes = [
            f"A sync of this disk took {sync_ms(folder):.2f} ms (median of 200, 4 KB each).",
            LOADS_NOTE.format(times=options.times(3), many=MANY),
            MOSQUITTO_NOTE,
            "An event of the recovery has about 100 bytes; ten came together and are one record.",
        ]
        if found[0][1] is None:
            notes.append("mosquitto is not installed: no ratios.")
    return Report("Durability", tables, [], notes)


def sync_ms(folder: str) -> float:
    """How long the disk takes to write a little and be sure of it."""
    with Path(folder, "sync").open("wb", buffering=0) as file:
        times = []
        for _ in range(200):
            file.write(bytes(4096))
            began_s = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began_s)
    return 1000 * statistics.median(times)


if __name__ == "__main__":
    sys.exit(run(__doc__, report))
