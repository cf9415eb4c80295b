"""The figures drawn as the paper draws its own: loads and recall by number of subscriptions.

Owns the pictures. Must not know how figures came about. Invariant: the same figures give the same
bytes under one version of matplotlib, which is imported here alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import Any

from simulation.papers.drawing import drawn_topology
from simulation.papers.experiment import APPROACHES, FSF, SAMPLED, Cell
from simulation.papers.settings import Setting
from simulation.papers.tables import Found

COLOURS = ("#8172b3", "#dd8452", "#c44e52", "#4c72b0", "#937860", "#55a868")
MARKERS = "osD^vx"
INCHES = (4.2, 3.4)  # of one panel
NETWORKS = "papers-networks.svg"
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


def draw_networks(settings: Sequence[Setting], seed: int) -> str:
    """Return the networks as SVG: sensors' nodes small, gateways dark. Raises ImportError."""
    import matplotlib as mpl
    import networkx as nx
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "headwater", "svg.fonttype": "none"}):
        figure = Figure(figsize=(INCHES[0] * len(settings), INCHES[0]), layout="constrained")
        panels = figure.subplots(1, len(settings), squeeze=False)[0]
        for axes, setting in zip(panels, settings, strict=True):
            graph = drawn_topology(setting, seed)
            relays = setting.nodes - setting.sensors
            spots = nx.spring_layout(graph, seed=seed, iterations=200)
            for a, b in graph.edges:
                axes.plot(*zip(spots[a], spots[b], strict=True), color="#444444", linewidth=0.6)
            kinds = (
                ("#bbbbbb", 2, range(relays, setting.nodes)),
                (COLOURS[3], 4, range(setting.stations, relays)),
                (COLOURS[2], 4, range(setting.stations)),
            )
            for colour, size, nodes in kinds:
                if nodes:
                    xs, ys = zip(*(spots[node] for node in nodes), strict=True)
                    axes.plot(xs, ys, color=colour, marker="o", markersize=size, linestyle="")
            axes.set_axis_off()
            axes.set_title(setting.title, fontsize="medium")
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


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
