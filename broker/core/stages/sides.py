"""What several stages have passed on, as one sequence.

Owns the order among the sides. Must not know operators. Invariant: by order, and of one event on
several sides by the side, so that it is known whether it first advances or first begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from broker.core.event import Head, Order
from broker.core.occurrence import Occurrence, head_of, order_of, sort_in_order, span_of

Entry = tuple[int, Occurrence]  # side, occurrence


def _span(entry: Entry) -> tuple[int, int]:
    return span_of(entry[1])


def _head(entry: Entry) -> Head:
    return head_of(entry[1])


def _ranked(sign: int) -> Callable[[Entry], tuple[Any, int, Any]]:
    def rank(entry: Entry) -> tuple[Any, int, Any]:
        order: Order = order_of(entry[1])
        return (order[:5], sign * entry[0], order[5])

    return rank


RANKS = {sign: _ranked(sign) for sign in (-1, 1)}


def in_order(sides: Sequence[list[Occurrence]], sign: Literal[-1, 1]) -> list[Entry]:
    """All of them, each with its side; of one event the later side comes first where sign is -1.

    Each side is in order.
    """
    entries = [(side, item) for side, items in enumerate(sides) for item in items]
    if sum(map(bool, sides)) > 1:
        sort_in_order(entries, _span, _head, RANKS[sign])
    return entries
