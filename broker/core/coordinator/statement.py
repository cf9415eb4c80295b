"""What a home says of its submissions, as bytes, and the checks of what others say.

Owns these messages, their encoding, parts and bounds. Must not know who is told. Invariant: what
is read back is what was written, or a `StatementError` with a sentence; nothing that exceeds a
bound is read at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from broker.core.coordinator import bounds
from planner.rounds.messages import Envelope

Input = tuple[str, str]
"""(origin, type)."""

Piece = tuple[str, str]
"""(home, key) of a submission."""


class StatementError(ValueError):
    """Report that what another broker said cannot be; the sentence tells why."""


class Submission(Struct, array_like=True, frozen=True):
    """One submission: what it needs of whom, at how many bytes a second, and where it runs.

    `sends` are the bytes a second that leave its host for its home. `not_at` are brokers that do
    not take it up.
    """

    key: str
    name: str
    host: str
    inputs: tuple[Input, ...]
    rates: tuple[int, ...]
    sends: int
    not_at: tuple[str, ...] = ()


class Statement(Struct, array_like=True, frozen=True):
    """All that a home says; of two the one with the higher (life, serial) holds.

    Each stands for a moment: what changes later of rates is told by `Rated`. `link` is the most
    that it sends to each neighbour, 0 without limit; a broker of an earlier version says none.
    """

    broker: str
    life: int
    serial: int
    capacity: int
    egress: int
    drained: bool
    submissions: tuple[Submission, ...]
    link: int = 0

    @property
    def place(self) -> tuple[int, int]:
        """Return what it is told from older and newer ones by."""
        return self.life, self.serial


class Part(Struct, array_like=True, frozen=True, tag=1):
    """A part of a broker's statement; they come in order."""

    broker: str
    life: int
    serial: int
    part: int
    parts: int
    data: bytes


class Rated(Struct, array_like=True, frozen=True, tag=2):
    """Another host or other rates of a submission than its home's statement (life, serial) has."""

    home: str
    life: int
    serial: int
    key: str
    host: str
    rates: tuple[int, ...]
    sends: int


class Measured(Struct, array_like=True, frozen=True, tag=3):
    """A host tells a home what one of its submissions takes in and sends."""

    home: str
    host: str
    key: str
    rates: dict[str, dict[str, int]]  # by origin and type
    sends: int


class Turned(Struct, array_like=True, frozen=True, tag=4):
    """A word of the planning rounds; its epoch tells of which knowledge."""

    envelope: Envelope


Word = Part | Rated | Measured | Turned

encoded = msgspec.msgpack.Encoder().encode
_words = msgspec.msgpack.Decoder(Word)
_statements = msgspec.msgpack.Decoder(Statement)


def word_of(data: bytes) -> Word:
    """Decode what a neighbour said. Raises StatementError."""
    try:
        found: Word = _words.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise StatementError(f"a word of planning cannot be read: {error}") from None
    match found:
        case Part(data=some, part=part, parts=parts):
            most = -(-bounds.STATEMENT_BYTES_MAX // bounds.PART_BYTES)
            if not (0 <= part < parts <= most and len(some) <= bounds.PART_BYTES):
                raise StatementError("a part of a statement is out of bounds")
        case Rated(host=host, rates=rates, sends=sends):
            _check_names([host])
            _check_rates([*rates, sends])
        case Measured(rates=by_origin, sends=sends):
            rates = tuple(rate for some in by_origin.values() for rate in some.values())
            if len(rates) > bounds.INPUTS_MAX:
                raise StatementError("rates of too many inputs")
            _check_rates([*rates, sends])
    return found


def parts_of(statement: Statement) -> list[Part]:
    """A statement as it travels."""
    data, size = encoded(statement), bounds.PART_BYTES
    cut = [data[at : at + size] for at in range(0, len(data), size)]
    place = statement.broker, statement.life, statement.serial
    return [Part(*place, number, len(cut), one) for number, one in enumerate(cut)]


def statement_of(broker: str, place: tuple[int, int], data: bytes) -> Statement:
    """The statement that parts came to. Raises StatementError."""
    try:
        found: Statement = _statements.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise StatementError(f"a statement cannot be read: {error}") from None
    if (found.broker, found.place) != (broker, place):
        raise StatementError("a statement is of another than it says")
    if len(found.submissions) > bounds.SUBMISSIONS_MAX:
        raise StatementError("a statement has too many submissions")
    if min(found.capacity, found.egress, found.link) < 0:
        raise StatementError("a limit is less than nothing")
    if len({one.key for one in found.submissions}) < len(found.submissions):
        raise StatementError("a statement has a submission twice")
    for one in found.submissions:
        _check(one)
    return found


def _check(one: Submission) -> None:
    if len(one.inputs) > bounds.INPUTS_MAX or len(one.inputs) != len(one.rates):
        raise StatementError("a submission's inputs and rates do not go together")
    if len(set(one.inputs)) < len(one.inputs):
        raise StatementError("a submission has an input twice")
    _check_rates([*one.rates, one.sends])
    places = [part for pair in one.inputs for part in pair]
    _check_names([one.key, one.name, one.host, *one.not_at, *places])


def _check_rates(rates: Iterable[int]) -> None:
    if any(not 0 <= rate <= bounds.RATE_MAX for rate in rates):
        raise StatementError("a rate is out of bounds")


def _check_names(names: Sequence[str]) -> None:
    if any(len(name) > bounds.NAME_CHARS_MAX for name in names):
        raise StatementError("a name is too long")
