"""Links of a rehearsal: with the delay that was described, and what went over them counted.

Owns the counts of each direction. Must not know faults. Invariant: every frame is counted once,
when it arrives, for the broker that sent it; bytes of events and of results are those of the
frames' contents, without what the frame says around them.
"""

from __future__ import annotations

from functools import partial

from msgspec import Struct, field

from broker.network.effects import SendFrame
from broker.network.frames import frames
from broker.network.frames.messages import LinkRefused
from broker.network.overlay.kinds import KindTraffic
from broker.network.replication.progress import Advanced
from broker.network.session.frames import ACK_BYTES, DATA_BYTES
from broker.network.session.limits import make_link_limits
from broker.network.session.session import ACK_RIDES_MS
from simulation.network.links import End, Link
from simulation.world import World

LIMITS = make_link_limits()


class RehearsalTraffic(Struct):
    """The messages of one end, their bytes, and of these what is events and results.

    `events` counts an event each time that it comes; `series` are the bytes by part of the time.
    """

    messages: int = 0
    size_bytes: int = 0
    events: int = 0
    events_bytes: int = 0
    results: int = 0
    results_bytes: int = 0
    refused: int = 0
    kinds: KindTraffic = field(default_factory=KindTraffic)
    series: dict[int, int] = field(default_factory=dict)

    @property
    def content_bytes(self) -> int:
        """Return the bytes of what was to be brought: events and results alone."""
        return self.events_bytes + self.results_bytes


class RehearsalLink(Link):
    """A link of the rehearsal. `more_ms` is what it takes more while it is slow."""

    def __init__(self, world: World, one: End, other: End, delay_ms: int, part_ms: int) -> None:
        super().__init__(world, one, other, delay_ms)
        self.more_ms = 0
        self.carried = {one.name: RehearsalTraffic(), other.name: RehearsalTraffic()}
        self._part_ms = part_ms
        self._said_ms: dict[str, int] = {}  # by end
        self._acked_ms: dict[str, int] = {}
        self._acked: dict[str, bool] = {}  # whether an end has acknowledged all

    def takes_ms(self) -> int:
        """Return the time that a message takes: always the same."""
        return self.delay_ms + self.more_ms

    def send(self, name: str, frame: SendFrame) -> None:
        """Send a message; what waits for a cut link is bounded as a broker bounds it."""
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
        if sum(frame.events for frame in waiting) >= LIMITS.waiting_events_max:
            return True
        return sum(len(frame.data) for frame in waiting) >= LIMITS.waiting_bytes_max

    def arrived(self, name: str, frame: SendFrame) -> None:
        """Count a message that has arrived, and pass it on."""
        carried = self.carried[name]
        size_bytes = len(frame.data) + DATA_BYTES
        self._own(name)
        self._acked[self.other(name).name] = False
        carried.messages += 1
        carried.size_bytes += size_bytes
        carried.kinds.count(frame.parts or (("overlay", size_bytes),), size_bytes)
        carried.events += frame.events
        part = self._world.now // self._part_ms
        carried.series[part] = carried.series.get(part, 0) + size_bytes
        for received in frames.decoded(frame.data):
            self._count(carried, getattr(received, "body", received))

    def _own(self, name: str) -> None:
        """Count what the link itself has said meanwhile, as `broker.network.session.session` does.

        An acknowledgement goes with what is said anyway, or as a sign of life.
        """
        carried, now = self.carried[name], self._world.now
        signs = (now - self._said_ms.get(name, now)) // LIMITS.heartbeat_ms
        self._said_ms[name] = now
        carried.messages += signs
        carried.kinds.add("heartbeat", signs, signs * ACK_BYTES)
        rides = now - self._acked_ms.get(name, 0) >= ACK_RIDES_MS
        acks = rides and not signs and not self._acked.get(name, True)
        if acks or signs:
            self._acked[name], self._acked_ms[name] = True, now
        carried.kinds.add("acknowledgements", 0, acks * ACK_BYTES)
        size_bytes = (signs + acks) * ACK_BYTES
        carried.size_bytes += size_bytes
        part = now // self._part_ms
        carried.series[part] = carried.series.get(part, 0) + size_bytes

    def end(self) -> None:
        """Count what the link has said until now."""
        for name in self.carried:
            self._own(name)

    def _count(self, carried: RehearsalTraffic, body: object) -> None:
        if isinstance(body, frames.Passed | frames.Offered):
            if body.what.positions:
                carried.events_bytes += len(body.what.events)
        elif isinstance(body, Advanced):
            carried.events_bytes += sum(len(row.events) for row in body.rows)
        elif isinstance(body, frames.Copied):
            carried.results += 1
            carried.results_bytes += len(body.payload)
