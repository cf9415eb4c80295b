"""The parameters of a search: each with its unit, and checked.

Owns their defaults. Must not know the search. Invariant: parameters that were made are usable.
"""

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class SearchParams:
    """Hold what of a search may be varied; shares lie between 0 and 1."""

    # Pieces that one destruction takes up at least.
    removed_min: int = 2
    # Pieces that one destruction takes up at most; half of all, if those are fewer.
    removed_max: int = 12
    # Share of the times in which a repair passes over a piece's best broker (blinks).
    passed_over: float = 0.12
    # Brokers that a repair tries out exactly where links are limited.
    tried: int = 3
    # Brokers with room that a move looks at where there are many, besides those on its trees.
    granular: int = 24
    # Temperature at which a cycle begins, as a part of what a piece causes on average.
    heat: float = 0.3
    # The same of a problem too large to be annealed in a usual time.
    heat_large: float = 0.02
    # Temperature at which a cycle ends, as a part of that at which it began.
    cooled: float = 0.01
    # Iterations of the first cycle, and `cycle_each` more for each piece.
    cycle: int = 400
    # Iterations of the first cycle for each piece.
    cycle_each: int = 30
    # Factor by which each cycle is longer than the last.
    cycle_growth: float = 1.3
    # Factor by which broken limits become dearer where too few placements keep them.
    penalty_rise: float = 1.3
    # Factor by which they become cheaper where most do.
    penalty_fall: float = 0.85
    # Iterations after which the penalty is adapted.
    penalty_every: int = 40
    # Share of the placements that are to keep all limits.
    feasible_least: float = 0.3
    # Factor of the price of a single limit that stays broken (Morris's breakout, 1993).
    price_rise: float = 1.3
    # Iterations in vain, while no plan keeps all limits, until prices rise.
    price_patience: int = 8
    # Steps of tabu search in vain, and one more for each piece, until some pieces are renewed.
    patience: int = 20
    # Share by which a placement may be worse than the one that tabu search came from.
    tolerance: float = 0.004
    # Share of an operator's weight that its last outcome replaces.
    weight_learned: float = 0.1

    def __post_init__(self) -> None:
        for each in fields(self):
            if (value := getattr(self, each.name)) < 0:
                raise ValueError(f"{each.name}: found {value}, expected 0 or more")
        for name in ("passed_over", "feasible_least", "weight_learned", "cooled"):
            if getattr(self, name) > 1:
                raise ValueError(f"{name}: found {getattr(self, name)}, expected 0 to 1")
        if not 1 <= self.removed_min <= self.removed_max:
            limits = f"1 to removed_max, which is {self.removed_max}"
            raise ValueError(f"removed_min: found {self.removed_min}, expected {limits}")
