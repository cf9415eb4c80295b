"""All links of one broker: from connections to sessions with neighbours.

Owns the connections whose other end is not known yet, and which session each of the others belongs
to. Must not know sockets, or what messages mean. Invariant: a connection that does wrong is closed
alone, with a sentence, and what one neighbour does changes no other's link.

Whoever has sockets tells `Opened`, `Received`, `Closed` and `Choked`; whoever has messages tells
`Offered`, `Held` and `Forgotten`, and gets `Delivered`, `Up`, `Down`, `Congested` and `Refused`.
After each `handle`, `next_wake` says when `Woken` is due.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from broker.network.session.choosing import Candidate
from broker.network.session.frames import (
    VERSION,
    Bye,
    Frame,
    FrameReader,
    Hello,
    LinkError,
    decode,
    encode,
)
from broker.network.session.handshake import Handshake, PeerClosedError
from broker.network.session.limits import LinkLimits
from broker.network.session.session import LinkSession
from broker.network.session.told import (
    Choked,
    Close,
    Closed,
    Effect,
    Forgotten,
    Held,
    NameInUse,
    Offered,
    Opened,
    Received,
    Refused,
    Told,
    Woken,
    Write,
)

TAKEN = (
    'another process called "{}" has a link to this broker, which is in order: each broker needs a '
    "name and a disk of its own; if this one is to take its place, end the other first"
)


class _Connection:
    __slots__ = ("dialled", "handshake", "opened_ms", "reader", "session")

    def __init__(self, handshake: Handshake, hello_bytes_max: int, now_ms: int) -> None:
        self.dialled = handshake.dialled
        self.handshake = handshake
        self.reader = FrameReader(hello_bytes_max)
        self.opened_ms = now_ms
        self.session: LinkSession | None = None


class Links:
    """Keep all links of one broker, from connections to sessions with neighbours.

    `secret` is shared by all brokers of the network; empty: there is none.

    Two may be valid side by side, see `rekey`, so that brokers get another one after the other.

    `epoch` is of this process and has to be greater than that of any before under the same name.
    """

    def __init__(
        self, me: str, epoch: int, limits: LinkLimits | None = None, secret: bytes = b""
    ) -> None:
        self.me = me
        self.epoch = epoch
        self.limits = limits or LinkLimits()
        self.sessions: dict[str, LinkSession] = {}  # by neighbour
        self.refused: dict[str, int] = {}  # connections of strangers that were closed, by why
        self._secrets: tuple[bytes, ...] = (secret,)
        self._connections: dict[int, _Connection] = {}
        self._pending: dict[int, int] = {}  # not agreed on yet, and until when they may be so
        self._attempts = 0
        self._held = False
        self._turns: dict[str, int] = {}  # by peer: connections that our secret did not open
        self._on: dict[type[Any], Callable[[Any, int], list[Effect]]] = {
            Opened: self._opened,
            Received: self._received,
            Closed: self._closed,
            Choked: self._choked,
            Offered: self._offered,
            Held: self._hold,
            Forgotten: self._forget,
            Woken: self._woken,
        }

    def handle(self, told: Told, now_ms: int) -> list[Effect]:
        """Return what is to be done now that this was told.

        Raises ValueError as `LinkSession.offer`.
        """
        return self._on[type(told)](told, now_ms)

    def next_wake(self) -> int | None:
        """When `Woken` is due, if nothing else happens before."""
        due = min(self._pending.values(), default=None)
        for session in self.sessions.values():
            wake = session.next_wake()
            if wake is not None and (due is None or wake < due):
                due = wake
        return due

    def up(self, peer: str) -> bool:
        """Tell whether the link to a neighbour stands."""
        session = self.sessions.get(peer)
        return session is not None and session.up

    def rekey(self, secrets: Sequence[bytes]) -> list[Effect]:
        """Prove with the first of `secrets` from now on, and believe who has any of them.

        Connections that were proven with another secret are closed; they are dialled again.
        """
        self._secrets = tuple(secrets) or (b"",)
        effects: list[Effect] = []
        for connection, item in list(self._connections.items()):
            if item.handshake.done and item.handshake.secret not in self._secrets:
                bye = LinkError("its shared secret is no longer valid")
                if item.session is None:
                    effects += self._refuse(connection, str(bye), fault=False)
                else:
                    effects += self._after(item.session.failed(connection, bye, "rekeyed"))
        return effects

    def _secrets_for(self, peer: str) -> tuple[bytes, ...]:
        """The secrets for a connection to a peer: the one to prove with comes first.

        The dialler proves before it knows which secret the other has, so it tries one after the
        other from connection to connection, and stays with what was good.
        """
        turn = self._turns.get(peer, 0) % len(self._secrets)
        return self._secrets[turn:] + self._secrets[:turn]

    def end(self, reason: str = "the broker stops") -> list[Effect]:
        """Close everything; nothing else may be told afterwards."""
        effects: list[Effect] = []
        for session in self.sessions.values():
            effects += session.end(reason)
        for connection, one in list(self._connections.items()):
            if one.session is None:
                effects += self._refuse(connection, reason, fault=False)
        self._connections.clear()
        self._pending.clear()
        return effects

    # --- connections ---------------------------------------------------------------------

    def _opened(self, told: Opened, now_ms: int) -> list[Effect]:
        # Counted anew for each connection: there are few, and a count that is kept would have to
        # be right on every way by which a stranger becomes known or leaves.
        strangers = sum(1 for one in self._connections.values() if one.session is None)
        if not told.dialled and strangers >= self.limits.strangers_max:
            self._count("too_many_strangers")
            return [Close(told.connection, "too many connections have not said who they are")]
        session = self.sessions.get(told.expected)
        self._attempts += told.dialled
        hello = Hello(
            VERSION,
            self.me,
            self.epoch,
            told.nonce,
            self._attempts if told.dialled else 0,
            0 if session is None else session.holds,
            bool(self._secrets[0]),
        )
        handshake = Handshake(
            hello,
            self._secrets_for(told.expected) if told.dialled else self._secrets,
            dialled=told.dialled,
            expected=told.expected,
            certified=told.certified,
        )
        self._connections[told.connection] = _Connection(
            handshake, self.limits.hello_bytes_max, now_ms
        )
        # One due time for the handshake and for being chosen: a stranger that is slow on purpose
        # is closed by it, and so is a connection of which the decider never speaks.
        self._pending[told.connection] = now_ms + self.limits.handshake_ms
        first = handshake.opened()
        return [Write(told.connection, first)] if first else []

    def _received(self, told: Received, now_ms: int) -> list[Effect]:
        one = self._connections.get(told.connection)
        if one is None:
            return []  # it was closed; bytes of it may still have been under way
        one.reader.push(told.data)
        effects: list[Effect] = []
        if one.session is None:
            try:
                effects = self._greet(told.connection, one, now_ms)
            except LinkError as error:
                spoken = isinstance(error, PeerClosedError)
                if one.dialled:
                    peer = one.handshake.expected
                    self._turns[peer] = self._turns.get(peer, 0) + 1
                return effects + self._refuse(told.connection, str(error), spoken=spoken)
            if one.session is None:
                return effects
        session = one.session
        frames, wrong = _frames(one.reader)
        for frame in frames:
            if isinstance(frame, Bye) and frame.taken:
                effects.append(NameInUse(session.peer, frame.reason))
        effects += self._after(session.heard(told.connection, frames, now_ms))
        if wrong is not None and told.connection in self._connections:
            effects += self._after(session.failed(told.connection, wrong))
        pends = told.connection in self._pending
        if pends and session.up and session.connection == told.connection:
            del self._pending[told.connection]
        return effects

    def _greet(self, connection: int, one: _Connection, now_ms: int) -> list[Effect]:
        """Go on with the handshake as far as what came goes. Raises LinkError."""
        effects: list[Effect] = []
        while not one.handshake.done:
            body = one.reader.next()
            if body is None:
                return effects
            answer = one.handshake.heard(body)
            if answer:
                effects.append(Write(connection, answer))
        hello = one.handshake.other
        assert hello is not None
        session = self.sessions.get(hello.broker)
        if session is None:
            if len(self.sessions) >= self.limits.neighbours_max:
                raise LinkError(f"there are {len(self.sessions)} neighbours already")
            session = LinkSession(self.me, self.epoch, hello.broker, self.limits)
            session.hold(now_ms, on=self._held)
            self.sessions[hello.broker] = session
        elif session.up and hello.epoch != session.peer_epoch:
            # The other has proven the name as well, and so shall this end: it stops admitting.
            return [*effects, *self._refuse(connection, TAKEN.format(hello.broker), taken=True)]
        one.session = session
        # Before the proof a stranger could have this broker hold no more than a hello is long.
        one.reader.trust(self.limits.frame_bytes_max)
        candidate = Candidate(connection, hello, one.dialled, one.opened_ms)
        return effects + self._after(session.introduced(candidate, now_ms))

    def _closed(self, told: Closed, _now_ms: int) -> list[Effect]:
        one = self._connections.pop(told.connection, None)
        self._pending.pop(told.connection, None)
        if one is None or one.session is None:
            return []
        return self._after(one.session.closed(told.connection, told.reason))

    def _refuse(
        self,
        connection: int,
        reason: str,
        *,
        fault: bool = True,
        spoken: bool = False,
        taken: bool = False,
    ) -> list[Effect]:
        """Close a connection that belongs to no session."""
        # The sentence goes to the other end, too: whoever looks at either log finds out why there
        # is no link.
        one = self._connections.pop(connection)
        self._pending.pop(connection, None)
        other = one.handshake.other
        if fault:
            self._count("refused_by_other" if spoken else "refused")
        close = Close(connection, reason, fault, "" if other is None else other.broker)
        return [close] if spoken else [Write(connection, encode(Bye(reason, taken))), close]

    def _after(self, effects: list[Effect]) -> list[Effect]:
        """Sessions close connections by themselves: of these nothing more is known."""
        for effect in effects:
            if isinstance(effect, Close):
                self._connections.pop(effect.connection, None)
                self._pending.pop(effect.connection, None)
        return effects

    def _count(self, why: str) -> None:
        self.refused[why] = self.refused.get(why, 0) + 1

    # --- the rest ------------------------------------------------------------------------

    def _choked(self, told: Choked, now_ms: int) -> list[Effect]:
        one = self._connections.get(told.connection)
        if one is None or one.session is None:
            return []
        return one.session.choked(told.connection, now_ms, on=told.on)

    def _offered(self, told: Offered, now_ms: int) -> list[Effect]:
        session = self.sessions.get(told.peer)
        if session is None:
            return [Refused(told.peer, "no_neighbour", len(told.messages), told.events)]
        effects = session.offer(told.messages, told.events, now_ms, control=told.control)
        return self._after(effects)

    def _woken(self, _told: Woken, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        for session in self.sessions.values():
            effects += session.wake(now_ms)
        self._after(effects)
        for connection, due_ms in list(self._pending.items()):
            if due_ms > now_ms:
                continue
            reason = f"it was not agreed on within {self.limits.handshake_ms} ms"
            session_of = self._connections[connection].session
            if session_of is None:
                effects += self._refuse(connection, reason)
            else:
                effects += self._after(session_of.failed(connection, LinkError(reason), "overdue"))
        return effects

    def _hold(self, told: Held, now_ms: int) -> list[Effect]:
        if not told.peer:
            self._held = told.on
        effects: list[Effect] = []
        for name, session in self.sessions.items():
            if told.peer in ("", name):
                effects += session.hold(now_ms, on=told.on)
        return effects

    def _forget(self, told: Forgotten, _now_ms: int) -> list[Effect]:
        session = self.sessions.pop(told.peer, None)
        if session is None:
            return []
        return self._after(session.end("the neighbour was forgotten"))


def _frames(reader: FrameReader) -> tuple[list[Frame], LinkError | None]:
    """All frames that are whole, and why there are no more."""
    frames: list[Frame] = []
    try:
        while (body := reader.next()) is not None:
            frames.append(decode(body))
    except LinkError as error:
        return frames, error
    return frames, None
