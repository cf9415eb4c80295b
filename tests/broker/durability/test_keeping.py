"""Journal, outbox and core together in one process: what outlasts it, and what holds it up."""

import asyncio
import errno
import json
import sqlite3
import threading
from pathlib import Path

import pytest
from msgspec import msgpack

from broker import logs
from broker.config import load
from broker.core.broker import BrokerOptions
from broker.core.effects import Acknowledge, Emit, Publish, Reply
from broker.core.messages import EventsReceived, Payload, SourceAdvertised, SpecificationSubmitted
from broker.core.recovery import records
from broker.core.recovery.durable import DurableBroker
from broker.core.recovery.records import HEADER_BYTES, frame, frame_snapshot, header
from broker.driver.durability import Durability
from broker.driver.runner import Runner, WallClock
from broker.errors import StartError
from broker.journal import Files
from broker.network.effects import Note
from tests.broker.core.machine import HOT

PATIENCE_S = 10
TIME_MS = 1_700_000_000_000


class Outside:
    """Keeps what it is to carry out."""

    def __init__(self):
        self.effects = []
        self.held = []
        self._changed = asyncio.Event()

    def keep(self, effect):
        self.effects.append(effect)
        self._changed.set()

    publish = emit = acknowledge = note = reply = keep

    def hold(self, *, on):
        self.held.append(on)
        self._changed.set()

    def fail(self, tokens):
        raise AssertionError(tokens)

    def of(self, kind):
        return [effect for effect in self.effects if isinstance(effect, kind)]

    @property
    def taken(self):
        return [token for effect in self.of(Acknowledge) for token in effect.tokens]

    @property
    def results(self):
        found = [one for effect in self.of(Emit) for one in effect.results]
        return [(one.offset, json.loads(one.payload)["events"]["Temp"][0]) for one in found]

    async def until(self, condition):
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


class Life:
    """A broker without faces, from its beginning to its end."""

    def __init__(self, folder, **flags):
        flags = {f"journal.{name}": str(value) for name, value in flags.items()}
        self.config = load(None, {}, flags).config
        self.folder = folder
        self.clock = WallClock()
        self.outside = Outside()

    async def begin(self):
        now_ms = self.clock.now_ms
        self.keeping = await Durability.open(self.folder, self.config, BrokerOptions(), now_ms)
        promises = self.keeping.join(self.outside, now_ms)
        self.runner = Runner(self.keeping.core, promises, self.clock, promises.kept)
        self.keeping.begin(self.runner, self.config)
        return self

    def install(self):
        self.runner.handle(SpecificationSubmitted("me", "1", HOT, "here"))

    def send(self, name, val=31, **more):
        said = {"val": val, "id": name, "timestamp": TIME_MS, **more}
        data = json.dumps(said).encode()
        payload = Payload("Temp", "t1", data, name)
        self.runner.add_payload(payload)
        self.runner.flush()

    async def taken(self, *names):
        await self.outside.until(lambda: set(names) <= set(self.outside.taken))

    async def stored(self, count):
        await self.outside.until(lambda: len(self.outside.results) == count)

    async def end(self):
        self.runner.close()
        await self.keeping.close()

    async def crash(self):
        """End without a last word; what the threads do meanwhile is as if it came before."""
        self.runner.close()
        await self.keeping.snapshots.close()
        await self.keeping.journal.close()
        await self.keeping.store.close()


def run(scene):
    asyncio.run(scene())


@pytest.fixture(autouse=True)
def lines(monkeypatch):
    found = []
    monkeypatch.setattr(logs, "tell", lambda level, event, **fields: found.append((event, fields)))
    return found


def rows(folder):
    database = sqlite3.connect(folder / "headwater.db")
    try:
        return [row[0] for row in database.execute('SELECT "offset" FROM outbox ORDER BY "offset"')]
    finally:
        database.close()


