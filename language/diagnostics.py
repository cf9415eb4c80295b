"""Diagnostics: one table of errors, and how one of them is told.

Owns the form of a diagnostic, the collecting of many, and the report. The entries stand in
`language.messages`; whoever finds an error names a code and the words that fill its sentence.
Invariant: nothing of the text is echoed beyond ECHO_LENGTH_MAX characters, on one line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from language.limits import DIAGNOSTICS_MAX, ECHO_LENGTH_MAX, SOURCE_LINE_LENGTH_MAX
from language.messages import TABLE
from language.suggest import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from language.tree import Span


OWN_WORDS = frozenset(("expected", "form", "circle", "what"))
"""Words of a sentence that are the checker's own, or made of several names."""

OWN_WORDS_LENGTH_MAX = 5 * ECHO_LENGTH_MAX


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error at one place: offsets `start` and `end` in the text, line and column from 1.

    `hint` is a suggestion for this very place where there is one, else what would be right.
    """

    code: str
    message: str
    line: int
    column: int
    start: int
    end: int
    hint: str

    def to_dict(self) -> dict[str, str | int]:
        """As it is sent to programs."""
        return {
            "code": self.code,
            "message": self.message,
            "line": self.line,
            "column": self.column,
            "hint": self.hint,
        }


class Collector:
    """Gathers the diagnostics of one text, each place and code once."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, str], Diagnostic] = {}

    def note(self, code: str, span: Span, hint: str | None = None, /, **words: object) -> None:
        """Record the error `code` at `span`; `words` fill the sentence of its entry."""
        key = (span.start, code)
        if key in self._found or self.full:
            return
        entry = TABLE[code]
        shown = {
            name: shorten(str(word), OWN_WORDS_LENGTH_MAX if name in OWN_WORDS else ECHO_LENGTH_MAX)
            for name, word in words.items()
        }
        self._found[key] = Diagnostic(
            code, entry.message.format(**shown), span.line, span.column, span.start, span.end,
            entry.help if hint is None else shorten(hint, OWN_WORDS_LENGTH_MAX),
        )  # fmt: skip

    def misspelt(
        self,
        code: str,
        span: Span,
        name: str,
        known: Iterable[str],
        otherwise: str | None = None,
        /,
        **words: object,
    ) -> None:
        """As `note` for an unknown `name`, with the nearest of the known ones as the hint.

        `otherwise` is the hint where none is near.
        """
        names = list(known)
        near = nearest(name, names)
        hint = f"did you mean {quote(near)}?" if near is not None else None
        if name == "null" and name not in names:
            hint = "null cannot be written: `not x = x` holds where x is missing"
        self.note(code, span, hint or otherwise, name=name, **words)

    def found(self) -> tuple[Diagnostic, ...]:
        """All of them in order of place."""
        ordered = sorted(self._found.values(), key=lambda one: (one.start, one.code))
        return tuple(ordered)

    @property
    def full(self) -> bool:
        """Tell whether no more are taken: whoever looks for errors can stop."""
        return len(self._found) >= DIAGNOSTICS_MAX

    def __len__(self) -> int:
        return len(self._found)


def shorten(text: str, length: int = ECHO_LENGTH_MAX) -> str:
    """`text` on one line, unprintable characters escaped, cut in the middle where it is long."""
    if len(text) > length:
        text = text[: length - 6] + "…" + text[-5:]
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def quote(name: str) -> str:
    """A name as messages show it."""
    return f"`{shorten(name, ECHO_LENGTH_MAX - 2)}`"


def report(
    text: str, found: Iterable[Diagnostic], *, file: str = "<text>", color: bool = False
) -> str:
    """All of `found` for people: place, sentence, source line, caret, suggestion."""
    lines = text.split("\n")
    return "\n".join(_told(diagnostic, lines, file, color=color) for diagnostic in found)


def _told(one: Diagnostic, lines: list[str], file: str, *, color: bool) -> str:
    bold, red, green, plain = (
        ("\033[1m", "\033[31m", "\033[32m", "\033[0m") if color else ("", "", "", "")
    )
    head = f"{bold}{file}:{one.line}:{one.column}: {red}{one.code}{plain}{bold}: {one.message}"
    parts = [head + plain]
    shown, shift = _window(lines[one.line - 1].rstrip("\r"), one.column - 1)
    before = shown[: one.column - 1 - shift]
    marked = shown[len(before) : len(before) + one.end - one.start]
    pad = "".join("\t" if c == "\t" else " " * columns(c) for c in before)
    width = max(1, sum(map(columns, marked)))
    margin = f"{one.line:>5} | "
    indent = " " * (len(margin) - 2)
    parts.append(margin + shown)
    parts.append(f"{indent}| {pad}{green}{'^' * width}{plain}")
    parts.append(f"{indent}= {one.hint}")
    return "\n".join(parts)


def columns(character: str) -> int:
    """Return how many columns of a screen a character takes."""
    if character.isascii():
        return 1
    import unicodedata

    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def _window(source: str, at: int) -> tuple[str, int]:
    """The part of a long line around the offset `at`, and where it begins."""
    begin = max(0, min(at - SOURCE_LINE_LENGTH_MAX // 2, len(source) - SOURCE_LINE_LENGTH_MAX))
    clean = "".join(
        c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}"
        for c in source[begin : begin + SOURCE_LINE_LENGTH_MAX]
    )
    return clean, begin
