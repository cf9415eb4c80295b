"""When two neighbours have agreed to say all anew, and what is said in such a session.

Owns the numbers of sessions with each neighbour, what is to leave in them, what waits for the next
message to a neighbour, and which events both ends remember. Must not know what is said, nor hosts.
Invariant: a frame that is let in was sent after its sender had forgotten all of earlier sessions,
and both ends held the same tree when they agreed; one leaves only in a session that stands, and
behind the record that it rests on. Frames of one neighbour and class leave in the order in which
they came, control ahead of events that came later; control waits for `HOLD_MS` at most, events do
not wait.

Each end counts its sessions. It says `Hello(mine, echo, tree)`: its own number and the last that it
heard. A session stands when the other echoes its number and holds the same tree. Whoever hears of a
new number while its own session stands begins anew, too: the other has forgotten. So what one end
believes that the other knows is never more than the other was told in this very session.

A message costs a header, an acknowledgement and, over a radio, a slot, whatever it holds. Where
much is to be said at once (a link comes up, a text is submitted), it comes in many small frames
from many steps. So control goes at once where the last message is `HOLD_MS` ago, and else with
what comes until then, as Nagle's algorithm has it, but for a fixed time: to wait for the other's
acknowledgement would add a round trip for each hop.

A task that moves begins at its new host from a state, and has all offered that came behind it. Of
that some has just passed the same links on its way to the old host. So an answer to a host names
the events that the link has carried of late. Both ends remember the same, as each takes up what
frames carry in their order, and forgets the oldest of an origin by their bytes; so what one end
names the other has, unless a link has refused it.

    Passed, Advanced, Offered ─▶ remembered at both ends
    Offered again ─▶ named where it is remembered ─▶ Offered, as if all had been carried
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Generic, Literal, TypeVar
from zlib import crc32

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from broker.network.effects import SendFrame
from broker.network.frames.frames import (
    BUNDLES_SINCE,
    AnyFrame,
    Frame,
    Hello,
    Offered,
    Passed,
    Sealed,
    ShortFrame,
    States,
    bundled,
    encoded,
)
from broker.network.frames.told import Forwarded
from broker.network.neighbours.ways import Ways
from broker.network.overlay.kinds import KindTraffic, Part, kind_of
from broker.network.replication.progress import Advanced, Claimed
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


HOLD_MS = 20  # of control: a text is active some hops later by as much each
FRAMES_MAX = 256  # in one message
BATCH_BYTES = 256 * 1024  # of frames in one message: a quarter of what a link takes

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


CARRIED_SINCE = 4  # the version of frames whose answers may name events
CARRIED_BYTES_MAX = 8_192  # of the events of an origin that are remembered

Row = tuple[int, msgspec.Raw]  # a position, and its event as it is packed
Seal = tuple[int, int]  # of a session, the same number first at one end and last at the other

_encode = msgspec.msgpack.Encoder().encode
_rows_of = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


class _Carried(Struct):
    """The last that was carried of an origin: by frame the positions and the events, packed."""

    life: int = 0  # in another the same position may be another event
    size: int = 0
    frames: deque[tuple[Sequence[int], bytes]] = field(default_factory=deque)

    def take(self, positions: Sequence[int], events: bytes) -> None:
        """Remember what a frame carries, and forget the oldest."""
        self.frames.append((positions, events))
        self.size += len(events)
        while self.size > CARRIED_BYTES_MAX:
            self.size -= len(self.frames.popleft()[1])


class _Side(Struct):
    """Remember what a session has carried one way, by origin."""

    seal: Seal = (0, 0)
    origins: dict[str, _Carried] = field(default_factory=dict)

    def of(self, origin: str, life: int) -> _Carried:
        """Return what was carried of an origin in this life; 0: in that of before."""
        carried = self.origins.get(origin)
        if carried is None or (life and life != carried.life):
            carried = self.origins[origin] = _Carried(life)
        return carried

    def rows(self, what: Forwarded) -> dict[int, msgspec.Raw]:
        """Return what is remembered of an answer's origin, by position."""
        rows: dict[int, msgspec.Raw] = {}
        for positions, events in self.of(what.origin, what.life).frames:
            rows.update(zip(positions, _rows_of(events), strict=True))
        return rows

    def take(self, body: Sealed) -> None:
        """Remember what a frame carries."""
        rows: Sequence[Claimed | Forwarded] = ()
        if isinstance(body, Advanced):
            rows = body.rows
        elif isinstance(body, Passed | Offered):
            rows = (body.what,)
        for row in rows:
            positions = row.positions
            if positions or row.life:
                carried = self.of(row.origin, row.life)
                if positions:
                    carried.take(positions, row.events)


