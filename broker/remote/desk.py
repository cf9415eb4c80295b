"""Asks other brokers, and answers them, on the event loop.

Owns the waiting for replies and the answering by verb. Must not know what a verb means. Invariant:
`ask` returns a reply or raises within `WAIT_S`; what another broker asks is always answered while
this one runs, if only by a refusal.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from broker.network.overlay.calls import CallArrived, CallSent, OpenCalls, RemoteCall, reply_to

WAIT_S: Final = 4.0  # the longest ways of real networks take a second there and back
WAY_S: Final = 2.0  # of these a call may wait for its way
AGAIN_S: Final = 1.0  # what changes nothing is asked again where no reply came for so long
LOOK_S: Final = 0.05  # how often a call that waits for its way looks for it
ANSWERING_MAX: Final = 100  # calls of others that are answered at a time
NO_WAY = "no way leads there"
NO_REPLY = f"no reply in {WAIT_S:g} s"
TOO_MANY = "too many requests wait for other brokers already"

Reply = dict[str, Any]
Answer = Callable[[Mapping[str, Any]], Awaitable[Reply]]

logger = logging.getLogger(__name__)


class UnansweredError(Exception):
    """Another broker gave no reply; the sentence says why. `was_sent`: it may have been asked."""

    def __init__(self, why: str, *, was_sent: bool) -> None:
        super().__init__(why)
        self.was_sent = was_sent


class Reach(Protocol):
    """The network as its calls see it."""

    def reaches(self, to: str) -> bool:
        """Return if a call can leave for a broker."""

    def leads(self, to: str) -> bool:
        """Return if a way to a broker is to come."""


class CallDesk:
    """The asking and answering of broker `me`; `first` is that of its `OpenCalls`.

    `answers` are its own, by verb. `put` has the core handle a message soon; `known` returns the
    names of all brokers of the network.
    """

    def __init__(
        self,
        me: str,
        first: int,
        network: Reach,
        put: Callable[[CallSent], None],
        known: Callable[[], Sequence[str]],
    ) -> None:
        self.answers: dict[str, Answer] = {}
        self._me = me
        self._known = known
        self._network = network
        self._put = put
        self._calls = OpenCalls(me, first)
        self._answering: set[asyncio.Task[None]] = set()

    def others(self) -> list[str]:
        """Return the names of all other brokers of the network."""
        return [name for name in self._known() if name != self._me]

    async def ask(self, to: str, verb: str, **words: Any) -> Reply:
        """Ask broker `to`, once. Raises UnansweredError."""
        return await self._ask(to, _encoded(verb, words), again=False)

    async def read(self, to: str, verb: str, **words: Any) -> Reply:
        """Ask broker `to` for what changes nothing there. Raises UnansweredError.

        It is asked again where no reply comes: a tree that changes loses what travels on it.
        """
        return await self._ask(to, _encoded(verb, words), again=True)

    async def _ask(self, to: str, body: bytes, *, again: bool) -> Reply:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await self._wait_for_way(to, begun + WAY_S)
        future: asyncio.Future[Reply] = loop.create_future()
        call = self._calls.open(to, body, future)
        if call is None:
            raise UnansweredError(TOO_MANY, was_sent=False)
        last = begun + WAIT_S
        try:
            for until in [min(loop.time() + AGAIN_S, last), last] if again else [last]:
                self._put(CallSent(call))
                await asyncio.wait([future], timeout=until - loop.time())
                if future.done():
                    return future.result()
        finally:
            self._calls.drop(call)
        raise UnansweredError(NO_REPLY, was_sent=True)

    async def _wait_for_way(self, to: str, until: float) -> None:
        """Return once a call can leave for broker `to`; it may while the tree leads there."""
        clock = asyncio.get_running_loop().time
        while not self._network.reaches(to):
            if not self._network.leads(to) or clock() >= until:
                raise UnansweredError(NO_WAY, was_sent=False)
            await asyncio.sleep(LOOK_S)

    def receive(self, effect: CallArrived) -> None:
        """Take in a reply, or begin to answer a call."""
        call = effect.call
        if call.is_reply:
            future = self._calls.close(call)
            if future is not None and not future.done():
                future.set_result(_decoded(call.body))
        elif len(self._answering) < ANSWERING_MAX:
            task = asyncio.create_task(self._answer(call), name="call")
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        else:
            self._put(CallSent(reply_to(call, msgspec.json.encode(_refusal(TOO_MANY)))))

    async def _answer(self, call: RemoteCall) -> None:
        question = _decoded(call.body)
        answer = self.answers.get(str(question.get("verb")))
        try:
            if answer is None:
                reply = _refusal("it does not understand the question; is its version older?")
            else:
                reply = await answer(question)
        except (LookupError, TypeError, ValueError, msgspec.MsgspecError):
            logger.exception("a call of %s cannot be answered", call.sender)
            reply = _refusal("it failed on the question; its log says more")
        self._put(CallSent(reply_to(call, msgspec.json.encode(reply))))


def _encoded(verb: str, words: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode({"verb": verb, **words})


def _decoded(body: bytes) -> Reply:
    """Return the body of a call as an object; an empty one where it is none."""
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


def _refusal(message: str) -> Reply:
    return {"ok": False, "errors": [{"message": message}]}
