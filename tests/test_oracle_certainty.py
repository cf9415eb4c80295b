"""What the reference says of uncertain times is held to every choice of times on a fine grid."""

import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product

import pytest

from tests.oracles import spec as s
from tests.oracles.certainty import Times, verdict
from tests.oracles.events import Event, Occurrence
from tests.oracles.relations import (
    RELATIONS,
    SYSTEMS,
    bounded,
    comes_after,
    follows_within,
    in_bound,
    lies_inside,
    related,
    spans_at_most,
    starts_within,
)
from tests.oracles.verdicts import Certainty

GRID = 4  # times are multiples of this, and choices are whole: strict chains find room between


def made(ident: str, start: int, end: int, uncertainty: int) -> Event:
    return Event(("event", ident, end), "A", start, end, {}, uncertainty=uncertainty)


def drawn(rng: random.Random, ident: str) -> Event:
    start = rng.randint(0, 3) * GRID
    end = start + rng.choice((0, 0, 1)) * GRID
    return made(ident, start, end, rng.choice((0, 1)) * GRID)


def placed(events: Sequence[Event]) -> Occurrence:
    return Occurrence(
        tuple(str(event.identity[1]) for event in events), tuple((event,) for event in events)
    )


def choices(event: Event) -> Iterator[Event]:
    """The event at each of the times that it may have."""
    off = range(-event.uncertainty, event.uncertainty + 1)
    if event.is_point:
        for by in off:
            yield made(event.identity[1], event.start + by, event.end + by, 0)
    else:
        for first, last in product(off, off):
            if event.start + first <= event.end + last:
                one = made(event.identity[1], event.start + first, event.end + last, 0)
                # What lasts stays longer than a point wherever its ends fall together.
                yield Event(one.identity, "A", one.start, one.end, {"lasts": True})


def by_choice(
    p: Occurrence, q: Occurrence, holds: Callable[[Occurrence, Occurrence], bool]
) -> Certainty:
    count = len(p.events)
    outcomes = {
        holds(placed(chosen[:count]), placed(chosen[count:]))
        for chosen in product(*(list(choices(one)) for one in (*p.events, *q.events)))
    }
    return {(True,): Certainty.YES, (False,): Certainty.NO}.get(tuple(outcomes), Certainty.MAYBE)


def pairs(seed: int, count: int, *, points: bool) -> Iterator[tuple[Occurrence, Occurrence]]:
    rng = random.Random(seed)
    while count:
        sizes = rng.choice(((1, 1), (1, 1), (2, 1), (1, 2)))
        events = [drawn(rng, f"e{number}") for number in range(sum(sizes))]
        lasting = [one for one in events if not one.is_point and one.uncertainty]
        if len(lasting) > (0 if points else 1):
            continue
        count -= 1
        yield placed(events[: sizes[0]]), placed(events[sizes[0] :])


@pytest.mark.parametrize("op", sorted(RELATIONS))
def test_a_relation_is_judged_by_all_choices(op: s.Relation) -> None:
    """What lasts has exact times here: whether it may shrink to a point is nobody's question."""
    seen = set()
    for p, q in pairs(len(op), 40, points=True):
        expected = by_choice(p, q, RELATIONS[op])
        assert related(op, p, q) == expected, (op, p.events, q.events)
        seen.add(expected)
    assert len(seen) > 1 or op == "and"


@pytest.mark.parametrize("op", sorted(RELATIONS))
def test_exact_times_are_judged_alike_either_way(op: s.Relation) -> None:
    rng = random.Random(op)
    for _ in range(60):
        events = [drawn(rng, f"e{number}") for number in range(3)]
        exact = [made(f"e{i}", one.start, one.end, 0) for i, one in enumerate(events)]
        p, q = placed(exact[:2]), placed(exact[2:])
        nominal = Certainty.YES if RELATIONS[op](p, q) else Certainty.NO
        assert verdict(*SYSTEMS[op], Times(p.spans, q.spans)) == nominal


def test_spans_and_what_lies_inside_are_judged_by_all_choices() -> None:
    for p, q in pairs(7, 25, points=False):
        for ms in (0, GRID, 2 * GRID, 3 * GRID):
            expected = by_choice(p, q, lambda a, _, ms=ms: a.end - a.start <= ms)  # type: ignore[misc]
            assert spans_at_most(p, ms, Fraction(0)) == expected
        inside = by_choice(p, q, lambda a, b: a.start <= b.start and b.end <= a.end)
        assert lies_inside(p, q) == inside