@pytest.mark.parametrize("ends", [Life.end, Life.crash])
def test_what_was_installed_and_found_outlasts_a_process(tmp_path, ends):
    async def scene():
        life = await Life(tmp_path).begin()
        life.install()
        life.runner.handle(SourceAdvertised("t1", b'{"location": "hall"}', "ad"))
        life.send("a")
        await life.taken("ad", "a")
        await life.stored(1)
        await ends(life)
        life = await Life(tmp_path).begin()
        assert life.keeping.core.subscriptions[0].name == "Hot"
        retained = [one.topic for effect in life.outside.of(Publish) for one in effect.publications]
        assert retained == ["sources/t1"]
        life.send("a")  # repeated
        life.send("b")
        await life.taken("a", "b")
        await life.stored(1)
        assert life.outside.results == [(1, "b")]
        assert life.outside.of(Reply) == []
        await life.end()
        assert rows(tmp_path) == [0, 1]

    run(scene)


def test_results_that_a_crash_kept_from_the_outbox_are_there_after_it(tmp_path):
    async def scene():
        life = await Life(tmp_path).begin()
        life.install()
        life.send("a")
        await life.stored(1)
        life.keeping.store.submit = lambda *_: None  # as if it were slow
        life.send("b")
        life.send("c")
        await life.taken("b", "c")
        await life.crash()
        assert rows(tmp_path) == [0]
        life = await Life(tmp_path).begin()
        await life.stored(2)
        assert life.outside.results == [(1, "b"), (2, "c")]
        await life.end()
        assert rows(tmp_path) == [0, 1, 2]

    run(scene)


def test_while_the_disk_is_full_nothing_is_taken_and_then_all_is(tmp_path, monkeypatch, lines):
    """Nobody is read, the core sleeps, and why is told."""

    async def scene():
        life = await Life(tmp_path).begin()
        monkeypatch.setattr("broker.journal.journal.RETRY_S", 0.01)
        life.install()
        life.send("a")
        await life.taken("a")
        with monkeypatch.context() as full:
            full.setattr(Files, "write", failing)
            life.send("b")
            await life.outside.until(lambda: life.outside.held == [True])
            (why,) = life.keeping.gate.reasons()
            assert "the disk is full" in why
            life.send("c")
            assert life.keeping.counters()["waiting_bytes"] > 0
        await life.taken("b", "c")
        assert life.keeping.gate.reasons() == []
        assert life.outside.held == [True, False]
        await life.stored(3)
        await life.end()
        assert rows(tmp_path) == [0, 1, 2]

    def failing(*_):
        raise OSError(errno.ENOSPC, "full")

    run(scene)
    assert [event for event, _ in lines] == ["held", "held_no_more"]


