"""Ranges of results that a history does not have, noted beside its files.

Owns that form. Must not know rows or logs. Invariant: noting a gap again changes nothing, from
wherever that is done, so that a batch which is run again notes what it noted before.
"""

from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = "_headwater_gaps"
MENDED: Final = (
    "put the file back from a backup, or move it away: `headwater server mend` then says which"
    " results were there, and takes them from brokers and other histories"
)


class HistoryGap(NamedTuple):
    """A half-open range of offsets that retention took before the history had it."""

    broker: str
    epoch: str
    begin: int
    end: int


def note_gap(folder: str | None, gap: HistoryGap) -> None:
    """Keep beside a history that these results are not in it; nothing where there is no folder."""
    if folder is None:
        return
    place = Path(folder) / FOLDER
    place.mkdir(parents=True, exist_ok=True)
    (place / ":".join(map(str, gap))).touch()


def gaps_in(folder: Path) -> list[HistoryGap]:
    """Return what was noted, in the order of offsets."""
    place = folder / FOLDER
    if not place.is_dir():
        return []
    parts = (file.name.split(":") for file in place.iterdir())
    noted = [
        HistoryGap(part[0], part[1], int(part[2]), int(part[3])) for part in parts if len(part) == 4
    ]
    return sorted(noted)
