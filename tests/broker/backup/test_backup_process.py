"""A real broker under load is backed up, killed, and goes on from the backup."""

import asyncio
import shutil

import pytest

from headwater.cli import main
from tests.broker.durability.lives import TEXT, Source
from tests.broker.running import CONFIG, RunningBroker

SMALL = ("journal.segment_bytes=20000", "journal.snapshot_bytes=40000")


def listed(broker):
    _, told = broker.get("/v1/subscriptions")
    return [{k: v for k, v in row.items() if k != "results"} for row in told["subscriptions"]]


@pytest.mark.timeout(60)
def test_all_that_was_acknowledged_before_a_backup_is_in_it(tmp_path, capsys):
    """Snapshots and segments come and go while it is taken; nothing of it may be torn."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    flags = [f"--set={text}" for text in (f"broker.data_dir={data}", *SMALL)]

    async def under_load(broker):
        told, going = asyncio.Event(), [True]
        source = Source("s1", 1_700_000_000_000, 7, told)
        run = asyncio.create_task(source.run(broker.port(), lambda: going[0]))
        while source.acknowledged < 1000:
            told.clear()
            await told.wait()
        before = source.acknowledged
        url = f"http://127.0.0.1:{broker.port('http')}"
        status = await asyncio.to_thread(main, ["backup", str(copy), "--broker", url])
        going[0] = False
        await run
        return status, before, source.events

    with RunningBroker(tmp_path, CONFIG, *flags) as broker:
        url = "/v1/subscriptions?client=anna"
        assert broker.get(url, "POST", TEXT.encode())[0] == 200
        subscriptions = listed(broker)
        status, before, events = asyncio.run(under_load(broker))
        assert status == 0
        broker.process.kill()
    shutil.rmtree(data)
    words = ["restore", str(copy), "--config", str(tmp_path / "broker.toml"), flags[0]]
    assert main(words) == 0
    with RunningBroker(tmp_path, CONFIG, *flags) as broker:
        assert listed(broker) == subscriptions
        received = broker.get("/v1/status")[1]["events"]["received"]
        assert before <= received <= len(events)
        # It runs: its directory is refused, whether it may be replaced or not.
        assert main([*words, "--replace"]) == 2
        assert "in use" in capsys.readouterr().err
        assert broker.end() == 0


def test_a_broker_without_a_data_directory_has_nothing_to_copy(tmp_path, capsys):
    with RunningBroker(tmp_path, CONFIG, "--set=broker.data_dir=") as broker:
        url = f"http://127.0.0.1:{broker.port('http')}"
        assert main(["backup", str(tmp_path / "copy"), "--broker", url]) == 1
    assert "no data directory" in capsys.readouterr().err
    assert not (tmp_path / "copy").exists()