def test_while_the_database_is_locked_intake_is_held_and_results_wait(tmp_path, monkeypatch):
    monkeypatch.setattr("broker.store.connecting.BUSY_WAIT_S", 0.05)

    async def scene():
        life = await Life(tmp_path).begin()
        life.install()
        life.send("a")
        await life.stored(1)
        other = sqlite3.connect(tmp_path / "headwater.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        life.send("b")
        await life.taken("b")  # the journal has it
        await life.outside.until(lambda: life.outside.held == [True])
        (why,) = life.keeping.gate.reasons()
        assert "is locked by another process" in why
        assert life.outside.results == [(0, "a")]
        other.execute("ROLLBACK")
        other.close()
        await life.stored(2)
        await life.outside.until(lambda: life.outside.held == [True, False])
        await life.end()
        assert rows(tmp_path) == [0, 1]

    run(scene)


# --- snapshots ------------------------------------------------------------------------------


def journal_bytes(folder):
    return sum(path.stat().st_size for path in (folder / "journal").glob("*.segment"))


def test_the_journal_does_not_grow_without_end(tmp_path):
    async def scene():
        life = await Life(tmp_path, segment_bytes=2_000, snapshot_bytes=20_000).begin()
        life.install()
        for number in range(300):
            life.send(f"a{number}", note="x" * 500)
            await life.taken(f"a{number}")
        assert life.keeping.snapshots.taken >= 2
        await life.keeping.snapshots.rest()  # which removes files
        least = max(20_000, 4 * life.keeping.snapshots.last_bytes)
        assert journal_bytes(tmp_path) < 2 * least
        await life.crash()
        life = await Life(tmp_path).begin()
        life.send("a299", note="x" * 500)
        life.send("last")
        await life.taken("last")
        await life.stored(1)
        assert life.outside.results == [(300, "last")]
        await life.end()

    run(scene)


def test_a_broker_that_never_lives_long_takes_snapshots_too(tmp_path):
    async def scene():
        taken = 0
        for number in range(6):
            life = await Life(tmp_path, snapshot_bytes=5_000).begin()
            life.install()
            life.send(f"a{number}", note="x" * 2_000)
            await life.taken(f"a{number}")
            await life.keeping.snapshots.rest()
            taken += life.keeping.snapshots.taken
            await life.crash()
        assert taken
        assert journal_bytes(tmp_path) < 6 * 2_000

    run(scene)


def test_a_snapshot_waits_until_the_outbox_has_what_it_stands_for(tmp_path):
    async def scene():
        life = await Life(tmp_path, snapshot_bytes=2_000).begin()
        life.install()
        await life.outside.until(lambda: life.outside.of(Reply))
        held, submit = [], life.keeping.store.submit
        life.keeping.store.submit = lambda *work: held.append(work)
        for number in range(3):
            life.send(f"a{number}", note="x" * 1_000)
            await life.taken(f"a{number}")
        assert list((tmp_path / "journal").glob("*.snapshot")) == []
        life.keeping.store.submit = submit
        for work in held:
            submit(*work)
        await life.stored(3)
        await life.outside.until(lambda: life.keeping.journal.last == life.keeping.journal.durable)
        async with asyncio.timeout(PATIENCE_S):
            await life.keeping.snapshots.rest()
        assert life.keeping.snapshots.taken == 1
        await life.end()

    run(scene)


def test_a_snapshot_that_fails_is_told_and_intake_goes_on_until_the_journal_is_too_large(
    tmp_path, monkeypatch, lines
):
    monkeypatch.setattr("broker.driver.snapshots.AGAIN_S", 0.05)

    def failing(*_):
        raise OSError(errno.ENOSPC, "full")

    async def scene():
        sizes = {"snapshot_bytes": 2_000, "size_bytes_max": 13_000, "segment_bytes": 1_000}
        life = await Life(tmp_path, **sizes).begin()
        life.install()
        with monkeypatch.context() as full:
            full.setattr(Files, "replace", failing)
            for number in range(8):
                life.send(f"a{number}", note="x" * 1_000)
                await life.taken(f"a{number}")
            assert life.outside.held == []
            for number in range(8, 23):
                life.send(f"a{number}", note="x" * 1_000)
            await life.outside.until(lambda: life.outside.held == [True])
            # Until the first snapshot has failed, it says that there is none yet.
            async with asyncio.timeout(PATIENCE_S):
                while "the disk is full" not in life.keeping.gate.reasons()[0]:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            (why,) = life.keeping.gate.reasons()
            assert "journal.size_bytes_max is 13000: the journal in" in why
        await life.outside.until(lambda: life.outside.held == [True, False])
        await life.taken("a22")
        await life.end()

    run(scene)
    assert [event for event, _ in lines].count("snapshot_failed") == 1


def test_the_journal_passes_its_bound_by_one_record_at_most(tmp_path, monkeypatch):
    """However much was read at once, and however long the disk takes: what waits counts as well."""
    monkeypatch.setattr("broker.driver.snapshots.AGAIN_S", 0.05)
    most_bytes, note = 100_000, "x" * 1_000

    def failing(*_):
        raise OSError(errno.ENOSPC, "full")

    async def scene():
        life = await Life(tmp_path, size_bytes_max=most_bytes, segment_bytes=1_000).begin()
        life.install()
        names = [f"a{number}" for number in range(110)]
        with monkeypatch.context() as full:
            full.setattr(Files, "replace", failing)
            for name in names:
                said = json.dumps({"val": 31, "id": name, "timestamp": TIME_MS, "note": note})
                life.runner.add(EventsReceived((Payload("Temp", "t1", said.encode(), name),)))
            life.runner.flush()
            assert life.outside.held == [True]
            await life.outside.until(lambda: life.keeping.journal.waiting_bytes == 0)
            size_bytes = sum(file.stat().st_size for file in (tmp_path / "journal").iterdir())
            assert most_bytes <= size_bytes + len(note)
            assert size_bytes < most_bytes + 2 * len(note)
        await life.taken(*names)
        assert life.outside.taken == names
        await life.end()

    run(scene)


def test_at_the_end_all_that_was_read_is_handled_though_intake_is_held(tmp_path):
    async def scene():
        life = await Life(tmp_path).begin()
        life.keeping.promises.waiting_bytes_max = life.keeping.journal.waiting_bytes
        for number in range(3):
            said = SourceAdvertised(f"s{number}", b'{"types": ["Temp"]}')
            life.runner.add(said)
        life.runner.settle()
        assert life.outside.held == [True]
        assert [life.runner.is_advertised(f"s{number}") for number in range(3)] == [True] * 3
        await life.end()

    run(scene)


# --- what does not fit together -------------------------------------------------------------


async def some(tmp_path, ends=Life.end):
    life = await Life(tmp_path).begin()
    life.install()
    life.send("a")
    await life.stored(1)
    await ends(life)


@pytest.mark.parametrize("ends", [Life.end, Life.crash])
def test_without_its_database_a_journal_is_refused_or_fills_a_new_one(tmp_path, ends):
    """A snapshot stands for results that only the database had; records do not."""

    async def scene():
        await some(tmp_path, ends)
        for path in tmp_path.glob("headwater.db*"):
            path.unlink()
        if ends is Life.crash:
            life = await Life(tmp_path).begin()
            await life.stored(1)
            await life.end()
            assert rows(tmp_path) == [0]
        else:
            with pytest.raises(StartError, match="do not belong together"):
                await Life(tmp_path).begin()

    run(scene)


def test_without_its_journal_a_database_is_gone_on_from(tmp_path):
    """Subscriptions are there again, and offsets go on."""

    async def scene():
        await some(tmp_path)
        for path in (tmp_path / "journal").iterdir():
            path.unlink()
        life = await Life(tmp_path).begin()
        notes = [note.event for note in life.outside.of(Note)]
        assert notes == ["installed", "installed_again", "journal_missing"]
        assert life.keeping.core.subscriptions[0].name == "Hot"
        life.send("b")
        await life.stored(1)
        assert life.outside.results == [(1, "b")]
        await life.end()
        assert rows(tmp_path) == [0, 1]

    run(scene)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda folder: (folder / "journal").write_text(""), "a file stands where a folder"),
        (lambda folder: (folder / "headwater.db").write_text("x" * 5_000), "is not a database"),
    ],
)
def test_what_cannot_be_opened_is_a_sentence_and_nothing_is_left_open(tmp_path, spoil, words):
    async def scene():
        spoil(tmp_path)
        with pytest.raises(StartError, match=words):
            await Life(tmp_path).begin()
        for path in (tmp_path / "journal", tmp_path / "headwater.db"):
            if path.is_file():
                path.unlink()
        await some(tmp_path)

    run(scene)


