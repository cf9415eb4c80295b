"""The network with a plan in it, as SVG or DOT.

Owns places, sizes and colours. Must not know how a plan was found. Invariant: the same plan gives
the same bytes; every broker and link is drawn, and every piece is named at its broker.

Brokers stand so that their distances on paper are near their hop counts (stress majorisation, after
Gansner, Koren and North, 2004); a link is the wider the more it carries.
"""

import numpy as np
import numpy.typing as npt

from headwater.drawn import drawn
from planner.flow import Evaluation
from planner.layout import Layout
from planner.network import Network
from planner.plan import Plan

HOP_PX = 130
MARGIN_PX = 90
ROUNDS = 120
NAMES_MAX = 6  # of pieces at a broker; the rest is counted
WIDEST_PX = 9.0
CONTROLS, CONTROL_PICTURES = 0x20, 0x2400  # the pictures stand in the same order


def dot(layout: Layout, plan: Plan, evaluation: Evaluation) -> str:
    """For Graphviz."""
    lines = ["graph plan {", "  node [shape=box, style=rounded];"]
    for name, pieces in _named(layout, plan):
        label = "\\n".join(_dot_text(text) for text in (name, *pieces))
        lines.append(f'  "{_dot_text(name)}" [label="{label}"];')
    for a, b, there, back in _links(layout, evaluation):
        label = "" if not there and not back else f' [label="{there:g} / {back:g}"]'
        lines.append(f'  "{_dot_text(a)}" -- "{_dot_text(b)}"{label};')
    return "\n".join([*lines, "}", ""])


def _dot_text(text: str) -> str:
    """The text within quotes; what cannot be seen is drawn as a picture of it.

    So names that differ in such characters alone are drawn as two.
    """
    seen = "".join(one if one.isprintable() else _picture_of(one) for one in text)
    return seen.replace("\\", "\\\\").replace('"', '\\"')


def _picture_of(unseen: str) -> str:
    code = ord(unseen)
    if code < CONTROLS:
        return chr(CONTROL_PICTURES + code)
    return f"U+{code:04X}"


def _named(layout: Layout, plan: Plan) -> list[tuple[str, list[str]]]:
    """Each broker with what runs there."""
    at: list[list[str]] = [[] for _ in layout.problem.nodes]
    for piece, host in zip(layout.pieces, plan.hosts, strict=True):
        at[host].append(str(piece))
    found = []
    for node, names in zip(layout.problem.nodes, at, strict=True):
        more = [] if len(names) <= NAMES_MAX else [f"and {len(names) - NAMES_MAX} more"]
        found.append((node.id, names[:NAMES_MAX] + more))
    return found


def _links(layout: Layout, evaluation: Evaluation) -> list[tuple[str, str, float, float]]:
    """Each link with what it carries there and back."""
    found = []
    for link in layout.problem.links:
        a, b = layout.numbers[link.a], layout.numbers[link.b]
        there, back = evaluation.loads.get((a, b), 0), evaluation.loads.get((b, a), 0)
        found.append((link.a, link.b, there, back))
    return found


def svg(layout: Layout, plan: Plan, evaluation: Evaluation) -> str:
    """A picture for a page."""
    places = _places(layout)
    width, height = (places.max(axis=0) + MARGIN_PX).tolist()
    title = drawn(f"{layout.problem.name or 'plan'}: flow {evaluation.flow:,}")
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height + 30:.0f}"'
        f' viewBox="0 -30 {width:.0f} {height + 30:.0f}" role="img" aria-labelledby="title"'
        ' font-family="Verdana, DejaVu Sans, sans-serif" font-size="11">'
    )
    parts = [
        head,
        f'<title id="title">{title}</title><text x="12" y="-10" font-size="14">{title}</text>',
    ]
    most = max(evaluation.loads.values(), default=0) or 1
    for a, b, there, back in _links(layout, evaluation):
        (ax, ay), (bx, by) = places[layout.numbers[a]], places[layout.numbers[b]]
        share = max(there, back) / most
        colour = "#2b5c94" if share else "#b8c2cc"
        text = drawn(f"{a} -> {b}: {there:g}, {b} -> {a}: {back:g}")
        parts.append(
            f'<line x1="{ax:.1f}" y1="{ay:.1f}" x2="{bx:.1f}" y2="{by:.1f}" stroke="{colour}"'
            f' stroke-width="{1 + WIDEST_PX * share**0.5:.1f}"><title>{text}</title></line>'
        )
    for (name, pieces), (x, y) in zip(_named(layout, plan), places, strict=True):
        fill = "#e6effa" if pieces else "#f4f6f8"
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="15" fill="{fill}" stroke="#33475b"/>'
            f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{drawn(name)}</text>'
        )
        for row, text in enumerate(pieces):
            parts.append(
                f'<text x="{x + 19:.1f}" y="{y + 4 + 13 * row:.1f}" fill="#8a3a68">'
                f"{drawn(text)}</text>"
            )
    return "\n".join([*parts, "</svg>", ""])


def _places(layout: Layout) -> npt.NDArray[np.float64]:
    """Lay the brokers out, in pixels."""
    network = Network.of(layout.problem)
    count = len(network.names)
    hops = np.array(
        [[network.hops(node).get(other, -1) for other in range(count)] for node in range(count)],
        dtype=np.float64,
    )
    hops[hops < 0] = max(2.0, float(hops.max()) + 1)  # what is apart stands apart
    turn = np.arange(count) * 2.399963  # a sunflower: no two at one place, none in line
    found = np.stack([np.cos(turn), np.sin(turn)], axis=1) * np.sqrt(np.arange(count) + 1)[:, None]
    weight = np.where(hops > 0, 1 / np.maximum(hops, 1) ** 2, 0.0)
    for _ in range(ROUNDS if count > 1 else 0):
        apart = found[:, None, :] - found[None, :, :]
        far = np.maximum(np.sqrt((apart**2).sum(axis=2)), 1e-9)
        pull = weight * hops / far
        moved = (weight[:, :, None] * found[None, :, :] + pull[:, :, None] * apart).sum(axis=1)
        found = moved / weight.sum(axis=1)[:, None]
    placed: npt.NDArray[np.float64] = (found - found.min(axis=0)) * HOP_PX + MARGIN_PX / 2
    return placed
