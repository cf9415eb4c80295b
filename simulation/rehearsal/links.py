"""Links of a rehearsal: with the delay that was described, and what went over them counted.

Owns the counts of each direction. Must not know faults. Invariant: every frame is counted once,
when it arrives, for the broker that sent it; bytes of events and of results are those of the
frames' contents, without what the frame says around them.
"""

from __future__ import annotations

from functools import partial

from msgspec import Struct, field

from broker.core.effects import SendFrame
from broker.core.links.limits import make_link_limits
from broker.core.network import frames
from broker.core.network.messages import LinkRefused
from simulation.network.links import End, Link
from simulation.world import World

LIMITS = make_link_limits()


class Carried(Struct):
    """What came of one end's: messages, their bytes, and of these what is events and results.

    `events` counts an event each time that it comes; `series` are the bytes by part of the time.
    """

    messages: int = 0
    size_bytes: int = 0
    events: int = 0
    events_bytes: int = 0
    results: int = 0
    results_bytes: int = 0
    refused: int = 0
    series: dict[int, int] = field(default_factory=dict)

    @property
    def content_bytes(self) -> int:
        """What was to be brought: events and results alone."""
        return self.events_bytes + self.results_bytes


class Line(Link):
    """See the module. `more_ms` is what it takes more while it is slow."""

    def __init__(self, world: World, one: End, other: End, delay_ms: int, part_ms: int) -> None:
        super().__init__(world, one, other, delay_ms)
        self.more_ms = 0
        self.carried = {one.name: Carried(), other.name: Carried()}
        self._part_ms = part_ms

    def takes_ms(self) -> int:
        """See Link: always the same."""
        return self.delay_ms + self.more_ms

    def send(self, name: str, frame: SendFrame) -> None:
        """See Link; what waits for a cut link is bounded as a broker bounds it."""
        if not frame.control and self._is_full(name):
            self.carried[name].refused += 1
            self.lost += 1
            refused = LinkRefused(self.other(name).name)
            self._world.after(0, partial(self.ends[name].hear, refused))
            return
        super().send(name, frame)

    def _is_full(self, name: str) -> bool:
        if self.up:
            return False
        waiting = self.waiting(name)
        if sum(one.events for one in waiting) >= LIMITS.waiting_events_max:
            return True
        return sum(len(one.data) for one in waiting) >= LIMITS.waiting_bytes_max

    def arrived(self, name: str, frame: SendFrame) -> None:
        """See Link."""
        carried = self.carried[name]
        carried.messages += 1
        carried.size_bytes += len(frame.data)
        carried.events += frame.events
        part = self._world.now // self._part_ms
        carried.series[part] = carried.series.get(part, 0) + len(frame.data)
        found = frames.decoded(frame.data)
        body = found.body if isinstance(found, frames.Frame) else None
        if isinstance(body, frames.Passed | frames.Offered):
            if frame.events:
                carried.events_bytes += len(body.what.events)
        elif isinstance(body, frames.Copied):
            carried.results += 1
            carried.results_bytes += len(body.payload)
