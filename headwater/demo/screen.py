"""What the demonstration shows: lines of results, a progress line, tables.

Owns the form. Must not know what is going on. Invariant: standard output holds results and the
summary alone; the progress line is drawn only on a terminal and never mixes with another line.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from headwater.cli.subscriptions.results import as_line

ALWAYS_SHOWN = 3  # of each subscription, the first results
SHOWN_EVERY_S = 0.25  # of all others; more than that nobody reads
BAR_WIDTH = 24
REDRAWN_EVERY_S = 0.1
LINE_MAX = 160


class ScreenGoneError(Exception):
    """Nobody reads any more, or nothing more can be written; `error` says which.

    No OSError, so that nobody takes it for a lost connection.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


class Screen:
    """Writes for people, or JSON lines for programs with all results and no other lines."""

    def __init__(
        self, *, as_json: bool, out: TextIO | None = None, side: TextIO | None = None
    ) -> None:
        """`out` is for the outcome and `side` for what happens; by default the standard streams."""
        self._as_json = as_json
        self._out = sys.stdout if out is None else out
        self._side = sys.stderr if side is None else side
        self._draws = not as_json and self._side.isatty()
        self._bar = ""
        self._drawn_s = -1.0
        self._shown: dict[str, int] = {}
        self._shown_s = -1.0
        self.left_out = 0

    def say(self, sentence: str = "") -> None:
        """A line about what happens."""
        if not self._as_json:
            self._line(self._side, sentence)

    def complain(self, sentence: str) -> None:
        """A line about what went wrong."""
        self._line(self._side, f"headwater: {sentence}")

    def result(self, result: Mapping[str, Any], now_s: float) -> None:
        """A result on one line, or none where too many come at a time."""
        if self._as_json:
            self._line(self._out, json.dumps(result, ensure_ascii=False))
            return
        name = result["subscription"]
        shown = self._shown.get(name, 0)
        if shown >= ALWAYS_SHOWN and now_s - self._shown_s < SHOWN_EVERY_S:
            self.left_out += 1
            return
        self._shown[name] = shown + 1
        self._shown_s = now_s
        line = as_line(result)
        self._line(self._out, line if len(line) <= LINE_MAX else line[: LINE_MAX - 1] + "…")

    def progress(self, done: int, total: int, words: str) -> None:
        """Redraw the progress line, now and then."""
        now_s = time.monotonic()
        if not self._draws or (now_s - self._drawn_s < REDRAWN_EVERY_S and done < total):
            return
        self._drawn_s = now_s
        filled = BAR_WIDTH * done // total
        bar = f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {done:,} of {total:,}  {words}"
        # A line that goes on below could not be wiped.
        self._bar = bar[: max(1, shutil.get_terminal_size().columns - 1)]
        self._draw()

    def end_progress(self) -> None:
        """Take the progress line away."""
        self._wipe()
        self._bar = ""

    def summary(self, figures: Mapping[str, Any], lines: Sequence[str]) -> None:
        """The outcome at the end."""
        self.end_progress()
        if self._as_json:
            self._line(self._out, json.dumps({"summary": figures}, ensure_ascii=False))
            return
        for line in lines:
            self._line(self._out, line)

    def _line(self, stream: TextIO, text: str) -> None:
        try:
            self._wipe()
            stream.write(text + "\n")
            stream.flush()
            self._draw()
        except OSError as error:
            raise ScreenGoneError(error) from None

    def _draw(self) -> None:
        if self._bar:
            self._side.write("\r\x1b[2K" + self._bar)
            self._side.flush()

    def _wipe(self) -> None:
        if self._bar:
            self._side.write("\r\x1b[2K")
            self._side.flush()
