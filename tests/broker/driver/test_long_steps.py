"""What makes much work is done in slices, between which the loop serves others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from broker.core.broker import Broker
from broker.core.effects import Acknowledge, Emission, Emit, Reply
from broker.core.messages import EventsReceived, Payload, SpecificationSubmitted
from broker.driver.mqtt_face import RESULTS_EACH, Delivery
from broker.driver.runner import Runner
from broker.network.effects import Note

TYPES = "event Fill(n: int)\nevent Go(n: int)\n"
EACH = "subscription S{0} from me to you detect Fill as f and Go as g within 1 h\n"
AGENTS, FILLS = 4, 60
SLICE = 1_000  # candidates: ten results


class Outside:
    """Take what leaves the core."""

    def __init__(self) -> None:
        self.effects: list[Any] = []
        self.failed: list[Any] = []
        self.held: list[bool] = []
        self.publish = self.emit = self.reply = self.acknowledge = self.note = self.effects.append

    def fail(self, tokens: list[Any]) -> None:
        self.failed += tokens

    def hold(self, *, on: bool) -> None:
        self.held.append(on)

    def of(self, kind: type[Any]) -> list[Any]:
        return [effect for effect in self.effects if isinstance(effect, kind)]


def received(type_name: str, rows: list[dict[str, Any]], token: Any = None) -> EventsReceived:
    return EventsReceived((Payload(type_name, "s", json.dumps(rows).encode(), token),))


GO = received("Go", [{"n": 1}], "go")


def with_much_to_do(scene: Callable[[Outside, Runner], Awaitable[None]]) -> None:
    """Run a scene with a runner to whose core `GO` is work of many slices."""

    async def run() -> None:
        outside, core = Outside(), Broker()
        runner = Runner(core, outside)
        text = TYPES + "".join(map(EACH.format, range(AGENTS)))
        runner.handle(SpecificationSubmitted("me", "1", text, "here"))
        runner.handle(received("Fill", [{"n": number} for number in range(FILLS)]))
        core.budget.cut(SLICE)
        outside.effects.clear()
        try:
            async with asyncio.timeout(10):
                await scene(outside, runner)
        finally:
            runner.close()

    asyncio.run(run())


def results_of(outside: Outside) -> list[Emission]:
    return [one for emit in outside.of(Emit) for one in emit.results]


def test_the_loop_turns_between_slices_while_intake_is_held() -> None:
    async def scene(outside: Outside, runner: Runner) -> None:
        runner.handle(GO)
        assert outside.held == [True]
        assert not runner.at_work
        turns = 0
        while not outside.effects and turns < 1_000:
            turns += 1
            await asyncio.sleep(0)
        assert turns > AGENTS * FILLS // 10  # of ten results each, and those between agents
        assert len(results_of(outside)) == AGENTS * FILLS
        assert [one.tokens for one in outside.of(Acknowledge)] == [("go",)]
        assert outside.held == [True, False]
        assert runner.at_work

    with_much_to_do(scene)


def test_what_comes_meanwhile_waits_for_the_end() -> None:
    async def scene(outside: Outside, runner: Runner) -> None:
        runner.add(GO)
        runner.add(received("Fill", [{"n": 1}], "read with it"))
        runner.flush()
        runner.put(received("Fill", [{"n": 2}], "later"))
        await asyncio.sleep(0)
        assert outside.effects == []
        await runner.running()
        await asyncio.sleep(0)
        tokens = [one.tokens for one in outside.of(Acknowledge)]
        assert tokens == [("go",), ("read with it",), ("later",)]

    with_much_to_do(scene)


def test_who_asks_for_the_state_gets_it_behind_the_end() -> None:
    """A snapshot amid a message would be that of no record."""

    async def scene(outside: Outside, runner: Runner) -> None:
        runner.handle(GO)
        asking = [asyncio.create_task(ask()) for ask in (runner.running, runner.idle)]
        await asyncio.sleep(0)
        assert not any(one.done() for one in asking)
        await asyncio.gather(*asking)
        assert len(results_of(outside)) == AGENTS * FILLS

    with_much_to_do(scene)


def test_who_cannot_wait_has_it_ended_first() -> None:
    async def scene(outside: Outside, runner: Runner) -> None:
        runner.handle(GO)
        runner.handle(SpecificationSubmitted("me", "2", TYPES + EACH.format(9), "here"))
        kinds = [type(one) for one in outside.effects if not isinstance(one, Note)]
        assert kinds == [Emit, Acknowledge, Reply, Reply]
        await asyncio.sleep(0.01)
        assert len(outside.of(Emit)) == 1, "it is not done twice"
        assert len(results_of(outside)) == AGENTS * FILLS
        assert outside.held == [True, False]

    with_much_to_do(scene)


def test_at_the_end_nothing_is_left_under_way() -> None:
    async def scene(outside: Outside, runner: Runner) -> None:
        runner.add(received("Fill", [{"n": 1}], "before"))
        runner.add(GO)
        runner.add(received("Fill", [{"n": 2}], "behind"))
        runner.flush()
        runner.hold()
        runner.settle()
        tokens = [one.tokens for one in outside.of(Acknowledge)]
        assert tokens == [("before",), ("go",), ("behind",)]

    with_much_to_do(scene)


def test_a_fault_amid_the_work_is_told_and_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene(outside: Outside, runner: Runner) -> None:
        work = runner.core.work

        def failing(message: Any, now: int) -> Any:
            yield from work(message, now)
            raise RuntimeError("planted")

        monkeypatch.setattr(runner.core, "work", failing)
        runner.handle(GO)
        assert (runner.faults, outside.failed) == (0, [])
        await runner.running()
        assert (runner.faults, outside.failed) == (1, ["go"])
        assert outside.held == [True, False]
        monkeypatch.setattr(runner.core, "work", work)
        runner.handle(received("Fill", [{"n": 1}], "next"))
        assert [one.tokens for one in outside.of(Acknowledge)] == [("next",)]

    with_much_to_do(scene)


class Server:
    """Take what is published."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.marks: list[int] = []

    def heard(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return names[:1]

    def publish(self, _topic: str, payload: bytes, *_: Any) -> None:
        self.sent.append(payload)

    def mark_results(self, offset: int) -> None:
        self.marks.append(offset)


def emission(number: int) -> Emission:
    return Emission(str(number), 0, "me", "S", "you", b"%d" % number, number)


def test_many_results_go_out_in_slices_and_in_order() -> None:
    async def scene() -> None:
        server: Any = Server()
        delivery = Delivery(server, "headwater")
        many = 2 * RESULTS_EACH + 1
        delivery.emit(Emit(tuple(map(emission, range(many)))))
        delivery.emit(Emit((emission(many),)))
        assert server.sent == []
        counts = []
        for _ in range(4):
            await asyncio.sleep(0)
            counts.append(len(server.sent))
        assert counts == [RESULTS_EACH, 2 * RESULTS_EACH, many, many + 1]
        assert server.sent == [b"%d" % number for number in range(many + 1)]
        assert server.marks == counts
        delivery.emit(Emit((emission(many + 1),)))
        assert len(server.sent) == many + 2, "few go out at once"
        delivery.emit(Emit(tuple(map(emission, range(many)))))
        delivery.flush()
        assert len(server.sent) == 2 * many + 2
        await asyncio.sleep(0)
        assert len(server.sent) == 2 * many + 2

    asyncio.run(scene())
