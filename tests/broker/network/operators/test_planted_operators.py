"""Mistakes in what may travel are found: each by a case that then loses a result.

A mistake changes one place of the text of one module, which then stands in for the module.
"""

from __future__ import annotations

import inspect
import types
from dataclasses import dataclass

import pytest

from broker.engine.pattern.times import timing
from broker.network.operators import decision, derivation, keys, times
from tests.broker.network.operators.test_what_travels import WRITTEN, Counts, hold, hold_written

STANDS_IN = {
    decision: [(derivation, "decide")],
    keys: [(derivation, "key_of")],
    times: [(times.Times, "longer")],
    timing: [(decision, "Timing")],
}
SEEDS_MAX = 400


@dataclass(frozen=True)
class Fault:
    """`old` stands once in the module; `shown` is a construct under a context, or a pattern that
    was written by hand, of which a case from the seed `first` on tells.
    """

    module: types.ModuleType
    old: str
    new: str
    shown: str
    first: int = 0


FAULTS = {
    # --- distances
    "delta-t-without-its-end": Fault(decision, "span_ms + 1", "span_ms", "and/unrestricted"),
    "delta-l-without-its-end": Fault(
        decision,
        "nextafter(operand.spread_m, inf)",
        "operand.spread_m",
        "spread-plane/unrestricted",
    ),
    "delta-l-where-there-is-none": Fault(
        decision,
        "delta_l = None if operand.spread_m is None else",
        "delta_l = 9.0 if operand.spread_m is None else",
        "and/unrestricted",
    ),
    "times-as-if-certain": Fault(
        times, " + 2 * self.uncertainty_ms_max", "", "uncertain-then/unrestricted"
    ),
    "clocks-without-drift": Fault(
        times, "limit_ms * (1 + self.drift)", "limit_ms", "uncertain-then/unrestricted", 86
    ),
    "bound-without-durations": Fault(
        timing,
        "total(left.span_ms, gap_ms, right.span_ms)",
        "gap_ms",
        "and-bound/unrestricted",
        9,
    ),
    "anchor-without-its-doubt": Fault(
        timing, "max(lasts_ms, longer(0))", "0", "within-from/unrestricted", 17
    ),
    "lasting-as-if-points": Fault(
        timing,
        "total(left.span_ms, gap_ms, right.span_ms)",
        "total(left.span_ms, gap_ms)",
        "overlaps/unrestricted",
        8,
    ),
    "shorter-side-of-or": Fault(
        timing,
        "greatest(left.span_ms, right.span_ms)",
        "min(left.span_ms, right.span_ms)",
        " (A as y and[..1 s] B or (C and[..5 s] D)) then[..1 s] A as x",
    ),
    # --- contexts
    "latest-pair-correlated": Fault(
        decision,
        "joint.context.pairwise and joint.nth",
        "joint.context.chooses and joint.nth",
        "[latest] A then B within 4 s spread 10 m",
    ),
    "recent-inside-correlated": Fault(
        decision,
        "Joint) and not operand.context.chooses:",
        "Joint):",
        " A and (B then[recent] C) within 4 s spread 10 m",
        84,
    ),
    "chosen-among-others-forgotten": Fault(
        decision,
        "        for operand_apart in members.apart:\n"
        "            self.place(operand_apart, reasons.ALL_ALONE)\n",
        "",
        "and/recent",
        29,
    ),
    "three-as-if-two": Fault(
        decision,
        "len(leaves) == len(pair)",
        "leaves",
        "[chronicle] (A and[unrestricted] B within 2 s) then C within 5 s",
    ),
    # --- what counts events, denies them or wants them all
    "next-filtered-by-value": Fault(
        decision, "contiguous = any(", "contiguous = False and any(", "next/unrestricted", 60
    ),
    "silence-filtered-in-partitions": Fault(
        decision, "(partitioned and any", "(False and any", "absent/unrestricted", 57
    ),
    "denied-correlated": Fault(
        decision,
        "members.single.append((operand.right, reasons.WITHOUT))\n"
        "            self._gather(operand.left",
        "self._gather(operand.right, members, into)\n            self._gather(operand.left",
        "without/unrestricted",
        69,
    ),
    "nth-correlated": Fault(
        decision,
        "            if operand.nth is None:\n                self._gather(operand.right",
        "            if True:\n                self._gather(operand.right",
        " A then nth 2 B within 4 s spread 10 m",
    ),
    # --- `or` and lists
    "side-of-or-mandatory": Fault(
        decision,
        'members.optional if operand.operator == "or" else into',
        "into",
        "or/unrestricted",
        8,
    ),
    "other-side-of-or-forgotten": Fault(
        decision,
        "            self.place(joint.right, reasons.SIDE)\n        elif",
        "            pass\n        elif",
        "or/unrestricted",
    ),
    "optional-list-mandatory": Fault(
        decision, "members.optional if member.optional else into", "into", "list/unrestricted", 14
    ),
    "list-under-spread": Fault(
        decision, "root.spread_m is not None or ", "", " A then B* then C within 4 s spread 15 m"
    ),
    "list-beside-a-list": Fault(
        decision, "len(root.members) > 1", "False", " A+ then B then C* within 3 s", 10
    ),
    # --- keys
    "made-at-home-awaited": Fault(
        decision,
        "return leaf.event_type not in self._here",
        "return True",
        "definition/unrestricted",
        30,
    ),
    "ranges-without-ends": Fault(
        keys, 'is_open=operator == ">"', "is_open=True", "atom/unrestricted"
    ),
    "flag-inverted": Fault(
        keys, "(part.name, value=True)", "(part.name, value=False)", "atom/unrestricted"
    ),
    "unequal-as-equal": Fault(
        keys, 'if operator == "=":', 'if operator in ("=", "!="):', "atom/unrestricted"
    ),
    "alternatives-as-conditions": Fault(
        keys,
        "if isinstance(part, Comparison):\n            exact",
        'if getattr(part, "operator", "") == "or":\n            self.take(part.operands[0])\n'
        "        if isinstance(part, Comparison):\n            exact",
        " A(n = 3 or v > 0) and B(not n = 1) within 3 s",
    ),
}


def stand_in(monkeypatch, planted):
    """Let the module with the mistake stand in for the module as it is."""
    text = inspect.getsource(planted.module)
    assert text.count(planted.old) == 1, "the mistake needs its one place"
    module = types.ModuleType(planted.module.__name__)
    code = compile(text.replace(planted.old, planted.new), planted.module.__file__, "exec")
    exec(code, module.__dict__)
    for where, name in STANDS_IN[planted.module]:
        owner = module.Times if isinstance(where, type) else module
        monkeypatch.setattr(where, name, getattr(owner, name))


def lost(planted, seed):
    """Whether the case of a seed loses a result."""
    seeds = range(seed, seed + 1)
    try:
        if planted.shown in WRITTEN:
            hold_written(planted.shown, seeds, Counts())
        else:
            construct, context = planted.shown.split("/")
            hold(construct, context, seeds, Counts())
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_mistake_loses_results(monkeypatch, name):
    planted = FAULTS[name]
    stand_in(monkeypatch, planted)
    assert any(lost(planted, seed) for seed in range(planted.first, SEEDS_MAX))


def test_without_a_mistake_these_cases_lose_none():
    for planted in FAULTS.values():
        assert not any(lost(planted, seed) for seed in range(planted.first, planted.first + 1))
