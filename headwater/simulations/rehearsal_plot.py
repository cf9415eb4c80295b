"""The drawing of a rehearsal: what links carry, what brokers keep and how late results are.

Owns the picture. Must not know how its numbers came about. Invariant: the same outcome gives the
same bytes under one version of matplotlib, which is imported here and in `simulated_plot` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from io import StringIO
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.dates import ConciseDateFormatter
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from simulation.rehearsal.compare import RehearsalComparison
    from simulation.rehearsal.faults import NetworkFault
    from simulation.rehearsal.material import Material
    from simulation.rehearsal.run import RehearsalOutcome

WIDTH, HEIGHT = 10.0, 8.0  # inches
LINES_MAX = 8  # in one panel; the greatest
SHADES = {"cut": "#c44e52", "end": "#8172b3", "slow": "#dd8452"}


def draw(
    material: Material,
    faults: Sequence[NetworkFault],
    outcome: RehearsalOutcome,
    comparison: RehearsalComparison,
) -> str:
    """An SVG over the time of the recording; the time of each fault is shaded."""
    with mpl.rc_context({"svg.hashsalt": "headwater", "svg.fonttype": "none"}):
        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        loads, kept, delays = figure.subplots(3, 1, sharex=True)
        _loads(loads, material, outcome)
        _kept(kept, outcome)
        _delays(delays, comparison)
        for fault in faults:
            words = f"{fault.kind} {'-'.join(fault.brokers)}"
            for axes in (loads, kept, delays):
                axes.axvspan(
                    _day(fault.at_ms),
                    _day(fault.over_ms),
                    color=SHADES[fault.kind],
                    alpha=0.2,
                    label=words if axes is delays else None,
                )
        if faults:
            delays.legend(fontsize=7, loc="upper right")
        delays.xaxis_date(tz=UTC)
        delays.xaxis.set_major_formatter(
            ConciseDateFormatter(delays.xaxis.get_major_locator(), tz=UTC)  # type: ignore[no-untyped-call]
        )
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def _day(time_ms: int) -> float:
    """The days since 1970, as matplotlib counts time."""
    return time_ms / 86_400_000


def _loads(axes: Any, material: Material, outcome: RehearsalOutcome) -> None:
    part_ms = outcome.part_ms
    first = material.first_ms // part_ms
    last = max([first, *(part for link in outcome.links.values() for part in link.series)])
    busiest = sorted(outcome.links.items(), key=lambda item: -item[1].size_bytes)[:LINES_MAX]
    times = [_day(part * part_ms) for part in range(first, last + 1)]
    for (a, b), link in busiest:
        rates = [link.series.get(part, 0) * 1000 / part_ms for part in range(first, last + 1)]
        axes.step(times, rates, where="post", label=f"{a} → {b}", linewidth=1)
    axes.set_ylabel("bytes a second")
    axes.set_title("what links carry", loc="left")
    axes.legend(fontsize=7, loc="upper right")


def _kept(axes: Any, outcome: RehearsalOutcome) -> None:
    fullest = sorted(
        outcome.retained.items(), key=lambda item: -max([kept for _, kept in item[1]], default=0)
    )[:LINES_MAX]
    for name, rows in fullest:
        axes.plot(
            [_day(at_ms) for at_ms, _ in rows], [kept for _, kept in rows], label=name, linewidth=1
        )
    axes.set_ylabel("events")
    axes.set_title("what brokers keep until others have it", loc="left")
    axes.legend(fontsize=7, loc="upper right")


def _delays(axes: Any, comparison: RehearsalComparison) -> None:
    rows = comparison.delays
    axes.scatter([_day(at_ms) for at_ms, _ in rows], [later / 1000 for _, later in rows], s=8)
    axes.set_ylabel("seconds")
    axes.set_title("how much later results came than without faults", loc="left")
