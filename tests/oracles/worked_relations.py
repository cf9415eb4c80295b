"""Worked cases of the relations of intervals. `a1-5` is an A from 1 s to 5 s, `b3` a B at 3 s.

Each trace holds, beside what fits, its nearest misses: one end moved, or one side a point. Results
of equal span stand by the ids of their events in order, and "a3" is less than "a3-4" as text.
"""

from tests.oracles import spec as s
from tests.oracles.worked import WorkedCase, both, found, single, then, trace

A, B, C = (s.Atom(name) for name in "ABC")


def _related(op: s.Relation, tokens: str, *places: str, name: str = "") -> WorkedCase:
    return single(
        name or f"{op} by its ends",
        f"detect A {op} B",
        s.Pair(op, A, B),
        trace(tokens),
        found(*places),
    )


RELATED = (
    _related("before", "a1-3 b3 b3-5 b4 b2-6", "a1-3 b4"),
    _related("meets", "a1-3 a3 b3 b3-5 b4", "a1-3 b3", "a1-3 b3-5", "a3 b3-5"),
    _related("overlaps", "a1-4 b2-6 b1-6 b2-4 b4-6 b3", "a1-4 b2-6"),
    _related("during", "a3-4 a3 b1-6 b3-6 b1-4", "b1-4 a3", "b1-6 a3", "b1-6 a3-4"),
    _related("contains", "a1-6 b2-5 b1-5 b2-6 b3", "b2-5 a1-6", "b3 a1-6"),
    _related("starts", "a2-4 a2 b2-6 b2-4 b1-6", "a2 b2-4", "a2 b2-6", "a2-4 b2-6"),
    _related("finishes", "a4-6 a6 b2-6 b4-6 b2-8", "b2-6 a4-6", "b2-6 a6", "b4-6 a6"),
    _related("equals", "a2-4 a3 b2-4 b3 b2-5 b1-4", "a3 b3", "a2-4 b2-4"),
    _related(
        "concat",
        "a2-5 b2-3 b4-8 b5 b6 b1-9",
        "a2-5 b5",
        "b2-3 a2-5",
        "a2-5 b4-8",
        name="concat starts while the other lasts, or as it ends",
    ),
    _related(
        "concat",
        "a2 b2 b2-4 b3",
        "a2 b2-4",
        name="concat joins no two points",
    ),
    _related(
        "parallel",
        "a2-5 b1-2 b0-1 b3 b5-9 b6",
        "b1-2 a2-5",
        "b3 a2-5",
        "a2-5 b5-9",
        name="parallel shares an instant, be it an end",
    ),
    single(
        "concat touches as then does: not by two readings",
        "detect (A and B) concat C",
        s.Pair("concat", both(A, B), C),
        # c3 touches the reading b3; c3-4 touches it with something longer; c2-9 starts inside.
        trace("a1 b3 c3 c3-4 c2-9"),
        found("a1 b3 c3-4", "a1 b3 c2-9"),
    ),
    single(
        "meets touches as then does: not by two readings",
        "detect (A and B) meets C",
        s.Pair("meets", both(A, B), C),
        trace("a1 b3 c3 c3-4 c4"),
        found("a1 b3 c3-4"),
    ),
    single(
        "a relation takes the span of a composite",
        "detect A then B during C",
        s.Pair("during", then(A, B), C),
        trace("a2 b4 a5 b8 c1-6 c2-9"),
        # Inside c1-6 lies (a2, b4) alone; inside c2-9 only what starts at a5.
        found("a2 b4 c1-6", "c2-9 a5 b8"),
    ),
    single(
        "recent takes the latest of those that stand in the relation",
        "detect A during[recent] B",
        s.Pair("during", A, B, context="recent"),
        trace("a2 a3 b3-5 b1-6 a7 b6-9"),
        # At b1-6 the latest inside is a3; b3-5 begins with a3 and holds nothing.
        found("b1-6 a3", "b6-9 a7"),
    ),
    single(
        "a bound of before is on the gap",
        "detect A before[1 s..2 s] B",
        s.Pair("before", A, B, s.Bound(1000, 2000)),
        trace("a1-3 b3 b4 b5 b6"),
        found("a1-3 b4", "a1-3 b5"),
    ),
)
