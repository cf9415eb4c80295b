"""What is kept to choose again where an occurrence consumes events that others hold.

Owns how long, and so how much. Must not know what operators hold otherwise (see bounds_pattern).
Invariant: never less than what partitions log (see staged_partition, partition).
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.engine.pattern.bounds_amount import Flow, Held, product, total
from broker.engine.pattern.bounds_pattern import Operators, Passed
from broker.engine.pattern.operands import Joint, least, operands, span_max_ms
from broker.engine.pattern.pattern import Layout
from broker.engine.pattern.reach import keep_ms
from broker.engine.pattern.staged_partition import (
    LOG_MAX,
    LOG_MIN,
    consumption_of,
    derived,
    log_keep_ms,
    manner_of,
)
from language.tree import Case


def hold_for_choice(
    case: Case, operators: Operators, passed: Passed, held: Held, *, staged: bool
) -> None:
    """Add what a case that consumes keeps to choose again; `passed`: of the whole pattern."""
    terms = operators.terms
    layout = terms.layout
    if staged:
        manner = manner_of(case, layout, terms.duration_max_ms, None)
        if consumption_of(layout, manner) != "again":
            return
        _by_stages(operators, passed, held)
    elif any(one.context != "unrestricted" for one in layout.joints):
        reach_ms = _reach_ms(layout, terms.duration_max_ms)
        span_ms = None if reach_ms is None else 2 * reach_ms + terms.lag_ms + terms.slack_ms + 1
        _hold(layout, terms.leaves, span_ms, held)


def _by_stages(operators: Operators, passed: Passed, held: Held) -> None:
    terms = operators.terms
    layout = terms.layout
    keep = log_keep_ms(layout)
    if passed.lag_ms is None:
        _hold(layout, terms.leaves, None, held)
    elif keep is not None:
        slack_ms = keep + terms.slack_ms if terms.grouped else 0
        _hold(layout, terms.leaves, keep + passed.lag_ms + slack_ms + 1, held)
    else:
        span_ms = span_max_ms(layout.root, terms.duration_max_ms)
        reach_ms = operators.reach_ms if derived(layout) else None
        found_ms = operators.span_ms(layout.root) if span_ms is None else span_ms
        if reach_ms is None or found_ms is None:
            _hold(layout, terms.leaves, None, held)
            return
        # It is looked through when it is twice of what was needed then.
        whole_ms = reach_ms + found_ms + passed.lag_ms + 1
        count = total(*(flow(whole_ms) for flow in terms.leaves))
        held.add(total(product(count, 2), LOG_MIN), matches=False, reason="")


def _hold(layout: Layout, leaves: Sequence[Flow], span_ms: int | None, held: Held) -> None:
    for leaf, flow in zip(layout.leaves, leaves, strict=True):
        why = f"`consuming` keeps every `{leaf.name}`, to choose again without what was consumed"
        if span_ms is None:
            why += f" (of a group the last {LOG_MAX:,} events)"
        held.add(None if span_ms is None else flow(span_ms), matches=False, reason=why)


def _reach_ms(layout: Layout, duration_max_ms: int) -> int | None:
    """How far back an event may lie and still be in an occurrence to come."""
    reach_ms: int | None = 0
    for one in operands(layout.root):
        if isinstance(one, Joint) and one.operator != "or":
            left_ms, right_ms = keep_ms(one, duration_max_ms)
            if left_ms is None or right_ms is None:
                reach_ms = None
            elif reach_ms is not None:
                reach_ms += max(left_ms, right_ms)
    return least(layout.root.within_ms, reach_ms)
