"""What a reader by event time is told: promises of the texts that stand, and on their disk."""

import asyncio
import json

import pytest

from broker.core.broker import BrokerOptions
from broker.core.messages import (
    CancelRequested,
    EventsReceived,
    Payload,
    SpecificationSubmitted,
)
from broker.core.recovery.durable import DurableBroker
from broker.driver import settled_log as settling
from broker.driver.settled_log import Promised
from broker.engine.limits import Limits
from broker.store import Settled

NOW = 1_700_000_000_000
TEXT = "event A(n: int) event B(n: int) subscription S from x to y detect A as a assign n = a.n"
OTHER = TEXT.replace("detect A", "detect B")


class Site:
    """A core with what is around it; a test says when it is on the disk."""

    at_work = True

    def __init__(self):
        self.durable = DurableBroker(BrokerOptions(), Limits())
        self.waiting = asyncio.Queue()
        self.promised = Promised(self, self.durable, self)

    def now_ms(self):
        return NOW

    def handle(self, message):
        self.durable.handle(message, NOW)

    def settled(self, _number):
        on_disk = asyncio.get_running_loop().create_future()
        self.waiting.put_nowait(on_disk)
        return on_disk

    def submit(self, text):
        self.handle(SpecificationSubmitted("x", "1", text, "here"))

    def send(self, kind, at):
        data = json.dumps({"id": f"{kind}{at}", "timestamp": at}).encode()
        self.handle(EventsReceived((Payload(kind, f"s{kind}", data),)))

    async def asked(self):
        """(what a reader will be told, what is to be on the disk before); the core has promised."""
        answer = asyncio.create_task(self.promised.settled(frozenset(), fresh=True))
        return answer, await asyncio.wait_for(self.waiting.get(), 5)

    async def told(self):
        return (await self.promised.settled(frozenset(), fresh=False)).until_ms


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(settling, "EVERY_S", 0)
    monkeypatch.setattr(settling, "SHARE", 0)


def run(scene):
    async def whole():
        site = Site()
        try:
            await scene(site)
        finally:
            site.promised.close()

    asyncio.run(whole())


def test_a_promise_is_told_once_it_is_on_the_disk():
    async def scene(site):
        site.submit(TEXT)
        site.send("A", NOW)
        answer, on_disk = await site.asked()
        assert await site.told() is None
        on_disk.set_result(None)
        reached = site.durable.core.frontiers.reached["x", "S"]
        assert await answer == Settled(1, reached, "S: A of source sA")
        assert await site.told() == reached

    run(scene)


def test_what_was_promised_of_a_text_is_not_told_of_another_under_its_name():
    """Neither while nothing was promised of that, nor while its own promise is not on the disk."""

    async def scene(site):
        site.submit(TEXT)
        site.send("A", NOW)
        answer, on_disk = await site.asked()
        site.handle(CancelRequested("x", "2", "S", "here"))
        site.submit(OTHER)
        on_disk.set_result(None)
        assert (await answer).until_ms is None
        assert ("x", "S") not in site.durable.core.frontiers.reached
        assert await site.told() is None
        site.send("B", NOW - 10)
        answer, on_disk = await site.asked()
        assert ("x", "S") in site.durable.core.frontiers.reached
        assert await site.told() is None
        on_disk.set_result(None)
        assert (await answer).until_ms == site.durable.core.frontiers.reached["x", "S"]

    run(scene)
