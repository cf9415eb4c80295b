"""The test of each relation, and the search of each context whose joins choose a partner.

A test has two forms: code over exact times, and what is asked where times are uncertain. Owns one
record for each of language.relations. Must not know stores or patterns. Invariant: with exact times
both forms answer alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from broker.engine.pattern.uncertainty.uncertainty import (
    P_END,
    P_ENDS_IN_NONE,
    P_ENDS_IN_READING,
    P_START,
    Q_END,
    Q_START,
    Q_STARTS_IN_NONE,
    Q_STARTS_IN_READING,
    Way,
    le,
    lt,
)
from language.relations import OperatorContext


@dataclass(frozen=True, slots=True)
class RelationTest:
    """A relation of P to Q.

    `asks`: conditions in Python over `ls`, `le`, `rs` and `re`, the starts and ends of P and Q, all
    of which hold; `touching` says that no two readings meet where P ends. `holds` and `fails`: the
    ways to meet it, and to fail it (see uncertainty.py).
    """

    asks: tuple[str, ...]
    holds: tuple[Way, ...]
    fails: tuple[Way, ...]


# P ends where Q starts; a reading that ends P and one that starts Q do not follow each other.
_MEET = (le(P_END, Q_START), le(Q_START, P_END))
_TOUCH: tuple[Way, ...] = ((*_MEET, P_ENDS_IN_NONE), (*_MEET, Q_STARTS_IN_NONE))
_READINGS_MEET: Way = (*_MEET, P_ENDS_IN_READING, Q_STARTS_IN_READING)
# Two differences of at most nothing: no condition asks for an equal time.
_SAME_START = (le(P_START, Q_START), le(Q_START, P_START))
_SAME_END = (le(P_END, Q_END), le(Q_END, P_END))

# Each `fails` is what `holds` leaves out, so that a verdict of no needs no search.
RELATION_TESTS: dict[str, RelationTest] = {
    # One way that asks nothing, and no way to fail.
    "and": RelationTest(
        asks=(),
        holds=((),),
        fails=(),
    ),
    "then": RelationTest(
        asks=("({le} < {rs} or ({le} == {rs} and touching))",),
        holds=((lt(P_END, Q_START),), *_TOUCH),
        fails=((lt(Q_START, P_END),), _READINGS_MEET),
    ),
    # Paper 001, table 1, row 1, for points and intervals alike: a point is an interval of length 0.
    "before": RelationTest(
        asks=("{le} < {rs}",),
        holds=((lt(P_END, Q_START),),),
        fails=((le(Q_START, P_END),),),
    ),
    "meets": RelationTest(
        asks=("{le} == {rs}", "touching"),
        holds=_TOUCH,
        fails=((lt(P_END, Q_START),), (lt(Q_START, P_END),), _READINGS_MEET),
    ),
    "overlaps": RelationTest(
        asks=("{ls} < {rs} < {le} < {re}",),
        holds=((lt(P_START, Q_START), lt(Q_START, P_END), lt(P_END, Q_END)),),
        fails=((le(Q_START, P_START),), (le(P_END, Q_START),), (le(Q_END, P_END),)),
    ),
    "during": RelationTest(
        asks=("{rs} < {ls}", "{le} < {re}"),
        holds=((lt(Q_START, P_START), lt(P_END, Q_END)),),
        fails=((le(P_START, Q_START),), (le(Q_END, P_END),)),
    ),
    "contains": RelationTest(
        asks=("{ls} < {rs}", "{re} < {le}"),
        holds=((lt(P_START, Q_START), lt(Q_END, P_END)),),
        fails=((le(Q_START, P_START),), (le(P_END, Q_END),)),
    ),
    # Equal edges, as in rows 4 and 7: of two independent times with ε > 0 nothing makes it certain
    # that they are equal.
    "starts": RelationTest(
        asks=("{ls} == {rs}", "{le} < {re}"),
        holds=((*_SAME_START, lt(P_END, Q_END)),),
        fails=((lt(P_START, Q_START),), (lt(Q_START, P_START),), (le(Q_END, P_END),)),
    ),
    "finishes": RelationTest(
        asks=("{le} == {re}", "{rs} < {ls}"),
        holds=((*_SAME_END, lt(Q_START, P_START)),),
        fails=((lt(P_END, Q_END),), (lt(Q_END, P_END),), (le(P_START, Q_START),)),
    ),
    "equals": RelationTest(
        asks=("{ls} == {rs}", "{le} == {re}"),
        holds=((*_SAME_START, *_SAME_END),),
        fails=(
            (lt(P_START, Q_START),),
            (lt(Q_START, P_START),),
            (lt(P_END, Q_END),),
            (lt(Q_END, P_END),),
        ),
    ),
    "concat": RelationTest(
        asks=("{ls} <= {rs}", "({rs} < {le} or ({rs} == {le} and touching))"),
        holds=(
            # Q starts within P, or where P ends if the two may touch.
            (le(P_START, Q_START), lt(Q_START, P_END)),
            *((le(P_START, Q_START), *touch) for touch in _TOUCH),
        ),
        fails=((lt(Q_START, P_START),), (lt(P_END, Q_START),), _READINGS_MEET),
    ),
    "parallel": RelationTest(
        asks=("{ls} <= {re}", "{rs} <= {le}"),
        holds=((le(P_START, Q_END), le(Q_START, P_END)),),
        fails=((lt(Q_END, P_START),), (lt(P_END, Q_START),)),
    ),
}


@dataclass(frozen=True, slots=True)
class PartnerSearch:
    """Which candidates a join takes for an event, looking from the latest before it to the oldest.

    `begin`: code ahead of an event's candidates. `meet`: code for each candidate, where `{append}`
    takes it and `break` ends the search. `newest_only`: where any candidate will do, none older
    than the newest is ever taken.
    """

    meet: tuple[str, ...]
    begin: tuple[str, ...] = ()
    newest_only: bool = False


# Of each context that chooses and spends nothing; what spends has operators of its own (course.py,
# chronicle.py).
PARTNER_SEARCHES: dict[str, PartnerSearch] = {
    "recent": PartnerSearch(("{append}", "break"), newest_only=True),
}


def takes_newest_only(context: OperatorContext) -> bool:
    """Return True where joins need no candidate but the newest, if any will do."""
    search = PARTNER_SEARCHES.get(context.name)
    return search is not None and search.newest_only
