"""Figures of an experiment as tables, printed or put into its page.

Owns the marks between which a page has its figures. Must not know experiments. Invariant: what a
page says around its figures stays.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


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
