"""The parameters of a search: each with its unit, and checked.

Owns their defaults. Must not know the search. Invariant: parameters that were made are usable.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields


@dataclass(frozen=True)
class SearchParams:
    """What of a search may be varied; shares lie between 0 and 1."""

    removed_min: int = 2
    """Pieces that one destruction takes up at least."""
    removed_max: int = 12
    """Pieces that one destruction takes up at most; half of all, if those are fewer."""
    passed_over: float = 0.12
    """Share of the times in which a repair passes over a piece's best broker (blinks)."""
    tried: int = 3
    """Brokers that a repair tries out exactly where links are limited."""
    granular: int = 24
    """Brokers with room that a move looks at where there are many, besides those on its trees."""
    heat: float = 0.3
    """Temperature at which a cycle begins, as a part of what a piece causes on average."""
    heat_large: float = 0.02
    """The same of a problem too large to be annealed in a usual time."""
    cooled: float = 0.01
    """Temperature at which a cycle ends, as a part of that at which it began."""
    cycle: int = 400
    """Iterations of the first cycle, and `cycle_each` more for each piece."""
    cycle_each: int = 30
    """Iterations of the first cycle for each piece."""
    cycle_growth: float = 1.3
    """Factor by which each cycle is longer than the last."""
    penalty_rise: float = 1.3
    """Factor by which broken limits become dearer where too few placements keep them."""
    penalty_fall: float = 0.85
    """Factor by which they become cheaper where most do."""
    penalty_every: int = 40
    """Iterations after which the penalty is adapted."""
    feasible_least: float = 0.3
    """Share of the placements that are to keep all limits."""
    price_rise: float = 1.3
    """Factor of the price of a single limit that stays broken (Morris's breakout, 1993)."""
    price_patience: int = 8
    """Iterations in vain, while no plan keeps all limits, until prices rise."""
    patience: int = 20
    """Steps of tabu search in vain, and one more for each piece, until some pieces are renewed."""
    tolerance: float = 0.004
    """Share by which a placement may be worse than the one that tabu search came from."""
    weight_learned: float = 0.1
    """Share of an operator's weight that its last outcome replaces."""

    def __post_init__(self) -> None:
        for each in fields(self):
            if getattr(self, each.name) < 0:
                raise ValueError(
                    f"{each.name}: found {getattr(self, each.name)}, expected 0 or more"
                )
        for name in ("passed_over", "feasible_least", "weight_learned", "cooled"):
            if getattr(self, name) > 1:
                raise ValueError(f"{name}: found {getattr(self, name)}, expected 0 to 1")
        if not 1 <= self.removed_min <= self.removed_max:
            raise ValueError(
                f"removed_min: found {self.removed_min}, expected 1 to removed_max,"
                f" which is {self.removed_max}"
            )

    def cycle_length(self, pieces: int) -> int:
        """Return the iterations of the first cycle for so many pieces."""
        return self.cycle + self.cycle_each * pieces


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a search is, as stop criteria and callbacks are told.

    `improved_at` are the steps at which it last found a better plan, `feasible` says whether that
    keeps all limits, `cost` is the flow of the placement at hand, `best` that of the best plan,
    and `excess` by what that breaks limits. `moves` are those that were kept, by kind.
    """

    steps: int
    improved_at: int
    feasible: bool
    cost: float = 0.0
    best: float = 0.0
    excess: float = 0.0
    moves: Mapping[str, int] = field(default_factory=dict)
