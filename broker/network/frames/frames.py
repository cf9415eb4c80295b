"""What brokers say to each other over a link, as bytes.

Owns the frames, their encoding, and the cutting of many events into parts that a link takes. Must
not know links or who makes of them what. Invariant: a frame that is not understood is a
`FrameError` with a sentence, and concerns nobody but its sender; each part of many events is
complete in itself: all that is needed of its own (after, upto] is in it, and the last one alone
carries what is promised.

`Hello` and `States` stand alone. All others are sealed: they belong to a *session* of the two ends
(`broker.network.neighbours.sessions`), and are passed over where that is another one by now.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import accumulate
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import Event
from broker.engine.ingest.event_bytes import packed
from broker.network.delivery.succession import Succeeded
from broker.network.frames import told
from broker.network.frames.told import Asks, Attributes, Forwarded, Watermarks
from broker.network.functions.exchange import FunctionGiven, FunctionsStated, FunctionWanted
from broker.network.overlay.calls import RemoteCall
from broker.network.placement.parcels import Parcel, PartTaken
from broker.network.replication.cancellations import SubscriptionsCancelled
from broker.network.replication.incarnation import Recall, Recalled
from broker.network.replication.progress import Advanced, Awaited, Claimed, StoredUpto
from broker.network.replication.time_promises import Bounds
from broker.network.routing.advertisement.messages import Advertise, Unwant, Want, Withdraw
from broker.network.routing.advertisement.operator import Key
from broker.network.routing.probes import Echo, Probe


class FrameError(Exception):
    """Bytes of a neighbour are no frame; the sentence tells what is wrong."""


class Hello(Struct, array_like=True, frozen=True, tag="hello"):
    """The sender is at session `mine`, has heard of the other's `echo`, and holds this tree."""

    mine: int  # the number of the sender's session
    echo: int  # 0: it has heard of none yet
    tree: str  # a digest of the overlay tree


class States(Struct, array_like=True, frozen=True, tag="states"):
    """Links, as the topology tells them."""

    data: bytes  # as `broker.network.overlay.told` packs them


class Routed(Struct, array_like=True, frozen=True, tag="routed"):
    """Carry what one router says to the next."""

    message: Advertise | Withdraw | Want | Unwant  # for the router of the neighbour alone


class Here(Struct, array_like=True, frozen=True, tag="here"):
    """This way leads to the origin, which has sources of these types.

    `bounds` say of each what times of its events may be like, none: they are certain points; None:
    it promises nothing.
    """

    origin: str  # by its broker's name
    types: tuple[str, ...]  # none: of any
    bounds: Bounds | None = None


class Gone(Struct, array_like=True, frozen=True, tag="gone"):
    """This way leads to the origin no more; it promised to be back in so many ms, 0: it did not."""

    origin: str
    back_within_ms: int = 0  # so that nobody gives up on a short restart


class Reoffer(Struct, array_like=True, frozen=True, tag="reoffer"):
    """A host asks an origin for all that it needs behind a position, and from now on.

    It needs events of these types; none: it needs nothing of the origin any more. `position` None:
    it begins. `serial` comes back with the answer. `keys` are all that it wants of these types;
    None: whatever they hold. `absent` are other origins that it waits for and that have not
    answered it, `newest` the last end of all events that it has; None: it does not say. `quiet`:
    nothing is to be offered, the answer is that it came. `taken` are the events behind the position
    that the host has already, each by how far it lies behind the one before.
    """

    host: str  # who asks, by its broker's or cell's name
    origin: str  # whom it asks, however many hops away
    serial: int  # ascends at the host: an older answer is passed over
    life: int  # of the origin, as the host knows it; 0: it knows none
    position: int | None  # all of it up to here is on the host's disk
    types: dict[str, Attributes]  # with the declarations by which the host reads them
    keys: tuple[Key, ...] | None = None
    absent: tuple[str, ...] = ()  # so that brokers on the way keep nothing back in vain
    newest: int | None = None
    quiet: bool = False  # a broker on the way is unsure and wants to hear the answer pass
    taken: tuple[int, ...] = ()  # spares them from travelling twice

    def positions_taken(self, life: int) -> frozenset[int]:
        """Return the positions that an origin in this life need not offer."""
        if self.life != life:  # positions of another life may be of other events
            return frozenset()
        return frozenset(accumulate(self.taken, initial=self.position or 0))


