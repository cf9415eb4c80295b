"""How far a pattern got over recorded events: operator by operator, from the leaves up.

Owns the walk over a layout's operands and what is told of each. Must not know files. Invariant:
candidates are all that the conditions let through, whatever a context would choose among them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from broker.engine.event.event import Event
from broker.engine.event.occurrence import (
    Absence,
    Occurrence,
    bound_events,
    end_of,
    events_of,
    order_of,
    start_of,
)
from broker.engine.pattern.layout import operands as ops
from broker.engine.pattern.layout.operands import Leaf, Operand
from broker.engine.pattern.layout.pattern import Layout
from broker.engine.pattern.operators.join import JoinWriter
from broker.engine.pattern.operators.repeats import row
from broker.engine.pattern.uncertainty.matching import key_function, leaf_select
from broker.engine.pattern.uncertainty.whole import Passes, negation_test
from headwater.explaining.criteria import criteria_of
from headwater.explaining.lists import Lists
from headwater.explaining.pairs import Pairs
from headwater.explaining.words import condition_text, counted, groups_text, label, names
from headwater.testing.notation import duration_text as short
from language.printing.expressions import container_text, duration_text

KEPT_MAX = 2_000  # occurrences of one operand and group that go on

Group = tuple[Any, ...]
Found = dict[Group, list[Occurrence]]


@dataclass(slots=True)
class Funnel:
    """The lines on each operand, bottom-up; `left` is what the whole pattern let through."""

    lines: list[str] = field(default_factory=list)
    left: int = 0
    sampled: bool = False


class Walk:
    """One pattern over one sample."""

    def __init__(
        self,
        layout: Layout,
        keys: tuple[str, ...],
        events: dict[str, list[Event]],
        begin: int | None,
    ) -> None:
        """`events` are the samples, by type as the pattern names it; `begin` the least start."""
        self._layout = layout
        self._keys = keys
        self._key = key_function(keys) if keys else lambda _: ()
        self._events = events
        self._begin = begin
        self.funnel = Funnel()

    def run(self) -> Funnel:
        """Walk up to the root, or to the first operand that nothing passes."""
        by_group = self._found(self._layout.root)
        self.funnel.left = sum(map(len, by_group.values()))
        return self.funnel

    def leaves(self) -> Funnel:
        """Look at the leaves alone, as of a window."""
        for leaf in self._layout.leaves:
            self._leaf(leaf)
        return self.funnel

    def _found(self, operand: Operand) -> Found:
        kinds: dict[type[Operand], Callable[[Any], Found]] = {
            ops.Leaf: self._leaf,
            ops.Joint: self._joint,
            ops.Negation: self._negation,
            ops.Silence: self._silence,
            ops.Count: self._count,
            ops.Run: self._run,
            ops.Kth: self._kth,
            ops.Distinct: lambda one: self._found(one.operand),
            ops.Padded: self._padded,
            ops.Gathered: self._gathered,
        }
        by_group = kinds[type(operand)](operand)
        for group, items in by_group.items():
            if len(items) > KEPT_MAX:
                self.funnel.sampled = True
                by_group[group] = items[:KEPT_MAX]
        return {group: items for group, items in by_group.items() if items}

    def _say(self, operand: Operand, told: str) -> None:
        self.funnel.lines.append(f"{label(operand)}: {told}")

    # --- leaves --------------------------------------------------------------------------

    def _leaf(self, leaf: Leaf) -> Found:
        events = self._events[leaf.event_type]
        counts = [counted(len(events), "event")]
        bare = replace(leaf, conjuncts=[], regions=[], within_ms=None, spread_m=None)
        asked = [
            (condition_text(condition), replace(bare, conjuncts=[condition]))
            for condition in leaf.conditions
        ]
        asked += [
            (f"in {container_text(region)}", replace(bare, regions=[region]))
            for region in leaf.regions
        ]
        asked += [
            (condition_text(conjunct), replace(bare, conjuncts=[conjunct]))
            for conjunct in leaf.conjuncts
        ]
        if leaf.within_ms is not None:
            within = f"within {duration_text(leaf.within_ms)}"
            asked.append((within, replace(bare, within_ms=leaf.within_ms)))
        if leaf.spread_m is not None:
            asked.append(("with a position", replace(bare, spread_m=leaf.spread_m)))
        for text, question in asked:
            if not events:
                break
            select = leaf_select(question)
            passed = events if select is None else select(events)
            if len(passed) < len(events):
                counts.append(f"{counted(len(passed))} {text}")
            events = passed
        by_group: Found = {}
        for event in events:
            key = self._key(event)
            if key is not None:
                by_group.setdefault(key, []).append(event)
        if events and not by_group:
            counts.append(f"none with {' and '.join(self._keys)}, by which is grouped")
        self._say(leaf, ", ".join(counts))
        return by_group

    # --- operators of two sides ----------------------------------------------------------

    def _joint(self, joint: ops.Joint) -> Found:
        left, right = self._found(joint.left), self._found(joint.right)
        if joint.operator == "or":
            join = JoinWriter(self._layout, joint, self._keys, ordered=False).build()
            groups = dict.fromkeys([*left, *right])
            return {
                group: join(left.get(group, []), right.get(group, []), None, None, group)
                for group in groups
            }
        if not left or not right:
            return {}
        shared = [group for group in left if group in right]
        if not shared:
            keys = " and ".join(self._keys)
            self._say(joint, f"no {keys} has both: {groups_text(left)}, but {groups_text(right)}")
            return {}
        pairs = Pairs(criteria_of(self._layout, joint, self._keys), len(shared))
        pair = JoinWriter(self._layout, joint, self._keys, ordered=False).build_pair()
        by_group: Found = {}
        for group in shared:
            by_group[group] = [
                pair(*occurrences)
                for occurrences in pairs.passing(left[group], right[group], group)
            ]
        self.funnel.sampled = self.funnel.sampled or pairs.cut
        self._say(joint, pairs.told())
        self.funnel.lines += [f"  {line}" for line in pairs.nearest()]
        return by_group

    def _negation(self, negation: ops.Negation) -> Found:
        left, right = self._found(negation.left), self._found(negation.right)
        counts = negation_test(self._layout, negation, self._keys)
        silent = (None,) * (negation.high - negation.right.low)
        by_group: Found = {}
        broken: list[tuple[Occurrence, Occurrence]] = []
        for group, items in left.items():
            others = right.get(group, [])
            for p in items:
                q = next((q for q in others if _falls_in(negation, p, q, group, counts)), None)
                if q is None:
                    whole = (end_of(p), start_of(p), *events_of(p), *silent)
                    by_group.setdefault(group, []).append(whole)
                else:
                    broken.append((p, q))
        if left:
            kept, all_of = sum(map(len, by_group.values())), sum(map(len, left.values()))
            self._say(negation, f"{counted(all_of)} without it, {counted(kept)} left")
        if broken and not by_group:
            p, q = broken[0]
            self.funnel.lines.append(f"  as in {names(p)}, into which fell {names(q)}")
        return by_group

    # --- operators of one side -----------------------------------------------------------

    def _silence(self, silence: ops.Silence) -> Found:
        beneath = self._found(silence.operand)
        empty = (None,) * (silence.high - silence.low - 1)
        begins = self._begins()
        by_group: Found = {}
        longest_ms = 0
        for group in dict.fromkeys([*begins, *beneath]):
            spans = sorted((start_of(p), end_of(p)) for p in beneath.get(group, []))
            instants = {end for _, end in spans} | ({begins[group]} if group in begins else set())
            for u in sorted(instants):
                met = [max(0, start - u) for start, end in spans if end > u]
                quiet_ms = min(met, default=silence.for_ms + 1)
                longest_ms = max(longest_ms, quiet_ms)
                if quiet_ms > silence.for_ms:
                    end = u + silence.for_ms
                    absence = (end, u, Absence(u, end, silence.low), *empty)
                    by_group.setdefault(group, []).append(absence)
        if begins and not by_group:
            wanted = duration_text(silence.for_ms)
            self._say(silence, f"the longest silence was {short(longest_ms)} of the {wanted}")
        return by_group

    def _begins(self) -> dict[Group, int]:
        """When each group began: with the input, or with its first event of a type named."""
        if not self._keys:
            return {} if self._begin is None else {(): self._begin}
        begins: dict[Group, int] = {}
        for name in self._layout.named:
            for event in self._events[name]:
                key = self._key(event)
                if key is not None:
                    begins[key] = min(event.start, begins.get(key, event.start))
        return begins

    def _count(self, count: ops.Count) -> Found:
        passes = Passes(self._layout, count, self._keys, None)
        longest, rows = 0, 0
        by_group: Found = {}
        for group, items in self._found(count.operand).items():
            current: list[Occurrence] = []
            for item in sorted(items, key=order_of):
                if current and start_of(item) < end_of(current[-1]):
                    current = []
                current = [*current, item][-count.count :]
                longest = max(longest, len(current))
                if len(current) == count.count:
                    rows += 1
                    whole = passes(row(current), group)
                    if whole is not None:
                        by_group.setdefault(group, []).append(whole)
        if longest:
            summary = f"the longest row was {longest} of {count.count}"
            if rows:
                left = sum(map(len, by_group.values()))
                summary = f"{counted(rows, 'row')}, {counted(left)} that passes what is asked of it"
            self._say(count, summary)
        return by_group

    def _run(self, run: ops.Run) -> Found:
        passes = Passes(self._layout, run, self._keys, None)
        by_group: Found = {}
        runs = 0
        low_ms, high_ms = run.gap_low_ms or 0, run.gap_high_ms
        for group, items in self._found(run.operand).items():
            rows: list[list[Occurrence]] = []
            for item in sorted(items, key=order_of):
                gap_ms = start_of(item) - end_of(rows[-1][-1]) if rows else -1
                if rows and gap_ms >= low_ms and (high_ms is None or gap_ms <= high_ms):
                    rows[-1].append(item)
                else:
                    rows.append([item])
            runs += len(rows)
            wholes = [passes(row(items_of_run), group) for items_of_run in rows]
            by_group[group] = [whole for whole in wholes if whole is not None]
        left = sum(map(len, by_group.values()))
        if runs:
            self._say(run, f"{counted(runs, 'run')}, {counted(left)} that passes")
        return by_group

    def _kth(self, kth: ops.Kth) -> Found:
        passes = Passes(self._layout, kth, self._keys, None)
        by_group: Found = {}
        items_max = 0
        for group, items in self._found(kth.operand).items():
            items_max = max(items_max, len(items))
            if len(items) >= kth.k:
                whole = passes(sorted(items, key=order_of)[kth.k - 1], group)
                if whole is not None:
                    by_group[group] = [whole]
        if items_max and not by_group:
            self._say(
                kth, f"there were {items_max}" if items_max < kth.k else "the one did not pass"
            )
        return by_group

    def _padded(self, padded: ops.Padded) -> Found:
        before = (None,) * (padded.operand.low - padded.low)
        after = (None,) * (padded.high - padded.operand.high)
        return {
            group: [(end_of(p), start_of(p), *before, *events_of(p), *after) for p in items]
            for group, items in self._found(padded.operand).items()
        }

    def _gathered(self, gathered: ops.Gathered) -> Found:
        base = self._found(gathered.base)
        if not base:
            return {}
        lists = [self._found(member.operand) for member in gathered.members]
        for member, candidates in zip(gathered.members, lists, strict=True):
            if not candidates and not member.optional:
                self._say(gathered, f"nothing for the list {label(member.operand)}")
                return {}
        filled = Lists(self._layout, gathered, self._keys, len(base))
        whole = {
            group: filled.fill(chains, [candidates.get(group, []) for candidates in lists], group)
            for group, chains in base.items()
        }
        self.funnel.sampled = self.funnel.sampled or filled.cut
        self.funnel.lines += filled.told()
        return whole


def _falls_in(
    negation: ops.Negation,
    p: Occurrence,
    q: Occurrence,
    group: Group,
    counts: Callable[..., bool] | None,
) -> bool:
    own = {id(event) for event in bound_events(p)}
    if any(id(event) in own for event in bound_events(q)):
        return False
    if negation.window_ms is None:
        inside = start_of(p) <= start_of(q) and end_of(q) <= end_of(p)
    else:
        inside = start_of(p) < start_of(q) <= start_of(p) + negation.window_ms
    return inside and (counts is None or counts(p, q, group))
