"""The element of a chain beside a list: with the list's places, still empty.

Owns nothing. Must not know what fills them.
"""

from __future__ import annotations

from broker.engine.event.occurrence import Occurrence, events_of
from broker.engine.pattern.base import Inbox, Over, Site, Stage, end_of, start_of, weakest_end


class PaddedStage(Over):
    """Puts empty places before and after."""

    __slots__ = ("_after", "_before")

    def __init__(self, before: int, after: int, site: Site, beneath: Stage) -> None:
        super().__init__(site, (Inbox(beneath, site.budget),), None)
        # Made once: the same two tuples are spliced into every occurrence.
        self._before = (None,) * before
        self._after = (None,) * after

    def advance(self, watermark: int) -> list[Occurrence]:
        """See base.Stage."""
        self.watermark = watermark
        (inbox,) = self.inboxes
        return [
            (
                # The mark of a maybe stands on the end, and would be lost if the end were read as a
                # number.
                weakest_end([one], end_of(one)),
                start_of(one),
                *self._before,
                *events_of(one),
                *self._after,
            )
            for one in inbox.take(inbox.fill(watermark))
        ]
