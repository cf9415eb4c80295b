"""What the core was told, as the journal's records hold it.

Owns the data of records: which messages are written down, and how. Must not know framing, files or
what the core makes of a message. Invariant: what is read back has the same effects as what was
written, but for tokens and reply addresses, which end with the process.

Data is MessagePack: an array that begins with the kind and the time in ms. What a later version
adds stands behind what is there, and an earlier one passes over it; a kind that it does not know
tells it that a later one wrote this. Texts that strangers give at length are bytes, as not all that
Python calls a text can be encoded strictly.

Not written down is what changes nothing that results depend on: `Started`, `Stopped`, requests and
topics that were refused. The counters of the latter begin anew with each process.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from broker.core import messages
from broker.core.messages import Message
from broker.engine.ingest.registry import Format
from broker.network.frames.told import decoded, encoded
from broker.network.functions.files import FunctionFile

_ERRORS = "surrogatepass"


class RecordError(Exception):
    """A record's data is not what this version can read; the sentence tells why."""


class Opened(Struct, array_like=True, frozen=True, tag="opened"):
    """A process began, with these settings; `tables` None: the same as before.

    The time in which no process was there is nobody's silence: see `RestorableBroker.resume`.
    """

    now: int
    options: dict[str, Any]
    limits: dict[str, int]
    tables: dict[str, str] | None = None


class _Events(Struct, array_like=True, frozen=True, tag="events"):
    now: int
    payloads: list[tuple[str, str, bytes, Format]]


class _Advertised(Struct, array_like=True, frozen=True, tag="advertised"):
    now: int
    source: str
    data: bytes


class _Withdrawn(Struct, array_like=True, frozen=True, tag="withdrawn"):
    now: int
    source: str


class _Listening(Struct, array_like=True, frozen=True, tag="listening"):
    now: int
    broker: str
    hops: int
    came: tuple[str, ...]
    gone: tuple[str, ...]
    anew: bool
    version: int = 0


class _Asked(Struct, array_like=True, frozen=True):
    """The beginning of all records of submissions."""

    now: int
    client: bytes
    request: bytes
    text: bytes
    proven: bool
    cells: int = 1
    keeps_state: bool = False  # of an earlier version, where a changed text began anew
    alone: bool = False  # of an earlier version, where what needs the same inputs was one cell
    revises: bool = False  # of an earlier version, where a cell had one text


class _Submitted(_Asked, array_like=True, frozen=True, tag="submitted"):
    apart: bool = False  # of an earlier version, where who came later shared what ran


class _Split(_Asked, array_like=True, frozen=True, tag="split"):
    """A submission whose windows are split: a kind of its own, as an earlier version cannot."""

    apart: bool = False


class _PartSubmitted(_Asked, array_like=True, frozen=True, tag="part"):
    """A submission of these alone: a kind of its own, as an earlier version installs all."""

    only: tuple[tuple[str, str], ...] = ()
    apart: bool = False


class _Cancelled(Struct, array_like=True, frozen=True, tag="cancelled"):
    now: int
    client: bytes
    request: bytes
    name: bytes
    proven: bool


class _Resumed(_Cancelled, array_like=True, frozen=True, tag="resumed"):
    """A suspended subscription begins anew."""

    apart: bool = False  # of an earlier version, where a definition began anew for all


class Bounded(Struct, array_like=True, frozen=True, tag="bounded"):
    """A message in which steps exceeded their budget: which of its steps, and what they lacked."""

    now: int
    what: bytes  # the message's own record
    steps: tuple[tuple[int, str], ...]


class _Network(Struct, array_like=True, frozen=True, tag="network"):
    now: int
    what: bytes  # see `broker.network.frames.told`


class _Woken(Struct, array_like=True, frozen=True, tag="woken"):
    now: int


class _ClockSet(Struct, array_like=True, frozen=True, tag="clock"):
    now: int
    ahead_ms: int


class _Settling(Struct, array_like=True, frozen=True, tag="settling"):
    now: int


class _Functions(Struct, array_like=True, frozen=True, tag="functions"):
    now: int
    files: tuple[FunctionFile, ...]


_Told: TypeAlias = (
    Opened
    | _Events
    | _Advertised
    | _Withdrawn
    | _Listening
    | _Submitted
    | _Split
    | _PartSubmitted
    | _Cancelled
    | _Resumed
    | Bounded
    | _Network
    | _Woken
    | _ClockSet
    | _Settling
    | _Functions
)

_row = attrgetter("type_name", "source", "data", "format")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Told).decode