def test_what_disturbs_a_silence_is_judged_by_all_choices_of_what_both_have_too() -> None:
    seen = set()
    for p, q in pairs(13, 40, points=False):
        for shared in (False, True):
            other = placed([*q.events, p.events[0]]) if shared else q
            for ms in (GRID, 2 * GRID):
                expected = by_shared_choice(
                    p,
                    other,
                    lambda a, b, ms=ms: b.end > a.end and b.start <= a.end + ms,  # type: ignore[misc]
                )
                assert comes_after(p, other, ms, Fraction(0)) == expected, (p, other, ms)
                seen.add((shared, expected))
    assert len(seen) == 6
    assert comes_after(p, p, GRID, Fraction(0)) == Certainty.NO


def by_shared_choice(
    p: Occurrence, q: Occurrence, holds: Callable[[Occurrence, Occurrence], bool]
) -> Certainty:
    """As by_choice, an event that is in both being at one time in both."""
    events = list(dict.fromkeys((*p.events, *q.events)))
    outcomes = set()
    for chosen in product(*(list(choices(one)) for one in events)):
        at = {one.identity[1]: one for one in chosen}
        parts = [placed([at[one.identity[1]] for one in each.events]) for each in (p, q)]
        outcomes.add(holds(*parts))
    return {(True,): Certainty.YES, (False,): Certainty.NO}.get(tuple(outcomes), Certainty.MAYBE)


@pytest.mark.parametrize("op", ["then", "and"])
def test_each_end_of_a_bound_is_judged_by_all_choices(op: s.Relation) -> None:
    for p, q in pairs(11, 30, points=True):
        for bound in (s.Bound(GRID, None), s.Bound(None, GRID), s.Bound(None, 0)):
            pair = s.Pair(op, s.Atom("A"), s.Atom("B"), bound)
            expected = by_choice(p, q, lambda a, b, pair=pair: in_bound(pair, a, b))  # type: ignore[misc]
            assert bounded(pair, p, q, Fraction(0)) == expected


def test_drift_widens_the_doubt_about_durations() -> None:
    p, q = placed([made("a", 0, 0, 0)]), placed([made("b", 10_000, 10_000, 0)])
    both = placed([made("a", 0, 0, 0), made("b", 10_000, 10_000, 0)])
    tenth = Fraction(1, 10)
    limits = {9000: Certainty.NO, 9100: Certainty.MAYBE, 11_000: Certainty.MAYBE}
    limits |= {11_200: Certainty.YES}
    # 9100 * 1.1 = 10 010 is enough for maybe; 11 000 * 0.9 = 9900 is not for yes; 10 080 is.
    for ms, expected in limits.items():
        assert spans_at_most(both, ms, tenth) == expected
        upper = s.Pair("then", s.Atom("A"), s.Atom("B"), s.Bound(None, ms))
        assert bounded(upper, p, q, tenth) == expected
        assert follows_within(p.events[0], q.events[0], ms, tenth) == expected
        assert starts_within(p, q, ms, tenth) == expected
        assert comes_after(p, q, ms, tenth) == expected
    low = {9000: Certainty.YES, 9100: Certainty.MAYBE, 11_000: Certainty.MAYBE}
    low |= {11_200: Certainty.NO}
    # 9000 * 1.1 = 9900 has passed for certain; 11 200 * 0.9 = 10 080 has not.
    for ms, expected in low.items():
        for op in ("then", "and"):
            lower = s.Pair(op, s.Atom("A"), s.Atom("B"), s.Bound(ms, None))  # type: ignore[arg-type]
            assert bounded(lower, p, q, tenth) == expected


def test_one_reading_alone_has_no_span() -> None:
    assert spans_at_most(placed([made("a", 5, 5, 100)]), 0, Fraction(0)) == Certainty.YES


def test_a_wide_time_around_a_narrow_one_is_no_wider_than_its_ends_allow() -> None:
    """The wide one ends the span or begins it, never both."""
    both = placed([made("a", 5, 5, 5), made("b", 3, 4, 0)])
    assert spans_at_most(both, 7, Fraction(0)) == Certainty.YES
    assert spans_at_most(both, 6, Fraction(0)) == Certainty.MAYBE
