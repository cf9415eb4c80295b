"""The drawing of `headwater simulate`: loads and recall of the approaches, side by side.

Owns the picture. Must not know how its numbers came about. Invariant: the same outcomes give the
same bytes under one version of matplotlib, which is imported here alone.
"""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from simulation.propagation.run import PropagationOutcome

COLOURS = ("#4c72b0", "#dd8452", "#55a868")
WIDTH, HEIGHT = 10.0, 3.6  # inches


def draw(outcomes: dict[str, PropagationOutcome], title: str) -> str:
    """An SVG with operators sent, events sent and recall by approach."""
    names = list(outcomes)
    panels = (
        ("operators sent over links", [float(each.subscription) for each in outcomes.values()]),
        ("events sent over links", [float(each.publication) for each in outcomes.values()]),
        ("recall", [each.recall for each in outcomes.values()]),
    )
    with mpl.rc_context({"svg.hashsalt": "headwater", "svg.fonttype": "none"}):
        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        figure.suptitle(title)
        for axes, (head, values), colour in zip(
            figure.subplots(1, len(panels)), panels, COLOURS, strict=True
        ):
            bars = axes.barh(range(len(names)), values, color=colour)
            axes.bar_label(bars, fmt="{:,.4g}" if head == "recall" else "{:,.0f}", padding=2)
            axes.set_yticks(range(len(names)), names)
            axes.invert_yaxis()
            axes.margins(x=0.25)
            axes.set_title(head)
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()
