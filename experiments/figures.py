"""Figures of an experiment as tables and curves, printed or put into its page.

Owns the marks between which a page has its figures, and how curves are drawn. Must not know
experiments. Invariant: what a page says around its figures stays; the same curves give the same
bytes under one version of matplotlib, which is imported here where something is drawn.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import NamedTuple

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
INCHES = (4.2, 3.4)  # of one panel
COLOURS = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#8c8c8c")

Curve = Sequence[tuple[float, float]]


class Panel(NamedTuple):
    """One diagram: curves by name; `stepped` where values stay until the next."""

    title: str
    across: str
    curves: Mapping[str, Curve]
    stepped: bool = False


def table_lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table of a page."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def show_figures(figures: str, page: Path | None) -> None:
    """Print figures, or put them into a page in the place of those that it has."""
    if page is None:
        sys.stdout.write(figures)
        return
    before, _, behind = page.read_text(encoding="utf-8").partition(BEGIN)
    after = behind.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n\n{figures}\n{END}{after}", encoding="utf-8")


def draw_panels(panels: Sequence[Panel]) -> str:
    """Return panels beside each other as SVG. Raises ImportError without matplotlib."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "headwater", "svg.fonttype": "none", "font.size": 8}):
        size = (INCHES[0] * len(panels), INCHES[1])
        figure = Figure(figsize=size, layout="constrained")
        places = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, panel in zip(places, panels, strict=True):
            for (name, curve), colour in zip(panel.curves.items(), COLOURS, strict=False):
                xs, ys = zip(*curve, strict=True)
                style = "steps-post" if panel.stepped else "default"
                axes.plot(xs, ys, color=colour, label=name, drawstyle=style)
            axes.set_title(panel.title)
            axes.set_xlabel(panel.across)
            axes.set_ylim(bottom=0)
            axes.legend()
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()
