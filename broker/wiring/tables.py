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
    found: dict[str, str] = {}
    size = 0
    path = Path(directory)
    try:
        paths = sorted(path.glob("*.csv"))
        if not path.is_dir():
            raise TablesError(f"{directory}: there is no such directory of tables")
        if len(paths) > FILES_MAX:
            raise TablesError(f"{directory}: {len(paths)} tables, at most {FILES_MAX} are read")
        for path in paths:
            data = path.read_bytes()
            size += len(data)
            if size > BYTES_MAX:
                raise TablesError(f"{directory}: more than {BYTES_MAX} bytes of tables")
            found[path.name] = data.decode("utf-8")
    except UnicodeDecodeError:
        raise TablesError(f"{path}: not UTF-8") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise TablesError(f"{directory}: the tables cannot be read: {reason}") from None
    return found
