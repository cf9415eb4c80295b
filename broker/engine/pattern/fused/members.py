"""The lists of a chain that runs as one operator.

Owns the members that may still be in a list, in one partition, and how a match of the other
elements gets them. Must not know how these are found. Invariant: a list holds every member that
fits its position singly (LANGUAGE 3, Lists).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import Event
from broker.engine.event.occurrence import Occurrence
from broker.engine.pattern.fused.fusion import Entry, Fused
from broker.engine.pattern.layout.operands import (
    Gathered,
    Joint,
    Leaf,
    Operand,
    Padded,
    atom_of,
    operands,
)
from broker.engine.pattern.operators.gathered import SLICED, Candidates, GatheredPlan, gather
from broker.engine.runtime.budget import PLACE_BYTES, Budget

# Of a match: where the list is, where the events beside it are, and if it may be empty.
Slice = tuple[int, int, int, bool]


class ListsPlan:
    """The lists of one chain, compiled; all partitions of an agent share it."""

    def __init__(self, gathered: Gathered, lists: GatheredPlan, budget: Budget) -> None:
        """`lists`: how each is filled where more is asked of a member than where it lies."""
        self.gathered = lists
        self.budget = budget
        self.listed = {member.operand.low: number for number, member in enumerate(gathered.members)}
        # What comes for an element has the empty places of its lists from the start, so that the
        # joins and runs above need know nothing of lists.
        self.pads = {
            leaf_of(part).low: pad_of(part)
            for part in operands(gathered.base)
            if isinstance(part, Padded)
        }
        self.slices = _slices_of(gathered, lists)


def leaf_of(element: Operand) -> Leaf:
    """Return the atom of an element, which may have the places of lists beside it."""
    leaf = atom_of(element)
    assert leaf is not None
    return leaf


def pad_of(element: Padded) -> Callable[[Event], Occurrence]:
    """Return what makes an event a match with the places of lists beside it, still empty."""
    before = (None,) * (element.operand.low - element.low)
    after = (None,) * (element.high - element.operand.high)
    return lambda event: (event.end, event.start, *before, event, *after)


def _slices_of(gathered: Gathered, lists: GatheredPlan) -> list[Slice] | None:
    """Return the slices that fill a chain's lists; None where more is asked of a member."""
    asks = gathered.conjuncts or gathered.anchors or gathered.spread_m is not None
    if asks or not all(wanted.plain and wanted.single for wanted in lists.lists):
        return None
    if isinstance(gathered.base, Joint) and gathered.within_ms != gathered.base.within_ms:
        return None
    made = []
    for wanted, member in zip(lists.lists, gathered.members, strict=True):
        beside = (member.after, member.before)
        places = [_atom_of(gathered, part).low for part in beside if part is not None]
        after, before = [2 + place - gathered.low for place in places]
        made.append((2 + wanted.low, after, before, wanted.optional))
    return made


def _atom_of(gathered: Gathered, part: Operand) -> Leaf:
    """Return the atom of an element, which a member names by itself or with its empty places."""
    leaves = [each for each in operands(gathered.base) if isinstance(each, Leaf)]
    return next(leaf for leaf in leaves if part.low <= leaf.low < part.high)


