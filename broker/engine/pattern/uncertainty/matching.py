"""What a pattern demands of a single event: its suffixes and conjuncts, and the key of its group.

Owns the functions made for both. Must not know operators or partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from broker.engine.event.event import Event, region_test
from broker.engine.event.expressions import Writer, attribute_code
from broker.engine.event.source import Constants, build
from broker.engine.pattern.layout.operands import Leaf
from broker.engine.pattern.uncertainty.verdicts import Doubt, spanning
from language.tree import Attribute, Call, Name

Select = Callable[[Sequence[Event]], list[Event]]


class _LeafScope:
    """Names in a condition that one event decides."""

    def reference(self, node: Name | Attribute | Call) -> tuple[str, bool] | None:
        """Return the code of the event's attribute and whether it may be null; None for a call."""
        return None if isinstance(node, Call) else attribute_code("e", node.name)

    def event(self, name: str) -> str | None:  # noqa: ARG002
        """Return the code of the event, as there is but one."""
        return "e"


def leaf_select(leaf: Leaf, doubt: Doubt | None = None) -> Select | None:
    """Compile what the suffixes and conjuncts demand of a single event; None if nothing.

    The atom's own conditions are not here: the filterer has tested them. Where times are uncertain,
    an event that may lie `within` passes.
    """
    constants = Constants()
    tests = []
    for region in leaf.regions:
        field = "location" if region.shape == "path" else "position"
        tests.append(f"{constants.add(region_test(region))}(e.{field})")
    if leaf.within_ms is not None and doubt is not None:
        constants.helper("spanning", spanning)
        limit, known = constants.add(leaf.within_ms), constants.add(doubt)
        tests.append(f"spanning((e,), {limit}, {known})")
    elif leaf.within_ms is not None:
        tests.append(f"e.end - e.start <= {constants.add(leaf.within_ms)}")
    if leaf.spread_m is not None:
        tests.append("e.position is not None")
    writer = Writer(_LeafScope(), constants)
    tests += [writer.condition(conjunct) for conjunct in leaf.conjuncts]
    if not tests:
        return None
    text = f"def select(events):\n    return [e for e in events if {' and '.join(tests)}]\n"
    return build(text, "select", constants)


def key_function(keys: Sequence[str]) -> Callable[[Event], Any]:
    """The partition key of an event: None where a part is null, else a tuple."""
    constants = Constants()
    codes = [attribute_code("e", key)[0] for key in keys]
    guards = " and ".join(f"(k{at} := {code}) is not None" for at, code in enumerate(codes))
    parts = "".join(f"k{at}, " for at in range(len(codes)))
    text = f"def key(e):\n    return ({parts}) if {guards} else None\n"
    return build(text, "key", constants)
