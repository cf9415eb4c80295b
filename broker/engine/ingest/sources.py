"""What sources say of themselves, as payloads, and how long it holds.

Owns the reading of an advertisement and its time to live. Must not know clocks or tasks: intake
does. Invariant: an advertisement with a time to live ends that long after its source was last heard
(by an advertisement or an event), never before and at most one waking after.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Annotated, Any

import msgspec

from broker.engine.event.event import MetricPosition
from broker.engine.ingest import reasons
from broker.engine.ingest.advertised import Advertisement
from broker.engine.ingest.decode import json_deeper_than
from broker.engine.ingest.faults import DECODE_ERRORS, Rejection, of_error, rejection
from broker.engine.limits import Limits

TTL_S_MAX = 10 * 365 * 86_400.0  # longer is a mistake in the unit
RATE_MAX = 1e9  # events a second
BAD_ADVERTISEMENT = "bad_advertisement"  # the reason: a value that no source can have


class _Form(msgspec.Struct, frozen=True):
    """An advertisement as it is written; `rate` is events a second, for planning to come."""

    source: str | None = None
    types: list[str] | None = None
    location: str | None = None
    position: (
        Annotated[list[float], msgspec.Meta(min_length=2, max_length=3)] | MetricPosition | None
    ) = None
    uncertainty: int | None = None
    lasts_ms_max: int | None = None
    rate: Annotated[float, msgspec.Meta(ge=0, le=RATE_MAX)] | None = None
    ttl_s: Annotated[float, msgspec.Meta(gt=0, le=TTL_S_MAX)] | None = None


_decode = msgspec.json.Decoder(_Form).decode
# The decoder says it of floats only in its message; a rate or time to live that no source can have
# is another fault than a wrong type.
_BEYOND = re.compile("expected `float` [<>]")  # of a rate or a time to live


class Stated(msgspec.Struct, frozen=True):
    """An advertisement that was read, and its time to live (None: without end)."""

    advertisement: Advertisement
    ttl_ms: int | None


def read(source: str, data: bytes, limits: Limits) -> Stated | Rejection:
    """The advertisement that a payload on the source's topic makes, or why it is none."""
    if len(data) > limits.payload_bytes_max:
        found = f"{len(data)} bytes, at most {limits.payload_bytes_max}"
        return rejection(reasons.TOO_LARGE, found)
    if json_deeper_than(data, limits.nesting_max):
        return rejection(reasons.TOO_DEEP, f"more than {limits.nesting_max} levels")
    try:
        form = _decode(data)
    except DECODE_ERRORS as error:
        refused = of_error(error)
        if _BEYOND.match(refused.message):
            return Rejection(BAD_ADVERTISEMENT, refused.message.partition(": ")[0])
        return refused
    if form.source is not None and form.source != source:
        found = f"source `{form.source}` on the topic of `{source}`"
        return rejection(reasons.TOPIC_MISMATCH, found)
    types = form.types or []
    if any(not name or len(name) > limits.name_chars_max for name in types):
        found = f"a type's name is empty or has more than {limits.name_chars_max} characters"
        return rejection(reasons.TEXT_TOO_LONG, found)
    advertisement = Advertisement(
        source=source,
        types=tuple(dict.fromkeys(types)),
        location=form.location,
        position=form.position,
        uncertainty=form.uncertainty,
        lasts_ms_max=form.lasts_ms_max,
    )
    return Stated(advertisement, None if form.ttl_s is None else max(1, round(form.ttl_s * 1000)))


class Lives:
    """The sources whose advertisement ends by itself, and when."""

    def __init__(self) -> None:
        self.ends: dict[str, tuple[int, int]] = {}  # source → (time to live, when heard last)
        self.due: list[tuple[int, str]] = []  # lower bounds, a heap; each source of `ends` has one

    def begin(self, source: str, ttl_ms: int | None, now: int) -> None:
        """A source was advertised, for so long."""
        if ttl_ms is None:
            self.ends.pop(source, None)
            return
        self.ends[source] = (ttl_ms, now)
        heappush(self.due, (now + ttl_ms, source))
        # Renewed advertisements leave their older entries behind; past twice as many the heap is
        # made anew, so it is bounded and each renewal still costs log n.
        if len(self.due) > 2 * len(self.ends) + 16:
            self.due = sorted((ttl + at, name) for name, (ttl, at) in self.ends.items())

    def heard(self, sources: Iterable[str], now: int) -> None:
        """Events came from these sources."""
        # Most sources live without end; then events cost this one test.
        if self.ends:
            for source in sources:
                life = self.ends.get(source)
                if life is not None:
                    self.ends[source] = (life[0], now)

    def end(self, source: str) -> None:
        """A source was withdrawn."""
        self.ends.pop(source, None)

    def ended(self, now: int) -> list[str]:
        """The sources whose time has run out, which are forgotten here."""
        gone = []
        while self.due and self.due[0][0] <= now:
            _, source = heappop(self.due)
            life = self.ends.get(source)
            if life is None:
                continue
            due = life[0] + life[1]
            if due <= now:
                del self.ends[source]
                gone.append(source)
            else:
                # It was heard since: moved when its old time comes, not with each event.
                heappush(self.due, (due, source))
        return gone

    def state(self) -> list[list[Any]]:
        """Plain data."""
        return [[source, *life] for source, life in self.ends.items()]

    def restore(self, state: Iterable[Any]) -> None:
        """Take up such a state, in the place of all that is here."""
        self.ends = {source: (ttl_ms, at) for source, ttl_ms, at in state}
        self.due = sorted((ttl_ms + at, source) for source, (ttl_ms, at) in self.ends.items())

    def resume(self, before: int, now: int) -> None:
        """The time from `before` until now does not count."""
        self.restore([[name, ttl, at + now - before] for name, (ttl, at) in self.ends.items()])
