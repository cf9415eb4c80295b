"""Calls among brokers: one asks another by name, over links, and gets one reply or none.

Owns the frame, its next hop, and which calls are open. Must not know what is asked, nor how long a
reply is waited for. Invariant: each call that was opened ends once, with its reply or as whoever
asked gives up; a reply that comes later, or from another broker, ends nothing.

Links lose frames and brokers end, so a call may be lost on its way or after it was carried out.
Nothing is sent again here: whoever asked is told that there was no reply, and asks again if it
matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from broker.network.overlay.tree import Tree

CALLS_SINCE: Final = 2  # the version of frames that has them
OPEN_MAX: Final = 1_000  # calls of one broker that wait for replies


class RemoteCall(Struct, array_like=True, frozen=True, tag="call"):
    """A call, or the reply to the call of this number; `body` is JSON."""

    sender: str
    to: str
    number: int
    is_reply: bool
    body: bytes


class CallSent(Struct, frozen=True):
    """A message to the core: this broker calls another, or replies to it."""

    call: RemoteCall


class CallArrived(Struct, frozen=True):
    """An effect: a call or a reply has reached the broker that it is for."""

    call: RemoteCall


class Peers(Protocol):
    """The neighbours of a broker, by the versions of their frames."""

    def version(self, peer: str) -> int:
        """Return the version of a neighbour's frames."""


class NextHops(Protocol):
    """The next hops of a broker."""

    @property
    def via(self) -> Mapping[str, str]:
        """Return the neighbour toward each broker that can be reached."""


class TreeKnown(Protocol):
    """The links of a network, as a broker knows them."""

    @property
    def tree(self) -> Tree:
        """Return the overlay tree as this broker has chosen it."""


class Caller(Protocol):
    """A broker among others, as far as calls need it."""

    me: str

    @property
    def topology(self) -> TreeKnown:
        """Return the links."""

    @property
    def ways(self) -> NextHops:
        """Return the next hops."""

    @property
    def sessions(self) -> Peers:
        """Return the neighbours."""

    def say(self, peer: str, body: Any) -> None:
        """Send a frame to a neighbour."""

    def note(self, what: Any) -> None:
        """Have an effect carried out."""


class CallRelay:
    """Brings calls of one broker, and those of others that pass it, one hop further."""

    def __init__(self, broker: Caller) -> None:
        self._broker = broker

    def reaches(self, to: str) -> bool:
        """Return if a call can leave for broker `to`."""
        via = self._broker.ways.via.get(to)
        return via is not None and self._broker.sessions.version(via) >= CALLS_SINCE

    def leads(self, to: str) -> bool:
        """Return if a way to broker `to` is to come: neighbours do not agree on the tree yet."""
        # Hellos carry the tree: while two ends hold different ones no way passes between them, so
        # after a link went or came even a neighbour is out of reach for a moment.
        return to not in self._broker.ways.via and to in self._broker.topology.tree.hops

    def send(self, call: RemoteCall) -> None:
        """Send a call of this broker; it is lost where no way leads to its broker."""
        if self.reaches(call.to):
            self._broker.say(self._broker.ways.via[call.to], call)

    def hear(self, peer: str, call: RemoteCall) -> None:
        """Take a call from a neighbour. Raises ValueError where its sender is not behind that."""
        ways = self._broker.ways.via
        if ways.get(call.sender) != peer:
            raise ValueError(f"{peer} has a call of {call.sender}, which is not behind it")
        if call.to == self._broker.me:
            self._broker.note(CallArrived(call))
        # One whose way leads back has met a change of ways: it would go to and fro until that ends.
        elif ways.get(call.to) != peer:
            self.send(call)


class OpenCalls:
    """Calls of broker `me` that wait for replies.

    Numbers begin behind `first`, which ascends with each process: no reply to a call of an earlier
    process is taken for one to a call of this.
    """

    def __init__(self, me: str, first: int) -> None:
        self._me = me
        self._next = first
        self._open: dict[int, tuple[str, Any]] = {}  # by number: to whom, and the token

    def __len__(self) -> int:
        return len(self._open)

    def open(self, to: str, body: bytes, token: Any) -> RemoteCall | None:
        """Begin a call that ends with `token`; None where too many are open."""
        if len(self._open) >= OPEN_MAX:
            return None
        self._next += 1
        self._open[self._next] = to, token
        return RemoteCall(self._me, to, self._next, is_reply=False, body=body)

    def close(self, reply: RemoteCall) -> Any:
        """End the call that this is the reply to, and return its token; None where none waits."""
        to, token = self._open.get(reply.number, ("", None))
        if not reply.is_reply or to != reply.sender:
            return None
        del self._open[reply.number]
        return token

    def drop(self, call: RemoteCall) -> None:
        """End a call without a reply, if it is still open."""
        self._open.pop(call.number, None)


def reply_to(call: RemoteCall, body: bytes) -> RemoteCall:
    """Return the reply to a call."""
    return RemoteCall(call.to, call.sender, call.number, is_reply=True, body=body)
