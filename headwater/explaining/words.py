"""The words of an explanation: operands, occurrences, counts.

Owns their form. Must not know what is told of them. Invariant: each is short, whatever it names.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from broker.engine.event.occurrence import Occurrence, bound_events, end_of
from broker.engine.pattern.layout import operands as ops
from broker.engine.pattern.layout.operands import Leaf, Operand
from headwater.explaining.tell import moment
from headwater.plan.steps import title_of
from language.diagnostics import shorten
from language.printing.expressions import expression_text
from language.tree import Expression


def label(operand: Operand) -> str:
    """An operand in a few words."""
    if isinstance(operand, Leaf):
        return operand.name
    if isinstance(operand, ops.Padded):
        return label(operand.operand)
    title, _ = title_of(operand)
    if isinstance(operand, ops.Joint | ops.Negation):
        sides = [_inner(part) for part in operand.parts]
        return f" {title} ".join(sides)
    return f"{title} of {' and '.join(_inner(part) for part in operand.parts)}"


def _inner(operand: Operand) -> str:
    text = label(operand)
    return f"({text})" if " " in text else text


def condition_text(condition: Expression) -> str:
    """Return the words for what is asked of an event."""
    return f"with {shorten(expression_text(condition), 80)}"


def names(occurrence: Occurrence) -> str:
    """The events of an occurrence, by their ids, and when it ends."""
    ids = [event.id for event in bound_events(occurrence)]
    listed = "+".join(ids[:4]) + ("…" if len(ids) > 4 else "") or "a silence"
    return f"{listed} ({moment(end_of(occurrence))})"


def counted(count: int, word: str = "") -> str:
    """`none`, `1 event`, `1,200 events`; without a word the number alone."""
    number = f"{count:,}" if count else "none" if not word else "no"
    return f"{number} {word}{'' if count == 1 else 's'}" if word else number


def groups_text(found: Collection[Any]) -> str:
    """The keys of some groups."""
    texts = ["/".join(map(str, group)) for group in list(found)[:3]]
    return ", ".join(texts) + ("…" if len(found) > 3 else "")
