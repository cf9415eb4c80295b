"""How each route of the log is answered.

Owns the translation between HTTP and the log. Must not know databases. Invariant: an answer to a
range is the whole range or a refusal that says what can be had; and nobody is made to wait longer,
or is sent more, than the bounds here.
"""

import asyncio
import functools
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
from aiohttp import web

from broker.http.guard import Handler
from broker.http.log_facade import ResultLog
from broker.http.log_formats import ARROW, ARROW_TYPE, FORMATS, TEXTUAL
from broker.http.pages import (
    COLUMNS,
    PAGE_OFFSETS,
    PAGES_BYTES_MAX,
    USUAL,
    KeptPages,
    MissingLibraryError,
    PageSelection,
)
from broker.http.pages.columns import Kind, value_columns
from broker.store import (
    Consumer,
    ConsumersFullError,
    GoneError,
    NotYetError,
    Settled,
    Standing,
    StoreError,
    TooLargeError,
)

ROWS_MAX: Final = PAGE_OFFSETS  # offsets of one range; the answer is built in memory
RANGE_BYTES_MAX: Final = 8 * 2**20  # of its payloads, for the same reason
WAIT_S_MAX: Final = 60.0  # proxies and clients take a longer silence for a dead connection
SETTLED_S: Final = 5.0  # for a promise to be written down; past that it is told what was before
WAITING_MAX: Final = 200  # who asks to wait beyond that is answered at once, and may ask again
CONSUMER_LENGTH_MAX: Final = 128
OWN: Final = "join:"  # so begin the names under which the broker itself reads its log
ELSEWHERE_ROWS: Final = 200  # writing more rows than that would hold the event loop up
SUBSCRIPTIONS_MAX: Final = 100  # named by one request for a page
COLUMNS_MAX: Final = 200  # of one page
NO_LOG: Final = "this broker keeps no results: it has no data directory (broker.data_dir)"

_WHOLE = re.compile(r"\d{1,100}", re.ASCII)
_SIGNED = re.compile(r"-?\d{1,18}", re.ASCII)
_BEYOND_ALL: Final = 2**63 - 1  # no log gets so far; what is beyond is as far away
_SECONDS = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)


class _RefusedError(Exception):
    """A request that gets no answer but this."""

    def __init__(self, status: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.response = _json(
            {"ok": False, "errors": [{"message": message}]} | more,
            status,
        )


def _json(body: object, status: int = 200) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(body), status=status, content_type="application/json"
    )


def _told(method: Callable[..., Awaitable[web.Response]]) -> Any:
    """Refusals and failures of the log as answers."""

    @functools.wraps(method)
    async def answered(self: "LogHandlers", request: web.Request) -> web.Response:
        try:
            return await method(self, request)
        except _RefusedError as refused:
            return refused.response
        except GoneError as error:
            return _refusal(410, error, error.standing)
        except NotYetError as error:
            return _refusal(416, error, error.standing)
        except TooLargeError as error:
            return _RefusedError(413, str(error), fits=error.fits).response
        except StoreError as error:
            return _RefusedError(503, str(error)).response

    return answered


def _refusal(status: int, error: StoreError, log: Standing) -> web.Response:
    more = {"epoch": log.epoch, "earliest": log.earliest, "end": log.end}
    return _RefusedError(status, str(error), **more).response


ValueTypes = Callable[[str], Awaitable[Mapping[str, str] | None]]
"""The types of what a subscription assigns, by name; None: it is not installed, or has none."""


async def _no_types(_subscription: str) -> None:
    """Types where nobody can tell them: values are JSON."""


