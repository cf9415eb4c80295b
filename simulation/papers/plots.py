"""The figures drawn as the paper draws its own: loads and recall by number of subscriptions.

Owns the pictures. Must not know how figures came about. Invariant: the same figures give the same
bytes under one version of matplotlib, which is imported here alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import Any

from simulation.papers.experiment import APPROACHES, FSF, SAMPLED, Cell
from simulation.papers.settings import Setting
from simulation.papers.tables import Found

COLOURS = ("#8172b3", "#dd8452", "#c44e52", "#4c72b0", "#937860", "#55a868")
MARKERS = "osD^vx"
INCHES = (4.2, 3.4)  # of one panel
PICTURES = {
    "papers-subscriptions.svg": ("operators sent over links", "subscription"),
    "papers-events.svg": ("events sent over links", "publication"),
    "papers-recall.svg": ("recall", "recall"),
}


def draw(found: Found, settings: Sequence[Setting]) -> dict[str, str]:
    """SVG by the file's name. Raises ImportError without matplotlib."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    made = {}
    for name, (title, measure) in PICTURES.items():
        with mpl.rc_context({"svg.hashsalt": "headwater", "svg.fonttype": "none"}):
            size = (INCHES[0] * len(settings), INCHES[1])
            figure = Figure(figsize=size, layout="constrained")
            panels = figure.subplots(1, len(settings), squeeze=False)[0]
            for axes, setting in zip(panels, settings, strict=True):
                _panel(axes, found, setting, measure)
                axes.set_title(setting.title, fontsize="medium")
                axes.set_xlabel("subscriptions")
            panels[0].set_ylabel(title)
            panels[-1].legend(fontsize="small")
            text = StringIO()
            figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
        made[name] = text.getvalue()
    return made


def _panel(axes: Any, found: Found, setting: Setting, measure: str) -> None:
    approaches = (*APPROACHES, SAMPLED) if measure == "recall" else APPROACHES
    for approach, colour, marker in zip(approaches, COLOURS, MARKERS, strict=False):
        some = [
            (count, getattr(found[Cell(setting.name, count, approach)], measure))
            for count in setting.counts
            if Cell(setting.name, count, approach) in found
        ]
        xs, ys = zip(*some, strict=True) if some else ((), ())
        axes.plot(xs, ys, color=colour, marker=marker, label=approach)
    if measure == "publication":
        some = [
            (count, found[Cell(setting.name, count, FSF)].bound)
            for count in setting.counts
            if Cell(setting.name, count, FSF) in found
        ]
        xs, ys = zip(*some, strict=True) if some else ((), ())
        axes.plot(xs, ys, color="black", linestyle=":", label="lower bound")
    if measure == "recall":
        axes.set_ylim(0.9, 1.005)
    else:
        axes.set_ylim(bottom=0)
