"""Results as they leave: in which order, and in which form.

Owns that order over the results of several subscriptions. Must not know agents or where results go.
Invariant: it depends on the results alone, and no two of them are equal in it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import islice
from operator import attrgetter, eq, is_, le, lt
from typing import TYPE_CHECKING, Any

from broker.engine import native
from broker.engine.event.occurrence import Key, lead_of, sort_by, sort_in_order
from broker.engine.runtime.budget import Slices

if TYPE_CHECKING:
    from broker.engine.event.agent import Result

_end = attrgetter("end")
_span = attrgetter("end", "start")
_place = attrgetter("template.place")  # as `place`, without a call for each
_occurrence = attrgetter("occurrence")


def sort_results(results: list[Result], each: int) -> Slices[None]:
    """Put results into the order in which they leave, about `each` of them in a slice."""
    if len(results) < 2:
        return
    ends = list(map(_end, results))
    if all(map(lt, ends, islice(ends, 1, None))):
        return
    if not all(map(le, ends, islice(ends, 1, None))):
        results.sort(key=_end)
        ends = list(map(_end, results))
    # A thousand subscriptions to one event are a run of a thousand equal ends, mostly in place.
    occurred, places = list(map(_occurrence, results)), list(map(_place, results))
    pairs = zip(
        map(eq, ends, islice(ends, 1, None)),
        map(is_, occurred, islice(occurred, 1, None)),
        map(lt, places, islice(places, 1, None)),
        strict=True,
    )
    stop = 0
    for at in [at for at, (same, of_one, up) in enumerate(pairs) if same and not (of_one and up)]:
        if at < stop:
            continue
        begin, stop = bisect_left(ends, ends[at]), bisect_right(ends, ends[at])
        same_end = results[begin:stop]
        yield from _sort(same_end, each)
        results[begin:stop] = same_end


def told(results: list[Result]) -> list[dict[str, Any]]:
    """Results as other programs meet them."""
    if results and native.passes is not None:
        found: list[dict[str, Any]] | None = native.passes.tell(results, type(results[0]))
        if found is not None:
            return found
    return [result.to_dict() for result in results]


def _sort(results: list[Result], each: int) -> Slices[None]:
    """Sort results of one end; often those of several subscriptions to one event."""
    occurrence = results[0].occurrence
    if all(result.occurrence is occurrence for result in results):
        results.sort(key=_place)
        places = list(map(_place, results))
        if all(map(lt, places, islice(places, 1, None))):
            return
    yield from _sort_by(results, each, _span, _lead, _head, output_order)


def _sort_by(results: list[Result], each: int, first: Key, *rest: Key) -> Slices[None]:
    if len(results) <= each or not rest:
        sort_in_order(results, first, *rest)
        return
    done = 0
    for begin, stop in sort_by(first, results):
        equal = results[begin:stop]
        yield from _sort_by(equal, each, *rest)
        results[begin:stop] = equal
        done += stop - begin
        if done >= each:
            done = 0
            yield


def _lead(result: Result) -> tuple[str, ...]:
    return lead_of(result.occurrence)  # of the groups of one window it decides


def _head(result: Result) -> tuple[Any, ...]:
    if result.head[3]:  # what is detected may tell more of itself
        return (*result.order[:5], result.place)
    return (*result.head, result.place)


def output_order(result: Result) -> tuple[Any, ...]:
    """The order in which results leave: theirs, then the subscription's place, then by places."""
    order = result.order
    # The place before what tells places apart: subscriptions of one file report in the order in
    # which they stand there.
    return (*order[:5], result.place, order[5], result.subscription)
