"""What of Headwater goes along with a job to executors that do not have it.

Owns the choice of packages and the archive. Must not know jobs. Invariant: the archive holds what
this very process runs, so that driver and executors never differ. It stands there as sources, and
as this Python compiles them, or each process that Spark begins would; another Python takes the
sources. The engine's compiled passes go along where this process has them.

An executor still needs what is not pure Python: pyarrow, pandas and protobuf for Spark itself, and
for continued detection msgspec. lark, which is pure, goes along.
"""

import importlib.util
import marshal
import os
import sys
import zipfile
from contextlib import suppress
from hashlib import sha256
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path
from typing import Final

from broker.engine import native
from server.detection.passes import FOLDER
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
    """The archive that executors import from, in a folder where it stays. Raises ServerError.

    Spark reads it whenever an executor begins, so it is named after its content and never changed.
    """
    contents = archived()
    named = sha256(str(sys.implementation.cache_tag).encode())
    for name, data in contents.items():
        named.update(f"\0{name}\0{len(data)}\0".encode() + data)
    target = folder / f"headwater-{named.hexdigest()[:16]}.zip"
    if not target.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        fresh = target.with_suffix(f".{os.getpid()}")
        with zipfile.ZipFile(fresh, "w") as made:
            for name, data in contents.items():
                made.writestr(zipfile.ZipInfo(name, _WHEN), data, zipfile.ZIP_DEFLATED)
                if name.endswith(".py"):
                    made.writestr(zipfile.ZipInfo(f"{name}c", _WHEN), _compiled(name, data))
        fresh.replace(target)
    target.touch()
    now_s = target.stat().st_mtime
    for other in folder.glob("headwater-*.zip"):
        with suppress(OSError):
            if now_s - other.stat().st_mtime > KEPT_S:
                other.unlink()
    return target


def archived() -> dict[str, bytes]:
    """Return what goes along, by its name there. Raises ServerError."""
    contents: dict[str, bytes] = {}
    for package, pattern in PARTS:
        top, _, inside = package.partition("/")
        root = _folder(top)
        files = [file for file in sorted((root / inside).glob(pattern)) if file.suffix in SUFFIXES]
        if not files:  # an executor would take another version, or none
            raise ServerError(f"{package} cannot be sent along: {root} holds no files of it")
        for file in files:
            contents[f"{top}/{file.relative_to(root).as_posix()}"] = file.read_bytes()
    if native.passes is not None and native.passes.__file__ is not None:
        file = Path(native.passes.__file__)
        contents[f"{FOLDER}/{file.name}"] = file.read_bytes()
    return contents


def _compiled(name: str, source: bytes) -> bytes:
    """Return a module as Python keeps it compiled, to be taken without a look at its source."""
    code = compile(source, name, "exec", dont_inherit=True)
    flags = (0b01).to_bytes(4, "little")  # by the hash of its source, which is not checked
    return MAGIC_NUMBER + flags + source_hash(source) + marshal.dumps(code)


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ImportError(f"no package {package}")
    return Path(spec.origin).parent
