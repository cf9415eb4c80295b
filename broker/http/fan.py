"""Live results to many followers, each with a bounded queue of its own.

Owns the queues. Must not know what a result means beyond its subscription's name. Invariant: a
follower that does not keep up is cut off and told so; it never slows the broker or another one.
"""

import asyncio
from collections import deque
from collections.abc import Callable

JSON_LINE_END = b"\n"


class FollowersFullError(Exception):
    """No further follower is taken."""


class Follower:
    """One reader of live results. Use `take` in a loop until it returns nothing, then `close`."""

    def __init__(
        self,
        fan: "ResultFan",
        subscription: str | None,
        queue_max: int,
        may_see: Callable[[str, str], bool],
    ) -> None:
        self.subscription = subscription
        self.may_see = may_see
        self.overflowed = False
        self._fan = fan
        self._queue_max = queue_max
        self._lines: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._ended = False

    async def take(self) -> list[bytes]:
        """Return what has come since the last call, waiting for the first; empty at the end.

        Each item is one result as JSON without its line end. `overflowed` then tells whether the
        end came because this follower was too slow.
        """
        await self._wake.wait()
        lines = list(self._lines)
        self._lines.clear()
        if not self._ended:
            self._wake.clear()
        return lines

    def close(self) -> None:
        """No more results are wanted, or none will come."""
        self._ended = True
        self._wake.set()
        self._fan.forget(self)

    def offer(self, line: bytes) -> None:
        """Puts one result into the queue; where it is full, the follower ends."""
        if len(self._lines) >= self._queue_max:
            self.overflowed = True
            self.close()
            return
        self._lines.append(line)
        self._wake.set()


class ResultFan:
    """Hands each published result to those who follow its subscription. For one event loop."""

    def __init__(self, followers_max: int, queue_max: int) -> None:
        self.overflows = 0
        self._followers_max = followers_max
        self._queue_max = queue_max
        self._followers: dict[Follower, None] = {}

    def __len__(self) -> int:
        return len(self._followers)

    def follow(
        self,
        subscription: str | None = None,
        may_see: Callable[[str, str], bool] = lambda _subscriber, _subscription: True,
    ) -> Follower:
        """Add a follower of a subscription; None: of all. Raises FollowersFullError.

        `may_see` says if it may have results, given a subscriber and a subscription's name.
        """
        if len(self._followers) >= self._followers_max:
            raise FollowersFullError(
                f"{self._followers_max} clients follow results already (http_limits.streams_max)"
            )
        follower = Follower(self, subscription, self._queue_max, may_see)
        self._followers[follower] = None
        return follower

    def publish(self, subscriber: str, subscription: str, line: bytes) -> None:
        """Offer one result, encoded as JSON, to its followers; no cost where there is none."""
        for follower in tuple(self._followers):
            wanted = follower.subscription is None or follower.subscription == subscription
            if wanted and follower.may_see(subscriber, subscription):
                follower.offer(line)
                self.overflows += follower.overflowed

    def forget(self, follower: Follower) -> None:
        """Takes a follower off the list, if it is on it."""
        self._followers.pop(follower, None)

    def close(self) -> None:
        """Ends every follower; what is queued can still be taken."""
        for follower in tuple(self._followers):
            follower.close()