class LogHandlers:
    """One coroutine for each row of the table of the log's routes, under the row's name."""

    def __init__(
        self,
        log: ResultLog | None,
        broker: Callable[[], str] = str,
        types: ValueTypes | None = None,
        pages_bytes_max: int = PAGES_BYTES_MAX,
    ) -> None:
        self._kept = log
        self._broker = broker
        self._pages_bytes_max = pages_bytes_max
        self._pages: KeptPages | None = None
        self._types = types or _no_types
        self._waiting: dict[asyncio.Timeout, None] = {}

    def by_name(self, name: str) -> Handler:
        """The handler of a route."""
        handler: Handler = getattr(self, name)
        return handler

    async def shutdown(self, _app: web.Application) -> None:
        """Answer all who wait, as this is the end."""
        now = asyncio.get_running_loop().time()
        for deadline in self._waiting:
            deadline.reschedule(now)

    def _log(self, request: web.Request) -> ResultLog:
        """The log; refuses where there is none, or another than the request means."""
        log = self._kept
        if log is None:
            raise _RefusedError(503, NO_LOG)
        epoch = request.query.get("epoch")
        if epoch is not None and epoch != log.epoch:
            message = "the log is another one: offsets of the epoch asked for mean nothing here"
            raise _RefusedError(409, message, epoch=log.epoch, earliest=log.earliest, end=log.end)
        return log

    @_told
    async def log_offsets(self, request: web.Request) -> web.Response:
        """Answer where the log begins and ends; with `after`, once it has gone on from there."""
        log = self._log(request)
        after = _number(request, "after", None)
        until_ms = _number(request, "settled", None, form=_SIGNED)
        wait_s = _wait_s(request) if len(self._waiting) < WAITING_MAX else 0.0
        names = frozenset(filter(None, request.query.get("subscriptions", "").split(",")))
        promised: Settled | None = None
        if until_ms is not None:
            promised = await self._settled(log, names, (after, until_ms), wait_s)
        elif after is not None and wait_s and log.end == after:
            async with self._at_most(wait_s):
                await log.beyond(after)
        answer: dict[str, Any] = {"epoch": log.epoch, "earliest": log.earliest, "end": log.end}
        answer["rows_max"] = ROWS_MAX
        if inherited := log.inherited(log.end):
            answer["inherited"] = inherited
        if promised is not None:
            answer["settled"] = promised.until_ms
            answer["subscriptions"] = promised.subscriptions
            answer["behind"] = promised.behind
        return _json(answer)

    async def _settled(
        self, log: ResultLog, names: frozenset[str], known: tuple[int | None, int], wait_s: float
    ) -> Settled | None:
        """The promise; with a place to wait at, once that or the log has gone on."""
        after, until_ms = known
        waits = bool(wait_s) and after is not None
        settled = await log.settled(names, fresh=False)
        async with self._at_most(wait_s or SETTLED_S):
            if not waits:
                settled = await log.settled(names, fresh=True)
            while waits and log.end == after and not _is_past(settled, until_ms):
                moved = asyncio.ensure_future(log.beyond(after or 0))
                renewed = asyncio.ensure_future(log.settled(names, fresh=True))
                try:
                    await asyncio.wait((moved, renewed), return_when=asyncio.FIRST_COMPLETED)
                    if renewed.done():
                        settled = renewed.result()
                    if settled is None:  # nothing of that can be told, so that no more will come
                        await moved
                finally:
                    moved.cancel()
                    renewed.cancel()
        return settled

    @asynccontextmanager
    async def _at_most(self, wait_s: float) -> AsyncIterator[None]:
        """Wait no longer than that, nor past the end of this process."""
        deadline = asyncio.timeout(wait_s)
        self._waiting[deadline] = None
        try:
            async with deadline:
                yield
        except TimeoutError:
            pass
        finally:
            del self._waiting[deadline]

    @_told
    async def log_range(self, request: web.Request) -> web.Response:
        """Exactly the results of the range."""
        log = self._log(request)
        begin, end = _number(request, "from"), _number(request, "to")
        if end < begin:
            raise _RefusedError(400, f"`to` is {end}: it must not be less than `from`, {begin}")
        if end - begin > ROWS_MAX:
            for edge in (begin, end):  # what is gone or not there yet does not come by asking less
                await log.read(edge, edge)
            fits = begin + ROWS_MAX
            message = f"a range has at most {ROWS_MAX} offsets; ask for {begin} up to {fits} first"
            raise _RefusedError(413, message, fits=fits)
        name = request.query.get("format", "json")
        if name not in FORMATS:
            raise _RefusedError(400, f"`format` is {name[:40]}; there are {', '.join(FORMATS)}")
        if name == ARROW:
            return await self._page(request, log, begin, end)
        content_type, render = TEXTUAL[name]
        rows = await log.read(begin, end, RANGE_BYTES_MAX)
        if len(rows) > ELSEWHERE_ROWS:
            body = await asyncio.to_thread(render, log.epoch, begin, end, rows)
        else:
            body = render(log.epoch, begin, end, rows)
        return web.Response(body=body, content_type=content_type)

    async def _page(
        self, request: web.Request, log: ResultLog, begin: int, end: int
    ) -> web.Response:
        """Answer the range in columns."""
        if self._pages is None:
            self._pages = KeptPages(log, self._broker(), self._pages_bytes_max)
        selection = await self._selection(request)
        try:
            body = await self._pages.page(begin, end, selection, RANGE_BYTES_MAX)
        except MissingLibraryError as error:
            raise _RefusedError(406, str(error)) from None
        return web.Response(body=body, content_type=ARROW_TYPE)

    async def _selection(self, request: web.Request) -> PageSelection:
        """Read from the request which columns of which subscriptions a page shows."""
        packing = request.query.get("compression", "none")
        if packing not in ("none", "lz4"):
            raise _RefusedError(400, f"`compression` is {packing[:40]}; there are none, lz4")
        names = tuple(dict.fromkeys(request.query.getall("subscription", [])))
        if len(names) > SUBSCRIPTIONS_MAX:
            message = f"`subscription` is named {len(names)} times, at most {SUBSCRIPTIONS_MAX}"
            raise _RefusedError(400, message)
        asked = tuple(dict.fromkeys(filter(None, request.query.get("columns", "").split(","))))
        typed: Mapping[str, tuple[str, str, Kind]] = {}
        if len(names) == 1 and (not asked or not COLUMNS.keys() >= set(asked)):
            typed = value_columns(await self._types(names[0]) or {})
        columns = asked or (*(name for name in USUAL if name != "values" or not typed), *typed)
        if len(columns) > COLUMNS_MAX:
            raise _RefusedError(400, f"a page has at most {COLUMNS_MAX} columns: name `columns`")
        for column in columns:
            if column not in COLUMNS and column not in typed:
                names_all = ", ".join((*COLUMNS, *typed))
                message = f"`columns`: there is no {column[:40]}; there are {names_all}"
                raise _RefusedError(400, message)
        values = tuple(typed[name] for name in columns if name in typed)
        return PageSelection(columns, tuple(sorted(names)), values, packing == "lz4")

    @_told
    async def log_ack(self, request: web.Request) -> web.Response:
        """A consumer has everything before an offset."""
        log = self._log(request)
        consumer, offset = _consumer(request.query.get("consumer")), _number(request, "offset")
        try:
            acknowledged = await log.acknowledge(consumer, offset, time.time_ns() // 1_000_000)
        except ConsumersFullError as full:
            raise _RefusedError(503, str(full)) from None
        return _json({"epoch": log.epoch} | _shown(acknowledged))

    @_told
    async def log_consumers(self, request: web.Request) -> web.Response:
        """Answer who reads, how far each has come, and what it missed."""
        log = self._log(request)
        return _json({"epoch": log.epoch, "consumers": [_shown(c) for c in await log.consumers()]})

    @_told
    async def log_forget(self, request: web.Request) -> web.Response:
        """Nothing is kept for a consumer any more."""
        log = self._log(request)
        name = request.match_info["name"]
        if not await log.forget(name):
            raise _RefusedError(404, f"there is no consumer {name[:CONSUMER_LENGTH_MAX]}")
        return _json({"ok": True})

    @_told
    async def log_ts_at(self, request: web.Request) -> web.Response:
        """The event time that the log has reached at an offset."""
        log = self._log(request)
        offset = _number(request, "offset")
        return _json({"epoch": log.epoch, "offset": offset, "ts": await log.ts_at(offset)})

    @_told
    async def log_earliest_end(self, request: web.Request) -> web.Response:
        """Answer how early in event time what stands from an offset on may end."""
        log = self._log(request)
        offset, after_ms = _number(request, "offset"), _number(request, "ts", form=_SIGNED)
        end_ms = await log.earliest_end(offset, after_ms)
        return _json({"epoch": log.epoch, "offset": offset, "ts": end_ms})

    @_told
    async def log_first_offset_after(self, request: web.Request) -> web.Response:
        """The first offset beyond an event time."""
        log = self._log(request)
        ts_ms = _number(request, "ts", form=_SIGNED)
        return _json(
            {"epoch": log.epoch, "ts": ts_ms, "offset": await log.first_offset_after(ts_ms)}
        )


def _is_past(promised: Settled | None, until_ms: int) -> bool:
    reached_ms = None if promised is None else promised.until_ms
    return reached_ms is not None and reached_ms > until_ms


def _shown(one: Consumer) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "consumer": one.name,
        "offset": one.offset,
        "acked_at": one.acked_ms,
        "missed": one.missed,
    }
    if one.missed:
        shown["gap"] = {"from": one.gap_begin, "to": one.gap_end}
    return shown


