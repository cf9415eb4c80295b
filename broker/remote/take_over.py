"""Having this broker take over a home that is lost, by a person's word.

Owns the question to all other brokers whose copy of the home is the latest. Must not know what a
copy holds or how it is adopted. Invariant: a broker takes over only if no broker that can be asked
has a later copy, unless it is forced to; whoever asked is told who has one.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from broker.core import refusals
from broker.core.refusals import Trouble, refused, trouble
from broker.network.frames.messages import TakeOverRequested
from broker.remote.desk import CallDesk, Reply
from broker.remote.home_copies import HomeCopies


class HomeTakeOver:
    """The take-overs of broker `me`."""

    def __init__(self, me: str, put: Callable[[TakeOverRequested], None]) -> None:
        self._me = me
        self._put = put
        self._calls: CallDesk | None = None
        self._copies: HomeCopies | None = None

    def link(self, calls: CallDesk, copies: HomeCopies) -> None:
        """Ask the other brokers from now on."""
        self._calls, self._copies = calls, copies

    async def take_over(self, home: str, client: str, *, is_forced: bool) -> Reply:
        """Take over a home; the reply comes once that is on this broker's disk."""
        if (
            self._calls is None or self._copies is None
        ):  # a broker without links stands in for nobody
            words = {"home": f"`{home}`", "me": f"`{self._me}`"}
            return _refusal(trouble(refusals.NO_COPY, **words))
        own = self._copies.places().get(home)
        latest = await self._copies.latest([home], self._calls.others())
        holder, place = latest.get(home, ("", None))
        if home != self._me and place is not None and (own is None or place > own):
            words = {"home": f"`{home}`", "me": f"`{self._me}`", "holder": f"`{holder}`"}
            if own is None or not is_forced:
                return _refusal(trouble(refusals.LATER_COPY, **words))
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._put(TakeOverRequested(home, client, is_forced, future))
        return msgspec.json.decode(await future, type=dict[str, Any])


def _refusal(why: Trouble) -> Reply:
    return msgspec.json.decode(refused([why]).payload(), type=dict[str, Any])
