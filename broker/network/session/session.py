"""The session of one broker with one neighbour, across the connections that come and go.

Owns which connection is used, whether a new one goes on where the last stopped, and what is said on
it when. Must not know sockets, or what messages mean. Invariant: as long as both processes live,
each message that was taken is delivered once and in order within its class, or an `Up` that is
`fresh` has said on both sides that all is to be said anew; bytes are written once for all that was
said together, before a close.

Of the two brokers, the one whose name sorts first is the **decider**: it alone chooses which of
several connections is used, by a Welcome with an ascending `turn`; the other takes what it is told.
So both hold the same one, whoever dialled first. The decider keeps what it has, unless the other
has a newer epoch, has dialled again, or says in its hello that it holds that connection no longer.

Whether they go on is the other's to say (Accept), as it knows both sides' states when it answers:
they do if each still has the stream of which the other has received. A stream is what one process
sends to the other from one fresh beginning to the next.
"""

from __future__ import annotations

from broker.network.session.choosing import Candidate, better
from broker.network.session.frames import (
    VERSION,
    Accept,
    Ack,
    Bye,
    Data,
    Frame,
    LinkError,
    Ping,
    Welcome,
    encode,
)
from broker.network.session.handshake import PeerClosedError
from broker.network.session.inbound import Inbound
from broker.network.session.limits import LinkLimits
from broker.network.session.outbound import Outbound
from broker.network.session.told import (
    Close,
    Congested,
    Delivered,
    Down,
    Effect,
    Refused,
    Up,
    Write,
)

SELDOM_SINCE = 3  # the version from which on silence of minutes is allowed
ACK_RIDES_MS = 10_000  # an acknowledgement goes with what is said anyway at most so often
OFTEN_MS = 2_000  # between signs of life before
CONGESTED_FROM = 0.5  # of what may wait
RELIEVED_FROM = 0.25


