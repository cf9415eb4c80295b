"""When two neighbours have agreed to say all anew, and which frames belong to that.

Owns the numbers of sessions with each neighbour, and what is to leave in them. Must not know what
is said. Invariant: a frame that is let in was sent after its sender had forgotten all of earlier
sessions, and both ends held the same tree when they agreed; one leaves only in a session that
stands, and behind the record that it rests on.

Each end counts its sessions. It says `Hello(mine, echo, tree)`: its own number and the last that it
heard. A session stands when the other echoes its number and holds the same tree. Whoever hears of a
new number while its own session stands begins anew, too: the other has forgotten. So what one end
believes that the other knows is never more than the other was told in this very session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar
from zlib import crc32

from msgspec import Struct

from broker.network.effects import SendFrame
from broker.network.frames.frames import (
    BUNDLES_SINCE,
    AnyFrame,
    Frame,
    Hello,
    Sealed,
    ShortFrame,
    States,
    bundled,
    encoded,
)
from broker.network.neighbours.carriage import CARRIED_SINCE, CarriedEvents
from broker.network.neighbours.outlet import LinkOutlet
from broker.network.neighbours.ways import Ways
from broker.network.overlay.kinds import kind_of
from broker.network.overlay.traffic import LinkTraffic
from broker.network.replication.progress import Advanced
from broker.network.routing.probes import Neighbours
from broker.network.session.frames import VERSION

E = TypeVar("E")  # whatever else the machine has done

SHORT_SINCE = 3  # the version of frames that has short ones
PROBES_SINCE = 2  # the version of frames that has them


class _Session(Struct):
    mine: int  # ascends over all neighbours and processes
    peer: int = 0  # the last number heard; 0: none
    stands: bool = False  # both have the other's number, and one tree


class Sessions:
    """Keep when neighbours have agreed to say all again, and which frames belong to that.

    Numbers begin behind `first`, which ascends with each process.
    """

    def __init__(self, first: int) -> None:
        self.tree = ""  # a digest: both ends must agree
        self._next = first  # with room for a life's sessions
        self._all: dict[str, _Session] = {}  # by neighbour
        self._versions: dict[str, int] = {}  # of links with other brokers
        self.outlet = LinkOutlet(bundled, self.bundles)  # frames leave a session through it

    def __contains__(self, peer: str) -> bool:
        """Tell whether a session stands."""
        one = self._all.get(peer)
        return one is not None and one.stands

    @property
    def standing(self) -> list[str]:
        """The neighbours with whom a session stands, in the order of beginning."""
        return [peer for peer, one in self._all.items() if one.stands]

    @property
    def peers(self) -> list[str]:
        """The neighbours with whom one stands or is begun."""
        return list(self._all)

    def neighbours(self) -> Neighbours:
        """Return those of this moment, as probes see them."""
        plain = [peer for peer in self._all if self.version(peer) < PROBES_SINCE]
        return Neighbours(self.peers, self.standing, plain)

    def version(self, peer: str) -> int:
        """Return the version of what is said with a neighbour, which may be in this process."""
        return self._versions.get(peer, VERSION)

    def bundles(self, peer: str) -> bool:
        """Return if a neighbour understands several frames as one."""
        return self.version(peer) >= BUNDLES_SINCE

    def speak(self, peer: str, version: int) -> bool:
        """Take what the link to a neighbour has agreed on; return if a session was begun on it."""
        self._versions[peer] = version
        return peer in self._all

    def begin(self, peer: str) -> Hello:
        """Begin anew with a neighbour."""
        self._next += 1
        self._all[peer] = _Session(self._next)
        return Hello(self._next, 0, self.tree)

    def end(self, peer: str) -> None:
        """The neighbour is none any more."""
        self._all.pop(peer, None)

    def heard(self, peer: str, hello: Hello) -> tuple[Hello | None, bool]:
        """(What to answer, whether the session stands since now).

        A session that stood may stand no more afterwards; see `__contains__`.
        """
        one = self._all.get(peer)
        if one is None:
            return None, False
        answer = None
        if hello.mine != one.peer:
            if one.stands:
                self._next += 1
                one = self._all[peer] = _Session(self._next)
            one.peer = hello.mine
            answer = Hello(one.mine, one.peer, self.tree)
        if one.stands or hello.echo != one.mine or hello.tree != self.tree:
            return answer, False
        one.stands = True
        return answer, True

    def seal(self, peer: str) -> tuple[int, int]:
        """The numbers of a frame for a neighbour with whom a session stands."""
        one = self._all[peer]
        return one.mine, one.peer

    def sealed(self, peer: str, body: Sealed) -> Frame | ShortFrame:
        """Return a frame for a neighbour with whom a session stands."""
        numbers = self.seal(peer)
        if self.version(peer) < SHORT_SINCE:
            return Frame(*numbers, body)
        return ShortFrame(digest(*numbers), body)

    def runs(
        self, peer: str, received: Iterable[AnyFrame]
    ) -> Iterator[list[Hello | States | Sealed | None]]:
        """Yield what frames of one message say; claims that come together as one.

        None: a frame of another session. What one says may end the session, so each is let in when
        those before it have been dealt with.
        """
        claims: list[Hello | States | Sealed | None] = []
        for frame in received:
            if claims and not isinstance(getattr(frame, "body", None), Advanced):
                yield claims
                claims = []
            if isinstance(frame, Hello | States):
                yield [frame]
            elif not self.lets_in(peer, frame):
                yield [None]
            elif isinstance(frame.body, Advanced):
                claims.append(frame.body)
            else:
                yield [frame.body]
        if claims:
            yield claims

    def lets_in(self, peer: str, frame: Frame | ShortFrame) -> bool:
        """Tell whether a frame belongs to the session that stands."""
        one = self._all.get(peer)
        if one is None or not one.stands:
            return False
        if isinstance(frame, ShortFrame):
            return frame.seal == digest(one.peer, one.mine)
        return (one.peer, one.mine) == (frame.mine, frame.echo)


class FrameSender(Generic[E]):
    """`out` gathers what is to be done; `inside` are neighbours in this process, with no link.

    `linked`: the others are brokers, and have links.
    """

    def __init__(self, sessions: Sessions, ways: Ways, *, linked: bool = True) -> None:
        self.out: list[E | SendFrame] = []
        self.inside: dict[str, None] = {}  # cells, which need no link
        self.behind = 0  # the record that must be durable before what is said now leaves
        self.via = ways.via
        self.traffic = LinkTraffic()  # by link and type, for who looks
        self._sessions = sessions  # by which frames are sealed
        self._carried = CarriedEvents()  # an answer does not carry them again
        self._linked = linked  # to a cell nothing is sent twice

    def say(self, peer: str, body: Sealed, after: int = 0, events: int = -1) -> None:
        """Send a frame of the session with a neighbour; `events` from 0 on: of that class."""
        if peer in self._sessions:
            if events >= 0 and self._remembers(peer):
                body, events = self._carried.sent(peer, self._sessions.seal(peer), body, events)
            data = encoded(self._sessions.sealed(peer, body))
            if events > 0 and peer not in self.inside:
                self.traffic.count("sent", peer, body)
            place = max(events, 0), max(after, self.behind)
            parts = ((kind_of(body), len(data)),)
            self.out.append(SendFrame(peer, data, events < 0, *place, parts))

    def heard(self, peer: str, bodies: Sequence[Sealed]) -> list[list[Sealed]]:
        """Return what frames that go on as one stand for, if anything. Raises ValueError."""
        wholes: list[Sealed] = []
        seal = self._sessions.seal(peer) if self._remembers(peer) else None
        for body in bodies:
            if not isinstance(body, Advanced):  # its events are counted when they are decoded
                self.traffic.count("received", peer, body)
            if seal is None:
                wholes.append(body)
            else:
                wholes += self._carried.received(peer, seal, body)
        if isinstance(bodies[0], Advanced):
            return [wholes] if wholes else []
        return [[whole] for whole in wholes]

    def _remembers(self, peer: str) -> bool:
        """Tell whether both ends of a link know what it has carried."""
        is_linked = self._linked and peer not in self.inside
        return is_linked and self._sessions.version(peer) >= CARRIED_SINCE

    def pass_on(self, peer: str, to: str, body: Sealed, events: int = -1) -> None:
        """Say what came from a neighbour on the way to a broker, unless that leads back."""
        via = self.via.get(to, peer)
        if via != peer:
            self.say(via, body, events=events)

    def say_all(self, but: str, body: Sealed) -> None:
        """Say it to all neighbours but one."""
        for peer in self._sessions.standing:
            if peer != but:
                self.say(peer, body)

    def hello(self, peer: str, hello: Hello) -> None:
        """Say what belongs to no session yet."""
        self._carried.keep(self._sessions.peers)
        self.out.append(SendFrame(peer, encoded(hello)))


def digest(mine: int, echo: int) -> int:
    """Return 32 bits for the two numbers of a session, as its frames carry them."""
    return crc32(b"%d %d" % (mine, echo))
