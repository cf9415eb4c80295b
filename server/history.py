"""The history as files: which of a folder count, so that it can be read without Spark.

Owns the reading of the list that Spark keeps beside them. Must not know jobs. Invariant: what
Spark's own reader gives is given, no more and no less: files of attempts that were killed stay in
the folder and hold rows that stand in other files too.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from server.errors import ServerError
from server.source.history import MENDED
from server.source.places import POSTPONED, Postponed, places_of

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped, import-not-found, unused-ignore]

LIST: Final = "_spark_metadata"
COMPACT: Final = ".compact"
VERSION: Final = "v1"
SHOWN: Final = ".shown"  # beside the folder: the name of the one that is shown in its place
CLAIM: Final = "_headwater.json"  # whose the folder is


def files_of(folder: Path) -> list[Path]:
    """The files that count, in the order in which they were written. Raises ServerError."""
    numbered = list_batches(folder)
    # A compact one holds all before it as well.
    whole = [number for number, file in numbered if file.name.endswith(COMPACT)]
    files: dict[Path, bool] = {}
    for number, file in numbered:
        if not whole or number > whole[-1] or (number == whole[-1] and file.suffix == COMPACT):
            files |= dict(_entries(folder, file))
    return [path for path, added in files.items() if added]


def recorded(folder: Path) -> dict[str, tuple[str, int]]:
    """Return the places, as (epoch, offset), up to which the history's own stream has read.

    Rows do not say it: a stream may have read on without any that it keeps. Nothing is returned
    where the stream's checkpoint is not there, or is of an older version.
    """
    last = max((number for number, _ in list_batches(folder)), default=-1)
    try:
        state = Path(json.loads((folder / CLAIM).read_text(encoding="utf-8"))["state"])
        offsets = state / "spark" / "offsets"
        planned = [int(file.name) for file in offsets.iterdir() if file.name.isdigit()]
        newest = max(number for number in planned if number <= last)
        lines = (offsets / str(newest)).read_text(encoding="utf-8").splitlines()
        places = Postponed(state / POSTPONED).rewound(places_of(json.loads(lines[2])))
        return {name: (place.epoch, place.next) for name, place in places.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def subscriptions_in(folder: Path) -> frozenset[str]:
    """Return the subscriptions that alone are in a history; none where it has all."""
    try:
        claim = json.loads((folder / CLAIM).read_text(encoding="utf-8"))
        return frozenset(str(name) for name in claim.get("subscriptions", ()))
    except (OSError, ValueError, AttributeError, TypeError):
        return frozenset()


def shown_folder(folder: Path) -> Path:
    """Return the folder of the version of a history that is shown; itself without any other."""
    try:
        name = folder.with_name(folder.name + SHOWN).read_text(encoding="utf-8").strip()
    except OSError:
        return folder
    return folder.with_name(name)


def show_folder(folder: Path, suffix: str) -> None:
    """Have readers of a history read that of another version."""
    from server.checkpoint import replace_file

    replace_file(folder.with_name(folder.name + SHOWN), folder.name + suffix)


def table_of(folder: Path | str, columns: Sequence[str] | None = None) -> "pa.Table":
    """All rows of a history as it is shown, of these columns. Raises ServerError."""
    import pyarrow as pa
    from pyarrow import parquet

    wanted = None if columns is None else list(columns)
    # Spark's times are read as nanoseconds otherwise, which go from 1677 to 2262 and then around.
    paths = files_of(shown_folder(Path(folder)))
    check_there(paths)
    parts: list[Any] = []
    for path in paths:
        try:
            with parquet.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
                parts.append(file.read(columns=wanted))
        except (OSError, pa.ArrowException) as error:
            raise ServerError(f"{path} of the history cannot be read: {error}; {MENDED}") from None
        if faults := _unlike(parts[0].schema, parts[-1].schema):
            raise ServerError(f"{path} of the history is unlike {paths[0]}: {faults}; {MENDED}")
    return pa.concat_tables(parts) if parts else pa.table({})


def check_there(paths: Sequence[Path]) -> None:
    """Raise ServerError where files that the list has are gone."""
    gone = [path for path in paths if not path.is_file()]
    if gone:
        more = f", as are {len(gone) - 1} other files" if len(gone) > 1 else ""
        raise ServerError(
            f"{gone[0]} of the history is gone{more}:"
            " `headwater server mend` says which results were there, and takes them from elsewhere"
        )


def _unlike(first: "pa.Schema", other: "pa.Schema") -> str:
    """Say in which columns two files differ; nothing where they do not."""
    kinds = [dict(zip(schema.names, schema.types, strict=True)) for schema in (first, other)]
    names = dict.fromkeys((*first.names, *other.names))
    differing = [name for name in names if kinds[0].get(name) != kinds[1].get(name)]
    return ", ".join(
        f"column {name} is {kinds[1].get(name, 'missing')} in the place of"
        f" {kinds[0].get(name, 'missing')}"
        for name in differing
    )


def list_batches(folder: Path) -> list[tuple[int, Path]]:
    """Return each batch of the list with its file, in their order. Raises ServerError."""
    batches = folder / LIST
    if not batches.is_dir():
        raise ServerError(f"{folder} holds no history: there is no {LIST}")
    return sorted(
        (int(file.name.removesuffix(COMPACT)), file)
        for file in batches.iterdir()
        if file.name.removesuffix(COMPACT).isdigit()
    )


def _entries(folder: Path, file: Path) -> list[tuple[Path, bool]]:
    """(file, whether it counts) of one batch."""
    lines = file.read_text(encoding="utf-8").splitlines()
    if not lines or lines[0] != VERSION:
        raise ServerError(f"{file}: found {(lines or ['nothing'])[0][:20]}, expected {VERSION}")
    entries = []
    for line in lines[1:]:
        entry = json.loads(line)
        path = moved_file(folder, Path(unquote(urlsplit(entry["path"]).path)))
        entries.append((path, entry.get("action", "add") == "add"))
    return entries


def moved_file(folder: Path, path: Path) -> Path:
    """Return where a listed file is: below the folder, which may have been copied or moved.

    Below it all is as it was. Where it is not there, it may still be where it was listed.
    """
    parts = path.parts
    if folder.name in parts:
        last = len(parts) - parts[::-1].index(folder.name)
    else:  # the folder has another name now: what is below it begins with the day
        last = next((n for n, part in enumerate(parts) if part.startswith("day=")), len(parts) - 1)
    moved = folder.joinpath(*parts[last:])
    return path if path.is_file() and not moved.is_file() else moved
