"""What brokers say of themselves and of their submissions, as bytes, and the checks of it.

Owns these words, their encoding and bounds. Must not know who gets them. Invariant: what is read
back is what was written, or a `StatementError` with a sentence; nothing that exceeds a bound is
taken up.

Words have a scope. A broker's word of itself is for those within so many hops; that of a
submission for those within so many hops of its span, the part of the tree between its home, its
host and the origins of its inputs: whoever may have its streams in view, and nobody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from broker.core.coordinator import bounds
from broker.network.operators.filters import KEYS_MAX
from broker.network.routing.advertisement.operator import Key
from planner.rounds import messages as m

Input = tuple[str, str]
"""(origin, type)."""

Piece = tuple[str, str]
"""(home, key) of a submission."""


class StatementError(ValueError):
    """Report that what another broker said cannot be; the sentence tells why."""


class Measured(Struct, array_like=True, frozen=True, tag=3):
    """A host tells a home what one of its submissions takes in and sends."""

    home: str
    host: str
    key: str
    rates: dict[str, dict[str, int]]  # by origin and type
    sends: int
    filters: tuple[Key, ...] = ()  # of its inputs' types, as `Submission` has them


class BrokerWord(Struct, array_like=True, frozen=True, tag=5):
    """State a broker's limits, 0 without, for those within so many further `hops`.

    `link` is the most that it sends to each neighbour. Of two words the one with the higher
    (life, serial) holds, here and below.
    """

    broker: str
    life: int
    serial: int
    hops: int
    capacity: int
    egress: int
    link: int
    drained: bool

    @property
    def place(self) -> tuple[int, int]:
        """Return what it is told from older and newer ones by."""
        return self.life, self.serial


class Submission(Struct, array_like=True, frozen=True, tag=6):
    """One submission: what it needs of whom, at how many bytes a second, and where it runs.

    It is `planned` to run where the rounds agreed on last, the `term`th time, and `host` runs it
    or was asked to. `sends` are the bytes a second that leave its host for its home. `not_at` are
    brokers that do not take it up. Those within `scope` hops of its span hear of it. `filters` are
    what it asks of events of its inputs' types; of a type of which they say nothing it asks for all
    (an earlier version says nothing of any).
    """

    home: str
    life: int
    serial: int
    scope: int
    key: str
    name: str
    host: str
    planned: str
    term: int
    inputs: tuple[Input, ...]
    rates: tuple[int, ...]
    sends: int
    not_at: tuple[str, ...] = ()
    filters: tuple[Key, ...] = ()

    @property
    def piece(self) -> Piece:
        """Return what names it in the network."""
        return self.home, self.key

    @property
    def place(self) -> tuple[int, int]:
        """Return what this word is told from older and newer ones by."""
        return self.life, self.serial

    @property
    def points(self) -> tuple[str, ...]:
        """Return the brokers that its span connects, each once."""
        origins = (origin for origin, _ in self.inputs)
        return tuple(dict.fromkeys((self.home, self.planned, self.host, *origins)))


class Withdrawn(Struct, array_like=True, frozen=True, tag=7):
    """A submission is no longer at home there; it goes to whom its last word went."""

    home: str
    life: int
    serial: int
    key: str


class HostingWord(Struct, array_like=True, frozen=True, tag=8):
    """A broker tells a home that it was agreed on as the host of a submission.

    `urgent`: the host before is to be rid of it.
    """

    home: str
    key: str
    host: str
    term: int
    urgent: bool


class Enclosed(Struct, array_like=True, frozen=True, tag=9):
    """A word for one broker alone, that is out of its scope."""

    to: str
    data: bytes


MoveWord = tuple[str, str, str, str, int]
"""(home, key, from whom, to whom, term)."""


class VersionWord(Struct, array_like=True, frozen=True, tag=1):
    """State which version of its tables a broker has, for those within so many further hops.

    Its tables follow from the words on the submissions whose span it is in. `digest` is of these
    words and of where each of the submissions is planned, as seen from that broker. `moves` are
    those that it was agreed on with, so that nobody who has the tables in view waits for the home.
    """

    version: int
    digest: int
    hops: int
    moves: tuple[MoveWord, ...] = ()


class TurnMoves(Struct, array_like=True, frozen=True, tag=6):
    """A turn is agreed."""

    turn: int
    moves: tuple[MoveWord, ...]


Body = VersionWord | m.Want | m.Reserve | m.Grant | m.Refuse | TurnMoves | m.Cancel


class Turned(Struct, array_like=True, frozen=True, tag=10):
    """A word of the planning rounds; `to` nobody by name: for all within its hops."""

    origin: str
    to: str
    body: Body


Word = BrokerWord | Submission | Withdrawn | Measured | HostingWord | Enclosed | Turned

encoded = msgspec.msgpack.Encoder().encode
_words = msgspec.msgpack.Decoder(Word)


def word_of(data: bytes) -> Word:
    """Decode what a neighbour said. Raises StatementError."""
    if len(data) > bounds.WORD_BYTES_MAX:
        raise StatementError("a word of planning is too long")
    try:
        word: Word = _words.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise StatementError(f"a word of planning cannot be read: {error}") from None
    match word:
        case BrokerWord():
            _check_names([word.broker])
            if min(word.capacity, word.egress, word.link) < 0:
                raise StatementError("a limit is less than nothing")
            _check_hops(word.hops)
        case Submission():
            _check(word)
        case Measured(rates=by_origin, sends=sends, filters=filters):
            _check_filters(filters)
            rates = tuple(rate for by_type in by_origin.values() for rate in by_type.values())
            if len(rates) > bounds.INPUTS_MAX:
                raise StatementError("rates of too many inputs")
            _check_rates([*rates, sends])
        case HostingWord(host=host):
            _check_names([host])
        case Turned(body=VersionWord(hops=hops, moves=moves)):
            _check_hops(hops)
            _check_names([name for move in moves for name in move[:4]])
        case Turned(body=TurnMoves(moves=moves)):
            _check_names([name for move in moves for name in move[:4]])
    return word


def _check(word: Submission) -> None:
    if len(word.inputs) > bounds.INPUTS_MAX or len(word.inputs) != len(word.rates):
        raise StatementError("a submission's inputs and rates do not go together")
    if len(set(word.inputs)) < len(word.inputs):
        raise StatementError("a submission has an input twice")
    _check_hops(word.scope)
    _check_filters(word.filters)
    _check_rates([*word.rates, word.sends])
    inputs = [part for pair in word.inputs for part in pair]
    _check_names([*word.piece, word.name, word.host, word.planned, *word.not_at, *inputs])


def _check_hops(hops: int) -> None:
    if not 0 <= hops <= bounds.HOPS_MAX:
        raise StatementError("a word goes too far")


def _check_filters(filters: Sequence[Key]) -> None:
    if len(filters) > KEYS_MAX:
        raise StatementError("a submission says too much of what it asks for")


def _check_rates(rates: Iterable[int]) -> None:
    if any(not 0 <= rate <= bounds.RATE_MAX for rate in rates):
        raise StatementError("a rate is out of bounds")


def _check_names(names: Sequence[str]) -> None:
    if any(len(name) > bounds.NAME_CHARS_MAX for name in names):
        raise StatementError("a name is too long")
