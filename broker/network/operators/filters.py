"""Filters: what tasks ask of the events of one type, each event by itself, as others are told it.

Owns which of two filters asks for more. Must not know who tells whom, nor rates. Invariant: a
filter that covers another asks for each event that the other asks for; where that cannot be told,
it does not cover it.

A filter is the keys of which one at least takes each event; no keys take all events. The keys of
correlated operators count each by itself, so that a filter may ask for more than travels.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from msgspec.msgpack import Decoder, Encoder

from broker.engine.event.event import under_path
from broker.network.operators.heard import keys_for
from broker.network.routing.advertisement.operator import Key, Operator
from broker.network.routing.covering.boxes import Box, Cuts, cuts

Filter = tuple[Key, ...]

KEYS_MAX = 64  # of one submission: of what asks for more nothing is told, and it counts as all
FILTER_BYTES_MAX = 4_096  # of these keys, as they travel with each word on a submission
CASES_MAX = 64  # sets of filters that are remembered with which of them cover which

_encoded = Encoder().encode
_decoded = Decoder(tuple[Key, ...]).decode


def keys_told(operators: Iterable[Operator], types: Iterable[str]) -> tuple[Key, ...]:
    """Return what operators ask of events of these types, as others will read it, in one order.

    Nothing where that is too much to be told; nor is it told of a type that is wanted whole. Ends
    of ranges may be integers here and are floats once read: all brokers lay the same from the same.
    """
    keys = keys_for(operators, types) or ()
    whole = {key.type_name for key in keys if key == Key("", key.type_name)}
    written = _encoded(tuple([key for key in keys if key.type_name not in whole]))
    if len(keys) > KEYS_MAX or len(written) > FILTER_BYTES_MAX:
        return ()
    return tuple(sorted(_decoded(written), key=_encoded))


def filter_of(keys: Iterable[Key], type_name: str) -> Filter:
    """Return what the keys ask of a type, without those that ask for no more than another one."""
    kept: list[_Asked] = []
    for each in [_asked(key) for key in keys if key.type_name == type_name]:
        if not any(_takes_all_of(other, each) for other in kept):
            kept = [other for other in kept if not _takes_all_of(each, other)]
            kept.append(each)
    return tuple(sorted([each.key for each in kept], key=_encoded))


def covers(wide: Filter, narrow: Filter) -> bool:
    """Tell whether a filter surely takes each event that another one takes."""
    return _covers(tuple(map(_asked, wide)), tuple(map(_asked, narrow)))


@lru_cache(maxsize=CASES_MAX)
def covered_by(filters: tuple[Filter, ...]) -> dict[Filter, dict[Filter, None]]:
    """Return of each filter those of the others that it covers, and that do not cover it.

    It is remembered, as it takes the square of their number.
    """
    asked = [(each, tuple(map(_asked, each))) for each in filters]
    return {
        wide: {
            other: None
            for other, theirs in asked
            if theirs is not own and _covers(own, theirs) and not _covers(theirs, own)
        }
        for wide, own in asked
    }


class _Asked(NamedTuple):
    """A key, and by attribute between which values events surely lie in it, and may."""

    key: Key  # as it was asked for
    inner: dict[str, Cuts]  # what surely passes
    outer: dict[str, Cuts]  # what may pass
    comparable: bool  # an end that is no number is in no order


def _asked(key: Key) -> _Asked:
    inner, outer = {}, {}
    try:
        for limits in key.ranges:
            ends = cuts(
                limits.low, limits.high, low_open=limits.low_open, high_open=limits.high_open
            )
            box = Box((ends[0],), (ends[1],)).inner()
            outer[limits.attribute], inner[limits.attribute] = ends, (box.lows[0], box.highs[0])
    except ValueError:
        return _Asked(key, {}, {}, comparable=False)
    return _Asked(key, inner, outer, comparable=True)


def _covers(wide: tuple[_Asked, ...], narrow: tuple[_Asked, ...]) -> bool:
    if not wide or not narrow:
        return not wide
    for each in narrow:
        for key in wide:
            if _takes_all_of(key, each):
                break
        else:
            return False
    return True


def _takes_all_of(wide: _Asked, narrow: _Asked) -> bool:
    for attribute, (low, high) in wide.inner.items():
        ends = narrow.outer.get(attribute)
        if ends is None or ends[0] < low or high < ends[1]:
            return wide.key == narrow.key
    outer, inner = wide.key, narrow.key
    if outer == inner:
        return True
    return (
        wide.comparable
        and narrow.comparable
        and outer.exact
        and outer.source in {None, inner.source}
        and (outer.location is None or under_path(inner.location, outer.location))
        and outer.region in {None, inner.region}
        and set(outer.equals) <= set(inner.equals)
    )
