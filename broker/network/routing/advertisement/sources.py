"""The sources of each direction: the advertisements of each neighbour, looked up by key.

Owns advertisements by direction, and projection (paper 002, algorithm 3). Must not know
operators' ways or events. Invariant: an advertisement excludes a key only if no event of the source
can pass it; a direction is told of a source what all others say of it together, since sources of
one name may be at several brokers, and one of them may leave while another stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from msgspec.structs import replace

from broker.engine.event.event import region_test, under_path
from broker.network.routing.advertisement.messages import LOCAL, Advertise, Send, Withdraw
from broker.network.routing.advertisement.operator import (
    Advertisement,
    Bounds,
    Key,
    Operator,
    Range,
    Region,
)

SEPARATOR = "\x1f"  # between an operator's id and the keys that a part of it is about
CACHE_MAX = 65_536  # answers kept until an advertisement changes


AskedKey: TypeAlias = tuple[str, str | None, str | None, Region | None, tuple[Range, ...]]


class Change(NamedTuple):
    """State what an advertisement, or its withdrawal, changed.

    `old` is what the source said before; `types` are those of keys that now have sources in other
    directions than before, None: not known, so perhaps of any.
    """

    old: Advertisement | None  # None: it is new
    types: set[str] | None


class Directory:
    """Advertisements by direction; a direction is a neighbour's name or LOCAL.

    What was asked is remembered, so that a further source of what is known already costs a look at
    the different keys and not at all operators.
    """

    def __init__(self, directions: list[str]) -> None:
        self._all: dict[str, dict[str, Advertisement]] = {name: {} for name in directions}
        self._known: dict[AskedKey, tuple[Key, tuple[str, ...]]] = {}
        self._forgot = False  # something that was asked
        self._bounded = False  # some source promised bounds, so ranges matter

    @property
    def directions(self) -> list[str]:
        """Every direction, in the order given."""
        return list(self._all)

    def add(self, direction: str) -> None:
        """One direction more, of which nothing is known yet."""
        self._all[direction] = {}

    def remove(self, direction: str) -> None:
        """There is no such direction any more; it must have nothing."""
        assert not self._all[direction]
        del self._all[direction]

    def put(self, direction: str, advertisement: Advertisement) -> Change:
        """Take an advertisement in the place of what the source said there before."""
        some = self._all[direction]
        old = some.get(advertisement.source)
        if old == advertisement:
            return Change(old, set())
        some[advertisement.source] = advertisement
        if advertisement.domain and not self._bounded:
            self._bounded = self._forgot = True
            self._known.clear()
        return Change(old, self._moved([advertisement] if old is None else [old, advertisement]))

    def drop(self, direction: str, source: str) -> Change:
        """Forget a source; there may be none."""
        old = self._all[direction].pop(source, None)
        return Change(old, set() if old is None else self._moved([old]))

    def _moved(self, said: list[Advertisement]) -> set[str] | None:
        """Look up the keys again that these may concern; return the types with other directions.

        None: not known.
        """
        if self._forgot:
            self._forgot = False
            self._known.clear()
            return None
        found: set[str] = set()
        for asked, (key, where) in self._known.items():
            if any(serves(each, key) for each in said):
                now = self._look(key)
                if now != where:
                    self._known[asked] = (key, now)
                    found.add(key.type_name)
        return found

    def of(self, direction: str) -> list[Advertisement]:
        """A direction's advertisements in the order in which they came."""
        return list(self._all[direction].values())

    def around(self, direction: str) -> list[Advertisement]:
        """Return what a direction is to be told: each source once, as all others say of it."""
        found: dict[str, list[Advertisement]] = {}
        for name, some in self._all.items():
            if name != direction:
                for source, one in some.items():
                    found.setdefault(source, []).append(one)
        return [one for one in map(joined, found.values()) if one is not None]

    def said_to(self, direction: str, source: str) -> Advertisement | None:
        """Return what a direction is to be told of one source, as all others say of it."""
        others = [sources for name, sources in self._all.items() if name != direction]
        return joined([sources[source] for sources in others if source in sources])

    def news(
        self, direction: str, old: Advertisement | None, new: Advertisement | None
    ) -> list[Send]:
        """Return what to tell other neighbours as a source says `new` in a direction, not `old`.

        None: it says nothing; of both one may be that.
        """
        either = old or new
        if either is None:
            return []
        source = either.source
        beside = [
            (name, some[source])
            for name, some in self._all.items()
            if name != direction and source in some
        ]
        found: list[Send] = []
        for name in self._all:
            if name in (direction, LOCAL):
                continue
            rest = [one for other, one in beside if other != name]
            before = joined([*rest, old] if old else rest)
            after = joined([*rest, new] if new else rest)
            if after is None:
                found.append(Send(name, Withdraw(source)))
            elif after != before:
                found.append(Send(name, Advertise(after)))
        return found

    def serving(self, direction: str, key: Key) -> list[Advertisement]:
        """The advertisements of a direction whose sources serve a key."""
        sources = self._all[direction]
        if key.source is not None:
            sources = {key.source: sources[key.source]} if key.source in sources else {}
        return [each for each in sources.values() if serves(each, key)]

    def asked_as(self, key: Key) -> AskedKey:
        """Return what of a key decides which sources serve it."""
        ranges = key.ranges if self._bounded else ()
        return key.type_name, key.source, key.location, key.region, ranges

    def where(self, key: Key) -> tuple[str, ...]:
        """The directions that have a source for a key, in their order."""
        asked = self.asked_as(key)
        known = self._known.get(asked)
        if known is not None:
            return known[1]
        if len(self._known) >= CACHE_MAX:
            self._known.clear()
            self._forgot = True
        found = self._look(key)
        self._known[asked] = (key, found)
        return found

    def _look(self, key: Key) -> tuple[str, ...]:
        return tuple(name for name, some in self._all.items() if _any(key, some))


