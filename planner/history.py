"""How a search went: its samples over time, and its moves by kind.

Owns the samples of one search. Must not know clocks, nor the search itself. Invariant: the first
sample, each better plan and the last are kept, and some hundred others however long the search.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

# Factor of the steps between two samples without a better plan: each step's would be too many.
# A search of a million steps has some 600 by it, which a plot shows as a line all the same.
SAMPLES_GROWTH = 1.02


@dataclass(frozen=True, slots=True)
class SearchSample:
    """The state of a search: `cost` is the flow of the placement at hand, `best` of the best plan.

    `excess` is by how much limits are broken by the best plan, each as a part of itself.
    """

    seconds: float  # of wall-clock time since the search began
    steps: int
    cost: float
    best: float
    excess: float


@dataclass
class SearchHistory:
    """The samples of one search, and how many moves of each kind it made."""

    samples: list[SearchSample] = field(default_factory=list)
    moves: dict[str, int] = field(default_factory=dict)

    def note(self, sample: SearchSample, moves: Mapping[str, int], *, last: bool = False) -> None:
        """Keep `sample` if it is the `last`, tells of a better plan, or it is time for one."""
        self.moves = dict(moves)
        if self.samples and not last:
            before = self.samples[-1]
            better = (sample.excess, sample.best) < (before.excess, before.best)
            # A share more of the steps so far, so that early progress is seen as well as late.
            if not better and sample.steps < before.steps * SAMPLES_GROWTH + 1:
                return
        self.samples.append(sample)
