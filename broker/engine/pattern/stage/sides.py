"""What several stages have passed on, as one sequence.

Owns the order among the sides. Must not know operators. Invariant: by order, and of one event on
several sides by the side, so that it is known whether it first advances or first begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from broker.engine.event.event import Order
from broker.engine.event.occurrence import Occurrence, ids_of, order_of, sort_in_order, span_of
from broker.engine.runtime.budget import Budget

Entry = tuple[int, Occurrence]  # side, occurrence


def _span(entry: Entry) -> tuple[int, int]:
    return span_of(entry[1])


def _ids(entry: Entry) -> tuple[str, ...]:
    return ids_of(entry[1])


# The side stands before the places, the last part of an order: one event that both advances a run
# and begins another does these in a stated sequence.
def _ranked(sign: int) -> Callable[[Entry], tuple[Any, int, Any]]:
    def rank(entry: Entry) -> tuple[Any, int, Any]:
        order: Order = order_of(entry[1])
        # Python compares tuples part by part, so nothing is built but this one key.
        return (order[:5], sign * entry[0], order[5])

    return rank


def _tie(budget: Budget, entries: Sequence[Entry]) -> None:
    budget.tie([item for _, item in entries])


# Both made once: a closure for each call would cost more than the comparison.
RANKS = {sign: _ranked(sign) for sign in (-1, 1)}


def in_order(
    sides: Sequence[list[Occurrence]],
    sign: Literal[-1, 1],
    budget: Budget,
    spent: Callable[[Occurrence], bool] = lambda _: False,
) -> list[Entry]:
    """All that are not spent, with their sides; of one event the later is first where sign is -1.

    Each side is in order.
    """
    items = [(side, item) for side, given in enumerate(sides) for item in given]
    entries = [entry for entry in items if not spent(entry[1])]
    # Each side is in order already: where only one has anything there is nothing to merge.
    if sum(map(bool, sides)) > 1:
        budget.spend(len(entries))
        tied = partial(_tie, budget)
        sort_in_order(entries, _span, _ids, RANKS[sign], tied=tied)
    return entries