class Fold(Struct, array_like=True, frozen=True, tag="fold"):
    """A host asks an origin to fold what windows take of it behind a position, and from now on.

    `text` has the windows, under the keys `tasks`; of each group `ids` are kept. `keep` is the
    position up to which the host will never ask again. `raw`: it wants the events that end after
    `since` as they are. `again`: what the host has of panes that are not complete it takes back.
    """

    host: str  # who owns the windows
    origin: str
    serial: int  # as in `Reoffer`
    life: int
    position: int | None  # behind it nothing has been folded yet
    keep: int | None
    types: dict[str, Attributes]
    text: bytes  # the definitions, as whoever submitted wrote them
    tasks: tuple[str, ...]  # of several that share one definition, all
    ids: int
    raw: bool = False  # after a conflict: two origins had events of one source
    since: int | None = None  # events that ended before are in the rows already
    again: bool = False


class Folded(Struct, array_like=True, frozen=True, tag="folded"):
    """Carry what an origin has folded for a host, since the question with this number.

    `last`: the answer is whole; `more`: the host is to ask again for the rest.
    """

    host: str  # rows are for one host, never shared on the way
    serial: int
    what: told.Folded  # with the positions that it stands for
    last: bool = True  # parts of one answer come in order
    more: bool = False  # the origin spares the link a long answer at once


class Doubted(Struct, array_like=True, frozen=True, tag="doubted"):
    """A broker on the way is not sure of an origin: hosts are to ask it quietly."""

    origin: str


class Stored(Struct, array_like=True, frozen=True, tag="stored"):
    """A host has on its disk all that it needs of the origin up to a position."""

    host: str  # whose disk has it
    origin: str
    life: int  # positions of another life say nothing
    position: int  # the origin may let go of all up to it

    @property
    def upto(self) -> StoredUpto:
        """Return the same as one of several."""
        return StoredUpto(self.host, ((self.origin, self.life, self.position),))


class Passed(Struct, array_like=True, frozen=True, tag="passed"):
    """Carry what hosts beyond this link need of an origin, in one with what is thereby complete.

    `serial` counts those of an origin in a session; 0: the sender does not count.
    """

    what: Forwarded  # one frame for all hosts beyond, or they would share nothing
    serial: int = 0  # a hole in the count shows what was lost


class Offered(Struct, array_like=True, frozen=True, tag="offered"):
    """A part of the answer to `Reoffer`, for one host. `more`: it is to ask again for the rest.

    `newest`: no event that the origin has admitted so far ends later; None: it does not say.
    `named` are positions of events that belong to it and were carried on this link a while ago,
    each by how far it lies before `what.upto`.
    """

    host: str  # nobody else may take it for complete
    serial: int  # of the question
    what: Forwarded
    last: bool  # only the last part carries what is promised
    more: bool  # as many were kept as fit into one answer
    newest: int | None = None
    named: tuple[int, ...] = ()


class Led(Struct, array_like=True, frozen=True, tag="led"):
    """Tell of events that lead, for who keeps back what waits for them, and how far all are told.

    `wants` is how many operators with silent keys were asked for in this session before. All that
    ends behind `since` was told, up to the times of its types; None: that is not sure.
    """

    events: bytes  # packed; they count as events of the link
    wants: int
    since: int | None = None
    times: dict[str, int] = msgspec.field(default_factory=dict)

    @property
    def what(self) -> Led:
        """Return what holds the events, as of any frame that does."""
        return self


class Listening(Struct, array_like=True, frozen=True, tag="listening"):
    """These actors, and no others, listen at a broker so many hops from the sender.

    `version` ascends at that broker with each change.
    """

    broker: str  # where they are connected
    hops: int
    actors: tuple[str, ...]  # the whole set, so that nothing has to be taken back
    version: int = 0


