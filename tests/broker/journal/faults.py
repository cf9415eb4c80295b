"""A disk that fails as a test tells it, and a journal on it that keeps what it was told."""

import asyncio
import errno
import os
import threading
from contextlib import suppress
from pathlib import Path

from broker.journal import Files, Journal, JournalOptions, read

PATIENCE_S = 10


class FaultyFiles(Files):
    """`failing` maps an operation to the error that it raises, for as long as it stands there.

    `left` are the bytes that may still be written. While `gate` is not set, syncs wait; those that
    did are counted.
    """

    def __init__(self):
        super().__init__()
        self.failing: dict[str, int] = {}
        self.left: int | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.syncs = 0
        self.reached = threading.Event()  # a sync is waiting at the gate
        self.unsynced: dict[int, Path] = {}

    def _obey(self, operation):
        number = self.failing.get(operation)
        if number:
            raise OSError(number, os.strerror(number))

    def make_folder(self, path):
        self._obey("make_folder")
        super().make_folder(path)

    def create(self, path):
        self._obey("create")
        return super().create(path)

    def write(self, file, data):
        self._obey("write")
        if self.left is not None:
            part = data[: self.left]
            self.left -= len(part)
            super().write(file, part)
            if len(part) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return
        super().write(file, data)

    def truncate(self, file, size_bytes):
        self._obey("truncate")
        super().truncate(file, size_bytes)

    def sync(self, file):
        self.reached.set()
        assert self.gate.wait(PATIENCE_S)
        self._obey("sync")
        self.syncs += 1
        super().sync(file)

    def sync_folder(self, path):
        self._obey("sync_folder")
        super().sync_folder(path)

    def replace(self, old, new):
        self._obey("replace")
        super().replace(old, new)

    def remove(self, path):
        self._obey("remove")
        super().remove(path)

    def read(self, path):
        self._obey("read")
        return super().read(path)


class Kept:
    """A journal, and what it told."""

    def __init__(self, folder, files=None, **options):
        options = {"retry_s": 0.01, **options}
        self.durable = []
        self.troubles = []
        self._changed = asyncio.Event()
        self.found = read(folder, files)
        self.before = [(one.number, one.data) for one in self.found.records()]
        self.journal = Journal(self.found, self._durable, self._trouble, JournalOptions(**options))

    def _durable(self, number):
        self.durable.append(number)
        self._changed.set()

    def _trouble(self, why):
        self.troubles.append(why)
        self._changed.set()

    def append(self, *datas):
        for data in datas:
            self.journal.append(self.journal.last + 1, data)

    async def until(self, condition):
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def all_durable(self):
        await self.until(lambda: self.journal.durable == self.journal.last)


def there(folder):
    """What a start finds: the snapshot's number and data, and the records after it."""
    found = read(folder)
    records = [(one.number, one.data) for one in found.records()]
    snapshot = found.snapshot and (found.snapshot.number, found.snapshot.data)
    return snapshot, records


def crashed(folder, to):
    """A copy of the folder as a process that ends at once leaves it."""
    to.mkdir()
    for path in folder.iterdir():
        with suppress(FileNotFoundError):  # it was taken away by then: the end came after that
            (to / path.name).write_bytes(path.read_bytes())
    return to