def _consumer(name: str | None) -> str:
    if not name or len(name) > CONSUMER_LENGTH_MAX or not name.isprintable():
        wanted = f"a name of 1 to {CONSUMER_LENGTH_MAX} printable characters"
        raise _RefusedError(400, f"`consumer` is needed: {wanted}")
    if name.startswith(OWN):
        raise _RefusedError(400, f"`consumer`: names that begin with {OWN} are the broker's own")
    return name


def _wait_s(request: web.Request) -> float:
    text = request.query.get("wait", "0")
    if not _SECONDS.fullmatch(text):
        raise _RefusedError(400, f"`wait` is {text[:40]}: expected seconds, such as 5 or 0.5")
    return min(float(text), WAIT_S_MAX)


def _number(
    request: web.Request, name: str, *otherwise: None, form: re.Pattern[str] = _WHOLE
) -> Any:
    text = request.query.get(name)
    if text is None:
        if otherwise:
            return None
        raise _RefusedError(400, f"`{name}` is needed: a whole number")
    if not form.fullmatch(text):
        wanted = "a whole number" if form is _WHOLE else "a whole number of at most 18 digits"
        raise _RefusedError(400, f"`{name}` is {text[:40]}: expected {wanted}")
    return min(int(text), _BEYOND_ALL)
