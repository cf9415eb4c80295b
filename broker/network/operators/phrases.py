"""Operators for people: one line each.

Owns the wording alone. Must not know where it is shown. Invariant: what differs in an operator but
its id differs in its line.
"""

from __future__ import annotations

from broker.network.operators.conditions import conditions_of, text_of
from broker.network.routing.advertisement.operator import Key, Operator
from language.printing.expressions import duration_text, name_text
from language.tree import Comparison, Constant, Node
from language.walk import rewrite


def in_words(operator: Operator) -> str:
    """`A(n > 1), B, perhaps C: together in less than 5001 ms`, or `A(n > 1): each`."""
    keys = ", ".join(_key(key) for key in operator.keys)
    if not operator.correlated:
        return f"{keys}: each"
    words = "less than" if operator.strict else "at most"
    limits = []
    if operator.delta_t_ms is not None:
        limits.append(f"{words} {duration_text(operator.delta_t_ms)}")
    if operator.delta_l is not None:
        limits.append(f"{words} {operator.delta_l!r} m")
    return f"{keys}: together in {' and '.join(limits) or 'any time'}"


def _key(key: Key) -> str:
    conditions = [rewrite(condition, _whole) for condition in conditions_of(key)]
    words = f"{name_text(key.type_name)}({text_of(conditions)})" if conditions else key.type_name
    return f"perhaps {words}" if key.optional else words


def _whole(node: Node) -> Node:
    """Ranges hold floats; nobody writes `n > 1.0`."""
    if not isinstance(node, Comparison):
        return node
    operands = [_number(term) if isinstance(term, Constant) else term for term in node.operands]
    return Comparison(tuple(operands), node.operators)


def _number(term: Constant) -> Constant:
    whole = isinstance(term.value, float) and term.value.is_integer()
    return Constant(int(term.value), term.unit) if whole else term
