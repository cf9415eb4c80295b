"""Cuts the example data out of the full recordings, byte for byte the same each time.

Owns which stations, attributes and spans the examples use. Must not change a value: rows are copied
as they stand. Invariant: the same recordings give the same files (gzip without a time or a name).

    python examples/make_extracts.py FOLDER

FOLDER holds `weather/` and `lab/` with the recordings that data/README.md names.
"""  # noqa: INP001  (a script, run by hand)

import argparse
import csv
import gzip
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Extract:
    """Which rows of a recording are kept: a span of UTC times and attributes, all by default."""

    recording: str
    file: str
    begin: str
    end: str  # excluded
    attributes: tuple[str, ...] = ()


EXTRACTS = (
    # The windiest hours of the recording: a cold front, all 23 stations, all five attributes.
    Extract(
        "weather/grand_st_bernard_2min.csv.gz",
        "grand_st_bernard.csv.gz",
        "2007-10-21T08:00",
        "2007-10-21T16:00",
    ),
    # An afternoon with a thunderstorm: all 17 stations, all four attributes.
    Extract(
        "weather/singapore_1min.csv.gz",
        "singapore.csv.gz",
        "2017-03-06T04:00",
        "2017-03-06T10:00",
    ),
    # Five winter days; the soil and the wind's direction are left out.
    Extract(
        "weather/molene_1h.csv.gz",
        "molene.csv.gz",
        "2014-01-10T00:00",
        "2014-01-15T00:00",
        ("ambient_temperature", "dew_point", "wind_speed"),
    ),
    # Half an hour around the hot water kettles; the hour of the day is not real.
    Extract("lab/labelled.csv.gz", "steam.csv.gz", "2010-07-10T03:10", "2010-07-10T03:40"),
)


def epoch_ms(text: str) -> int:
    """The milliseconds since the epoch of a UTC time."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1000


def kept(recording: Path, extract: Extract) -> Iterator[str]:
    """The header and the rows that the extract keeps, as they stand."""
    begin, end = epoch_ms(extract.begin), epoch_ms(extract.end)
    with gzip.open(recording, "rt", encoding="utf-8", newline="") as lines:
        header = next(lines)
        yield header
        names = next(csv.reader([header]))
        time, attribute = names.index("timestamp_ms"), names.index("attribute")
        for line in lines:
            cells = next(csv.reader([line]))
            named = not extract.attributes or cells[attribute] in extract.attributes
            if begin <= int(cells[time]) < end and named:
                yield line


def compressed(text: str) -> bytes:
    """Gzip without the time and the name of a file."""
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=9, mtime=0) as out:
        out.write(text.encode())
    return packed.getvalue()


def main() -> None:
    """Writes every extract and says how large it became."""
    parser = argparse.ArgumentParser(description="Cut the example data out of the recordings.")
    parser.add_argument("folder", type=Path, help="where the recordings are")
    parser.add_argument("--to", type=Path, default=HERE / "data", help="where extracts go")
    arguments = parser.parse_args()
    for extract in EXTRACTS:
        lines = list(kept(arguments.folder / extract.recording, extract))
        packed = compressed("".join(lines))
        (arguments.to / extract.file).write_bytes(packed)
        sys.stdout.write(f"{extract.file}: {len(lines) - 1} rows, {len(packed)} bytes\n")


if __name__ == "__main__":
    main()
