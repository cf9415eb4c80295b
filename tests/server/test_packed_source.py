"""A source whose rows are packed where they are read loses none, and says up to when they are."""

import json
from collections import defaultdict
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.detection.event_batches import Packing, ShardPacking, unpacked
from server.detection.program import DetectionProgram
from server.detection.shards import shards_of
from server.jobs.packed_source import COUNT, PackedRows
from server.monitor import rows_read
from server.source.rows import COLUMNS, MARK, TIME, Page, RowOrigin, batch_of, mark_alone
from tests.server.logs import FakeLog, event_from, result
from tests.server.test_source import Stream

TEXT = """
event Frost(n: int)
subscription Pairs seq 1 from me to desk
  detect Frost as a then[..5 s] Frost as b where a.location = b.location
"""
PROGRAM = DetectionProgram(TEXT)
MARK_MS = 1_772_366_490_123
HALLS = ("a", "b", None)


def batch(results, mark_ms, columns):
    payloads = [json.dumps(each) for each in results]
    page = Page(range(len(results)), ["Frost"] * len(results), payloads, [0] * len(results))
    return batch_of(page, RowOrigin("north", "e", mark_ms), columns)


def results_of(halls):
    for n, hall in enumerate(halls):
        yield result(n, 1000 * n) | {"group": {} if hall is None else {"location": hall}}


@given(
    st.lists(st.lists(st.sampled_from(HALLS), min_size=1, max_size=8), max_size=4),
    st.sampled_from([MARK_MS, None]),
)
def test_each_result_is_in_the_row_of_its_key(pages, mark_ms):
    """By location those without one are in none; what is in one place are all of them."""
    for key in (None, "all"):
        packed = PackedRows(Packing(PROGRAM), key)
        given_rows = [list(results_of(halls)) for halls in pages]
        rows = packed([batch(results, mark_ms, packed.columns) for results in given_rows])
        for results, made in zip(given_rows, rows, strict=True):
            expected = defaultdict(list)
            for each in results:
                hall = key or each["group"].get("location")
                if hall is not None:
                    expected[hall].append(event_from(each, "north"))
            said = made.to_pylist()
            found = {row["_key"]: unpacked(row["events"]) for row in said if row["events"]}
            assert found == expected
            alone = not expected and mark_ms is not None
            assert len(said) == len(expected) + alone
            if said:
                assert sum(row[COUNT] for row in said) == len(results)
            when = None if mark_ms is None else datetime.fromtimestamp(mark_ms / 1000, UTC)
            assert {row[MARK] for row in said} <= {when}


def test_a_mark_alone_stays_alone():
    packed = PackedRows(Packing(PROGRAM))
    alone = mark_alone(RowOrigin("north", "e", MARK_MS), packed.columns)
    (made,) = packed([alone])
    (row,) = made.to_pylist()
    assert (row["_key"], row["events"], row[COUNT]) == (None, None, 0)
    assert row[MARK].timestamp() * 1000 == MARK_MS


@pytest.mark.parametrize("key", [None, "all"])
def test_the_reader_of_a_stream_packs_what_it_reads(key):
    with FakeLog("ea") as a:
        for each in results_of("abba"):
            a.add(each)
        with Stream({"a": a}, lateAfter="1") as stream:
            reader = stream.reader
            packed = PackedRows(ShardPacking(shards_of(PROGRAM)) if key else Packing(PROGRAM), key)
            reader.columns, reader.packed = packed.columns, packed
            pinned = reader.latestOffset({}, reader.getDefaultReadLimit())
            end = reader.latestOffset(pinned, reader.getDefaultReadLimit())
            tasks = reader.partitions(pinned, end)
            rows = [row for task in tasks for made in reader.read(task) for row in made.to_pylist()]
    events = [event for row in rows if row["events"] for event in unpacked(row["events"])]
    assert sorted(each["id"] for each in events) == sorted(
        each["id"] for each in results_of("abba")
    )
    assert sum(row[COUNT] for row in rows) == 4


def test_rows_that_were_packed_count_as_what_was_read():
    assert rows_read({"numInputRows": 3, "observedMetrics": {"read": {"results": 40}}}) == 40
    assert rows_read({"numInputRows": 0, "observedMetrics": {"read": {"results": None}}}) == 0
    assert rows_read({"numInputRows": 3, "observedMetrics": {}}) == 3
    assert {MARK: TIME}.keys() | COLUMNS.keys() >= set(PackedRows(Packing(PROGRAM)).columns)
