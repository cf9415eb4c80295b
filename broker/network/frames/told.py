"""What a broker is told by others that has to outlast its process.

Owns these messages and their bytes. Must not know links or routes. Invariant: what is read back is
what was written; such a message is written down (`outlasts`) unless its loss makes a broker merely
keep something longer than it has to.

A *position* counts what happened at an origin that others may have to hear of: each event that it
admitted, and each time that it promised watermarks. `life` names the beginning of the journal that
counts them, so that an origin that lost its disk is not taken for the one before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, TypeAlias, get_args

import msgspec
from msgspec import Struct

from broker.network.delivery.messages import HomeChanged, HomeEntrusted, StandInChosen
from broker.network.delivery.succession import HomeTaken, Succeeded
from broker.network.placement.home_records import HomeRecord
from broker.network.replication.absence import OriginAway, OriginBack
from broker.network.replication.cancellations import SubscriptionsCancelled
from broker.network.routing.wants import HostWants
from language.lexicon import QUOTED_NAME
from language.tree import AttributeType

Watermarks: TypeAlias = dict[str, int | None]  # by type; None: the origin has nothing to say of it
Attributes: TypeAlias = dict[str, str]
Asks: TypeAlias = tuple[tuple[str, int], ...] | None  # (broker, version) each; see `copies.Copy`


_KINDS = frozenset(get_args(AttributeType))
# What a definition makes travels under its name and its task's.
_TYPE_NAME = re.compile(rf"{QUOTED_NAME.pattern}(?:@\w+)?")


def declarable(types: Mapping[str, Attributes]) -> bool:
    """Tell whether a text could declare these types; another broker may say anything."""
    return all(
        _TYPE_NAME.fullmatch(name) is not None
        and all(
            QUOTED_NAME.fullmatch(attribute) is not None and kind in _KINDS
            for attribute, kind in attributes.items()
        )
        for name, attributes in types.items()
    )


class Forwarded(Struct, array_like=True, frozen=True, tag="forwarded"):
    """All that this broker needs of an origin's (after, upto], and what is promised at `upto`.

    `events` are packed (`durable_events`), `positions` theirs. `whole`: the answer to a request to
    offer again, with all watermarks that hold; what is behind `after` is lost to this broker;
    `again`: it, or a further part of it. `held_after`: what is kept back on the way until a partner
    comes lies behind this position, and may still come; None: nothing is.
    """

    outlasts: ClassVar[bool] = True

    origin: str  # whose events they are
    life: int  # of that origin's journal
    after: int  # the receiver has all up to here, or sees a gap
    upto: int  # nothing in between is missing but what was kept back
    positions: list[int]  # one for each event, ascending
    events: bytes  # as one array: a relay passes them on unread
    watermarks: Watermarks  # by input, in ms: no earlier event will come
    whole: bool = False
    again: bool = False
    held_after: int | None = None

    @property
    def complete(self) -> int:
        """The position up to which nothing is missing."""
        return self.upto if self.held_after is None else min(self.held_after, self.upto)


class Folded(Struct, array_like=True, frozen=True, tag="folded"):
    """As `Forwarded`, of windows that are split: what they take of (after, upto], folded.

    `rows` are partial results (`fold_rows`), which add up, whatever the positions in between.
    With `raw` the events come as they are, with their positions; then there are no rows. `whole`:
    the answer to a question, behind which whoever asked goes on; what came before of this origin
    for panes that are not complete is taken back first with `again`.
    """

    outlasts: ClassVar[bool] = True

    origin: str  # as in `Forwarded`
    life: int
    after: int
    upto: int
    rows: bytes  # empty where `raw`
    positions: list[int]  # of the raw events
    events: bytes  # packed, where `raw`
    watermarks: Watermarks
    raw: bool = False
    whole: bool = False
    again: bool = False


class Incarnated(Struct, array_like=True, frozen=True, tag="incarnated"):
    """This origin goes on in a life, which shares all up to a position with the one before.

    Up to `watermarks`, by type, others were promised that no event comes any more. `rewound`: one
    of them has seen more than this disk tells of. `life` 0: a process begins, and promises nothing
    until it is settled in which life it does so.
    """

    outlasts: ClassVar[bool] = True

    life: int  # ascends with each beginning that shares less than all
    position: int  # of the life before, up to which both are one
    watermarks: dict[str, int]
    rewound: bool = False


class OriginNamed(Struct, array_like=True, frozen=True, tag="named"):
    """An origin has sources of these types, which are waited for from now on.

    No types: nothing of it is needed any more.
    """

    outlasts: ClassVar[bool] = True

    origin: str  # by its broker's name
    types: tuple[str, ...]  # as it advertises them


class TimesPromised(Struct, array_like=True, frozen=True, tag="times"):
    """No event that tasks here need is less certain than so, as origins promise."""

    outlasts: ClassVar[bool] = True

    uncertainty_ms: int  # the greatest of all


class SourceShown(Struct, array_like=True, frozen=True, tag="shown"):
    """A source here is about to send events of a type that no source here has sent before."""

    outlasts: ClassVar[bool] = True

    source: str  # by the name that it gives itself
    type_name: str


class TypesAnswered(Struct, array_like=True, frozen=True, tag="answered"):
    """All brokers that can be reached have said whether they want these types of this origin."""

    outlasts: ClassVar[bool] = True

    types: tuple[str, ...]  # events of these may be let in now


class HostInterested(Struct, array_like=True, frozen=True, tag="interested"):
    """A host needs events of these types, declared so; no types: nothing any more.

    `position`: it has all up to there; None: it needs what comes from now on.
    """

    outlasts: ClassVar[bool] = True

    host: str  # a broker or a cell
    types: dict[str, Attributes]  # the origin keeps these alone for it
    position: int | None


class HostStored(Struct, array_like=True, frozen=True, tag="stored"):
    """A host has on its disk all that it needs up to this position."""

    outlasts: ClassVar[bool] = False

    host: str
    position: int


class Activated(Struct, array_like=True, frozen=True, tag="activated"):
    """All origins that these subscriptions need have answered.

    `apart`: what each needs begins anew for it alone; records of an earlier version lack it.
    """

    outlasts: ClassVar[bool] = True

    subscriptions: tuple[tuple[str, str], ...]  # by subscriber and name
    apart: bool = False


class BrokerForgotten(Struct, array_like=True, frozen=True, tag="forgotten"):
    """A person said that nobody is to wait for this broker any more."""

    outlasts: ClassVar[bool] = True

    broker: str


class CopiesTaken(Struct, array_like=True, frozen=True, tag="taken"):
    """A broker has the results for actors at it up to this number."""

    outlasts: ClassVar[bool] = False

    broker: str  # where they listen
    life: int  # of this home's numbers
    serial: int


class CopyUnheard(Struct, array_like=True, frozen=True, tag="unheard"):
    """A copy of another broker came, for an actor that listens here no more; see `Copy`."""

    outlasts: ClassVar[bool] = True

    actor: str  # for whom the result is
    payload: bytes  # as it is published
    asks: Asks  # where to try next, in order


class OutOfReach(Struct, array_like=True, frozen=True, tag="out_of_reach"):
    """To these brokers, and no others at which actors listen, there is no way."""

    outlasts: ClassVar[bool] = True

    brokers: tuple[str, ...]


Told: TypeAlias = (
    Forwarded
    | Folded
    | Incarnated
    | OriginNamed
    | TimesPromised
    | HostInterested
    | HostStored
    | HostWants
    | Activated
    | BrokerForgotten
    | OriginAway
    | OriginBack
    | CopiesTaken
    | CopyUnheard
    | OutOfReach
    | SourceShown
    | SubscriptionsCancelled
    | TypesAnswered
    | HomeRecord
    | HomeEntrusted
    | StandInChosen
    | HomeChanged
    | HomeTaken
    | Succeeded
)

encoded = msgspec.msgpack.Encoder().encode
decoded = msgspec.msgpack.Decoder(Told).decode
