"""The relaxation of a program, in which nothing need be whole: solved, and what it proves.

Owns the solver's ways to solve it. Must not know what the program is about. Invariant: what is said
to be proven holds for every solution of the program, however near to its optimum the solver came.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.optimal import as_lp, solver
from planner.program import Program, Terms

SIMPLEX_MAX = 0.02  # of the time: what takes longer once is solved from the interior ever after
INTERIOR_GAP = 1e-5  # of the flow, at which an interior solution is near enough

Spent = Callable[[], float]
"""What part of the time has passed."""
Row = tuple[Terms, float]
Array = npt.NDArray[np.float64]


class Relaxation:
    """A program and rows that are added to it, as one that is linear.

    The simplex goes on from the solution before, so that it is the faster by far on trees and on
    small networks. Where a network has many circles it may take ten times as long as to come anew
    from the interior: once it has taken too long, that is the way.
    """

    def __init__(
        self,
        highspy: Any,
        program: Program,
        scale: float,
        threads: int,
        time: tuple[Spent, float] = (lambda: 0.0, 1.0),
    ) -> None:
        """Costs are divided by `scale`; `time` tells what has passed, and when it is late."""
        self.added: list[Row] = []
        self._highspy, self._threads = highspy, threads
        self._spent, self._end = time
        self._simplex_end = self._end
        self._interior = False
        self._lp = as_lp(highspy, program, scale)
        self._lp.integrality_ = []
        self._highs = self._loaded()

    def _loaded(self) -> Any:
        """A solver that has the program as it is now."""
        highs = solver(self._highspy, self._threads, self._over)
        highs.passModel(self._lp)
        self._hand(highs, self.added)
        return highs

    def late(self) -> bool:
        """Whether the time for it is over."""
        return self._spent() >= self._end

    def _over(self) -> bool:
        return self._spent() >= (self._end if self._interior else self._simplex_end)

    def add(self, rows: Sequence[Row]) -> None:
        """Adds rows, of which each is at least a number."""
        self._hand(self._highs, rows)
        self.added += rows

    @staticmethod
    def _hand(highs: Any, rows: Sequence[Row]) -> None:
        for terms, bound in rows:
            columns = np.array([column for column, _ in terms], dtype=np.int32)
            values = np.array([value for _, value in terms], dtype=np.float64)
            highs.addRow(bound, np.inf, len(terms), columns, values)

    def solved(self) -> bool:
        """Solves it; False where it has no solution, or none was found in time."""
        if not self._interior:
            self._simplex_end = min(self._end, self._spent() + SIMPLEX_MAX)
            if self._run():
                return True
            if self.late() or not self._over():
                return False
            self.go_inside()
        return self._run()

    def _run(self) -> bool:
        self._highs.run()
        return bool(self._highs.getModelStatus() == self._highspy.HighsModelStatus.kOptimal)

    def go_inside(self) -> None:
        """From now on it is solved from the interior."""
        self._interior = True
        self._highs = self._loaded()  # one that was interrupted stays so
        for option, value in (
            ("solver", "ipm"),
            ("run_crossover", "off"),
            ("ipm_optimality_tolerance", INTERIOR_GAP),
        ):
            self._highs.setOptionValue(option, value)

    def values(self) -> list[float]:
        """What the columns are in its solution."""
        return list(self._highs.getSolution().col_value)

    def prices(self) -> list[float]:
        """What the rows are worth in its solution."""
        return list(self._highs.getSolution().row_dual)

    def proves(self) -> float:
        """What its cost cannot be below, by the prices of the rows in its solution."""
        return self.proves_at(self.prices())

    def proves_at(self, row_prices: Sequence[float]) -> float:
        """What its cost cannot be below, by these prices of its rows.

        Any prices prove something: what the rows are worth at them, and of each column that costs
        less than its part in the rows is worth, as much as there can be of it. So a solution that
        is optimal but for a little proves a little less, and never too much.
        """
        lp, rows = self._lp, self.added
        prices = np.array(row_prices, dtype=np.float64)
        low = np.concatenate([lp.row_lower_, [bound for _, bound in rows]])
        high = np.concatenate([lp.row_upper_, np.full(len(rows), np.inf)])
        side = np.where(prices > 0, low, high)
        prices[~np.isfinite(side)] = 0.0
        side[~np.isfinite(side)] = 0.0
        matrix = lp.a_matrix_
        starts = np.asarray(matrix.start_)
        at = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        left = np.array(lp.col_cost_, dtype=np.float64)
        np.subtract.at(left, np.asarray(matrix.index_), np.asarray(matrix.value_) * prices[at])
        for (terms, _), price in zip(rows, prices[len(starts) - 1 :].tolist(), strict=True):
            for column, value in terms:
                left[column] -= value * price
        most: Array = np.asarray(lp.col_upper_, dtype=np.float64)
        return float(prices @ side + np.minimum(left, 0.0) @ most)