class CarriedEvents:
    """Remember what each link of a broker has carried of late, in both directions."""

    def __init__(self) -> None:
        self._sent: dict[str, _Side] = {}  # by neighbour
        self._received: dict[str, _Side] = {}  # likewise

    def keep(self, peers: Collection[str]) -> None:
        """Forget what was carried to and from who is none of these neighbours."""
        for sides in (self._sent, self._received):
            for peer in [peer for peer in sides if peer not in peers]:
                del sides[peer]

    def sent(self, peer: str, seal: Seal, body: Sealed, events: int) -> tuple[Sealed, int]:
        """Return what is to be sent in place of a frame, and how many events it carries."""
        side = _side(self._sent, peer, seal)
        if isinstance(body, Offered) and body.what.positions:
            body = _named(side, body)
            events = len(body.what.positions)
        side.take(body)
        return body, events

    def received(self, peer: str, seal: Seal, body: Sealed) -> tuple[Sealed, ...]:
        """Return what a frame stands for; nothing where it names what a link has refused.

        Whoever sent that hears of it, and begins a new session. Raises ValueError.
        """
        side = _side(self._received, peer, seal)
        if not isinstance(body, Offered) or not body.named:
            side.take(body)
            return (body,)
        rows = side.rows(body.what)
        side.take(body)
        places = [body.what.upto - back for back in body.named]
        if any(place not in rows for place in places):
            return ()
        return (_whole(body, [(place, rows[place]) for place in places]),)


def _side(sides: dict[str, _Side], peer: str, seal: Seal) -> _Side:
    side = sides.get(peer)
    if side is None or side.seal != seal:
        side = sides[peer] = _Side(seal)
    return side


def _named(side: _Side, answer: Offered) -> Offered:
    what = answer.what
    frames = side.of(what.origin, what.life).frames
    carried = {position for positions, _ in frames for position in positions}
    named = tuple([what.upto - position for position in what.positions if position in carried])
    if not named:
        return answer
    rows = zip(what.positions, _rows_of(what.events), strict=True)
    left = [row for row in rows if row[0] not in carried]
    return replace(answer, what=replace(what, **_packed(left)), named=named)


def _whole(answer: Offered, named: Sequence[Row]) -> Offered:
    rows = [*zip(answer.what.positions, _rows_of(answer.what.events), strict=True), *named]
    rows.sort(key=lambda row: row[0])
    return replace(answer, what=replace(answer.what, **_packed(rows)), named=())


def _packed(rows: Sequence[Row]) -> dict[str, list[int] | bytes]:
    positions, events = [position for position, _ in rows], [row for _, row in rows]
    return {"positions": positions, "events": _encode(events)}


TYPES_MAX = 1_000  # of a link and a direction; a network has some dozens
OTHERS = "(other types)"  # no event type has a blank in its name

Direction = Literal["sent", "received"]


class _TypeAlone(msgspec.Struct):
    type: str


_types_of = msgspec.msgpack.Decoder(list[_TypeAlone]).decode


class LinkTraffic:
    """Counts of one broker's links: by neighbour and type, since its process began."""

    def __init__(self) -> None:
        self._counts: dict[Direction, dict[str, dict[str, int]]] = {"sent": {}, "received": {}}

    def count(self, direction: Direction, peer: str, body: object) -> None:
        """Count the events of a frame's `body` that went to `peer` or came from there.

        A body without events counts as nothing; so does one that cannot be read, which is refused
        where it is handled.
        """
        rows = body.rows if isinstance(body, Advanced) else (getattr(body, "what", None),)
        for row in rows:
            if row is None or not row.events:
                continue
            try:
                types = [event.type for event in _types_of(row.events)]
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue
            self.count_types(direction, peer, types)

    def count_types(self, direction: Direction, peer: str, types: Sequence[str]) -> None:
        """Count events that are decoded already, by their types."""
        if not types:
            return
        counts = self._counts[direction].setdefault(peer, {})
        for name in types:
            # A neighbour may invent types; what it sent is still all counted.
            full = len(counts) >= TYPES_MAX and name not in counts
            counted = OTHERS if full else name
            counts[counted] = counts.get(counted, 0) + 1

    def by_type(self, direction: Direction, peer: str) -> dict[str, int]:
        """Return the events of each type that went to `peer` or came from there, by name."""
        counts = self._counts[direction].get(peer, {})
        return dict(sorted(counts.items()))

    def totals(self, direction: Direction) -> dict[str, int]:
        """Return the events of all types, by neighbour."""
        return {peer: sum(counts.values()) for peer, counts in self._counts[direction].items()}
