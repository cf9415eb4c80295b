"""Histories as Spark leaves them, made of logs without a JVM."""

import json

import pyarrow as pa
from pyarrow import parquet

from server.source.rows import COLUMNS
from tests.server.test_source import Stream


def rows_in(logs):
    """All rows of these logs, by the source itself, in the order of brokers and offsets."""
    with Stream(logs) as stream:
        return sorted(stream.rest(), key=lambda row: (row["broker"], row["offset"]))


def write_history(folder, rows, files=1):
    """Write rows into so many files, as a stream of kind history does; the files."""
    listed = folder / "_spark_metadata"
    listed.mkdir(parents=True)
    paths = []
    for number in range(files):
        path = folder / "day=2026-03-01" / f"part-{number}.parquet"
        path.parent.mkdir(exist_ok=True)
        part = pa.Table.from_pylist(rows[number::files], pa.schema(list(COLUMNS.items())))
        parquet.write_table(part, path, use_deprecated_int96_timestamps=True)
        entry = json.dumps({"path": path.as_uri(), "action": "add"})
        (listed / str(number)).write_text(f"v1\n{entry}")
        paths.append(path)
    return paths
