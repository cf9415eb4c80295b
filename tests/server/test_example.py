"""The example of the docks: what its two specifications find, in both tiers, without Spark."""

from pathlib import Path

import headwater
from server.config import read
from server.process import check, streams_of
from tests.server.logs import event_from

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "server"
MINUTE_MS = 60_000


def reads(tag, reader, begin_ms, seconds):
    """A tag, read once a second for so long."""
    return [
        {
            "type": "TagRead",
            "id": f"{tag}-{reader}-{begin_ms + 1000 * n}",
            "source": reader,
            "location": "store",
            "timestamp": begin_ms + 1000 * n,
            "tagID": tag,
            "readerID": reader,
        }
        for n in range(seconds)
    ]


def found(text, events):
    engine = headwater.Engine(text, lateness_ms=None)
    engine.push(events)
    return engine.finish()


def test_one_stay_for_many_readings_and_what_goes_unpaid():
    events = [
        *reads("t1", "shelf", MINUTE_MS, 60),
        *reads("t1", "exit", 5 * MINUTE_MS, 5),
        *reads("t2", "shelf", MINUTE_MS, 60),
        *reads("t2", "counter", 3 * MINUTE_MS, 20),
        *reads("t2", "exit", 5 * MINUTE_MS, 5),
    ]
    stays = found((FOLDER / "reads.hw").read_text(), events)
    assert len(stays) == 5
    assert {(one["end"] - one["start"]) // 1000 for one in stays} == {59, 4, 19}
    moved = found((FOLDER / "moves.hw").read_text(), [event_from(one, "north") for one in stays])
    assert [one["values"]["tagID"] for one in moved if one["subscription"] == "Unpaid"] == ["t1"]
    assert [one["values"]["tagID"] for one in moved if one["subscription"] == "Wandering"] == ["t2"]


def test_the_file_of_jobs_is_complete():
    check(FOLDER / "jobs.toml")
    names = [stream.name for stream in streams_of(read(FOLDER / "jobs.toml"))]
    assert len(names) == len(set(names)) == 4