def _any(key: Key, some: dict[str, Advertisement]) -> bool:
    if key.source is not None:
        one = some.get(key.source)
        return one is not None and serves(one, key)
    return any(serves(one, key) for one in some.values())


def joined(said: list[Advertisement]) -> Advertisement | None:
    """Return what holds of all events of a source that says all this; None if nothing is said."""
    if not said:
        return None
    first = said[0]
    if all(one == first for one in said):
        return first
    any_type = not all(one.types for one in said)
    types = () if any_type else tuple(sorted({name for one in said for name in one.types}))
    location = first.location if all(one.location == first.location for one in said) else None
    position = first.position if all(one.position == first.position for one in said) else None
    return Advertisement(first.source, types, location, position, _domain(said), _rates(said))


def _domain(said: list[Advertisement]) -> tuple[Bounds, ...]:
    """The bounds that all promise, as wide as the widest."""
    found: dict[str, list[Bounds]] = {}
    for one in said:
        for bounds in one.domain:
            found.setdefault(bounds.attribute, []).append(bounds)
    return tuple(
        Bounds(name, min(one.low for one in some), max(one.high for one in some))
        for name, some in sorted(found.items())
        if len(some) == len(said)
    )


def _rates(said: list[Advertisement]) -> tuple[tuple[str, int], ...]:
    """The greatest that is said of each type."""
    rates: dict[str, int] = {}
    for name, power in [rate for each in said for rate in each.rates]:
        rates[name] = max(power, rates.get(name, power))
    return tuple(sorted(rates.items()))


def serves(advertisement: Advertisement, key: Key) -> bool:
    """Tell whether events of the source may pass the key."""
    if advertisement.types and key.type_name not in advertisement.types:
        return False
    if key.source is not None and advertisement.source != key.source:
        return False
    if not _meets(advertisement.location, key.location):
        return False
    if key.region is not None and advertisement.position is not None:
        position = advertisement.position
        if not region_test(cast("Any", key.region))(position):
            return False
    bounds = {one.attribute: one for one in advertisement.domain}
    return all(_reaches(one, bounds.get(one.attribute)) for one in key.ranges)


def _meets(said: str | None, wanted: str | None) -> bool:
    # An event may say more exactly where it is than its source did.
    return said is None or wanted is None or under_path(said, wanted) or under_path(wanted, said)


def _reaches(wanted: Range, bounds: Any) -> bool:
    if bounds is None:
        return True
    below = wanted.high is not None and (
        wanted.high < bounds.low or (wanted.high == bounds.low and wanted.high_open)
    )
    above = wanted.low is not None and (
        wanted.low > bounds.high or (wanted.low == bounds.high and wanted.low_open)
    )
    return not below and not above


def answerable(operator: Operator, directory: Directory) -> bool:
    """Tell whether every key that must be found has a source somewhere."""
    if not operator.correlated:
        return True
    return all(key.optional or directory.where(key) for key in operator.keys)


def project(
    operator: Operator, direction: str, directory: Directory, *, clip: bool = False
) -> Operator | None:
    """Return what of an operator is asked of a direction; None: nothing.

    `clip`: only within what its sources there have promised not to leave. Operators then differ
    less and cover more; but each source that comes and promises less makes them be asked again.

    A key of which some source lies elsewhere is optional there: that its events are wanted must not
    depend on there being one. Without such care events are lost (see `Key.optional`).
    """
    keys = []
    for key in operator.keys:
        where = directory.where(key)
        if direction in where:
            optional = operator.correlated and (key.optional or len(where) > 1)
            asked = clipped(key, directory.serving(direction, key)) if clip else key
            keys.append(asked if optional == key.optional else replace(asked, optional=optional))
    if not keys:
        return None
    return _part_of(operator, keys)


