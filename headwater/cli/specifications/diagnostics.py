"""Diagnostics as a person reads them: place, sentence, source line, caret, hint.

Owns the way to this form for errors that came from a broker as JSON. Must not know what an error
means, nor the form itself: `language` does. Invariant: whatever a reply holds, something readable
is printed.
"""

from collections.abc import Mapping, Sequence
from typing import Any


def rendered(name: str, text: str, errors: Sequence[Mapping[str, Any]]) -> str:
    """The errors of a specification; `name` is its file and `text` what was sent."""
    return "\n".join(_one(name, text, error) for error in errors)


def _one(name: str, text: str, error: Mapping[str, Any]) -> str:
    from language.diagnostics import Diagnostic, report

    code, message = str(error.get("code") or ""), str(error.get("message") or "refused")
    line, column = error.get("line"), error.get("column")
    placed = isinstance(line, int) and 0 < line <= text.count("\n") + 1
    if not placed or not isinstance(column, int) or not code:
        return f"{name}: {code and code + ': '}{message}"
    assert isinstance(line, int)
    hint = str(error.get("hint") or "")
    shown = report(text, [Diagnostic(code, message, line, column, 0, 1, hint)], file=name)
    return shown if hint else shown.rpartition("\n")[0]
