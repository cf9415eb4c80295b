"""What went wrong with the disk, in a sentence with a way out.

Owns the sentences. Must not know what was being done, beyond where. Invariant: every error of the
system becomes one sentence that names the place; none is passed on as a bare number.
"""

import errno
import os
from pathlib import Path

from broker.journal.files import MovedError

_FULL = "the disk is full; make room, and it goes on by itself"
_MOVED = "was moved or deleted while in use; put it back, or start the broker anew"
_SENTENCES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: "the user's share of the disk is used up; raise it or make room",
    errno.EFBIG: "a file may not grow as large as that; raise the limit on file sizes (ulimit -f)",
    errno.EROFS: "the file system is read-only; mount it writable",
    errno.EACCES: "this user may not write there; give the folder to the user of the broker",
    errno.EPERM: "this user may not write there; give the folder to the user of the broker",
    errno.EIO: "the disk reports an input/output error; see the system's log, it may be failing",
    errno.ENOENT: "the folder is gone; bring it back, or start the broker anew",
    errno.ENOTDIR: "a file stands where a folder has to be; move it away",
    errno.EISDIR: "a folder stands where a file has to be; move it away",
    errno.EMFILE: "this process has too many open files; raise the limit (ulimit -n)",
    errno.ENFILE: "the system has too many open files",
}


class JournalError(Exception):
    """The journal cannot be read or written; the text is one sentence that says why."""


def sentence(error: OSError, path: Path) -> str:
    """Why nothing can be written to, or read from, the place."""
    if isinstance(error, MovedError):
        return f"the journal in {path} {_MOVED}"
    number = error.errno or 0
    reason = _SENTENCES.get(number) or (os.strerror(number) if number else str(error)).lower()
    return f"the journal in {path}: {reason}"
