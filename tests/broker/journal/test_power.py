"""The journal on a disk that forgets: whatever was told to be durable is there after each crash.

Its threads run as they do in a broker, so that a seed draws what is done, but not how it falls
together.
"""

import asyncio
from random import Random

import pytest

from broker.journal import Journal, JournalError, JournalOptions, read
from tests.broker.journal.memory import FOLDER, Memory

CRASHES = 5


class Run:
    """Lives of a journal on one disk, with faults; a loss of power or a kill ends each."""

    def __init__(self, seed):
        self.random = Random(seed)
        self.disk = Memory(seed)
        self.truth = {}  # of the records that may be there: number → data, of the last life last
        self.snapshot = 0  # the greatest number that a snapshot was told to stand for
        self.promised = 0
        self.held = False

    async def life(self):
        """Read what is there, write more, and end without a word."""
        draw = self.random
        found = read(FOLDER, self.disk)
        self.check(found)
        self.disk.faults = draw.choice((0.0, 0.0, 0.1, 0.3))
        options = JournalOptions(segment_bytes=draw.choice((1, 200, 5_000)), retry_s=0.001)
        journal = Journal(found, self.durable, self.trouble, options)
        for _ in range(draw.randint(0, 25)):
            for _ in range(draw.randint(0, 3)):
                data = draw.randbytes(draw.randint(0, 60))
                self.truth.setdefault(journal.last + 1, []).append(data)
                journal.append(journal.last + 1, data)
            if draw.random() < 0.15:
                await self.take(journal)
            await asyncio.sleep(draw.choice((0, 0, 0.001)))
        promised, snapshot = self.promised, self.snapshot
        ends = draw.choice((self.disk.crash, self.disk.killed))
        after = ends(draw.random())
        self.disk.faults = 0.0
        await journal.close()  # its threads end; what they do has no effect any more
        self.disk, self.promised, self.snapshot = after, promised, snapshot

    async def take(self, journal):
        """A snapshot of now, as a driver takes it: once its records are durable."""
        number = journal.durable
        try:
            await journal.write_snapshot(number, b"state %d" % number)
        except JournalError:
            return
        self.snapshot = number

    def durable(self, number):
        self.promised = number

    def trouble(self, why):
        self.held = bool(why)

    def check(self, found):
        """All that was promised is there, as it was written, and nothing has a gap.

        What was never promised may be there as any life wrote it: the file that was removed comes
        back where the power fails before the folder was synced.
        """
        number = found.snapshot.number if found.snapshot is not None else 0
        assert number >= self.snapshot
        assert number == 0 or found.snapshot.data == b"state %d" % number
        for record in found.records():
            number += 1
            assert record.number == number
            known = self.truth[number]
            assert record.data in (known[-1:] if number <= self.promised else known)
            self.truth[number] = [record.data]
        assert number >= self.promised
        assert found.next_number == number + 1
        self.promised = max(self.promised, number)  # reading it has made it durable
        self.snapshot = max(self.snapshot, found.snapshot.number if found.snapshot else 0)


@pytest.mark.parametrize("seeds", range(10))
def test_what_was_told_to_be_durable_is_there_after_any_loss_of_power(seeds):
    async def scene(seed):
        run = Run(seed)
        for _ in range(CRASHES):
            await run.life()
        run.check(read(FOLDER, run.disk))

    for seed in range(10):
        asyncio.run(scene(100 * seeds + seed))


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seeds", range(10))
def test_what_was_told_to_be_durable_is_there_over_many_seeds(seeds):
    async def scene(seed):
        run = Run(seed)
        for _ in range(CRASHES):
            await run.life()
        run.check(read(FOLDER, run.disk))

    for seed in range(200):
        asyncio.run(scene(10_000 + 1_000 * seeds + seed))
