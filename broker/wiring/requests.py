"""Requests on their way to the core: texts are checked in a thread, one at a time.

Owns the line of requests and the thread. Must not judge a text: `language` does. Invariant:
requests reach the core in the order of arrival; the line is bounded, and who finds it full is told.

Checking a long text takes seconds, which the event loop must not wait for. What arrives while one
is checked waits too, but not for longer than `HOLD_S_MAX`: so that events sent right after a
submission are seen by it, and a large text does not stop a broker.
"""

import asyncio
import logging
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import msgspec
from msgspec.structs import replace

from broker.core import refusals
from broker.core.effects import Acknowledge, Effect, Reply
from broker.core.installer import reader_of
from broker.core.limits import Limits
from broker.core.messages import CancelRequested, Message, RequestRefused, SpecificationSubmitted
from broker.wiring.arrivals import ListRequested, Request
from broker.wiring.listed import listed
from broker.wiring.runner import Runner
from language import Checked, check_text

WAITING_MAX = 100  # requests come from people and scripts
WAITING_CHARS_MAX = 8_388_608  # of all texts that wait
HOLD_S_MAX = 1.0

logger = logging.getLogger(__name__)


class Requests:
    """The line; `serve` is its task."""

    def __init__(self, runner: Runner, limits: Limits) -> None:
        self._runner = runner
        self._text_chars_max = limits.specification_bytes_max
        self._reader = reader_of(runner.core.options.tables)
        self._functions = runner.core.functions
        self._waiting: deque[Request] = deque()
        self._waiting_chars = 0
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="check")
        self._holding = False
        self._patience: asyncio.TimerHandle | None = None

    def put(self, request: Request) -> None:
        """Take a request, or refuse it where too many wait."""
        size = _size(request)
        if len(self._waiting) >= WAITING_MAX or self._waiting_chars + size > WAITING_CHARS_MAX:
            self._runner.put(_refused(request, refusals.BUSY))
            return
        self._waiting.append(request)
        self._waiting_chars += size
        self._arrived.set()
        self._hold()

    async def serve(self) -> None:
        """Hand on what comes, until cancelled."""
        try:
            while True:
                await self._arrived.wait()
                while self._waiting:
                    # Taken off the line only when it is done: until then it fills its place.
                    request = self._waiting[0]
                    if isinstance(request, ListRequested):
                        await self._runner.running()
                        self._off_the_line()
                        self._runner.perform(self._told(request))
                    else:
                        message = await self._prepared(request)
                        await self._runner.running()
                        self._off_the_line()
                        self._runner.handle(message)
                self._arrived.clear()
                self._let_go()
        finally:
            self._let_go()
            self._thread.shutdown(wait=False, cancel_futures=True)

    def _off_the_line(self) -> None:
        self._waiting_chars -= _size(self._waiting.popleft())

    async def _prepared(self, request: SpecificationSubmitted | CancelRequested) -> Message:
        if isinstance(request, CancelRequested) or len(request.text) > self._text_chars_max:
            return request
        loop = asyncio.get_running_loop()
        try:
            check = partial(
                check_text, request.text, functions=self._functions, tables=self._reader
            )
            checked: Checked = await loop.run_in_executor(self._thread, check)
        except Exception:
            logger.exception("checking a text failed")
            return _refused(request, refusals.DEFECT)
        return replace(request, checked=checked)

    def _told(self, request: ListRequested) -> list[Effect]:
        """The subscriptions, in answer to whom they were asked by."""
        found = {"ok": True, "subscriptions": listed(self._runner.core)}
        answer = msgspec.json.encode(found)
        tokens = () if request.token is None else (request.token,)
        return [
            Reply(request.reply_to, request.client, request.request, answer),
            Acknowledge(tokens),
        ]

    def _hold(self) -> None:
        """Once for the whole line, so that many texts do not add up."""
        if self._patience is None:
            self._holding = True
            self._runner.hold()
            loop = asyncio.get_running_loop()
            self._patience = loop.call_later(HOLD_S_MAX, self._release)

    def _release(self) -> None:
        if self._holding:
            self._holding = False
            self._runner.release()

    def _let_go(self) -> None:
        """The line is empty."""
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        self._release()


def _size(request: Request) -> int:
    if isinstance(request, ListRequested):
        return 0
    return len(request.text) if isinstance(request, SpecificationSubmitted) else len(request.name)


def _refused(request: Request, code: str) -> RequestRefused:
    return RequestRefused(request.client, request.request, code, request.reply_to, request.token)