def test_a_broker_that_ends_while_the_disk_fails_ends_soon(tmp_path, monkeypatch):
    async def scene():
        life = await Life(tmp_path).begin()
        life.install()
        life.send("a")
        await life.stored(1)

        def failing(*_):
            raise OSError(errno.EIO, "broken")

        with monkeypatch.context() as broken:
            broken.setattr(Files, "sync", failing)
            life.send("b")
            await life.outside.until(lambda: life.outside.held == [True])
            async with asyncio.timeout(4):
                await life.end()
        assert "b" not in life.outside.taken
        life = await Life(tmp_path).begin()
        life.send("b")
        await life.stored(1)
        assert life.outside.results == [(1, "b")]
        await life.end()

    run(scene)


def test_paths_are_below_the_data_directory_alone(tmp_path):
    run(lambda: some(tmp_path / "data") if (tmp_path / "data").mkdir() is None else None)
    names = {path.name for path in (tmp_path / "data").iterdir()}
    assert {"journal", "headwater.db"} <= names
    assert [path.name for path in Path(tmp_path).iterdir()] == ["data"]


# --- what other versions and accidents leave ---------------------------------------------------


def segment(tmp_path, number, data):
    folder = tmp_path / "journal"
    folder.mkdir(exist_ok=True)
    path = folder / f"{number:020d}-0000.segment"
    path.write_bytes(header(number, 7) + data)
    return path


