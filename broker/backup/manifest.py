"""The last file of a backup: what it holds, of whom, and from when.

Owns its form and version. Must not know how files are copied. Invariant: a manifest that is read is
of a version that is understood, and names files inside of the backup alone.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import msgspec

MANIFEST: Final = "manifest.json"
FORMAT: Final = 1
BLOCK_BYTES: Final = 2**18
MANIFEST_BYTES_MAX: Final = 2**24
_NAME = re.compile(r"headwater\.db|journal/\d{20}(-\d{4}\.segment|\.snapshot)")


class BackupError(Exception):
    """A backup cannot be taken, received or put in place; the message says why."""


class CopiedFile(msgspec.Struct, frozen=True):
    """A file by its name in the data directory, its size, and its checksum in hexadecimal."""

    name: str
    size_bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Describes a backup. `database` is false where the broker keeps its database elsewhere."""

    format: int = FORMAT
    broker: str
    time: str
    database: bool
    files: tuple[CopiedFile, ...]


class _Version(msgspec.Struct):
    format: int


def is_a_name(name: str) -> bool:
    """Say if a backup may hold a file of this name."""
    return _NAME.fullmatch(name) is not None


def parse(data: bytes, where: Path) -> Manifest:
    """Read a manifest; `where` is the backup that it is of. Raises BackupError."""
    try:
        version = msgspec.json.decode(data, type=_Version).format
        if version != FORMAT:
            raise BackupError(
                f"{where} is a backup of format {version}, and this version of Headwater reads "
                f"format {FORMAT}; restore it with the version that made it, or a newer one"
            )
        manifest = msgspec.json.decode(data, type=Manifest)
    except msgspec.MsgspecError as error:
        raise BackupError(f"{where}/{MANIFEST} cannot be read: {error}; take another backup") from (
            None
        )
    for file in manifest.files:
        if not is_a_name(file.name):
            raise BackupError(f"{where} names a file that is none of a broker's: {file.name!r}")
    return manifest


def load(folder: Path) -> Manifest:
    """Read the manifest of a backup. Raises BackupError."""
    try:
        data = (folder / MANIFEST).read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BackupError(
            f"{folder} is no whole backup: its {MANIFEST} cannot be read: {reason}; "
            "name a directory that `headwater backup` made"
        ) from None
    return parse(data, folder)


def encode(manifest: Manifest) -> bytes:
    """Give a manifest as its file has it."""
    return msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"


def blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Read a file in pieces."""
    while data := file.read(BLOCK_BYTES):
        yield data


def check(file: CopiedFile, size_bytes: int, sha256: str, where: Path) -> None:
    """Raise BackupError where a file is not what the manifest says."""
    if (size_bytes, sha256) != (file.size_bytes, file.sha256):
        raise BackupError(
            f"{where / file.name} is not as it was copied: its checksum differs; "
            "take another backup, or restore another one"
        )
