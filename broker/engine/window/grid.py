"""The numbers of windows and of the panes that no window's edge cuts.

Owns which pane an instant lies in, and which windows a pane belongs to. Must not know events.
Invariant: panes and windows ascend with time, and a window is exactly its panes.

Panes are those of paired windows (Krishnamurthy, Wu, Franklin: On-the-fly sharing for streamed
aggregation, SIGMOD 2006): the edges of windows are at kT and kT − R, so at most two
panes lie in each T, and every event is taken once however many windows it belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass

from broker.engine.event.source import Constants


@dataclass(frozen=True, slots=True)
class Grid:
    """The panes and windows of `every T` (no range) or `every T range R`, by number."""

    every_ms: int
    range_ms: int | None = None

    @property
    def halved(self) -> bool:
        """Whether each T has two panes: a window's beginning cuts it."""
        return self.range_ms is not None and self.range_ms % self.every_ms != 0

    @property
    def cut_ms(self) -> int:
        """Where, from kT, the second pane of a T begins."""
        return self.every_ms - (self.range_ms or 0) % self.every_ms

    @property
    def panes_each(self) -> int:
        """How many panes a window has at most."""
        first, last = self.panes_of(0)
        return last - first + 1

    def windows_of(self, pane: int) -> tuple[int, int]:
        """The first and the last window that has the pane; none where the last comes first."""
        if self.range_ms is None:
            return pane, pane
        whole = self.range_ms // self.every_ms
        if not self.halved:
            return pane + 1, pane + whole
        period, second = divmod(pane, 2)
        return period + 1, period + whole + second

    def panes_of(self, window: int) -> tuple[int, int]:
        """The first and the last pane of a window."""
        if self.range_ms is None:
            return window, window
        whole = self.range_ms // self.every_ms
        if not self.halved:
            return window - whole, window - 1
        return 2 * (window - whole) - 1, 2 * window - 1

    def closes_at(self, window: int) -> int:
        """The last instant of a window: with this watermark nothing more falls into it."""
        return (window + (self.range_ms is None)) * self.every_ms - 1

    def closed_by(self, watermark: int) -> int:
        """The last window that a watermark closes."""
        return (watermark + 1) // self.every_ms - (self.range_ms is None)

    def opens_at(self, window: int) -> int:
        """The first instant of a window."""
        return self.begins_at(self.panes_of(window)[0])

    def next_opens_at(self, watermark: int) -> int:
        """Return the first instant of the first window that a watermark leaves open."""
        return self.opens_at(self.closed_by(watermark) + 1)

    def frame_of(self, window: int) -> tuple[int, int, int]:
        """Return a window, its first instant and the one after its last."""
        return window, self.opens_at(window), self.closes_at(window) + 1

    def pane_of(self, time: int) -> int:
        """The pane that an instant lies in."""
        if not self.halved:
            return time // self.every_ms
        period, rest = divmod(time, self.every_ms)
        return 2 * period + (rest >= self.cut_ms)

    def begins_at(self, pane: int) -> int:
        """The first instant of a pane."""
        if not self.halved:
            return pane * self.every_ms
        period, second = divmod(pane, 2)
        return period * self.every_ms + second * self.cut_ms

    def pane_lines(self, constants: Constants) -> list[str]:
        """Lines that set `pane` to that of the event in `e`."""
        every = constants.add(self.every_ms)
        if not self.halved:
            return [f"pane = e.end // {every}"]
        cut = constants.add(self.cut_ms)
        return [f"period, rest = divmod(e.end, {every})", f"pane = 2 * period + (rest >= {cut})"]
