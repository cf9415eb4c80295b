"""How far the log is settled, for who reads it by event time.

Owns when the core is asked, and from when on its answer may be told. Must not know HTTP or event
times. Invariant: what is told holds for the log as it then stands: behind the answer's record, and
behind every result that came before it, nothing waits for a disk. What was promised of a text is
not told of another that took its name.

The core gives a promise when it is asked, and stands by it; so it is asked only while somebody
reads by it, and writes nothing down where it could promise no more than before.
"""

import asyncio
from collections.abc import Mapping
from time import perf_counter
from typing import Final

from broker.core.catalogue import Installed
from broker.core.messages import Settling
from broker.core.recovery.durable import DurableBroker
from broker.driver.promises import Promises
from broker.driver.runner import Runner
from broker.store import Settled

EVERY_S: Final = 0.2  # a reader is told no oftener: each promise is a record, and a sync
SHARE: Final = 50  # and the core is not kept from its work for more than one part in so many


class Promised:
    """The promises of an outbox, as `broker.store.Outbox.promised` gives them."""

    def __init__(self, runner: Runner, core: DurableBroker, promises: Promises) -> None:
        self._runner = runner
        self._durable = core
        self._promises = promises
        self._told: Mapping[tuple[str, str], tuple[Installed, int]] = {}
        self._next_s = 0.0
        self._asking: asyncio.Task[None] | None = None

    async def settled(self, names: frozenset[str], fresh: bool) -> Settled:
        """Of the subscriptions of these names, or of all where there are none."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask(), name="settling")
            self._asking.add_done_callback(lambda task: task.cancelled() or task.exception())
        if fresh:
            await asyncio.shield(self._asking)
        subscriptions = self._durable.core.catalogue.subscriptions
        keys = [key for key in subscriptions if not names or key[1] in names]
        if not keys:
            return Settled(0)
        times = {
            key: time_ms
            for key, (subscription, time_ms) in self._told.items()
            if subscriptions.get(key) is subscription
        }
        none = float("-inf")
        least = min(keys, key=lambda key: (times.get(key, none), key))
        why = self._durable.core.frontiers.waits_for(least)
        return Settled(len(keys), times.get(least), f"{least[1]}: {why}")

    async def _ask(self) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(0.0, self._next_s - loop.time()))
        began_s = perf_counter()
        if self._runner.at_work:
            # One of several brokers sees to it itself, as it has others to ask.
            networked = self._durable.options.networked
            if networked or self._durable.core.frontiers.is_due(self._runner.now_ms()):
                self._runner.handle(Settling())
        subscriptions = self._durable.core.catalogue.subscriptions
        settled = self._durable.core.frontiers.reached
        times = {
            key: (subscription, settled[key])
            for key, subscription in subscriptions.items()
            if key in settled
        }
        took_s = perf_counter() - began_s
        self._next_s = loop.time() + max(EVERY_S, SHARE * took_s)
        await self._promises.settled(self._durable.number)
        self._told = times

    def close(self) -> None:
        """Nobody is told any more."""
        if self._asking is not None:
            self._asking.cancel()
