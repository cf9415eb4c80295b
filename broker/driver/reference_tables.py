"""The tables of reference data that a broker offers to specifications.

Owns the reading of their directory, once, at the start. Must not know what tables mean. Invariant:
a specification reaches no file but these, by its name alone.
"""

from pathlib import Path

FILES_MAX = 200
BYTES_MAX = 256 * 2**20  # of all together: they stay in memory


class TablesError(Exception):
    """The directory cannot be read; the sentence says why."""


def load_tables(directory: str) -> dict[str, str]:
    """The text of each `*.csv` of the directory by its name; none of an empty name."""
    if not directory:
        return {}
    tables: dict[str, str] = {}
    size, data = 0, b""
    path = Path(directory)
    try:
        if not path.is_dir():
            raise TablesError(f"{directory}: there is no such directory of tables")
        paths = sorted(file for file in path.glob("*.csv") if file.is_file())
        if len(paths) > FILES_MAX:
            raise TablesError(f"{directory}: {len(paths)} tables, at most {FILES_MAX} are read")
        for path in paths:
            with path.open("rb") as file:
                data = file.read(BYTES_MAX - size + 1)
            size += len(data)
            if size > BYTES_MAX:
                raise TablesError(f"{directory}: more than {BYTES_MAX} bytes of tables")
            tables[path.name] = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TablesError(f"{path}:{line}:1: not UTF-8") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise TablesError(f"{path}: cannot be read: {reason}") from None
    return tables
