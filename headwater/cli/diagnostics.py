"""Diagnostics as a person reads them: place, sentence, source line, caret, hint.

Owns this form for errors that came from a broker as JSON. Must not know what an error means.
Invariant: whatever a reply holds, something readable is printed.
"""

from collections.abc import Mapping, Sequence
from typing import Any


def rendered(name: str, text: str, errors: Sequence[Mapping[str, Any]]) -> str:
    """The errors of a specification; `name` is its file and `text` what was sent."""
    lines = text.split("\n")
    return "\n".join(_one(name, lines, error) for error in errors)


def _one(name: str, lines: Sequence[str], error: Mapping[str, Any]) -> str:
    code = f"{error['code']}: " if error.get("code") else ""
    line, column = error.get("line"), error.get("column")
    if not isinstance(line, int) or not isinstance(column, int) or not 0 < line <= len(lines):
        return f"{name}: {code}{error.get('message', 'refused')}"
    shown = lines[line - 1].rstrip("\r")
    # Tabs stay tabs before the caret, so that it stands below its column however wide they are.
    indent = "".join("\t" if c == "\t" else " " for c in shown[: max(column - 1, 0)])
    told = [f"{name}:{line}:{column}: {code}{error.get('message', 'refused')}"]
    told += [f"    {shown}", f"    {indent}^"]
    if error.get("hint"):
        told.append(f"    {error['hint']}")
    return "\n".join(told)
