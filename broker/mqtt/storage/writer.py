"""Takes the batches of a hub to the disk: one at a time, whatever has gathered meanwhile the next.

Owns the way between a hub's keeping and a store. Must not know sessions or SQL. Invariant: batches
are carried out in their order, and one that was not is tried again until it is, joined by what came
after it: nobody is told that anything is durable before.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from broker.mqtt.storage.batches import HubStorage
from broker.mqtt.storage.rows import Batch
from broker.store import Store, StoreError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from broker.mqtt.hub import Hub

AGAIN_S = 1.0  # a fault of ours on a batch is no reason to try it all the time

logger = logging.getLogger(__name__)


class Writing:
    """Between a keeping and a store; all methods belong to the loop's thread.

    `durable` is told the number of the last batch that is on disk.
    """

    def __init__(self, keeping: HubStorage, store: Store, durable: Callable[[int], None]) -> None:
        self._keeping = keeping
        self._store = store
        self._durable = durable
        self._loop = asyncio.get_running_loop()
        self._under_way: Batch | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._again: asyncio.TimerHandle | None = None
        self._told = False

    async def restore(self, hub: "Hub", now_ms: int) -> None:
        """Have the hub go on with what is on disk. Raises StoreError."""
        from broker.mqtt.storage.restoration import restore
        from broker.mqtt.storage.tables import load

        kept = await self._store.read(load)
        try:
            restore(hub, kept, now_ms)
        except (LookupError, ValueError, msgspec.DecodeError) as error:
            raise StoreError(
                f"{self._store.name} holds MQTT sessions that cannot be understood; restore it, or "
                "move it away to begin anew"
            ) from error

    def look(self) -> None:
        """Begin to write what has gathered, unless something is being written."""
        keeping = self._keeping
        while self._under_way is None and self._again is None:
            if keeping.batch.rows:
                self._submit()
            elif keeping.awaited >= keeping.number:
                self._durable(keeping.take()[0])  # what somebody waits for came and went
            else:
                break

    async def drain(self, patience_s: float) -> None:
        """Wait until all is on disk, for a while."""
        try:
            async with asyncio.timeout(patience_s):
                self.look()
                await self._idle.wait()
        except TimeoutError:
            logger.warning("what MQTT clients were not told yet could not be written in time")
        if self._again is not None:
            self._again.cancel()

    def _submit(self) -> None:
        from broker.mqtt.storage.tables import write

        self._again = None
        number, batch = self._keeping.take()
        self._under_way = batch
        self._idle.clear()

        def work(connection: "Connection") -> None:
            write(connection, batch)

        try:
            self._store.submit(work, lambda error: self._done(number, error), batch.size_bytes)
        except StoreError as error:  # it is closed: the process ends
            self._done(number, error)

    def _done(self, number: int, error: BaseException | None) -> None:
        batch, self._under_way = self._under_way, None
        assert batch is not None
        if error is None:
            self._keeping.written(batch)
            self._durable(number)
        else:
            self._keeping.put_back(batch)
            if not self._told:
                self._told = True
                logger.error("sessions of MQTT clients could not be written", exc_info=error)
            self._again = self._loop.call_later(AGAIN_S, self._submit)
            return
        self.look()
        if self._under_way is None:
            self._idle.set()


def wall_ms(loop: asyncio.AbstractEventLoop) -> int:
    """Return the wall clock's lead over the loop's clock, in ms."""
    return int((time.time() - loop.time()) * 1000)