class LinkSession:
    """Keep the session with one neighbour, across the connections that come and go.

    Whoever has the connections hands frames of known ones to it.

    Methods return effects; `up` tells whether the link stands, `counts` what was counted.
    """

    def __init__(self, me: str, epoch: int, peer: str, limits: LinkLimits) -> None:
        self.me = me
        self.peer = peer
        self.epoch = epoch
        self.limits = limits
        self.up = False
        self.why = "not connected yet"
        self.peer_epoch = 0
        self.turn = 0  # of the connection that was chosen last
        self.counts = dict.fromkeys(COUNTED, 0)
        # Names decide, as both ends know both and no message is needed for it; which end it is
        # has no further meaning.
        self._decider = me < peer
        self._current: Candidate | None = None  # chosen; once `up`, both have taken it
        self._others: dict[int, Candidate] = {}  # wait for the decider's word
        self._stream = 1
        self._peer_stream = 0  # 0: nothing was received yet
        self._out = Outbound(limits)
        self._in = Inbound(limits)
        self._known = False  # there was an `Up` of the stream as it is now
        self._choked = False
        self._congested = False
        self._up_ms = 0
        self._heard_ms = 0
        self._excused = False  # its silence, as this process slept
        self._flushed_ms = 0  # a frame of events
        self._acked_ms = -ACK_RIDES_MS
        self._heartbeat_ms = limits.heartbeat_ms  # a neighbour of before cuts who says nothing soon
        self._telling = Telling(peer)

    # --- connections ---------------------------------------------------------------------

    @property
    def holds(self) -> int:
        """The turn of the connection that stands, 0 if none: what a hello says."""
        return self.turn if self.up else 0

    @property
    def connection(self) -> int | None:
        """The connection that is used."""
        return self._telling.connection

    def introduced(self, candidate: Candidate, now_ms: int) -> list[Effect]:
        """Another connection to the neighbour is there, its other end known."""
        if not self._decider:
            self._others[candidate.connection] = candidate
            return self._telling.taken()
        current = self._current
        since = self._up_ms if self.up else None
        # Both may dial at the same time, and a connection may stand at one end alone. One end
        # chooses, by rules on what is known at that end, so the two never each close the other's
        # choice.
        if current is not None and not better(candidate, current, self.turn, since):
            self._telling.close(candidate.connection, "there is another connection to it")
            return self._telling.taken()
        if current is not None:
            self._cut("another connection to it is there")
        self._current, self._telling.connection = candidate, candidate.connection
        self.turn += 1
        self._heard_ms = now_ms
        known = (self.peer_epoch, self._peer_stream, self._in.received)
        self._telling.say(Welcome(self.turn, self._stream, *known))
        return self._telling.taken()

    def heard(self, connection: int, frames: list[Frame], now_ms: int) -> list[Effect]:
        """Frames came on a connection that was introduced."""
        telling = self._telling
        if connection == telling.connection:
            self._heard_ms = now_ms  # be it a part of a long frame
            self._excused = False
        try:
            for frame in frames:
                if connection == telling.connection:
                    self._on_frame(frame, now_ms)
                elif connection in self._others:
                    self._on_other(self._others[connection], frame, now_ms)
                else:
                    break  # it was closed by a frame before
        except LinkError as error:
            return self.failed(connection, error)
        return self._flush(now_ms)

    def failed(self, connection: int, error: LinkError, counted: str = "malformed") -> list[Effect]:
        """The other broke off or broke the protocol on a connection: it is closed, it alone."""
        reason = str(error)
        spoken = isinstance(error, PeerClosedError)
        if not spoken:
            self.counts[counted] += 1
        if connection == self.connection:
            if spoken:
                self._current_gone(reason)
            else:
                self._cut(reason, fault=True)
        else:
            self._others.pop(connection, None)
            if not spoken:
                self._telling.close(connection, reason, fault=True)
        if spoken:
            self._telling.add(Close(connection, reason, peer=self.peer))
        return self._telling.taken()

    def closed(self, connection: int, reason: str) -> list[Effect]:
        """A connection is gone."""
        self._others.pop(connection, None)
        if connection == self.connection:
            self._current_gone(reason)
        return self._telling.taken()

    def choked(self, connection: int, now_ms: int, *, on: bool) -> list[Effect]:
        """The connection takes no more for now, or takes some again."""
        if connection == self.connection:
            self._choked = on
        return self._flush(now_ms)

    def end(self, reason: str) -> list[Effect]:
        """Close whatever there is: this broker stops, or the neighbour is forgotten."""
        for connection in list(self._others):
            self._telling.close(connection, reason)
        self._others.clear()
        if self._current is not None:
            self._cut(reason)
        return self._telling.taken()

    def loads(self) -> dict[str, int]:
        """Count what waits and what is under way now."""
        out = self._out
        return {
            "waiting_events": out.waiting_events,
            "waiting_bytes": out.waiting_bytes,
            "unacked_bytes": out.kept_bytes,
            "control_bytes": out.control_bytes,
            "held_frames": len(self._in.waiting),
            "repeated": self._in.repeated,
        }

    # --- messages ------------------------------------------------------------------------

    def offer(
        self, messages: list[bytes], events: int, now_ms: int, *, control: bool
    ) -> list[Effect]:
        """Messages for the neighbour; see `Offered`. Raises ValueError where one is too long."""
        longest = max(map(len, messages), default=0)
        if longest > self.limits.message_bytes_max:
            raise ValueError(
                f"a message of {longest} bytes for a link, at most "
                f"{self.limits.message_bytes_max} are allowed"
            )
        if not messages:
            return []
        # Before the first `Up` of a stream nobody was told that there is a neighbour: what is
        # offered would be of a session in which nothing was said yet, and is refused rather than
        # kept.
        if not self._known:
            self._refuse("never_up", messages, events)
        elif control:
            if not self._out.offer_control(messages):
                self._lapse("more control waits for it than may be kept")
                self._refuse("link_full", messages, events)
        elif not self._out.offer_events(messages, events):
            self._refuse("link_full", messages, events)
        return self._flush(now_ms)

    def hold(self, now_ms: int, *, on: bool) -> list[Effect]:
        """Let events that come wait, or deliver them."""
        self._in.held = on
        while (frame := self._in.release()) is not None:
            self._deliver(frame)
        return self._flush(now_ms)

    def _refuse(self, why: str, messages: list[bytes], events: int) -> None:
        self.counts["refused"] += len(messages)
        self._telling.add(Refused(self.peer, why, len(messages), events))

    # --- time ----------------------------------------------------------------------------

    def next_wake(self) -> int | None:
        """When `wake` has something to do, if nothing else happens before."""
        if self._current is None:
            return None
        due = self._heard_ms + self.limits.silence_ms
        if not self.up:
            return due
        due = min(due, self._telling.said_ms + self._heartbeat_ms)
        if self._out.events and self._out.may_send and not self._choked:
            due = min(due, self._flushed_ms + self.limits.flush_ms)
        return due

    def wake(self, now_ms: int) -> list[Effect]:
        """Time has passed."""
        if self._current is None:
            return []
        limits = self.limits
        # Silence is measured from what came, not from what was asked: a link on which the other
        # sends events needs no sign of life of its own.
        late_ms = now_ms - self._heard_ms - limits.silence_ms
        if late_ms >= limits.heartbeat_ms and not self._excused:
            # This process itself slept; what came meanwhile may not have been read yet.
            self._excused = True
            self._heard_ms = now_ms - limits.silence_ms + limits.heartbeat_ms
        elif late_ms >= 0:
            self._cut(f"it was silent for {limits.silence_ms} ms")
            return self._telling.taken()
        if self.up and now_ms - self._telling.said_ms >= self._heartbeat_ms:
            self.counts["signs_of_life"] += 1
            self._telling.say(self._in.ack() or Ping())
        return self._flush(now_ms)

    # --- within --------------------------------------------------------------------------

    def _on_frame(self, frame: Frame, now_ms: int) -> None:
        if isinstance(frame, Bye):
            raise PeerClosedError(frame.reason)
        if not self.up:
            if self._decider and isinstance(frame, Accept):
                self._accepted(frame, now_ms)
                return
            raise LinkError("it speaks before the connection was agreed on")
        if isinstance(frame, Data):
            delivered = self._in.take(frame)
            if delivered is not None:
                self._deliver(delivered)
        elif isinstance(frame, Ack):
            self._out.acknowledge(frame)
        elif not isinstance(frame, Ping):
            raise LinkError("it says what has no place on an open link")

    def _on_other(self, candidate: Candidate, frame: Frame, now_ms: int) -> None:
        """The decider speaks on a connection that is not used, or not yet."""
        if isinstance(frame, Bye):
            raise PeerClosedError(frame.reason)
        if not isinstance(frame, Welcome):
            raise LinkError("it speaks before the connection was agreed on")
        if self.up and candidate.hello.epoch == self.peer_epoch and frame.turn <= self.turn:
            del self._others[candidate.connection]
            self._telling.close(candidate.connection, "there is a later connection to it")
            return
        if self.up and candidate.hello.epoch < self.peer_epoch:
            raise LinkError("it is of an earlier life of that broker")
        del self._others[candidate.connection]
        if self._current is not None:
            self._cut("another connection to it is there")
        self._current, self._telling.connection = candidate, candidate.connection
        self._heard_ms = now_ms
        self.turn = frame.turn
        epoch = candidate.hello.epoch
        mine_known = (frame.known_epoch, frame.known_stream) == (self.epoch, self._stream)
        resumed = (
            mine_known
            and (epoch, frame.stream) == (self.peer_epoch, self._peer_stream)
            and self._out.acked <= frame.received <= self._out.seq
        )
        if resumed:
            self._out.confirm(frame.received)
        else:
            self._stream += 1
            self._restart()
        self.peer_epoch, self._peer_stream = epoch, frame.stream
        self._telling.say(Accept(resumed, self._stream, self._in.received))
        self._stand(now_ms, fresh=not resumed)

    def _accepted(self, frame: Accept, now_ms: int) -> None:
        assert self._current is not None
        epoch = self._current.hello.epoch
        if frame.resumed:
            if (epoch, frame.stream) != (self.peer_epoch, self._peer_stream):
                raise LinkError("it wants to go on with what there is not")
            self._out.confirm(frame.received)
        else:
            self._restart()
        self.peer_epoch, self._peer_stream = epoch, frame.stream
        self._stand(now_ms, fresh=not frame.resumed)

    def _stand(self, now_ms: int, *, fresh: bool) -> None:
        """Both have taken the connection."""
        self.up, self.why, self._known = True, "", True
        self._up_ms = now_ms
        self.counts["fresh" if fresh else "resumed"] += 1
        self._in.tell_again()
        again = self._out.kept_frames()
        self.counts["resent"] += len(again)
        self._telling.say_all(again)
        assert self._current is not None
        version = min(VERSION, self._current.hello.version)
        seldom_ms = self.limits.heartbeat_ms
        self._heartbeat_ms = seldom_ms if version >= SELDOM_SINCE else min(seldom_ms, OFTEN_MS)
        self._telling.add(Up(self.peer, self.peer_epoch, fresh, version))

    def _restart(self) -> None:
        self._out.restart()
        self._in.restart()
        self._known = False

    def _lapse(self, why: str) -> None:
        """Give up what was kept: the next connection begins another stream."""
        self.counts["lapsed"] += 1
        self._peer_stream = 0  # which cannot be gone on with
        if self._current is not None:
            self._cut(why, lost=True)
        else:
            self._telling.add(Down(self.peer, why, lost=True))
        self._restart()

    def _deliver(self, frame: Data) -> None:
        self.counts["delivered_messages"] += len(frame.messages)
        self.counts["delivered_events"] += frame.events
        self._telling.deliver(frame)

    def _flush(self, now_ms: int) -> list[Effect]:
        """Say all that may be said now."""
        if self.up:
            out = self._out
            if not self._choked:
                if out.control:
                    self._telling.say_all(out.control_frames())
                if out.events:
                    self._flush_events(now_ms)
            rides = self._telling.pieces and now_ms - self._acked_ms >= ACK_RIDES_MS
            if rides or self._in.is_ack_due:
                self._acked_ms = now_ms
                if (ack := self._in.ack()) is not None:
                    self.counts["acks"] += not self._telling.pieces
                    self._telling.say(ack)
        if self._congested or self._out.waiting_events:
            self._weigh()
        return self._telling.taken(now_ms)

    def _flush_events(self, now_ms: int) -> None:
        """Say events that are to leave: enough of them, or any if none left just before."""
        out = self._out
        while out.events and out.may_send:
            if not (out.batch_waits or now_ms - self._flushed_ms >= self.limits.flush_ms):
                return
            self._telling.say_all([out.events_frame()])
            self._flushed_ms = now_ms

    def _weigh(self) -> None:
        """Tell when much waits, and when little does again."""
        load = self._out.load
        changed = load <= RELIEVED_FROM if self._congested else load >= CONGESTED_FROM
        if changed:
            self._congested = not self._congested
            self._telling.add(Congested(self.peer, self._congested))

    def _cut(self, reason: str, *, fault: bool = False, lost: bool = False) -> None:
        """Close the current connection."""
        current = self._current
        assert current is not None
        self._current_gone(reason, lost=lost)
        self._telling.close(current.connection, reason, fault=fault)

    def _current_gone(self, reason: str, *, lost: bool = False) -> None:
        self._telling.write()
        if self.up or lost:
            self._telling.add(Down(self.peer, reason, lost))
        self.up, self.why = False, reason
        self._current = self._telling.connection = None
        self._choked = False


