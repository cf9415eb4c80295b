"""The drawing of a search: its cost over time, and its moves by kind.

Owns the picture. Must not know how a search works. Invariant: the same history gives the same bytes
under one version of matplotlib.
"""

from io import StringIO

import matplotlib as mpl
from matplotlib.figure import Figure

from planner.history import SearchHistory

WIDTH, HEIGHT = 10.0, 3.6  # inches
COST, BEST, BROKEN = "#b0b0b0", "#4c72b0", "#c44e52"


def draw(history: SearchHistory) -> str:
    """Return an SVG of `history`: cost and best plan by seconds, and how often each move was made.

    The best plan is drawn in red as long as it breaks limits: a flow that nobody can have.
    """
    samples = history.samples
    with mpl.rc_context({"svg.hashsalt": "headwater", "svg.fonttype": "none"}):
        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        costs, kinds = figure.subplots(1, 2, width_ratios=(2, 1))
        seconds = [sample.seconds for sample in samples]
        costs.plot(seconds, [sample.cost for sample in samples], color=COST, lw=0.8, label="cost")
        for label, colour, feasible in (("best", BEST, True), ("limits broken", BROKEN, False)):
            best = [s.best if (s.excess == 0) == feasible else float("nan") for s in samples]
            costs.step(seconds, best, where="post", color=colour, label=label)
        costs.set_xlabel("seconds")
        costs.set_ylabel("flow")
        costs.legend()
        names = sorted(history.moves, key=lambda name: (-history.moves[name], name))
        bars = kinds.barh(range(len(names)), [history.moves[name] for name in names], color=BEST)
        kinds.bar_label(bars, fmt="{:,.0f}", padding=2)
        kinds.set_yticks(range(len(names)), names)
        kinds.invert_yaxis()
        kinds.margins(x=0.25)
        kinds.set_title("moves")
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()
