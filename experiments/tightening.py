"""Rounds of rows that a program's relaxation breaks, until it breaks none or they gain no more.

Owns the rounds and which rows are kept. Must not know how rows are found. Invariant: what is added
to a program is kept by every plan, so that its optimum stays what it was.
"""

from math import inf
from typing import Any

import numpy as np

from experiments import crowding, cuts, fillings
from experiments.fillings import Matrix, Row
from experiments.relaxation import Relaxation, Spent
from planner.program import Formulation

ROUNDS_MAX = 60
ROUND_GAIN = 2e-6  # of the flow: rows that gain less are not worth another round
SHARE = 0.4  # of the time goes to rows
SHARE_MAX = 0.8  # of the time goes to them while a round gains more than branching would
ROUND_GAIN_MORE = 1e-4
SLACK = 1e-4  # of a row; with more it does not hold the relaxation and is left out
MIXED_MIN = 0.005  # of pieces: what is more than a mixture by less is one


def tighten(
    highspy: Any, formulation: Formulation, scale: float, threads: int, spent: Spent
) -> float:
    """Adds rows to a program; a flow that its relaxation, which costs `scale` less, proves."""
    for terms, bound in crowding.rows(formulation):
        formulation.program.row(terms, bound, inf)
    relaxed = Relaxation(highspy, formulation.program, scale, threads, (spent, SHARE_MAX))
    least, before, held = 0.0, 0.0, list[Row]()
    for _ in range(ROUNDS_MAX):
        if not relaxed.solved():
            break
        values = relaxed.values()
        held = [row for row in relaxed.added if _sum(row, values) - row[1] <= SLACK]
        flow = relaxed.proves() * scale
        gained, before, least = flow - before, flow, max(least, flow)
        enough = ROUND_GAIN if spent() < SHARE else ROUND_GAIN_MORE
        if gained <= enough * abs(flow):
            break
        rows = cuts.broken(formulation, values)
        rows += fillings.broken(
            formulation, values, lambda *told: _mixture(highspy, *told), relaxed.late
        )
        if not rows:
            break
        relaxed.add(rows)
    for terms, bound in held:
        formulation.program.row(terms, bound, inf)
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
