"""Which of the pairs, or runs, that may stand an operator reports: the contexts.

Owns: the reference meaning of `unrestricted`, `recent`, `chronicle`, `first` and `latest`.
Must not know: patterns; it is given occurrences and whether some of them may stand together.
Invariant: candidates are looked at in order, from the first of the trace to the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from tests.oracles.events import Key, Occurrence

# The two as one, with its certainty; None where they may not stand together.
Join: TypeAlias = Callable[[Occurrence, Occurrence], Occurrence | None]
Slots: TypeAlias = tuple[Occurrence | None, ...]


def unrestricted(
    lefts: Sequence[Occurrence], rights: Sequence[Occurrence], join: Join
) -> list[Occurrence]:
    """Every combination."""
    return [one for p in lefts for q in rights if (one := join(p, q)) is not None]


def recent(
    lefts: Sequence[Occurrence], rights: Sequence[Occurrence], join: Join
) -> list[Occurrence]:
    """For each occurrence of either operand, the latest candidate of the other before it."""
    chosen: list[Occurrence] = []
    for q in rights:
        before = in_order(p for p in lefts if p.order < q.order and join(p, q))
        chosen += [one for p in before[-1:] if (one := join(p, q))]
    for p in lefts:
        before = in_order(q for q in rights if q.order < p.order and join(p, q))
        chosen += [one for q in before[-1:] if (one := join(p, q))]
    return chosen


PARTNERS: dict[str, Callable[..., list[Occurrence]]] = {
    "unrestricted": unrestricted,
    "recent": recent,
}
"""What spends nothing."""


def in_order(candidates: Iterable[Occurrence]) -> list[Occurrence]:
    """Occurrences in order."""
    return sorted(candidates, key=lambda one: one.order)


def moment(one: Occurrence) -> Key:
    """The order of its events, whatever places they fill."""
    return one.order[:5]


# --- what spends ------------------------------------------------------------------------------


def chronicle(
    lefts: Sequence[Occurrence],
    rights: Sequence[Occurrence],
    join: Join,
    before: Sequence[Occurrence],
) -> list[Occurrence]:
    """Each completing occurrence takes the oldest candidate none of whose events is spent.

    `before` is what was chosen already. An event that is in both operands completes as the right
    one first, so that the places are filled in the order of the text.
    """
    chosen = list(before)
    spent = {event for one in before for event in one.spans}

    def is_free(one: Occurrence) -> bool:
        return not spent & set(one.spans)

    def partners(x: Occurrence, is_right: bool) -> Iterator[Occurrence]:
        for y in in_order(lefts if is_right else rights):
            one = join(y, x) if is_right else join(x, y)
            if y.order < x.order and is_free(y) and one is not None:
                yield one

    completing = [(moment(q), 0, q.order, q) for q in rights]
    completing += [(moment(p), 1, p.order, p) for p in lefts]
    for _, role, _, x in sorted(completing, key=lambda item: item[:3]):
        if is_free(x):
            one = next(partners(x, role == 0), None)
            if one is not None:
                chosen.append(one)
                spent |= set(one.spans)
    return chosen


@dataclass(frozen=True)
class Chain:
    """Operands of like links, and what decides whether some of them may stand together.

    `ordered`: the operands can only come in the order of the text. `fits` gives what is filled as
    one, or None where it may not stand. `expired(slots, newest, now, coming)`: whether the bound
    after the newest of the filled ones has passed, given what is still to come for the place after.
    """

    operands: tuple[Sequence[Occurrence], ...]
    ordered: bool
    fits: Callable[[Slots], Occurrence | None]
    expired: Callable[[Slots, int, int, Sequence[Occurrence]], bool]

    @cached_property
    def steps(self) -> list[tuple[int, Occurrence]]:
        """Every candidate with its place, in order. Where the operands have an order, the later
        place of an event that fits two comes first, so that it rather advances than replaces; else
        the earlier one.
        """
        turn = -1 if self.ordered else 1
        listed = [(place, one) for place, some in enumerate(self.operands) for one in some]
        return sorted(listed, key=lambda step: (moment(step[1]), turn * step[0], step[1].order))

    def may_begin(self, place: int) -> bool:
        """Whether a run can begin with this operand."""
        return place == 0 or not self.ordered

    def may_advance(self, slots: Slots, place: int) -> bool:
        """Whether this operand is one that the run waits for."""
        if self.ordered:
            return place == sum(slot is not None for slot in slots)
        return slots[place] is None


def _filled(slots: Slots, place: int, one: Occurrence | None) -> Slots:
    return (*slots[:place], one, *slots[place + 1 :])


def _run_from(
    chain: Chain, begin: int, spent_ms: int | None, *, replaces: bool
) -> Occurrence | None:
    """The run that begins with one of the steps, if it completes."""
    steps = chain.steps
    place, one = steps[begin]
    slots = _filled((None,) * len(chain.operands), place, one)
    if not chain.fits(slots):
        return None
    for number, (at, candidate) in enumerate(steps[begin + 1 :], begin + 1):
        if _is_spent(candidate, spent_ms):
            continue
        newest = sum(slot is not None for slot in slots) - 1
        coming = [one for place, one in steps[number:] if place == newest + 1]
        if replaces and chain.expired(slots, newest, candidate.end, coming):
            return None
        longer = _filled(slots, at, candidate)
        if chain.may_advance(slots, at) and (whole := chain.fits(longer)):
            slots = longer
            if None not in slots:
                return whole
        elif replaces and at == newest and chain.fits(longer):
            slots = longer
    return None


def _is_spent(one: Occurrence, spent_ms: int | None) -> bool:
    return spent_ms is not None and any(event.end <= spent_ms for event in one.spans)


def runs(chain: Chain, before: Sequence[Occurrence], *, replaces: bool) -> list[Occurrence]:
    """One run at a time; a completed one spends all that ends by its end, a dropped one nothing.

    `replaces` makes `latest` of `first`: the newest in a row stands for the step.
    """
    chosen = list(before)
    spent_ms = max((one.end for one in before), default=None)
    for begin, (place, one) in enumerate(chain.steps):
        if chain.may_begin(place) and not _is_spent(one, spent_ms):
            run = _run_from(chain, begin, spent_ms, replaces=replaces)
            if run is not None:
                chosen.append(run)
                spent_ms = run.end
    return chosen
