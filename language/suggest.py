"""The nearest of the known names to a misspelt one.

Must not know what the names mean. Invariant: the same names in the same order give the same
suggestion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

CANDIDATES_MAX = 2_000
LENGTH_MAX = 64


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name with the fewest edits, if they are at most a third of the name's length.

    Letters of the wrong case count as nothing; a swap of neighbours counts as one edit. A short
    name may have one edit, a single letter none: any other letter would be as near.
    """
    if len(name) > LENGTH_MAX:
        return None
    wanted = name.lower()
    best: str | None = None
    fewest = (max(1, len(name) // 3) if len(name) > 1 else 0) + 1
    for index, candidate in enumerate(known):
        if index >= CANDIDATES_MAX:
            break
        if candidate == name or abs(len(candidate) - len(name)) >= fewest:
            continue
        edits = _distance(wanted, candidate.lower())
        if edits < fewest:
            best, fewest = candidate, edits
    return best


def _distance(left: str, right: str) -> int:
    """The optimal string alignment distance of two short words."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        above, row_before = row, before
        row = [i]
        for j, b in enumerate(right, 1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, row_before[j - 2] + 1)
            row.append(cost)
        before = above
    return row[-1]