def written(message: Message, now: int) -> bytes:  # noqa: PLR0911  # one for each kind
    """The record's data of a message that is to be written down; empty for others."""
    match message:
        case messages.EventsReceived(payloads):
            return _encode(_Events(now, list(map(_row, payloads))))
        case messages.Woken():
            return _encode(_Woken(now))
        case messages.Settling():
            return _encode(_Settling(now))
        case messages.ClockSet(ahead_ms):
            return _encode(_ClockSet(now, ahead_ms))
        case messages.SourceAdvertised():
            return _encode(_Advertised(now, message.source, message.data))
        case messages.SourceWithdrawn():
            return _encode(_Withdrawn(now, message.source))
        case messages.ActorsListening():
            said = (message.broker, message.hops, message.came, message.gone, message.anew)
            return _encode(_Listening(now, *said, message.version))
        case messages.SpecificationSubmitted():
            kind = _Split if message.split else _Submitted
            asked = _asked(message, message.text)
            grain = message.cells, message.keeps_state, message.alone, message.revises
            if message.only is not None:
                return _encode(_PartSubmitted(now, *asked, *grain, message.only, message.apart))
            return _encode(kind(now, *asked, *grain, message.apart))
        case messages.ResumeRequested():
            return _encode(_Resumed(now, *_asked(message, message.name), message.apart))
        case messages.CancelRequested():
            return _encode(_Cancelled(now, *_asked(message, message.name)))
        case messages.FunctionsChanged(files):
            return _encode(_Functions(now, files))
        case messages.NetworkTold(what) if what.outlasts:
            return _encode(_Network(now, encoded(what)))
    return b""


def enlists(message: Message) -> bool:
    """Tell if a message that is no request may change what is installed."""
    return isinstance(message, messages.NetworkTold) and getattr(message.what, "enlists", False)


def bounded(data: bytes, steps: Sequence[tuple[int, str]], now: int) -> bytes:
    """The record's data of a message of whose steps these exceeded their budget."""
    return _encode(Bounded(now, data, tuple(steps)))


def opened(one: Opened) -> bytes:
    """The record's data of a beginning."""
    return _encode(one)


def read(data: bytes) -> tuple[Message | Opened | Bounded, int]:
    """Decode what was told, and when. Raises RecordError."""
    try:
        told = _decode(data)
        return _message(told), told.now
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RecordError(
            f"its data cannot be read ({error}): it may be of a newer version of Headwater"
        ) from None


def _message(told: _Told) -> Message | Opened | Bounded:  # noqa: PLR0911  # one for each kind
    match told:
        case _Events(_, payloads):
            found = [
                messages.Payload(type_name, source, data, None, form)
                for type_name, source, data, form in payloads
            ]
            return messages.EventsReceived(tuple(found))
        case _Advertised():
            return messages.SourceAdvertised(told.source, told.data)
        case _Withdrawn():
            return messages.SourceWithdrawn(told.source)
        case _Listening():
            said = (told.broker, told.hops, told.came, told.gone, told.anew, told.version)
            return messages.ActorsListening(*said)
        case _Submitted() | _Split() | _PartSubmitted():
            client, request, text = map(_text, (told.client, told.request, told.text))
            return messages.SpecificationSubmitted(
                client,
                request,
                text,
                proven=told.proven,
                cells=told.cells,
                split=isinstance(told, _Split),
                keeps_state=told.keeps_state,
                alone=told.alone,
                revises=told.revises,
                only=told.only if isinstance(told, _PartSubmitted) else None,
                apart=told.apart,
            )
        case _Cancelled():
            client, request, name = map(_text, (told.client, told.request, told.name))
            if isinstance(told, _Resumed):
                asked = (client, request, name)
                return messages.ResumeRequested(*asked, proven=told.proven, apart=told.apart)
            return messages.CancelRequested(client, request, name, proven=told.proven)
        case _Network(_, what):
            return messages.NetworkTold(decoded(what))
        case _Woken():
            return messages.Woken()
        case _Settling():
            return messages.Settling()
        case _Functions(_, files):
            return messages.FunctionsChanged(files)
        case _ClockSet(_, ahead_ms):
            return messages.ClockSet(ahead_ms)
        case _:
            return told


def _asked(
    message: messages.SpecificationSubmitted | messages.CancelRequested, what: str
) -> tuple[bytes, bytes, bytes, bool]:
    texts = [one.encode("utf-8", _ERRORS) for one in (message.client, message.request, what)]
    return texts[0], texts[1], texts[2], message.proven


def _text(data: bytes) -> str:
    return data.decode("utf-8", _ERRORS)