class Copied(Struct, array_like=True, frozen=True, tag="copied"):
    """A result of a home for an actor at one broker; all before `floor` need not come any more.

    `version` and `asks`: see `broker.network.actors.copies.Copy`.
    """

    home: str  # whose outbox has the result
    to: str  # where the actor listened when it left the home
    life: int  # numbers of another life are other copies
    floor: int  # what lies before it was taken or let go
    serial: int  # ascends for each pair of home and broker
    actor: str  # the name on whose topic it is published
    payload: bytes  # as subscribers get it
    version: int = 0
    asks: Asks = None


class CopiesTaken(Struct, array_like=True, frozen=True, tag="taken"):
    """A broker has the copies of a home up to this number."""

    home: str  # that may let go of them
    broker: str  # that has them
    life: int  # as the copy had it
    serial: int


class Planned(Struct, array_like=True, frozen=True, tag="planned"):
    """A word of those who decide where tasks run (`broker.core.coordinator`)."""

    data: bytes  # of the planner's own form, which nobody on the way reads


Sealed: TypeAlias = (
    Routed
    | Here
    | Gone
    | Reoffer
    | Fold
    | Folded
    | Doubted
    | Stored
    | StoredUpto
    | Passed
    | Advanced
    | Awaited
    | Offered
    | Led
    | Listening
    | Copied
    | CopiesTaken
    | Planned
    | Parcel
    | PartTaken
    | Recall
    | Recalled
    | SubscriptionsCancelled
    | Succeeded
    | FunctionsStated
    | FunctionWanted
    | FunctionGiven
    | RemoteCall
    | Probe
    | Echo
)


class Frame(Struct, array_like=True, frozen=True, tag="sealed"):
    """A frame of the session that the sender calls `mine` and the other `echo`."""

    mine: int  # 16 bytes of both numbers in each frame
    echo: int
    body: Sealed


class ShortFrame(Struct, array_like=True, frozen=True, tag="s"):
    """The same with a digest of both numbers, which are long."""

    seal: int  # 4 bytes: enough to tell two sessions apart
    body: Sealed


AnyFrame: TypeAlias = Hello | States | Frame | ShortFrame


class Bundle(Struct, array_like=True, frozen=True, tag="bundle"):
    """Several frames in order, pressed by zlib or as they are."""

    is_pressed: bool  # incompressible ones stay as they are
    frames: bytes  # an array of frames, as one would be alone


BUNDLES_SINCE = 3  # the version of frames that has them
LEADS_SINCE = 4  # the version of frames that tell of leads
SCOPES_SINCE = 4  # the version whose words of planning have a scope; before, all was for all
PRESSED_BYTES_MIN = 200  # shorter ones hardly get smaller
BUNDLE_BYTES_MAX = 2 * 1024 * 1024  # unpressed: twice what a link takes
_LEVEL = 6  # of zlib: beyond it costs time and gains little

encoded = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(AnyFrame | Bundle).decode
_decode_all = msgspec.msgpack.Decoder(list[AnyFrame]).decode


def bundled(messages: Sequence[bytes]) -> bytes:
    """Return several encoded frames as one."""
    frames = encoded([msgspec.Raw(message) for message in messages])
    if len(frames) >= PRESSED_BYTES_MIN:
        pressed = zlib.compress(frames, _LEVEL)
        if len(pressed) < len(frames):
            return encoded(Bundle(True, pressed))
    return encoded(Bundle(False, frames))


def decoded(data: bytes) -> list[AnyFrame]:
    """Return the frames that a neighbour sent as one message. Raises FrameError."""
    try:
        first = _decode(data)
        if not isinstance(first, Bundle):
            return [first]
        return _decode_all(_unpressed(first.frames) if first.is_pressed else first.frames)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, zlib.error) as error:
        raise FrameError(f"a frame cannot be read: {error}") from None


def _unpressed(data: bytes) -> bytes:
    """Return the bytes that were pressed; nobody can be made to hold more than so many."""
    reader = zlib.decompressobj()
    frames = reader.decompress(data, BUNDLE_BYTES_MAX)
    if not reader.eof or reader.unused_data:
        raise FrameError("a frame cannot be read: it is a part, or holds too much")
    return frames


PART_EVENTS = 512  # as many as are worth one step of a host
PART_BYTES = 512 * 1024  # half of what a link takes as one message

Row = tuple[int, Event]


