"""Operators and advertisements, as they travel over links: what is wanted, and what is sent.

Owns the shape of operators, advertisements and what they are made of: plain frozen data that
msgspec encodes as it is. Must not know how operators are compared or events matched. Invariant:
two operators are equal exactly if they ask for the same in the same words.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from broker.engine.event.event import Position

Scalar = bool | int | float | str


class Range(msgspec.Struct, frozen=True, order=True, array_like=True):
    """The numbers that one attribute may have; None: unbounded. Open: the end does not belong."""

    attribute: str  # of the event's own, or a reserved one
    low: float | None = None
    high: float | None = None
    low_open: bool = False  # `>` and not `>=`
    high_open: bool = False  # `<` and not `<=`


class Region(msgspec.Struct, frozen=True, order=True, array_like=True):
    """A geometry that a position must lie in, its border included.

    `numbers` are as the language writes them: box x0, y0, x1, y1; circle x, y, radius in metres;
    polygon x0, y0, x1, y1, …; in metres where `metric`, else latitude and longitude in degrees.
    """

    shape: Literal["box", "circle", "polygon"]  # as in the language
    numbers: tuple[float, ...]  # flat, so that two that are equal compare equal
    metric: bool = False  # the plane of a building, not the globe


class Key(msgspec.Struct, frozen=True, array_like=True):
    """One place of an operator: the events of a type that meet all that is said here.

    `name` is unique in the operator (a place's alias; a sensor's id in the paper's identified
    subscriptions). `source` identifies one source; `location` is a place and all beneath it.
    `ranges` are sorted by attribute, one each; `equals` are other equalities, sorted likewise.
    `condition` is the canonical text of the whole condition where the fields before it do not say
    all of it, else "": the key is *exact*. An event passes a key that is not exact only if its
    compiled condition says so; such a key may be covered by others but covers nothing.
    `optional`: events of this key are wanted if the other keys are complete with them, but the key
    need not be found (projection of abstract subscriptions onto one of several directions).
    """

    name: str  # unique within the operator
    type_name: str  # events of other types never pass
    source: str | None = None  # None: of any
    location: str | None = None  # None: anywhere
    region: Region | None = None  # None: anywhere, or not known where
    ranges: tuple[Range, ...] = ()  # what an index can look up
    equals: tuple[tuple[str, Scalar], ...] = ()  # of texts and truth values, which have no order
    condition: str = ""  # costs a call for each event that passes the rest
    optional: bool = False  # not needed for a match to be complete

    @property
    def exact(self) -> bool:
        """Tell whether the fields say all that the key asks."""
        return not self.condition


class Operator(msgspec.Struct, frozen=True, array_like=True):
    """State what is asked of a neighbour, or by a broker's own subscription.

    `keys` are sorted by name. `correlated`: an event is wanted if it belongs to a complete match,
    one event per key, no two further apart in time than `delta_t_ms`, nor in space than `delta_l`
    metres (None: no bound); not correlated: each key alone wants its events. `strict`: distances
    must be less than the bounds (paper 002, section IV.A); else at most. The distance in time
    of two events is that of their furthest ends: max(end) - min(start).
    `since_ms`: events that began before are not wanted; None: all that come.
    `main` is for binary joins (paper 002, section III.B): only the events of the key with that
    name are wanted, the others only sanction them; "": those of all keys.
    `silent` names keys whose events complete matches and are not wanted: the one that asks tells of
    them (`broker.network.routing.leads`), and those that come from elsewhere count as well.
    `part`: it is what is asked here of one that is correlated, with partners of other directions.
    """

    id: str  # a digest of all else, where it is made of a task
    keys: tuple[Key, ...]  # one: it needs no partners
    delta_t_ms: int | None = None  # None: no partner is near in time
    delta_l: float | None = None  # None: wherever they are
    strict: bool = False
    correlated: bool = True  # False: an event travels whatever else comes
    since_ms: int | None = None
    main: str = ""  # of binary joins alone
    silent: tuple[str, ...] = ()  # their events go another way and count here
    part: bool = False  # how often its events come decides who waits for whom


class Bounds(msgspec.Struct, frozen=True, order=True, array_like=True):
    """State what a source says of an attribute's values: none lies outside `low`..`high`."""

    attribute: str  # by its name in events of the source
    low: float  # included
    high: float  # included


class Advertisement(msgspec.Struct, frozen=True, array_like=True):
    """State what a source sends, as it is told from broker to broker.

    What is said holds for every event of the source; None says that it is not known (an event may
    then have any), and excludes no key. No types: any. `domain` are bounds of attributes, sorted
    by attribute. `rates` say of types, sorted, how many events come a day, as a power of two; of a
    type that is not among them the rate is not known yet.
    """

    source: str  # unique in the whole network
    types: tuple[str, ...]  # sorted
    location: str | None = None  # as a path from the root
    position: Position | None = None  # where it stands still
    domain: tuple[Bounds, ...] = ()  # lets a range that nothing can meet go unasked
    rates: tuple[tuple[str, int], ...] = ()  # decides who waits for whom
