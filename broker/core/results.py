"""The order in which results leave.

Owns that order over the results of several subscriptions. Must not know agents or where results go.
Invariant: it depends on the results alone, and no two of them are equal in it.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from broker.core.occurrence import sort_in_order

if TYPE_CHECKING:
    from broker.core.agent import Result

_span = attrgetter("end", "start")


def sort_results(results: list[Result]) -> None:
    """Put results into the order in which they leave."""
    sort_in_order(results, _span, _head, output_order)


def _head(result: Result) -> tuple[Any, ...]:
    return (*result.head, result.place)


def output_order(result: Result) -> tuple[Any, ...]:
    """The order in which results leave: theirs, then the subscription's place, then by places."""
    return (*result.order[:4], result.place, result.order[4], result.subscription)
