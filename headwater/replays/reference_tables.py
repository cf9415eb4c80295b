"""Tables of reference data that stand beside a specification.

Owns where a table's file is looked for. Must not know what a table means. Invariant: a name leads
to a file beside or beneath the specification's own directory, or nowhere else than it says itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from language import ReadTable, TableError

BYTES_MAX = 256 * 2**20


def tables_beside(specification: str) -> ReadTable:
    """Reads tables whose names are relative to the specification's file (`-`, `<…>`: to here)."""
    beside = Path() if specification[:1] in {"-", "<"} else Path(specification).parent
    return lambda name: read(beside / name)


def tables_among(texts: Mapping[str, str]) -> ReadTable:
    """Tables whose texts are here already, by the name that the specification writes."""

    def read_text(name: str) -> str:
        if name not in texts:
            raise TableError("it is not among the tables that were given")
        return texts[name]

    return read_text


def read(path: Path) -> str:
    """The text of a table's file; raises TableError with a sentence."""
    try:
        with path.open("rb") as file:
            data = file.read(BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TableError(reason.lower()) from None
    if len(data) > BYTES_MAX:
        raise TableError(f"it is longer than {BYTES_MAX} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise TableError("it is not UTF-8") from None
