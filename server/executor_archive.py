"""What of Headwater goes along with a job to executors that do not have it.

Owns the choice of packages and the archive. Must not know jobs. Invariant: the archive holds pure
Python alone, in the version of this very process, so that driver and executors never differ.

An executor still needs what is not pure Python: pyarrow, pandas and protobuf for Spark itself, and
for continued detection msgspec. lark, which is pure, goes along.
"""

import importlib.util
import io
import os
import zipfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from server.errors import ServerError

# Whole packages would bring the input and output of a broker along, which nothing here uses.
PARTS: Final = (
    ("language", "**/*"),
    ("planner", "*.py"),
    ("broker", "__init__.py"),
    ("broker", "core/**/*"),
    ("broker", "engine/**/*"),
    ("broker", "network/**/*"),
    ("headwater", "*.py"),
    ("headwater/replays", "*.py"),
    ("headwater/cli", "__init__.py"),
    ("server", "**/*"),
    ("lark", "**/*"),
)
SUFFIXES: Final = {".py", ".lark"}
KEPT_S: Final = 30 * 86_400  # an archive that no start has wanted for so long
_WHEN: Final = (2020, 1, 1, 0, 0, 0)  # the same content is the same archive


def kept_archive(folder: Path) -> Path:
    """The archive that executors import from, in a folder where it stays.

    Spark reads it whenever an executor begins, so it is named after its content and never changed.
    """
    data = archive()
    target = folder / f"headwater-{sha256(data).hexdigest()[:16]}.zip"
    if not target.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        fresh = target.with_suffix(f".{os.getpid()}")
        fresh.write_bytes(data)
        fresh.replace(target)
    target.touch()
    now_s = target.stat().st_mtime
    for other in folder.glob("headwater-*.zip"):
        with suppress(OSError):
            if now_s - other.stat().st_mtime > KEPT_S:
                other.unlink()
    return target


def archive() -> bytes:
    """The archive's bytes: the same for the same packages. Raises ServerError."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as made:
        for package, pattern in PARTS:
            top, _, inside = package.partition("/")
            root = _folder(top)
            files = [
                file for file in sorted((root / inside).glob(pattern)) if file.suffix in SUFFIXES
            ]
            if not files:  # an executor would take another version, or none
                raise ServerError(f"{package} cannot be sent along: {root} holds no files of it")
            for file in files:
                name = f"{top}/{file.relative_to(root).as_posix()}"
                made.writestr(zipfile.ZipInfo(name, _WHEN), file.read_bytes())
    return held.getvalue()


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ImportError(f"no package {package}")
    return Path(spec.origin).parent
