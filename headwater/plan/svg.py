"""Plans as one SVG: a panel for each, sources on the left and the sink on the right.

Owns sizes, places and colours. Must not know tasks. Invariant: boxes never overlap, and no line
crosses a box: each subtree has a band of its own, and each column is as wide as its widest box.

Steps stand in columns by kind, operators by how many are beneath them. A line leaves a box within
its own band, where nothing stands to its right, and turns only in the gap before the next column.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from textwrap import wrap

from headwater.drawn import drawn
from headwater.plan.steps import PlanStep, TaskPlan

FONT_PX = 13
CHAR_PX = 8.0  # wider than the mean of any usual sans-serif at that size
BOLD = 1.15  # as wide are bold letters
LINE_PX = 18
PAD_PX = 10
GAP_X, GAP_Y = 44, 14
MARGIN, HEADING_PX, PANEL_GAP = 24, 34, 30
LINE_CHARS = 34  # a longer text goes on in the next line
LINES_MAX = 6  # of one detail; what is longer ends in …
COLOURS = {
    "source": ("#e8f4ec", "#3c7a54"),
    "filter": ("#fdf3dd", "#9a6b0c"),
    "stamp": ("#eef0f3", "#5b6b7b"),
    "detect": ("#e6effa", "#2b5c94"),
    "sink": ("#f6e9f1", "#8a3a68"),
}

_LOOKS = (
    'role="img" aria-labelledby="title" font-family="Verdana, DejaVu Sans, sans-serif"'
    f' font-size="{FONT_PX}"'
)
_TIP = (
    '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7"'
    ' markerHeight="7" orient="auto"><path d="M0 0 10 5 0 10z" fill="#33475b"/></marker></defs>'
)


@dataclass(slots=True)
class StepBox:
    """A step with its place; `y` is that of its upper edge, `band` what its subtree takes."""

    step: PlanStep
    column: int
    lines: list[str]
    inputs: list[StepBox] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0
    band: float = 0.0
    x: float = 0.0
    y: float = 0.0

    def all(self) -> list[StepBox]:
        """The box and those beneath it."""
        return [self, *(box for part in self.inputs for box in part.all())]


@dataclass(slots=True)
class Panel:
    """One plan, laid out."""

    plan: TaskPlan
    notes: list[str]
    root: StepBox
    y: float
    height: float


def text_px(text: str) -> float:
    """Return how wide a text is at most."""
    wide = sum(unicodedata.east_asian_width(c) in {"W", "F"} for c in text)
    return (len(text) + wide) * CHAR_PX


def laid_out(plans: Sequence[tuple[TaskPlan, Sequence[str]]]) -> tuple[list[Panel], float, float]:
    """The panels, one below the other, and the width and height of all."""
    roots = [_box(plan.root) for plan, _ in plans]
    boxes = [box for root in roots for box in root.all()]
    _share_columns(roots, boxes)
    panels: list[Panel] = []
    y = float(MARGIN)
    for (plan, notes), root in zip(plans, roots, strict=True):
        noted = [line for note in notes for line in wrap(note, 110)]
        head = HEADING_PX + LINE_PX * len(noted)
        _place(root, y + head)
        panels.append(Panel(plan, noted, root, y, head + root.band))
        y += head + root.band + PANEL_GAP
    right = max((box.x + box.width for box in boxes), default=0.0)
    heads = [
        text_px(line) * BOLD**2 for panel in panels for line in (panel.plan.heading, *panel.notes)
    ]
    return panels, max([right, *heads]) + MARGIN, y - PANEL_GAP + MARGIN if panels else 2 * MARGIN


def _box(step: PlanStep) -> StepBox:
    inputs = [_box(part) for part in step.inputs]
    column = {"source": 0, "filter": 1, "stamp": 2}.get(step.kind, 3)
    if step.kind in {"detect", "sink"}:
        column = max([column, *(part.column + 1 for part in inputs)])
    titled = _wrapped(step.title)
    lines = titled + [line for text in step.details for line in _wrapped(text)]
    box = StepBox(step, column, lines, inputs)
    widths = [text_px(line) * BOLD for line in titled] + [text_px(line) for line in lines]
    box.width = max(*widths, text_px(step.kind)) + 2 * PAD_PX
    box.height = LINE_PX * (len(lines) + 1) + PAD_PX
    beneath = sum(part.band for part in inputs) + GAP_Y * max(0, len(inputs) - 1)
    box.band = max(box.height, beneath)
    return box


def _wrapped(text: str) -> list[str]:
    clean = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    lines = wrap(clean, LINE_CHARS, subsequent_indent="  ") or [""]
    if len(lines) > LINES_MAX:
        lines = [*lines[: LINES_MAX - 1], lines[LINES_MAX - 1][: LINE_CHARS - 1] + "…"]
    return lines


def _share_columns(roots: list[StepBox], boxes: list[StepBox]) -> None:
    """All panels share their columns; the sinks stand in the last one."""
    last = max((box.column for box in boxes), default=0)
    for root in roots:
        root.column = last
    widths = [0.0] * (last + 1)
    for box in boxes:
        widths[box.column] = max(widths[box.column], box.width)
    x = float(MARGIN)
    starts = []
    for width in widths:
        starts.append(x)
        x += width + GAP_X if width else 0.0
    for box in boxes:
        box.x = starts[box.column]
        box.width = widths[box.column]


def _place(box: StepBox, top: float) -> None:
    """Put a subtree into the band that begins at `top`, its root in the middle."""
    box.y = top + (box.band - box.height) / 2
    beneath = sum(part.band for part in box.inputs) + GAP_Y * max(0, len(box.inputs) - 1)
    y = top + (box.band - beneath) / 2
    for part in box.inputs:
        _place(part, y)
        y += part.band + GAP_Y


def plan_svg(plans: Sequence[tuple[TaskPlan, Sequence[str]]]) -> str:
    """All plans, each with its notes, as one document."""
    panels, width, height = laid_out(plans)
    title = ", ".join(panel.plan.heading for panel in panels)
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {_LOOKS}>',
        f'<title id="title">{drawn(title)}</title>',
        _TIP,
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for panel in panels:
        parts += _panel(panel)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(panel: Panel) -> list[str]:
    parts = [_text(panel.plan.heading, MARGIN, panel.y + 16, 'font-weight="bold" font-size="15"')]
    for number, note in enumerate(panel.notes, 1):
        parts.append(_text(note, MARGIN, panel.y + 16 + LINE_PX * number, 'fill="#5b6b7b"'))
    for box in panel.root.all():
        parts += [_line(part, box) for part in box.inputs]
    for box in panel.root.all():
        parts += _drawn(box)
    return parts


def _line(one: StepBox, box: StepBox) -> str:
    start, end = one.y + one.height / 2, box.y + box.height / 2
    # Lines that come in together end apart, one below the other.
    count = len(box.inputs)
    if count > 1:
        step = min(12.0, (box.height - 12) / count)
        end += (box.inputs.index(one) - (count - 1) / 2) * step
    turn = box.x - GAP_X / 2
    path = f"M{one.x + one.width:.1f} {start:.1f}H{turn:.1f}V{end:.1f}H{box.x:.1f}"
    return f'<path d="{path}" fill="none" stroke="#33475b" marker-end="url(#tip)"/>'


def _drawn(box: StepBox) -> list[str]:
    fill, stroke = COLOURS[box.step.kind]
    radius = box.height / 2 if box.step.kind in {"source", "sink"} and box.height < 60 else 6
    place = f'x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'
    looks = f'rx="{min(radius, 12):.0f}" fill="{fill}" stroke="{stroke}"'
    kind = f'fill="{stroke}" font-size="11"'
    parts = [
        f"<rect {place} {looks}/>",
        _text(box.step.kind, box.x + PAD_PX, box.y + LINE_PX - 2, kind),
    ]
    titled = len(_wrapped(box.step.title))
    for number, line in enumerate(box.lines, 1):
        y = box.y + LINE_PX * (number + 1) - 3
        style = 'font-weight="bold"' if number <= titled else 'fill="#33475b"'
        parts.append(_text(line, box.x + PAD_PX, y, style))
    return parts


def _text(text: str, x: float, y: float, style: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {style} xml:space="preserve">{drawn(text)}</text>'