class FusedLists(Fused):
    """A chain with lists: what its other elements give, each with all that lies between them."""

    __slots__ = ("_base", "_candidates", "_group", "_plan")

    def __init__(self, plan: ListsPlan, group: tuple[Any, ...], base: Fused) -> None:
        self._plan, self._group, self._base = plan, group, base
        self.watermark, self.beneath = WATERMARK_NONE, {id(base): base}
        self._candidates = [Candidates() for _ in plan.gathered.lists]

    def step(self, entries: Sequence[Entry], watermark: int) -> list[Occurrence]:
        """Take what comes and return what it completes."""
        self.watermark = watermark
        plan, listed, pads = self._plan, self._plan.listed, self._plan.pads
        members: list[list[Occurrence]] = [[] for _ in self._candidates]
        elements: list[Entry] = []
        for place, event in entries:
            number = listed.get(place)
            if number is not None:
                members[number].append(event)
            else:
                pad = pads.get(place)
                elements.append((place, event if pad is None else pad(event)))
        for candidates, items in zip(self._candidates, members, strict=True):
            if items:
                candidates.take(items)
        # Members alone complete nothing, as no list stands at the end of such a chain.
        if not elements:
            return []
        chains = self._base.step(elements, watermark)
        if not chains:
            return []
        # Ends are in order, and of readings starts are, too: only then does a slice hold them all.
        if plan.slices is not None and not any(each.lasting for each in self._candidates):
            return self._sliced(chains, plan.slices)
        made = []
        for chain in chains:
            whole = gather(plan.gathered, self._candidates, chain, self._group, plan.budget)
            if whole is not None:
                made.append(whole)
        return made

    def _sliced(self, chains: list[Occurrence], slices: Sequence[Slice]) -> list[Occurrence]:
        """Fill lists of which nothing is asked: with all readings strictly between two elements.

        Only beside an element that lasts a reading that touches it is a member, too, and asked for.
        """
        plan, made, members = self._plan, [], 0
        for chain in chains:
            # An occurrence is (end, start, event, …): what lies between neither ends nor begins it.
            filled = [*chain]
            for candidates, (place, after, before, optional) in zip(
                self._candidates, slices, strict=True
            ):
                left, right = chain[after], chain[before]
                if left.start != left.end or right.start != right.end:
                    whole = gather(plan.gathered, self._candidates, chain, self._group, plan.budget)
                    if whole is not None:
                        made.append(whole)
                    break
                ends = candidates.ends
                low = bisect_right(ends, left.end)
                high = bisect_left(ends, right.start, low)
                if low == high and not optional:
                    break
                members += high - low
                filled[place] = tuple(candidates.items[low:high])
            else:
                made.append(tuple(filled))
        plan.budget.spend(members // SLICED, PLACE_BYTES * members)
        return made

    def expire(self, watermark: int) -> int:
        """Drop what is too old, and return how many are held.

        No member matters that ends before all begins that a chain may come of.
        """
        self.watermark = watermark
        held = self._base.expire(watermark)
        oldest: int | None = None
        for candidates in self._candidates:
            if candidates.ends:
                oldest = self._base.begins() if oldest is None else oldest
                if candidates.ends[0] < oldest:
                    candidates.drop(oldest)
                held += len(candidates.ends)
        return held

    def hold(self) -> int:
        """Return a time such that nothing passed on later ends by then."""
        return self._base.hold()

    def due(self) -> int | None:
        """Return the watermark that decides something by itself."""
        return self._base.due()

    def begins(self) -> int:
        """Return a time before which no later match begins."""
        return min(self.eldest(), self._base.begins())

    def kept(self) -> list[list[Occurrence]]:
        """Return the lists of what is held."""
        return [*self._base.kept(), *(candidates.items for candidates in self._candidates)]

    def shed(self, count: int) -> int:
        """Drop up to so many, and return how many went.

        The oldest members first, of the fullest list.
        """
        gone = 0
        for candidates in sorted(self._candidates, key=lambda each: -len(each.ends)):
            part = min(count - gone, len(candidates.ends))
            candidates.drop_first(part)
            gone += part
        return gone + (self._base.shed(count - gone) if gone < count else 0)

    def state(self) -> Any:
        """Return what is held as the operators one by one pack it."""
        watermark = self.watermark
        lists = [candidates.items for candidates in self._candidates]
        beneath = [self._base.state(), *([watermark] for _ in lists)]
        return [watermark, [[], *lists], [], [[[], watermark, state] for state in beneath]]

    def restore(self, state: Any) -> None:
        """Take a state up again."""
        self.watermark, (_, *lists), _, inboxes = state
        self._candidates = [Candidates(items) for items in lists]
        self._base.restore(inboxes[0][2])
