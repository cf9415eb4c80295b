"""Frames on their way to a link, several to one neighbour in one message.

Owns what waits for its neighbour's next message. Must not know what frames say. Invariant: frames
of one neighbour and class leave in the order in which they came, control ahead of events that came
later; control waits for `HOLD_MS` at most, events do not wait.

A message costs a header, an acknowledgement and, over a radio, a slot, whatever it holds. Where
much is to be said at once (a link comes up, a text is submitted), it comes in many small frames
from many steps. So control goes at once where the last message is `HOLD_MS` ago, and else with
what comes until then, as Nagle's algorithm has it, but for a fixed time: to wait for the other's
acknowledgement would add a round trip for each hop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from broker.network.effects import SendFrame
from broker.network.overlay.kinds import KindTraffic, Part

HOLD_MS = 20  # of control: a text is active some hops later by as much each
FRAMES_MAX = 256  # in one message
BATCH_BYTES = 256 * 1024  # of frames in one message: a quarter of what a link takes

E = TypeVar("E")  # whatever else the machine has done
Bundle = Callable[[Sequence[bytes]], bytes]


class LinkOutlet:
    """The frames of one broker; `bundle` makes one of several, for neighbours that `take` it."""

    def __init__(self, bundle: Bundle, takes: Callable[[str], bool]) -> None:
        self._bundle = bundle  # the form of several frames is not this part's
        self._takes = takes  # an old version takes single frames alone
        self._held: dict[str, list[SendFrame]] = {}  # control, by neighbour
        self._sent_ms: dict[str, int] = {}  # by neighbour: a pause is counted from here
        self.wake_at: int | None = None  # when something that is held is to leave
        self.sent: dict[str, KindTraffic] = {}  # by neighbour

    def pass_on(self, effects: Sequence[E], now: int) -> list[E | SendFrame]:
        """Return the effects of a step, with the frames of each neighbour together."""
        others: list[E | SendFrame] = []
        events: dict[str, list[SendFrame]] = {}
        for effect in effects:
            if not isinstance(effect, SendFrame) or not self._takes(effect.link):
                others.append(effect)
            elif effect.control:
                self._held.setdefault(effect.link, []).append(effect)
            else:
                events.setdefault(effect.link, []).append(effect)
        for link in list(self._held):
            if link in events or self._due_ms(link) <= now:
                others += self._batches(self._held.pop(link))
                self._sent_ms[link] = now
        for link, frames in events.items():
            others += self._batches(frames)
            self._sent_ms[link] = now
        for leaving in others:
            if isinstance(leaving, SendFrame):
                traffic = self.sent.setdefault(leaving.link, KindTraffic())
                traffic.count(_parts(leaving), len(leaving.data))
        self.wake_at = min(map(self._due_ms, self._held), default=None)
        return others

    def _due_ms(self, link: str) -> int:
        return self._sent_ms.get(link, -HOLD_MS) + HOLD_MS

    def _batches(self, frames: Sequence[SendFrame]) -> list[SendFrame]:
        """Return frames of one neighbour and class as few."""
        batches: list[SendFrame] = []
        batch: list[SendFrame] = []
        size_bytes = 0
        for frame in frames:
            if batch and (len(batch) == FRAMES_MAX or size_bytes + len(frame.data) > BATCH_BYTES):
                batches.append(self._batch(batch))
                batch, size_bytes = [], 0
            batch.append(frame)
            size_bytes += len(frame.data)
        return [*batches, self._batch(batch)]

    def _batch(self, frames: Sequence[SendFrame]) -> SendFrame:
        if len(frames) == 1:
            return frames[0]
        first = frames[0]
        data = self._bundle([frame.data for frame in frames])
        events = sum(frame.events for frame in frames)
        after = max(frame.after for frame in frames)
        parts = tuple([part for frame in frames for part in _parts(frame)])
        return SendFrame(first.link, data, first.control, events, after, parts)


def _parts(frame: SendFrame) -> tuple[Part, ...]:
    return frame.parts or (("overlay", len(frame.data)),)  # hellos and links say nothing of it
