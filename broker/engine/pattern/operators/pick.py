"""`nth` without a left neighbour, and `distinct`: some of what comes, as it comes.

Owns how many came and which values were seen when. Must not know patterns around.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.occurrence import Occurrence, end_of, start_of
from broker.engine.pattern.operators.repeats import Passes
from broker.engine.pattern.stage.base import Inbox, Over, Site, Stage
from broker.engine.pattern.times.timing import Span

# A `distinct` over ids of tags would keep every tag of its window. At about 200 bytes for a short
# text and its time this is 20 MB, which a small machine bears.
KEYS_MAX = 100_000  # values remembered by one `distinct` of one partition; the oldest go first


class KthStage(Over):
    """The k-th of the partition."""

    __slots__ = ("_k", "_number", "_passes")

    def __init__(
        self, k: int, passes: Passes, site: Site, beneath: Stage, span: Span | None
    ) -> None:
        super().__init__(site, (Inbox(beneath, site.budget),), span)
        self._k = k
        self._passes = passes
        # Counted before the conditions: `nth 3 P` is the third P, and suffixes ask of that one
        # (LANGUAGE 3).
        self._number = 0

    def advance(self, watermark: int) -> list[Occurrence]:
        """Return the k-th occurrence if it came and passes."""
        self.watermark = watermark
        (inbox,) = self.inboxes
        made = []
        for item in inbox.take(inbox.fill(watermark)):
            self._number += 1
            if self._number == self._k:
                chosen = self._passes(item, self.site.group)
                made += [] if chosen is None else [chosen]
        return made

    def idle(self) -> bool:
        """Tell whether it has counted nothing and holds nothing."""
        # A partition that has counted is kept: a new one would count from 1 again.
        return not self._number and super().idle()

    def facts(self) -> list[Any]:
        """Return how many occurrences were counted."""
        return [self._number]

    def know(self, facts: list[Any]) -> None:
        """Take the count up again."""
        (self._number,) = facts


class DistinctStage(Over):
    """Those that do not equal an earlier one within the window."""

    __slots__ = ("_key", "_latest", "_window_ms")

    def __init__(
        self,
        key: Callable[[Occurrence], Any],
        window_ms: int,
        site: Site,
        beneath: Stage,
        span: Span | None,
    ) -> None:
        super().__init__(site, (Inbox(beneath, site.budget),), span)
        self._key = key
        self._window_ms = window_ms
        # In order of the latest occurrence, as each is put at the end anew: so the oldest can be
        # dropped from the front without looking through the rest.
        self._latest: dict[Any, int] = {}  # value → the latest start of those that have it

    def advance(self, watermark: int) -> list[Occurrence]:
        """Return the occurrences whose key did not come within the window before."""
        self.watermark = watermark
        (inbox,) = self.inboxes
        limit = inbox.fill(watermark)
        made = []
        for item in inbox.take(limit):
            key = self._key(item)
            # A key that holds a null equals nothing, not even another null.
            if key is None:
                made.append(item)
                continue
            # Also what is dropped renews the value: three in a row, each 50 s after the last, are
            # one within a minute.
            before = self._latest.pop(key, WATERMARK_NONE)
            if end_of(item) - before > self._window_ms:
                made.append(item)
            self._latest[key] = max(before, start_of(item))
        # What is to come ends after `limit`: anything that began before this is out of every
        # window.
        oldest = limit + 1 - self._window_ms
        while self._latest:
            first = next(iter(self._latest))
            if self._latest[first] >= oldest and len(self._latest) <= KEYS_MAX:
                break
            del self._latest[first]
        return made

    def held(self) -> int:
        """Count what it and those beneath hold, the keys included."""
        return super().held() + len(self._latest)

    def facts(self) -> list[Any]:
        """Return the latest start of each key."""
        return [[[key, start] for key, start in self._latest.items()]]

    def know(self, facts: list[Any]) -> None:
        """Take the keys up again."""
        self._latest = dict(facts[0])
