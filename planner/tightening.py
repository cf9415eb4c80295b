"""Rounds of rows that a program's relaxation breaks, until it breaks none or they gain no more.

Owns the rounds and which rows are kept. Must not know how rows are found. Invariant: what is added
to a program is kept by every plan, so that its optimum stays what it was.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from planner import cuts, fillings
from planner.fillings import Matrix, Row
from planner.program import Formulation, Program

ROUNDS_MAX = 60
ROUND_GAIN = 2e-6  # of the flow: rows that gain less are not worth another round
SLACK = 1e-4  # of a row; with more it does not hold the relaxation and is left out
MIXED_MIN = 0.005  # of pieces: what is more than a mixture by less is one

Late = Callable[[], bool]


def tighten(highspy: Any, highs: Any, formulation: Formulation, scale: float, late: Late) -> float:
    """Adds rows to a program; the flow of its relaxation, which costs `scale` less, with them."""
    lp = as_lp(highspy, formulation.program, scale)
    lp.integrality_ = []
    highs.passModel(lp)
    least, added, held = 0.0, list[Row](), list[Row]()
    for _ in range(ROUNDS_MAX):
        highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            break
        flow = highs.getInfo().objective_function_value * scale
        gained, least = flow - least, flow
        values = list(highs.getSolution().col_value)
        held = [row for row in added if _sum(row, values) - row[1] <= SLACK]
        if gained <= ROUND_GAIN * abs(flow) or late():
            break
        rows = cuts.broken(formulation, values)
        rows += fillings.broken(formulation, values, lambda *told: _mixture(highspy, *told), late)
        if not rows:
            break
        for terms, bound in rows:
            columns = np.array([column for column, _ in terms], dtype=np.int32)
            highs.addRow(bound, math.inf, len(terms), columns, np.array([v for _, v in terms]))
        added += rows
    for terms, bound in held:
        formulation.program.row(terms, bound, math.inf)
    return least


def _sum(row: Row, values: list[float]) -> float:
    return sum(value * values[column] for column, value in row[0])


def _mixture(highspy: Any, held: Matrix, must: Matrix, has: Matrix) -> tuple[Matrix, Matrix] | None:
    """What pieces are worth and needs cost where no mixture of fillings has as much of the pieces.

    A mixture has at least what the relaxation has of each piece, but for what it lacks, and at most
    what that has of each need; it lacks as little as it can. None where it lacks nothing.
    """
    fillings_, pieces = held.shape
    needs = must.shape[1]
    lacks = np.vstack([np.eye(pieces), np.zeros((needs + 1, pieces))])
    matrix = np.hstack([np.vstack([held.T, must.T, np.ones((1, fillings_))]), lacks])
    rows, columns = matrix.shape
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = columns, rows
    lp.col_cost_ = np.concatenate([np.zeros(fillings_), np.ones(pieces)])
    lp.col_lower_, lp.col_upper_ = np.zeros(columns), np.full(columns, np.inf)
    lp.row_lower_ = np.concatenate([has[:pieces], np.full(needs + 1, -np.inf)])
    lp.row_upper_ = np.concatenate([np.full(pieces, np.inf), has[pieces:], [1.0]])
    at, of = np.nonzero(matrix)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.searchsorted(at, np.arange(rows + 1)).astype(np.int32)
    lp.a_matrix_.index_ = of.astype(np.int32)
    lp.a_matrix_.value_ = matrix[at, of]
    highs: Any = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.passModel(lp)
    highs.run()
    solved = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    if not solved or highs.getInfo().objective_function_value < MIXED_MIN:
        return None
    prices = np.array(highs.getSolution().row_dual)
    return prices[:pieces], -prices[pieces : pieces + needs]


def as_lp(highspy: Any, program: Program, scale: float) -> Any:
    """A program as the solver takes it, its costs divided by `scale`."""
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(program.cost), len(program.low)
    lp.col_cost_ = np.array(program.cost) / scale
    lp.col_lower_ = np.zeros(len(program.cost))
    lp.col_upper_ = np.array(program.upper)
    lp.row_lower_, lp.row_upper_ = np.array(program.low), np.array(program.high)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.array(program.starts, dtype=np.int32)
    lp.a_matrix_.index_ = np.array(program.index, dtype=np.int32)
    lp.a_matrix_.value_ = np.array(program.value)
    kinds = highspy.HighsVarType
    lp.integrality_ = [kinds.kInteger if whole else kinds.kContinuous for whole in program.whole]
    return lp
