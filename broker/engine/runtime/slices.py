"""Work in slices, so that whoever drives it may do something else in between.

Owns what a slice is and how work is done in one go. Must not know the work. Invariant: what comes
of work is the same in however many slices it is done, as nothing else happens to what it works on
before its end.

    work:    walk ──slice──▶ yield ──▶ slice ──▶ yield ──▶ … ──▶ return what came of it
    driver:  next()          serves others       next()          carries that out

A slice is counted in candidates, as is the budget of a step (`broker.engine.runtime.budget`): its
end depends on the events alone. It ends between two agents or two results, so it may take as long
as one agent's step more.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

Value = TypeVar("Value")

Slices: TypeAlias = Generator[None, None, Value]

# Of one slice: a tenth of a step's budget, some 3 ms of a desktop's core, after which a client that
# waits for a PINGRESP is served. Less would pay more for the turns of the loop than for the work.
CANDIDATES_EACH = 50_000


def in_one_go(work: Slices[Value]) -> Value:
    """Do all of the work; return what came of it."""
    try:
        while True:
            next(work)
    except StopIteration as end:
        value: Value = end.value
        return value