def forwarded(  # noqa: PLR0917  # what a frame says
    origin: str,
    life: int,
    claim: tuple[int, int],
    rows: Sequence[Row],
    watermarks: Watermarks,
    held_after: int | None = None,
) -> list[Forwarded]:
    """All that is needed of a claim, in one part or more; rows are (position, event).

    Rows before the claim were kept back; `held_after` is what holds behind the last part.
    """
    after, upto = claim
    forwards: list[Forwarded] = []
    parts = cut(sorted(rows, key=itemgetter(0)))
    for number, (part, events) in enumerate(parts):
        is_last = number == len(parts) - 1
        end = upto if is_last else max(after, part[-1][0])
        positions = list(map(itemgetter(0), part))
        promised = watermarks if is_last else {}
        held = None if held_after is None else min(held_after, end)
        what = origin, life, after, end, positions, events, promised
        forwards.append(Forwarded(*what, held_after=held))
        after = end
    return forwards


def cut(rows: Sequence[Row]) -> list[tuple[Sequence[Row], bytes]]:
    """Rows in parts of bounded size, with their events; one part, if an empty one, at least."""
    parts = [rows]
    if len(rows) > PART_EVENTS:
        parts = [rows[at : at + PART_EVENTS] for at in range(0, len(rows), PART_EVENTS)]
    fitting: list[tuple[Sequence[Row], bytes]] = []
    while parts:
        part = parts.pop(0)
        events = packed(list(map(itemgetter(1), part)))
        if len(part) > 1 and len(events) > PART_BYTES:
            half = len(part) // 2
            parts[:0] = [part[:half], part[half:]]
        else:
            fitting.append((part, events))
    return fitting


ENDED = -1  # in the place of a time: there is no source of the type any more
UNKNOWN = -2  # likewise: nothing is promised yet
_NONE = packed([])  # what a frame carries that only claims


class Passage(NamedTuple):
    """A claim of an origin with its number; `is_new`: its life is another than before.

    `hurry`: see `Claimed`.
    """

    what: Forwarded  # a claim is one, too, without events
    serial: int  # 0: the sender does not count
    is_new: bool = False
    hurry: bool = False


def advanced(passages: Sequence[Passage]) -> Advanced:
    """Return what is claimed of origins as one frame.

    Types and times are named once, as origins mostly send the same types and are as far.
    """
    times = [time for each in passages for time in each.what.watermarks.values()]
    since = min([time for time in times if time is not None and time > WATERMARK_NONE], default=0)
    types: dict[tuple[str, ...], int] = {}
    rows = []
    for what, serial, is_new, hurry in passages:
        by_time: dict[int | None, list[str]] = {}
        for name, time in what.watermarks.items():
            by_time.setdefault(time, []).append(name)
        promised = [
            (types.setdefault(tuple(names), len(types)), _since(time, since))
            for time, names in by_time.items()
        ]
        row = Claimed(
            what.origin,
            what.upto - what.after,
            what.upto,
            serial,
            tuple(promised),
            what.life if is_new else 0,
            tuple([what.upto - position for position in what.positions]),
            what.events if what.positions else b"",
            None if what.held_after is None else what.upto - what.held_after,
            hurry,
        )
        rows.append(row)
    return Advanced(since, tuple(types), tuple(rows))


def _since(time: int | None, since: int) -> int:
    if time is None:
        return ENDED
    return UNKNOWN if time <= WATERMARK_NONE else time - since


def passage(frame: Advanced, row: Claimed, life: int) -> Passage:
    """Return what one row of a frame claims of an origin; its `life` holds unless the row says one.

    Raises LookupError.
    """
    upto = row.upto
    watermarks: Watermarks = {}
    for place, after in row.promised:
        for name in frame.types[place]:
            watermarks[name] = _time(after, frame.since)
    positions = list(map(upto.__sub__, row.places))
    what = Forwarded(
        row.origin,
        row.life or life,
        upto - row.span,
        upto,
        positions,
        row.events or _NONE,
        watermarks,
        held_after=None if row.back is None else upto - row.back,
    )
    return Passage(what, row.serial, hurry=row.hurry)


def _time(after: int, since: int) -> int | None:
    if after == ENDED:
        return None
    return WATERMARK_NONE if after == UNKNOWN else since + after
