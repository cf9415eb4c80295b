"""A backup comes to a directory, and from there into the place of a data directory.

Owns both ways. Must not know where a stream comes from. Invariant: a directory gets its name when
all of it is on the disk and as the manifest says; until then nothing of what was there is touched.
"""

import hashlib
import os
import secrets
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from broker.backup.manifest import (
    MANIFEST,
    MANIFEST_BYTES_MAX,
    BackupError,
    Manifest,
    blocks,
    check,
    encode,
    is_a_name,
    load,
    parse,
)
from broker.journal.files import Files
from broker.site.data_dir import LOCK, NAME, claimed

TORN: Final = "the backup ended before it was whole; nothing was kept of it: try again"


def refuse_full(folder: Path) -> None:
    """Raise BackupError where a backup could not be put there."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise BackupError(f"{folder} is no directory; name one that is new or empty")
    if folder.is_dir() and any(folder.iterdir()):
        raise BackupError(f"{folder} is not empty; name a directory that is new or empty")


def receive(stream: BinaryIO, folder: Path) -> Manifest:
    """Write a backup beside its place, check it, and give it its name. Raises BackupError."""
    refuse_full(folder)
    with _fresh(folder) as beside:
        manifest = _unpacked(stream, beside)
        _synced(beside)
        beside.replace(folder)
    Files().sync_folder(folder.parent)
    return manifest


def _unpacked(stream: BinaryIO, folder: Path) -> Manifest:
    """Write the files of a stream, up to and with its manifest."""
    sums: dict[str, tuple[int, str]] = {}
    try:
        with tarfile.open(fileobj=stream, mode="r|") as tar:
            for member in tar:
                data = tar.extractfile(member) if member.isreg() else None
                if data is None or not (member.name == MANIFEST or is_a_name(member.name)):
                    raise BackupError(f"what came is no backup: it has {member.name[:60]!r}")
                if member.name == MANIFEST:
                    manifest = parse(data.read(MANIFEST_BYTES_MAX), folder)
                    for file in manifest.files:
                        if file.name not in sums:
                            raise BackupError(TORN)
                        check(file, *sums[file.name], folder)
                    _write(folder / MANIFEST, iter((encode(manifest),)))
                    return manifest
                sums[member.name] = _write(folder / member.name, blocks(data))
    except tarfile.TarError:
        raise BackupError(TORN) from None
    raise BackupError(TORN)


def restore(backup: Path, data_dir: str, broker: str, *, database: bool, replace: bool) -> str:
    """Put a backup in the place of a stopped broker's data directory.

    `database`: the broker keeps its database there, too. Where there is something already,
    `replace` moves it aside. Return where to, or nothing. Raises BackupError, StartError, OSError.
    """
    manifest = load(backup)
    if broker and manifest.broker != broker:
        raise BackupError(
            f"{backup} is of the broker {manifest.broker}, and {broker} is configured; name the "
            f"right backup, or the right configuration (--config, --set broker.name=…)"
        )
    if manifest.database != database:
        has = "has" if manifest.database else "lacks"
        raise BackupError(
            f"{backup} {has} the database, and data.database says otherwise; configure the "
            "broker as it was when the backup was taken"
        )
    if not data_dir:
        raise BackupError("no data directory is configured; name one as broker.data_dir")
    place = Path(data_dir).resolve()
    if not place.is_dir():
        return _put(backup, manifest, place, aside=None)
    with claimed(str(place)):
        full = any(path.name != LOCK for path in place.iterdir())
        if full and not replace:
            raise BackupError(
                f"the data directory {place} is not empty; --replace moves what is there aside"
            )
        aside = place.with_name(f"{place.name}.replaced-{secrets.token_hex(4)}")
        return _put(backup, manifest, place, aside=aside if full else None)


def _put(backup: Path, manifest: Manifest, place: Path, *, aside: Path | None) -> str:
    with _fresh(place) as beside:
        for file in manifest.files:
            try:
                with (backup / file.name).open("rb") as copy:
                    size_bytes, sha256 = _write(beside / file.name, blocks(copy))
            except FileNotFoundError:
                raise BackupError(
                    f"{backup / file.name} is missing; restore another backup"
                ) from None
            check(file, size_bytes, sha256, backup)
        _write(beside / NAME, iter((f"{manifest.broker}\n".encode(),)))
        _synced(beside)
        if aside is not None:
            place.replace(aside)
        else:
            (place / LOCK).unlink(missing_ok=True)
        try:
            beside.replace(place)
        except OSError:
            if aside is not None:
                aside.replace(place)
            raise
    Files().sync_folder(place.parent)
    return str(aside or "")


@contextmanager
def _fresh(place: Path) -> Iterator[Path]:
    """Make a directory beside a place; what is left of it in the end is removed."""
    files = Files()
    files.make_folder(place.absolute().parent)
    beside = place.absolute().with_name(f"{place.name}.{secrets.token_hex(4)}.new")
    beside.mkdir(mode=0o700)
    try:
        yield beside
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _write(path: Path, pieces: Iterator[bytes]) -> tuple[int, str]:
    """Write a file durably; its size and its checksum."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    digest, size_bytes = hashlib.sha256(), 0
    with os.fdopen(Files().create(path), "wb") as file:
        for data in pieces:
            file.write(data)
            digest.update(data)
            size_bytes += len(data)
        file.flush()
        os.fsync(file.fileno())
    return size_bytes, digest.hexdigest()


def _synced(folder: Path) -> None:
    """Return once it is on the disk which files there are."""
    for path in (*(path for path in folder.iterdir() if path.is_dir()), folder):
        Files().sync_folder(path)
