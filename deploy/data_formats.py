"""Tells if a newer version of Headwater wrote a broker's data: the heart of a package's `preinst`.

    python3 -I - journal=1 snapshot=2 results=4 mqtt=1 < data_formats.py

Owns where in the files their format stands, which no version may change. Must not know what else
is in them. Invariant: it imports the standard library alone, as nothing of a package is unpacked
when its `preinst` runs; it changes no file but SQLite's index of its own log, which every reader
writes in; of what it cannot read it says nothing, as the broker itself refuses that at its start.

The words are the newest formats that the package knows, as `deb.py` reads them from the broker.
"""

import sqlite3
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

CONFIG = Path("/etc/headwater/broker.toml")
HOME = Path("/var/lib/headwater")
SEGMENT = b"HWjour\r\n"
SNAPSHOT = b"HWsnap\r\n"
STATE_AT = 32  # after a snapshot's magic, format, flags, checksum, number and size
STATE = b"\xa7version"  # of msgpack, after one or three bytes that tell how many fields there are
NEWER = """\
headwater: the data in {folder} are of a newer version of Headwater: {formats}.
They were left as they are, and the newer version stays where it is installed. Ways on:
  - install that version, or a later one, again;
  - or go back with a backup that this version or an earlier one made: move {folder} away,
    install this package, and `headwater restore DIR --config {config}`.
"""


def data_folders(config: Path = CONFIG, home: Path = HOME) -> list[Path]:
    """Return the folders in which brokers of this machine keep their data."""
    name = "broker"
    with suppress(OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        name = tomllib.loads(config.read_text(encoding="utf-8")).get("broker", {}).get(
            "data_dir", name
        )  # fmt: skip
    folder = home / str(name)
    # Brokers that share a configuration have a folder each.
    return sorted(folder.parent.iterdir()) if folder.name == "*" else [folder]


def formats_of(folder: Path) -> dict[str, int]:
    """Return the newest format of each kind in a broker's folder."""
    newest: dict[str, int] = {}
    for kind, version in (*_of_journal(folder / "journal"), *_of_database(folder / "headwater.db")):
        newest[kind] = max(version, newest.get(kind, 0))
    return newest


def newer(formats: dict[str, int], known: dict[str, int]) -> str:
    """Return which `formats` are newer than what is `known`, in words; empty: none is.

    Tables of a kind that this version does not know do not hinder it.
    """
    return ", ".join(
        f"{kind} has format {version}, and this version knows formats up to {known[kind]}"
        for kind, version in sorted(formats.items())
        if version > known.get(kind, version)
    )


def _of_journal(folder: Path) -> Iterator[tuple[str, int]]:
    with suppress(OSError):
        for file in sorted(folder.iterdir()):
            with file.open("rb") as opened:
                head = opened.read(STATE_AT + 16)
            version = int.from_bytes(head[8:10], "little")
            if head.startswith(SEGMENT):
                yield "journal", version
            elif head.startswith(SNAPSHOT):
                yield "journal", version
                before, key, state = head[STATE_AT:].partition(STATE)
                if key and len(before) in {1, 3} and state[:1] < b"\x80":
                    yield "snapshot", state[0]


def _of_database(file: Path) -> Iterator[tuple[str, int]]:
    """Read a SQLite database without leaving files beside it that were not there."""
    log = file.with_name(f"{file.name}-wal")
    has_log = log.exists() and log.stat().st_size > 0
    options = "mode=ro" if has_log else "mode=ro&immutable=1"
    with (
        suppress(sqlite3.Error, ValueError, OSError),
        closing(sqlite3.connect(f"file:{file}?{options}", uri=True)) as database,
    ):
        for part, version in database.execute("SELECT part, version FROM headwater_format"):
            yield str(part), int(version)


def main(words: list[str]) -> int:
    """Return 1 with sentences on standard error where data are too new for what `words` know."""
    known = {kind: int(version) for kind, _, version in (word.partition("=") for word in words)}
    for folder in data_folders():
        if formats := newer(formats_of(folder), known):
            sys.stderr.write(NEWER.format(folder=folder, formats=formats, config=CONFIG))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
