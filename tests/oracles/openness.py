"""Which specifications may leave something open for as long as the input lasts.

Owns the reading of LANGUAGE for that: what has no bound of its own, and whether anything waits for
it. Must not know the product. Invariant: where the answer is no, what is open is decided once the
watermark has passed all bounds of the text.
"""

from __future__ import annotations

from tests.oracles import spec as s

# Operators whose operands share an instant: together they last as long as both.
SHARING = frozenset(("meets", "overlaps", "during", "contains", "starts", "finishes", "equals")) | {
    "concat",
    "parallel",
}
RUNS = frozenset(("first", "latest"))


def stays_open(spec: s.Spec) -> bool:
    """Whether some of it may be decided by the end of the input alone."""
    cases = [case for one in spec.definitions for case in one.cases]
    whole = [*cases, *(one.case for one in spec.subscriptions)]
    lasting = {one.name for one in spec.definitions if any(map(_lasts, one.cases))}
    return any(
        _waits(case.pattern, case.context, enclosed=False)
        or _gathers(case)
        or _negates(case.pattern, lasting)
        for case in whole
    ) or any(map(_assigns, cases))


def _lasts(case: s.Case) -> bool:
    """Whether what a definition detects may last without end."""
    return _endless(case.pattern, enclosed=False)


def _gathers(case: s.Case) -> bool:
    """Whether any later silence may be of the occurrences that are gathered into one.

    A silence completes nothing, as it binds no event: it may come long after what completed them.
    """
    return case.thin == "collect" and _is_silent(case.pattern) and _lasts(case)


def _is_silent(pattern: s.Pattern) -> bool:
    return isinstance(pattern, s.Absent) or any(map(_is_silent, s.parts_of(pattern)))


def _negates(pattern: s.Pattern, lasting: set[str]) -> bool:
    """Whether something must not be that may have begun any time before."""
    match pattern:
        case s.Absent(operand):
            negated = s.atoms_of(operand)
        case s.Without(_, right):
            negated = s.atoms_of(right)
        case _:
            negated = ()
    return any(one.type in lasting for one in negated) or any(
        _negates(part, lasting) for part in s.parts_of(pattern)
    )


def _assigns(case: s.Case) -> bool:
    """Whether an event may get a time that lies back without end."""
    timed = any(name in ("timestamp", "end") for name, _ in case.assign)
    return timed and _endless(case.pattern, enclosed=False)


def _waits(pattern: s.Pattern, context: s.Context | None, *, enclosed: bool) -> bool:
    """Whether anything waits for what has no bound: a run, or what must not be."""
    match pattern:
        case s.Suffixed():
            enclosed = enclosed or _closes(pattern)
        case s.Pair() if (pattern.context or context) in RUNS:
            if _endless(pattern, enclosed=enclosed):
                return True
        case s.Without(left, right, ms):
            if ms is not None and _endless(right, enclosed=False):
                return True
            return _waits(left, context, enclosed=enclosed) or _waits(right, None, enclosed=False)
        case s.Absent(operand):
            return _endless(operand, enclosed=False) or _waits(operand, None, enclosed=False)
    return any(_waits(part, context, enclosed=enclosed) for part in s.parts_of(pattern))


def _endless(pattern: s.Pattern, *, enclosed: bool) -> bool:
    """Whether it may last without end."""
    match pattern:
        case s.Atom() | s.Absent():
            return False
        case s.Suffixed():
            return _endless(pattern.operand, enclosed=enclosed or _closes(pattern))
        case s.Without(left):
            return _endless(left, enclosed=enclosed)
        case s.Pair(op, left, right, bound):
            closed = op in SHARING or (bound is not None and bound.high_ms is not None)
            parts = any(_endless(part, enclosed=enclosed) for part in (left, right))
            return not enclosed and (not closed or parts)
        case s.Times() | s.Run():
            return not enclosed
    return any(_endless(part, enclosed=enclosed) for part in s.parts_of(pattern))


def _closes(pattern: s.Suffixed) -> bool:
    return any(isinstance(one, s.Within) for one in pattern.suffixes)
