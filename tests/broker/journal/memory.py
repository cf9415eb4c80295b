"""A disk in memory that forgets, when the power fails, what was not synced.

It knows what the journal's operations promise and no more: bytes outlast a crash after a sync of
their file, names after a sync of their folder. Of bytes that were written behind what is synced any
part may be there; of a name that was changed either state. After a sync that failed, the system
takes the bytes for written: later syncs succeed, and the bytes are lost all the same.
"""

import errno
import os
import threading
import time
from pathlib import Path
from random import Random

from broker.journal import Files


class _File:
    def __init__(self, data=b""):
        self.data = bytearray(data)
        self.synced = len(data)
        self.lost_from = None  # a sync failed: nothing from here on reaches the disk any more

    def copy(self):
        other = _File(self.data)
        other.synced, other.lost_from = self.synced, self.lost_from
        return other


class Memory(Files):
    """One folder. `faults` is the share of operations that fail, at random."""

    def __init__(self, seed, names=None):
        super().__init__()
        self.random = Random(seed)
        self.faults = 0.0
        self._lock = threading.Lock()
        self._names = names or {}
        self._synced_names = dict(self._names)
        self._open = {}

    def _obey(self):
        if self.random.random() < self.faults:
            number = self.random.choice((errno.ENOSPC, errno.EIO))
            raise OSError(number, os.strerror(number))

    def crash(self, seed):
        """The disk as it is after a loss of power at this moment."""
        with self._lock:
            draw = Random(seed)
            left = {}
            for name in sorted({*self._names, *self._synced_names}):
                state = draw.choice((self._names, self._synced_names))
                if name in state:
                    left[name] = _File(self._torn(state[name], draw))
            return Memory(draw.random(), left)

    def killed(self, seed):
        """The disk as it is after the end of the process alone: what was written can be read."""
        with self._lock:
            known = {id(file): file for file in self._names.values()}
            known |= {id(file): file for file in self._synced_names.values()}
            files = {key: file.copy() for key, file in known.items()}
            left = Memory(seed)
            left._names = {name: files[id(file)] for name, file in self._names.items()}
            synced = self._synced_names.items()
            left._synced_names = {name: files[id(file)] for name, file in synced}
            return left

    def _torn(self, file, draw):
        data = bytes(file.data[: file.synced])
        more = bytes(file.data[file.synced :])
        if file.lost_from is not None:
            more = more[: max(0, file.lost_from - file.synced)]
        more = more[: draw.randint(0, len(more))]
        if more and draw.random() < 0.3:
            more += bytes(draw.randint(1, 30))
        return data + more

    # --- the operations -----------------------------------------------------------------------

    def make_folder(self, path):
        pass

    def names(self, path):
        with self._lock:
            return sorted(self._names)

    def create(self, path):
        with self._lock:
            self._obey()
            if path.name in self._names:
                raise FileExistsError(errno.EEXIST, "there already", str(path))
            number = len(self._open) + 1
            self._names[path.name] = self._open[number] = _File()
            return number

    def write(self, file, data):
        with self._lock:
            if self.random.random() < self.faults:
                self._open[file].data += data[: self.random.randint(0, len(data))]
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._open[file].data += data

    def sync(self, file):
        if self.random.random() < 0.3:
            time.sleep(0.002)  # so that the end comes between a write and its sync, too
        with self._lock:
            one = self._open[file]
            try:
                self._obey()
            except OSError:
                if one.lost_from is None:
                    one.lost_from = one.synced
                raise
            if one.lost_from is None:
                one.synced = len(one.data)

    def truncate(self, file, size_bytes):
        with self._lock:
            self._obey()
            one = self._open[file]
            del one.data[size_bytes:]
            one.synced = min(one.synced, size_bytes)

    def close(self, file):
        pass

    def sync_folder(self, path):
        with self._lock:
            self._obey()
            self._synced_names = dict(self._names)

    def read(self, path):
        with self._lock:
            return bytes(self._names[path.name].data)

    def size(self, path):
        with self._lock:
            return len(self._names[path.name].data)

    def identity(self, path):
        with self._lock:
            return (0, 0) if path == FOLDER or path.name in self._names else None

    def has_name(self, file):
        with self._lock:
            return any(self._open[file] is one for one in self._names.values())

    def replace(self, old, new):
        with self._lock:
            self._obey()
            self._names[new.name] = self._names.pop(old.name)

    def remove(self, path):
        with self._lock:
            self._obey()
            self._names.pop(path.name, None)


FOLDER = Path("memory")
