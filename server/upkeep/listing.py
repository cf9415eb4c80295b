"""The list of a history's files, changed while no stream fills the folder.

Owns the changes to the list that Spark keeps. Must not know rows. Invariant: one file of the list
is changed at a time, and each change leaves a list that gives every row at most once; a reader has
the list as it was before or after.

Spark numbers the files of its list by batch. Every tenth holds all before it as well, so that what
stands in the last of these can be replaced by something else in one step.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from server.checkpoint import replace_file
from server.errors import ServerError
from server.history import COMPACT, VERSION, list_batches, moved_file


class ListedFile(NamedTuple):
    """A file of rows: in which file of the list it stands, and as which line."""

    batch: Path
    line: str
    path: Path


def listed_files(folder: Path) -> list[ListedFile]:
    """Return the files that count, in the order of the list. Raises ServerError."""
    batches = list_batches(folder)
    last = max((number for number, file in batches if file.name.endswith(COMPACT)), default=-1)
    counted = [
        file for number, file in batches
        if number > last or (number == last and file.name.endswith(COMPACT))
    ]  # fmt: skip
    return [
        ListedFile(file, line, _path_of(folder, line))
        for file in counted
        for line in file.read_text(encoding="utf-8").splitlines()[1:]
    ]


def change_list(batch: Path, without: Iterable[ListedFile], added: Sequence[str] = ()) -> None:
    """Put a file of the list in the place of one, without these lines and with others."""
    gone = {listed.line for listed in without if listed.batch == batch}
    lines = [line for line in batch.read_text(encoding="utf-8").splitlines() if line not in gone]
    with suppress(FileNotFoundError):  # Spark would hold the text against what it was
        batch.with_name(f".{batch.name}.crc").unlink()
    replace_file(batch, "\n".join([*lines, *added]))


def last_batch(folder: Path) -> Path:
    """Return the last file of the list. Raises ServerError where there is none."""
    batches = list_batches(folder)
    if not batches:
        raise ServerError(f"{folder}: its list of files is empty, so nothing can be added to it")
    return batches[-1][1]


def line_of(path: Path) -> str:
    """Return the line of a file that is added."""
    status = path.stat()
    content: dict[str, Any] = {
        "path": path.absolute().as_uri(),
        "size": status.st_size,
        "isDir": False,
        "modificationTime": round(status.st_mtime * 1000),
        "blockReplication": 1,
        "blockSize": 33_554_432,
        "action": "add",
    }
    return json.dumps(content, separators=(",", ":"))


def check_form(folder: Path) -> None:
    """Raise ServerError where the list has a form that is not understood."""
    for _, file in list_batches(folder):
        first = file.read_text(encoding="utf-8").partition("\n")[0]
        if first != VERSION:
            raise ServerError(f"{file}: found {first[:20]}, expected {VERSION}")


def _path_of(folder: Path, line: str) -> Path:
    return moved_file(folder, Path(unquote(urlsplit(json.loads(line)["path"]).path)))