def asked_of(
    operator: Operator, direction: str, directory: Directory, leads: tuple[str, ...] = ()
) -> dict[str, Operator]:
    """Return all that of an operator is asked of a direction, by id.

    The keys named as `leads` are silent there, as those are that came so: all others wait for them.
    Leads that are there as well are asked for by themselves. Where all are there and nowhere else
    nothing has to be told, and all is asked for in one.
    """
    silent = [key for key in operator.keys if key.name in operator.silent]
    wanted = [key for key in operator.keys if key.name not in operator.silent]
    pairs = [(key, directory.where(key)) for key in wanted]
    pairs = [(key, where) for key, where in pairs if direction in where]
    waits = [pair for pair in pairs if pair[0].name not in leads]
    apart = [key for key in wanted if key.name in leads]
    if not waits or all(directory.where(key) == (direction,) for key in apart):
        whole = _part(operator, pairs, silent)
        return {} if whole is None else {whole.id: whole}
    free = [pair for pair in pairs if pair[0].name in leads]
    parts = [
        (_named(operator, [key.name for key in apart]), waits, [*silent, *apart]),
        (_named(operator, ["", *[key.name for key, _ in free]]), free, silent),
    ]
    asked = [_part(*part) for part in parts]
    return {each.id: each for each in asked if each is not None}


def _named(operator: Operator, names: list[str]) -> Operator:
    return replace(operator, id=SEPARATOR.join((operator.id, *names)))


def _part(
    operator: Operator, pairs: list[tuple[Key, tuple[str, ...]]], silent: list[Key]
) -> Operator | None:
    """Keys that are in a direction, with others that are silent there; None: no keys."""
    if not pairs:
        return None
    keys = [
        _asked(key, optional=operator.correlated and (key.optional or len(where) > 1))
        for key, where in pairs
    ]
    keys = sorted((*keys, *silent), key=lambda key: key.name)
    names = tuple(sorted(key.name for key in silent))
    return _part_of(operator, keys, names)


def _part_of(operator: Operator, keys: Sequence[Key], silent: tuple[str, ...] = ()) -> Operator:
    """Return the operator for these keys alone, in the least words."""
    part = simplest(replace(operator, keys=tuple(keys), silent=silent))
    joins = operator.correlated and len(operator.keys) > 1 and operator.delta_t_ms is not None
    return replace(part, part=True) if joins and not part.correlated else part


def _asked(key: Key, *, optional: bool) -> Key:
    return key if optional == key.optional else replace(key, optional=optional)


def without_silent(operator: Operator) -> Operator:
    """Return the operator without its silent keys: it asks for more, and waits for no probe."""
    if not operator.silent:
        return operator
    keys = tuple(key for key in operator.keys if key.name not in operator.silent)
    return _part_of(operator, keys)


def clipped(key: Key, serving: list[Advertisement]) -> Key:
    """A key within the hull of what the sources that serve it have promised."""
    ranges = tuple(_within(one, serving) for one in key.ranges)
    region = key.region
    if region is not None and region.shape == "box":
        region = _hull(region, serving)
    if ranges == key.ranges and region == key.region:
        return key
    return replace(key, ranges=ranges, region=region)


def _within(wanted: Range, serving: list[Advertisement]) -> Range:
    bounds = [
        next((one for one in each.domain if one.attribute == wanted.attribute), None)
        for each in serving
    ]
    known = [one for one in bounds if one is not None]
    if len(known) < len(bounds) or not known:
        return wanted
    low, high = min(one.low for one in known), max(one.high for one in known)
    made = wanted
    if made.low is None or made.low < low:
        made = replace(made, low=low, low_open=False)
    if made.high is None or made.high > high:
        made = replace(made, high=high, high_open=False)
    return made


def _hull(region: Region, serving: list[Advertisement]) -> Region:
    # What serves lies in the region, so the hull does: no other source comes into it.
    spots = [_spot(each.position) for each in serving]
    known = [spot for spot in spots if spot is not None]
    if len(known) < len(spots) or not known:
        return region
    xs, ys = [x for x, _ in known], [y for _, y in known]
    return Region("box", (min(xs), min(ys), max(xs), max(ys)), region.metric)


def _spot(position: Any) -> tuple[float, float] | None:
    if position is None:
        return None
    return (position[0], position[1]) if position.__class__ is list else (position.x, position.y)


def simplest(operator: Operator) -> Operator:
    """The same operator in the least words: keys that need no other are not correlated."""
    keys = operator.keys
    alone = len(keys) == 1 or all(key.optional for key in keys)
    if operator.correlated and not alone and operator.delta_t_ms is not None:
        return operator
    return replace(
        operator,
        keys=tuple(replace(key, optional=False) if key.optional else key for key in keys),
        delta_t_ms=None,
        delta_l=None,
        strict=False,
        correlated=False,
        silent=(),
    )
