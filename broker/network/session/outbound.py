"""The sending side of one session: what waits, what is under way, and what may go.

Owns sequence numbers, batches, credit and what is kept for resending. Must not know connections or
time. Invariant: frames leave in the order of their numbers, each is kept until it is acknowledged,
and what waits and is kept stays within limits.
"""

from __future__ import annotations

from collections import deque

from broker.network.session.frames import Ack, Data, LinkError, encode
from broker.network.session.limits import LinkLimits

MESSAGE_BYTES = 40  # of a message that waits, beside its own: nothing is kept free of charge


class Outbound:
    """Keep the sending side of one session.

    A `restart` begins a stream: all that was there is gone.
    """

    __slots__ = (
        "_bytes_granted",
        "_bytes_sent",
        "_events_granted",
        "_events_sent",
        "_kept",
        "_limits",
        "acked",
        "control",
        "control_bytes",
        "events",
        "kept_bytes",
        "seq",
        "waiting_bytes",
        "waiting_events",
    )

    def __init__(self, limits: LinkLimits) -> None:
        self._limits = limits
        self.restart()

    def restart(self) -> None:
        """Nothing waits, nothing was sent."""
        self.seq = self.acked = 0
        self._kept: deque[tuple[int, bytes, bool]] = deque()  # seq, frame, control
        self.kept_bytes = 0
        self.control: deque[bytes] = deque()  # waiting
        self.control_bytes = 0  # waiting and kept
        self.events: deque[tuple[list[bytes], int, int]] = deque()  # messages, events, bytes
        self.waiting_events = self.waiting_bytes = 0
        self._events_sent = self._bytes_sent = 0
        self._events_granted = self._bytes_granted = 0

    # --- what waits ----------------------------------------------------------------------

    def offer_control(self, messages: list[bytes]) -> bool:
        """Take control; False where more is kept than may be: the session has to lapse."""
        # Taken all the same where it is too much: the session lapses then, and all is said anew,
        # so that no broker ever lacks one word of control without knowing it.
        self.control.extend(messages)
        self.control_bytes += sum(map(len, messages)) + MESSAGE_BYTES * len(messages)
        return self.control_bytes <= self._limits.control_bytes_max

    def offer_events(self, messages: list[bytes], events: int) -> bool:
        """Take events; False, and nothing was taken, where too many wait."""
        limits = self._limits
        size_bytes = sum(map(len, messages))
        # What holds no events counts as one: its place in the list is not free of charge either.
        weight = max(events, len(messages))
        if self.events and (
            self.waiting_events + weight > limits.waiting_events_max
            or self.waiting_bytes + size_bytes > limits.waiting_bytes_max
        ):
            return False
        if len(messages) == 1 or (
            weight <= limits.batch_events and size_bytes <= limits.batch_bytes
        ):
            # The list stays as it came where it fits into one frame; parting costs a tuple a
            # message.
            self._wait(messages, events, size_bytes)
        else:
            self._part(messages, events)
        return True

    def _part(self, messages: list[bytes], events: int) -> None:
        """One by one, so that frames can be cut between them; only the sum of events matters."""
        share, rest = divmod(events, len(messages))
        for number, message in enumerate(messages):
            self._wait([message], share + (number < rest), len(message))

    def _wait(self, messages: list[bytes], events: int, size_bytes: int) -> None:
        self.events.append((messages, events, size_bytes))
        self.waiting_events += max(events, len(messages))
        self.waiting_bytes += size_bytes

    @property
    def batch_waits(self) -> bool:
        """Tell whether events for a whole frame wait."""
        limits = self._limits
        return (
            self.waiting_events >= limits.batch_events or self.waiting_bytes >= limits.batch_bytes
        )

    @property
    def load(self) -> float:
        """Which share of what may wait does wait."""
        limits = self._limits
        return max(
            self.waiting_events / limits.waiting_events_max,
            self.waiting_bytes / limits.waiting_bytes_max,
        )

    @property
    def may_send(self) -> bool:
        """Tell whether there is credit and room for a further frame of events.

        The last frame may go beyond what is left of the credit, so that a large one is not stuck.
        """
        return (
            self._events_sent < self._events_granted
            and self._bytes_sent < self._bytes_granted
            and self.kept_bytes < self._limits.unacked_bytes_max
        )

    # --- what leaves ---------------------------------------------------------------------

    def control_frames(self) -> list[bytes]:
        """Frames of all control that waits."""
        frames = []
        while self.control:
            messages, size_bytes = [self.control.popleft()], 0
            size_bytes = len(messages[0])
            while (
                self.control
                and len(messages) < self._limits.batch_events
                and size_bytes + len(self.control[0]) <= self._limits.batch_bytes
            ):
                messages.append(self.control.popleft())
                size_bytes += len(messages[-1])
            frames.append(self._frame(messages, 0, control=True))
        return frames

    def events_frame(self) -> bytes:
        """A frame of what has waited longest; something does."""
        # What waits longest goes first, and a frame is filled up to a batch: one that is half
        # empty costs a header and a sequence number as a full one does. A large offer goes alone.
        limits, waiting = self._limits, self.events
        messages, events, size_bytes = waiting.popleft()
        weight = max(events, len(messages))
        taken = messages
        while waiting:
            following, more, more_bytes = waiting[0]
            more_weight = max(more, len(following))
            if (
                weight + more_weight > limits.batch_events
                or size_bytes + more_bytes > limits.batch_bytes
            ):
                break
            waiting.popleft()
            if taken is messages:
                taken = list(messages)  # the list is whoever's who offered it
            taken += following
            events += more
            weight += more_weight
            size_bytes += more_bytes
        self.waiting_events -= weight
        self.waiting_bytes -= size_bytes
        self._events_sent += events
        self._bytes_sent += size_bytes
        return self._frame(taken, events, control=False)

    def _frame(self, messages: list[bytes], events: int, *, control: bool) -> bytes:
        self.seq += 1
        frame = encode(Data(self.seq, control, events, messages))
        # Kept as bytes: what is sent again is the same frame, and costs no encoding. Its bytes
        # count until it is acknowledged, so what is kept is bounded as what waits is.
        self._kept.append((self.seq, frame, control))
        if control:
            waited_bytes = sum(map(len, messages)) + MESSAGE_BYTES * len(messages)
            self.control_bytes += len(frame) - waited_bytes
        else:
            self.kept_bytes += len(frame)
        return frame

    # --- what the other says -------------------------------------------------------------

    def acknowledge(self, ack: Ack) -> None:
        """Forget what the other has, and note what it takes. Raises LinkError."""
        self.confirm(ack.seq)
        # Credit counts from the beginning of the stream and only ascends, so that an
        # acknowledgement that is lost or repeated changes nothing; one that takes some back is an
        # error.
        if ack.events < self._events_granted or ack.size_bytes < self._bytes_granted:
            raise LinkError("it takes credit back that it has given")
        self._events_granted = ack.events
        self._bytes_granted = ack.size_bytes

    def confirm(self, seq: int) -> None:
        """The other has all frames up to this one. Raises LinkError."""
        if not self.acked <= seq <= self.seq:
            raise LinkError(
                f"it acknowledges frame {seq}, which is not one of {self.acked} to {self.seq}"
            )
        kept = self._kept
        while kept and kept[0][0] <= seq:
            _, frame, control = kept.popleft()
            if control:
                self.control_bytes -= len(frame)
            else:
                self.kept_bytes -= len(frame)
        self.acked = seq

    def kept_frames(self) -> list[bytes]:
        """All that was sent and is not acknowledged, in order."""
        return [frame for _, frame, _ in self._kept]