def of_a_newer_format(tmp_path, monkeypatch):
    with monkeypatch.context() as newer:
        newer.setattr(records, "VERSION", 9)
        return segment(tmp_path, 1, frame(1, b"x", salt=7))


def with_a_record_that_it_does_not_know(tmp_path, _monkeypatch):
    return segment(tmp_path, 1, frame(1, b"\x92\xa7unheard\x01", salt=7))


def with_a_snapshot_of_a_newer_core(tmp_path, _monkeypatch):
    folder = tmp_path / "journal"
    folder.mkdir()
    path = folder / f"{4:020d}.snapshot"
    head = {"version": 9, "number": 4, "outbox_end": 0}
    path.write_bytes(frame_snapshot(4, msgpack.encode(head)))
    return path


def with_a_part_missing(tmp_path, _monkeypatch):
    return segment(tmp_path, 5, b"")


def damaged(tmp_path, _monkeypatch):
    segment(tmp_path, 2, frame(2, b"x", salt=7))
    return segment(tmp_path, 1, b"no record at all")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (of_a_newer_format, "is of another version"),
        (with_a_record_that_it_does_not_know, "may be of a newer version"),
        (with_a_snapshot_of_a_newer_core, "a newer one wrote it"),
        (with_a_part_missing, "record 1 and all up to 4 are missing"),
        (damaged, f"is damaged: 00000000000000000001-0000.segment, byte {HEADER_BYTES}: "),
    ],
)
def test_what_it_cannot_read_it_refuses_in_a_sentence_and_leaves_alone(
    tmp_path, monkeypatch, make, words
):
    path = make(tmp_path, monkeypatch)
    before = path.read_bytes()

    async def scene():
        with pytest.raises(StartError) as caught:
            await Life(tmp_path).begin()
        assert words in str(caught.value)
        assert str(tmp_path) in str(caught.value)
        assert "\n" not in str(caught.value)

    run(scene)
    assert path.read_bytes() == before


def test_a_long_recovery_tells_how_far_it_has_come(tmp_path, monkeypatch, lines):
    async def scene():
        await some(tmp_path, Life.crash)
        monkeypatch.setattr("broker.driver.durability.PROGRESS_S", 0)
        life = await Life(tmp_path).begin()
        await life.end()

    run(scene)
    told = [fields for event, fields in lines if event == "recovering"]
    assert [one["records"] for one in told] == list(range(1, len(told) + 1))
    assert told[-1]["records"] == told[-1]["of"] > 1


def test_a_recovery_that_nobody_waits_for_ends(tmp_path, monkeypatch):
    """As where a broker is told to end while it recovers."""
    reached, cancelled, ended = threading.Event(), threading.Event(), threading.Event()
    recover, handled = DurableBroker.recover, []

    def slow(options, limits, snapshot, told, *kept):
        def one_by_one():
            for record in told:
                handled.append(record.number)
                yield record
                reached.set()
                cancelled.wait(PATIENCE_S)

        try:
            return recover(options, limits, snapshot, one_by_one(), *kept)
        finally:
            ended.set()

    async def scene():
        await some(tmp_path, Life.crash)
        monkeypatch.setattr(DurableBroker, "recover", slow)
        starting = asyncio.create_task(Life(tmp_path).begin())
        assert await asyncio.to_thread(reached.wait, PATIENCE_S)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        cancelled.set()
        assert await asyncio.to_thread(ended.wait, PATIENCE_S)
        assert len(handled) == 1
        monkeypatch.setattr(DurableBroker, "recover", recover)
        life = await Life(tmp_path).begin()  # nothing is left open
        await life.end()

    run(scene)
