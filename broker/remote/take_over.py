"""Having this broker take over a home that is lost, by a person's word.

Owns the question to all other brokers whose copy of the home is the latest. Must not know what a
copy holds or how it is adopted. Invariant: a broker takes over only if no broker that can be asked
has a later copy, unless it is forced to; whoever asked is told who has one.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from broker.core import refusals
from broker.core.network.messages import TakeOverRequested
from broker.core.refusals import Trouble, refused, trouble
from broker.remote.desk import CallDesk, Reply, UnansweredError

Place: TypeAlias = tuple[int, int]  # the run of the home, and the change within it
Places: TypeAlias = dict[str, Place]


class HomeTakeOver:
    """The take-overs of broker `me`; `places` returns how far its copies of homes are."""

    def __init__(
        self, me: str, put: Callable[[TakeOverRequested], None], places: Callable[[], Places]
    ) -> None:
        self._me = me
        self._put = put
        self._places = places
        self._calls: CallDesk | None = None

    def link(self, calls: CallDesk) -> None:
        """Ask the other brokers from now on, and answer them."""
        self._calls = calls
        calls.answers["copies"] = self._asked

    async def take_over(self, home: str, client: str, *, is_forced: bool) -> Reply:
        """Take over a home; the reply comes once that is on this broker's disk."""
        if self._calls is None:  # a broker without links stands in for nobody
            words = {"home": f"`{home}`", "me": f"`{self._me}`"}
            return _refusal(trouble(refusals.NO_COPY, **words))
        own = self._places().get(home)
        holder, place = await self._latest(home)
        if home != self._me and place is not None and (own is None or place > own):
            words = {"home": f"`{home}`", "me": f"`{self._me}`", "holder": f"`{holder}`"}
            if own is None or not is_forced:
                return _refusal(trouble(refusals.LATER_COPY, **words))
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._put(TakeOverRequested(home, client, is_forced, future))
        return msgspec.json.decode(await future, type=dict[str, Any])

    async def _latest(self, home: str) -> tuple[str, Place | None]:
        """Return the other broker with the latest copy of a home, and how far that is."""
        others = [] if self._calls is None else self._calls.others()
        places = await asyncio.gather(*[self._places_of(name) for name in others])
        copies = [
            (homes[home], name) for name, homes in zip(others, places, strict=True) if home in homes
        ]
        return (max(copies)[1], max(copies)[0]) if copies else ("", None)

    async def _places_of(self, broker: str) -> Places:
        """Return how far another broker's copies are; nothing where it cannot be asked."""
        assert self._calls is not None
        try:
            reply = await self._calls.ask(broker, "copies")
            return msgspec.convert(reply.get("homes", {}), Places)
        except (UnansweredError, msgspec.ValidationError):
            return {}

    async def _asked(self, _question: Mapping[str, Any]) -> Reply:
        return {"homes": self._places()}


def _refusal(why: Trouble) -> Reply:
    return msgspec.json.decode(refused([why]).payload(), type=dict[str, Any])
