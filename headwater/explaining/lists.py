"""The lists of a chain: what fits into them, and what is asked of a chain with its lists.

Owns the questions and their telling. Must not know how the other elements were found. Invariant:
each question is asked by the code that the engine itself compiles for it (whole.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from broker.engine.event.occurrence import Occurrence, end_of, events_of, flat, order_of, start_of
from broker.engine.pattern.layout.operands import Gathered, Member, Operand, composite
from broker.engine.pattern.layout.pattern import Layout
from broker.engine.pattern.uncertainty.whole import Passes, fits_test, place_end, place_start
from headwater.explaining.criteria import Criterion, Miss
from headwater.explaining.pairs import Pairs
from headwater.explaining.words import counted, label, names
from headwater.testing.notation import duration_text as short
from language.diagnostics import shorten
from language.printing.expressions import distance_text, duration_text, expression_text
from language.printing.patterns import bound_text
from language.tree import Bound

Group = tuple[Any, ...]
Found = dict[Group, list[Occurrence]]


class Lists:
    """The chains of one operand, filled with what fits."""

    def __init__(
        self, layout: Layout, gathered: Gathered, keys: tuple[str, ...], groups: int
    ) -> None:
        self._gathered = gathered
        self._pairs = [
            Pairs(_criteria(layout, gathered, member, keys), groups) for member in gathered.members
        ]
        self._asked = _asked(layout, gathered, keys)
        self._passed = [0] * len(self._asked)
        self._chains = self._filled = 0
        self._last: Occurrence | None = None  # filled, and refused

    @property
    def cut(self) -> bool:
        """Tell whether not all was looked at."""
        return any(pairs.cut for pairs in self._pairs)

    def fill(
        self, chains: list[Occurrence], candidates: list[list[Occurrence]], group: Group
    ) -> list[Occurrence]:
        """The chains that pass, with their lists; `candidates` of each list, all of one group."""
        self._chains += len(chains)
        fitting: list[dict[int, list[Occurrence]]] = []
        for pairs, members in zip(self._pairs, candidates, strict=True):
            by_chain: dict[int, list[Occurrence]] = {}
            for chain, member in pairs.passing(chains, members, group):
                by_chain.setdefault(id(chain), []).append(member)
            fitting.append(by_chain)
        filled = []
        for chain in chains:
            whole = self._whole(chain, [members_of.get(id(chain), []) for members_of in fitting])
            if whole is None:
                continue
            self._filled += 1
            if self._passes(whole, group):
                filled.append(whole)
        return filled

    def _whole(self, chain: Occurrence, lists: list[list[Occurrence]]) -> Occurrence | None:
        places = list(events_of(chain))
        end, start = end_of(chain), start_of(chain)
        for member, members in zip(self._gathered.members, lists, strict=True):
            if not members and not member.optional:
                return None
            low = member.operand.low - self._gathered.low
            high = member.operand.high - self._gathered.low
            ordered = sorted(members, key=order_of)
            columns = zip(*map(events_of, ordered), strict=True) if ordered else [()] * (high - low)
            if composite(member.operand):
                places[low:high] = [tuple(flat(column)) for column in columns]
            else:
                places[low] = tuple(ordered)
            end = max([end, *map(end_of, members)])
            start = min([start, *map(start_of, members)])
        return (end, start, *places)

    def _passes(self, whole: Occurrence, group: Group) -> bool:
        for number, (_, passes) in enumerate(self._asked):
            if passes(whole, group) is None:
                self._last = whole
                return False
            self._passed[number] += 1
        return True

    def told(self) -> list[str]:
        """Return the lines on its progress: list by list, then what is asked of all together."""
        name = label(self._gathered)
        lines = [f"{name}: {counted(self._chains)} of its other elements"]
        for member, pairs in zip(self._gathered.members, self._pairs, strict=True):
            lines.append(f"list {label(member.operand)}: {pairs.told()}")
            lines += [f"  {line}" for line in pairs.nearest()]
        parts = [f"{counted(self._filled)} with a member in each list that needs one"]
        if self._filled:
            for (text, _), count in zip(self._asked, self._passed, strict=True):
                parts.append(f"{counted(count)} {text}")
                if not count:
                    break
        lines.append(f"{name}: {', '.join(parts)}")
        if self._last is not None and 0 in self._passed:
            lines.append(f"  as in {names(self._last)}, with {self._sizes(self._last)}")
        return lines

    def _sizes(self, whole: Occurrence) -> str:
        places = events_of(whole)
        return " and ".join(
            f"{counted(len(places[member.operand.low - self._gathered.low]), 'event')}"
            f" in {label(member.operand)}"
            for member in self._gathered.members
        )


def _asked(
    layout: Layout, gathered: Gathered, keys: tuple[str, ...]
) -> list[tuple[str, Callable[[Occurrence, Group], Occurrence | None]]]:
    """List what is asked of a chain with its lists, in words and as a test."""
    bare = replace(gathered, within_ms=None, spread_m=None, conjuncts=[], anchors=[])
    asked: list[tuple[str, Operand]] = []
    if gathered.within_ms is not None:
        text = f"within {duration_text(gathered.within_ms)}"
        asked.append((text, replace(bare, within_ms=gathered.within_ms)))
    asked += [
        (f"within {duration_text(anchor[1])} from another", replace(bare, anchors=[anchor]))
        for anchor in gathered.anchors
    ]
    if gathered.spread_m is not None:
        text = f"spread {distance_text(gathered.spread_m)}"
        asked.append((text, replace(bare, spread_m=gathered.spread_m)))
    asked += [
        (f"where {shorten(expression_text(conjunct), 80)}", replace(bare, conjuncts=[conjunct]))
        for conjunct in gathered.conjuncts
    ]
    return [(text, Passes(layout, question, keys, None)) for text, question in asked]


def _criteria(
    layout: Layout, gathered: Gathered, member: Member, keys: tuple[str, ...]
) -> list[Criterion]:
    """List what is asked of one chain and one candidate of a list, in the order of its telling."""
    chain = replace(gathered, within_ms=None, anchors=[])
    alone = replace(member, after_bound=None, before_bound=None, conjuncts=[])

    def test(whole: Gathered, one: Member) -> Callable[..., bool]:
        return fits_test(layout, whole, one, keys)

    criteria = [Criterion("in its place", test(chain, alone), _place_miss(gathered, member))]
    for element, bound, after in (
        (member.after, member.after_bound, True),
        (member.before, member.before_bound, False),
    ):
        if element is None or bound is None:
            continue
        word = "after" if after else "before"
        text = f"with a gap of {bound_text(bound)} {word} {label(element)}"
        bounded = replace(alone, after_bound=bound) if after else replace(alone, before_bound=bound)
        miss = _gap_miss(gathered, element, bound, after=after)
        criteria.append(Criterion(text, test(chain, bounded), miss))
    if gathered.within_ms is not None or gathered.anchors:
        limited = replace(chain, within_ms=gathered.within_ms, anchors=gathered.anchors)
        criteria.append(Criterion("in time", test(limited, alone), _no_miss))
    for conjunct in member.conjuncts:
        text = f"where {shorten(expression_text(conjunct), 80)}"
        criteria.append(
            Criterion(text, test(chain, replace(alone, conjuncts=[conjunct])), _no_miss)
        )
    return criteria


def _no_miss(chain: Occurrence, member: Occurrence) -> Miss | None:  # noqa: ARG001
    return None


def _edges(gathered: Gathered, element: Operand) -> tuple[int, int]:
    return element.low - gathered.low, element.high - gathered.low


def _place_miss(gathered: Gathered, member: Member) -> Callable[..., Miss | None]:
    def miss(chain: Occurrence, one: Occurrence) -> Miss | None:
        early = late = 0
        if member.after is not None:
            early = place_end(chain, *_edges(gathered, member.after)) - start_of(one)
        if member.before is not None:
            late = end_of(one) - place_start(chain, *_edges(gathered, member.before))
        missed_ms = max(early, late, 0)
        word = "early" if early >= late else "late"
        return missed_ms, f"came {short(missed_ms)} too {word}"

    return miss


def _gap_miss(
    gathered: Gathered, element: Operand, bound: Bound, *, after: bool
) -> Callable[..., Miss | None]:
    edges = _edges(gathered, element)

    def miss(chain: Occurrence, one: Occurrence) -> Miss | None:
        if after:
            gap_ms = start_of(one) - place_end(chain, *edges)
        else:
            gap_ms = place_start(chain, *edges) - end_of(one)
        over_ms = 0 if bound.high_ms is None else gap_ms - bound.high_ms
        under_ms = 0 if bound.low_ms is None else bound.low_ms - gap_ms
        missed_ms = max(over_ms, under_ms)
        return missed_ms, f"missed it by {short(missed_ms)}"

    return miss
