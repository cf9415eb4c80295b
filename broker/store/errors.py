"""Why a database cannot be used, in a sentence.

Owns the reading of other libraries' errors. Must not know what is stored. Invariant: an error that
is laid to the database (`of_the_database`) says nothing of the work that met it: the same work may
be tried again, and must not be given up for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

# The primary result codes of SQLite that speak of its file and not of a statement.
_SQLITE: Final[dict[str, str]] = {
    "SQLITE_PERM": "may not be read or written by this user; change its owner or its mode",
    "SQLITE_BUSY": "is locked by another process; end that one, or give the broker one of its own",
    "SQLITE_LOCKED": "is locked; end whatever else uses it",
    "SQLITE_NOMEM": "needs more memory than there is",
    "SQLITE_READONLY": "is read-only; make the file and its directory writable",
    "SQLITE_IOERR": "cannot be written or read: a share of the disk or a limit on file sizes is"
    " used up, or the disk fails; look at the system's log",
    "SQLITE_CORRUPT": "is damaged; restore it, or move it away to begin anew",
    "SQLITE_FULL": "has no more room: the disk is full",
    "SQLITE_CANTOPEN": "cannot be opened: it, or its directory, is not there or not writable",
    "SQLITE_PROTOCOL": "is locked by another process",
    "SQLITE_NOLFS": "is larger than the disk's format allows",
    "SQLITE_AUTH": "may not be used so",
    "SQLITE_NOTADB": "is not a database; name another file, or move this one away",
}
# The classes of SQLSTATE, and single states, that speak of the server.
_STATES: Final[dict[str, str]] = {
    "08": "cannot be reached",
    "25006": "is read-only",
    "28": "refuses the user or the password",
    "3D": "is not there; create it first",
    "40": "gave up a transaction in favour of another one's",
    "42501": "does not let this user create or write tables",
    "53100": "has no more room: the disk is full",
    "53": "is short of resources",
    "55P03": "is locked by another process",
    "57": "is shutting down or starting",
    "58": "met an error of its system",
    "XX": "is damaged or met a fault of its own",
}


class StoreError(Exception):
    """A database cannot be used; the text is a sentence that says why and what to do."""


def name_of(url: URL) -> str:
    """Return the name of a database for sentences, without its password."""
    if url.get_backend_name() == "sqlite":
        return f"the database {url.database}"
    return f"the database {url.render_as_string(hide_password=True)}"


def of_the_database(error: BaseException) -> str:
    """Return what is wrong with the database, as the end of a sentence; empty where it is the work.

    A database that fails may end the whole transaction, so that giving up a savepoint of it fails
    as well: what that was met with is looked at too.
    """
    seen: BaseException | None = error
    while seen is not None:
        reason = _of_one(seen)
        if reason:
            return reason
        seen = seen.__cause__ or seen.__context__
    return ""


def _of_one(error: BaseException) -> str:
    if isinstance(error, OSError):
        return f"cannot be used: {(error.strerror or str(error)).lower()}"
    original: Any = getattr(error, "orig", None) or error
    name = getattr(original, "sqlite_errorname", None)
    if isinstance(name, str):
        return next((reason for code, reason in _SQLITE.items() if name.startswith(code)), "")
    state = getattr(original, "sqlstate", None)
    if isinstance(state, str):
        return next((reason for code, reason in _STATES.items() if state.startswith(code)), "")
    if getattr(error, "connection_invalidated", False):
        return "cannot be reached: the connection was lost"
    if type(original).__name__ in {"OperationalError", "InterfaceError"}:
        first = (str(original).strip().splitlines() or ["no reason given"])[0]
        return f"cannot be used: {first}"
    return ""