COUNTED = (
    "fresh",
    "resumed",
    "lapsed",
    "resent",
    "refused",
    "malformed",
    "overdue",
    "rekeyed",
    "delivered_messages",
    "delivered_events",
    "acks",
    "signs_of_life",
)


class Telling:
    """Gather what a session wants done, until it is handed out.

    `connection` is the one in use, None if there is none.
    """

    __slots__ = ("_effects", "_peer", "connection", "pieces", "said_ms")

    def __init__(self, peer: str) -> None:
        self._peer = peer
        self.pieces: list[bytes] = []  # about to be written
        self._effects: list[Effect] = []
        self.connection: int | None = None
        self.said_ms = 0  # when anything was said last

    def say(self, frame: Frame) -> None:
        """Say a frame on the connection in use."""
        self.pieces.append(encode(frame))

    def say_all(self, frames: list[bytes]) -> None:
        """The same of frames that are encoded already."""
        self.pieces += frames

    def close(self, connection: int, reason: str, *, fault: bool = False) -> None:
        """Close a connection and tell the other why."""
        self._effects.append(Write(connection, encode(Bye(reason))))
        self._effects.append(Close(connection, reason, fault, self._peer))

    def add(self, effect: Effect) -> None:
        """Any other effect."""
        self._effects.append(effect)

    def deliver(self, frame: Data) -> None:
        """Hand up what a frame holds, with that of the one before if it is of the same class."""
        last = self._effects[-1] if self._effects else None
        messages, events = frame.messages, frame.events
        if isinstance(last, Delivered) and last.control == frame.control:
            last.messages.extend(messages)
            messages, events = last.messages, last.events + events
            self._effects.pop()
        self._effects.append(Delivered(self._peer, messages, frame.control, events))

    def write(self) -> None:
        """Send out what was said, before all effects that come after."""
        if self.pieces and self.connection is not None:
            self._effects.append(Write(self.connection, b"".join(self.pieces)))
        self.pieces.clear()

    def taken(self, now_ms: int | None = None) -> list[Effect]:
        """All that is to be done."""
        if self.pieces:
            if now_ms is not None:
                self.said_ms = now_ms
            self.write()
        effects, self._effects = self._effects, []
        return effects
