"""`absent P for T` while times are uncertain: how certain each silence is.

Owns the P after which silence is awaited, and those that may yet fall into it. Must not know P.
Invariant: a silence is NO only where a certain P certainly meets it; of those from one nominal
instant the most certain is told, and of these the one whose time is the least uncertain.
"""

from __future__ import annotations

from typing import Any

from broker.engine.event.occurrence import Absence, Occurrence, end_of, start_of
from broker.engine.pattern.layout.operands import Silence
from broker.engine.pattern.operators.silence import Awaiting
from broker.engine.pattern.stage.base import Site, Stage
from broker.engine.pattern.uncertainty.uncertainty import MAYBE, NO, YES, Maybe
from broker.engine.pattern.uncertainty.verdicts import (
    Doubt,
    certainty_at,
    disturbing,
    spanning,
    spans_of,
)

Told = tuple[int, int]  # how certain a silence is, and less the uncertainty of its time
# A stage is replaced by this one when the first uncertain time comes (see architecture.md), and
# then takes up the other's snapshot: it is told apart by its length.
EXACT_FACTS = 3  # what a stage of exact times tells of itself


class WeighedSilenceStage(Awaiting):
    """Find how certain each silence is while times are uncertain.

    `_since` are the P from whose end a silence may yet be, `_certain` how certain each is so far;
    `_recent` those that may have come after a P that is still to come. What a stage of exact times
    knew is taken up as what lasted from one time to the other.
    """

    __slots__ = ("_certain", "_doubt", "_recent", "_silence", "_since")

    def __init__(self, silence: Silence, site: Site, beneath: Stage, doubt: Doubt) -> None:
        super().__init__(silence, site, beneath)
        self._silence = silence
        self._doubt = doubt
        self._since: list[Occurrence] = []
        self._certain: list[int] = []
        self._recent: list[Occurrence] = []

    def advance(self, watermark: int) -> list[Occurrence]:
        """Return the silences that are decided by now, in order of their instants."""
        self.watermark = watermark
        (inbox,) = self.inboxes
        limit = inbox.fill(watermark)
        for p in inbox.take(limit):
            self._break(p)
            self._begin(p)
            self._note(p)
        # What ends later than another by more than the slack has come later for certain.
        slack_ms = self._doubt.slack_ms()
        self._recent = [p for p in self._recent if end_of(p) + slack_ms > limit]
        floor, told = inbox.floor(), dict[int, Told]()
        self._decide_beginning(floor, told)
        self._decide(floor, told)
        self._instants = [int(end_of(p)) for p in self._since]
        made = [self._interval(u, *told[u]) for u in sorted(told)]
        return [one for one in made if one is not None]

    def wait_ms(self) -> int:
        """Return how long after an instant a P may begin and perhaps count for the silence."""
        return self._for_ms + self._doubt.slack_ms(self._for_ms)

    def known(self) -> int:
        """Count the P that it remembers."""
        return len(self._recent) + super().known()

    # --- a P comes -------------------------------------------------------------------------

    def _certainty_of(self, p: Occurrence) -> int:
        return certainty_at(self._silence.operand, p, self._doubt)

    def _left_by(self, p: Occurrence, q: Occurrence) -> int:
        """Return how certain the silence after p can still be, with q."""
        meets = disturbing(spans_of(p), spans_of(q), self._for_ms, self._doubt)
        return YES - min(meets, self._certainty_of(q)) if meets else YES

    def _break(self, q: Occurrence) -> None:
        """Weigh what is awaited against a P that came."""
        certain = [
            min(before, self._left_by(p, q))
            for p, before in zip(self._since, self._certain, strict=True)
        ]
        self._since = [p for p, one in zip(self._since, certain, strict=True) if one]
        self._certain = [one for one in certain if one]

    def _begin(self, p: Occurrence) -> None:
        """Await the silence after a P, weighed against those before it."""
        certain = self._certainty_of(p)
        for q in self._recent:
            certain = min(certain, self._left_by(p, q))
            if certain == NO:
                return
        self._since.append(p)
        self._certain.append(certain)

    def _note(self, p: Occurrence) -> None:
        """Keep a P that what is still to come, or the beginning, is to be weighed against."""
        self._recent.append(p)
        begin = self.site.begin
        if self._early is not None and (begin is None or start_of(p) <= begin + self.wait_ms()):
            self._early.append(p)

    # --- deciding --------------------------------------------------------------------------

    def _decide_beginning(self, floor: int, told: dict[int, Told]) -> None:
        """The interval from the beginning, which a later event may yet put earlier."""
        u = self.site.begin
        if u is None or self._early is None or u + self.wait_ms() >= floor:
            return
        if u > self.begins_from():
            return
        beginning = Absence(u, u, self._place)
        certain = min([self._left_by(beginning, q) for q in self._early], default=YES)
        self._early = None
        if certain:
            told[u] = (certain, 0)

    def _decide(self, floor: int, told: dict[int, Told]) -> None:
        """Those in which no P is still to come; from the beginning on all at once."""
        wait_ms = self.wait_ms()
        first = self.site.begin if self._early is not None else None
        still: list[Occurrence] = []
        certain: list[int] = []
        for p, one in zip(self._since, self._certain, strict=True):
            u = int(end_of(p))
            if u + wait_ms >= floor or u == first:
                still.append(p)
                certain.append(one)
                continue
            mine = (one, -max([event.uncertainty for event in spans_of(p)]))
            told[u] = max(mine, told.get(u, mine))
        self._since, self._certain = still, certain

    def _interval(self, u: int, certain: int, less_ms: int) -> Occurrence | None:
        end = u + self._for_ms
        absence = Absence(u, end, self._place, -less_ms)
        within_ms = self._silence.within_ms
        if within_ms is not None:
            certain = min(certain, spanning((absence,), within_ms, self._doubt))
        if certain == NO:
            return None
        told = Maybe(end) if certain == MAYBE else end
        return (told, u, absence, *((None,) * self._empty_places))

    def shed(self, count: int) -> int:
        """Drop the awaited P, then what is remembered; return how many were dropped."""
        shed = min(count, len(self._since))
        del self._since[:shed], self._certain[:shed], self._instants[:shed]
        for items in (self._recent, self._early or []):
            part = min(count - shed, len(items))
            if part and items is self._early:
                self._early = None  # which needs all that is known of it
            else:
                del items[:part]
            shed += part
        return shed + super().shed(count - shed)

    # --- snapshots -------------------------------------------------------------------------

    def facts(self) -> list[Any]:
        """Return the P of the beginning, those awaited after, their certainties and recent P."""
        return [self._early, self._since, self._certain, self._recent]

    def know(self, facts: list[Any]) -> None:
        """Take up such facts again, or those of a stage of exact times."""
        if len(facts) == EXACT_FACTS:
            early, instants, _ = facts
            self._since = [Absence(u, u, self._place) for u in instants]
            self._certain = [YES] * len(instants)
            self._early = None
            if early is not None:
                self._early = [Absence(start, end, self._place) for start, end in early]
        else:
            self._early, self._since, self._certain, self._recent = facts
        self._instants = [int(end_of(p)) for p in self._since]
