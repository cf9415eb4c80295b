"""A broker's process on a disk that is full, that another version wrote, or without one."""

import asyncio
import contextlib
import resource
import shutil
import sqlite3
import time

from broker.core.recovery import records
from broker.core.recovery.records import header
from tests.broker.running import CONFIG, RunningBroker, ask, client, refused, take

HOT = """
event Temp(val: float)
subscription Hot from anna to alerts
detect Temp(val > 30)
"""
LIMIT_BYTES = 600_000  # the database is far from it


def own(tmp_path):
    return ["--set=mqtt.port=0", "--set=http.port=0", f"--set=broker.data_dir={tmp_path}/data"]


def reading(name):
    return f'{{"val": 31, "id": "{name}"{" " * LIMIT_BYTES}}}'


def until(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_on_a_disk_without_room_nothing_is_acknowledged_until_there_is_room(tmp_path):
    """The room is a limit on the size of its files, which the system holds for a process."""

    async def scene(broker):
        async with client(broker.port(), "headwater/results/anna/Hot") as one:
            assert (await ask(one, "submit", HOT))["ok"] is True
            await one.publish("headwater/events/Temp/t1", reading("a"), qos=1)
            await take(one)
            usual = resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (LIMIT_BYTES, -1))
            publishing = asyncio.create_task(
                one.publish("headwater/events/Temp/t1", reading("b"), qos=1)
            )
            held = await asyncio.to_thread(broker.line, "held")
            assert "a file may not grow as large as that" in held["reason"]
            status, told = await asyncio.to_thread(broker.get, "/readyz")
            assert (status, told["ready"]) == (503, False)
            assert held["reason"] in told["missing"]
            assert (await asyncio.to_thread(broker.get, "/healthz"))[0] == 200
            _, metrics = await asyncio.to_thread(broker.get, "/metrics")
            assert "headwater_intake_held 1.0" in metrics
            assert 'headwater_journal_bytes{what="segments"}' in metrics
            assert not publishing.done()
            resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, usual)
            async with asyncio.timeout(10):
                await publishing
            ((_, result),) = await take(one)
            assert result["events"]["Temp"] == ["b"]
            await asyncio.to_thread(broker.line, "held_no_more")
            assert (await asyncio.to_thread(broker.get, "/readyz"))[0] == 200

    with RunningBroker(tmp_path, CONFIG, *own(tmp_path)) as broker:
        asyncio.run(scene(broker))
        assert broker.end() == 0


def test_what_a_newer_version_wrote_is_refused_in_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "data" / "journal").mkdir(parents=True)
    path = tmp_path / "data" / "journal" / f"{1:020d}-0000.segment"
    with monkeypatch.context() as newer:
        newer.setattr(records, "VERSION", 9)
        path.write_bytes(header(1, 7))
    status, errors = refused(own(tmp_path))
    assert status == 2
    assert "is of another version" in errors
    assert str(tmp_path / "data") in errors
    assert "Traceback" not in errors
    assert path.read_bytes()[:8] == records.SEGMENT_MAGIC


def test_without_a_directory_it_runs_and_says_that_nothing_is_kept(tmp_path):
    async def scene(broker):
        async with client(broker.port(), "headwater/results/anna/Hot") as one:
            assert (await ask(one, "submit", HOT))["ok"] is True
            await one.publish("headwater/events/Temp/t1", '{"val": 31}', qos=1)
            await take(one)

    with RunningBroker(tmp_path, CONFIG, *own(tmp_path), "--set=broker.data_dir=") as broker:
        (line,) = [line for line in broker.lines if line["event"] == "nothing_kept"]
        assert "broker.data_dir" in line["reason"]
        asyncio.run(scene(broker))
        assert broker.get("/readyz")[0] == 200
        assert broker.get("/v1/log/offsets")[0] in {404, 503}
        assert broker.end() == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broker.toml"]


def test_subscriptions_and_results_outlast_a_restart(tmp_path):
    """By a clean end; what kills do is elsewhere."""
    with RunningBroker(tmp_path, CONFIG, *own(tmp_path)) as broker:
        answer = broker.get("/v1/subscriptions?client=anna", "POST", HOT.encode())
        assert answer[1]["ok"] is True

        async def publish():
            async with client(broker.port()) as one:
                await one.publish("headwater/events/Temp/t1", '{"val": 31, "id": "a"}', qos=1)

        asyncio.run(publish())
        until(lambda: broker.get("/v1/log/offsets")[1]["end"] == 1)
        assert broker.end() == 0
    with RunningBroker(tmp_path, CONFIG, *own(tmp_path)) as broker:
        names = [one["subscription"] for one in broker.get("/v1/subscriptions")[1]["subscriptions"]]
        assert names == ["Hot"]
        log = broker.get("/v1/log?from=0&to=1&format=json")
        assert log[0] == 200
        (line,) = [line for line in broker.lines if line["event"] == "recovered"]
        assert (line["records"], line["torn_bytes"]) == (0, 0)
        assert broker.end() == 0


def test_what_is_installed_outlasts_the_loss_of_the_journal(tmp_path):
    """Any tool of SQL reads it meanwhile."""
    with RunningBroker(tmp_path, CONFIG, *own(tmp_path)) as broker:
        assert broker.get("/v1/subscriptions?client=cli", "POST", HOT.encode())[1]["ok"] is True
        assert broker.end() == 0
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "headwater.db")) as database:
        rows = database.execute(
            "SELECT subscription, subscriber, seq, actor, client, proven, text"
            " FROM catalogue JOIN catalogue_texts ON number = text_number ORDER BY place"
        )
        assert rows.fetchall() == [("Hot", "anna", 1, "alerts", "cli", 0, HOT)]
    shutil.rmtree(tmp_path / "data" / "journal")

    async def found(broker):
        async with client(broker.port(), "headwater/results/anna/Hot") as one:
            await one.publish("headwater/events/Temp/t1", '{"val": 31, "id": "a"}', qos=1)
            ((_, result),) = await take(one)
            assert result["events"]["Temp"] == ["a"]

    with RunningBroker(tmp_path, CONFIG, *own(tmp_path)) as broker:
        (line,) = [line for line in broker.lines if line["event"] == "installed_again"]
        assert (line["level"], line["subscriptions"]) == ("warning", 1)
        asyncio.run(found(broker))
        assert broker.end() == 0
