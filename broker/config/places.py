"""Where in a TOML text each key stands.

Owns the finding of positions, which the standard library's reader does not give. Must not know what
the keys mean. Invariant: it is asked only about texts that `tomllib` has accepted, so it skips
values without judging them.
"""

import re

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
# A whole string of any of the four kinds, the longest openings first.
_STRING = re.compile(
    r"""
      \"{3} (?: [^\\] | \\. )*? \"{3,5} (?!\")
    | '{3} .*? '{3,5} (?!')
    | \" (?: [^\"\\\n] | \\. )* \"
    | ' [^'\n]* '
    """,
    re.DOTALL | re.VERBOSE,
)
_REST = re.compile(r"[^\n]*")
_ESCAPES = re.compile(r"\\(.)")

Place = tuple[int, int]
Path = tuple[str, ...]


def places(text: str) -> dict[Path, Place]:
    """The line and column, both from 1, of every table header and key that opens a line.

    Keys within an inline table are not listed: their table's own key is the place to show.
    """
    positions: dict[Path, Place] = {}
    table: Path = ()
    position = _end(_BLANK, text, 0)
    while position < len(text):
        line = text.count("\n", 0, position) + 1
        column = position - (text.rfind("\n", 0, position) + 1) + 1
        if text[position] == "[":
            start = position + (2 if text.startswith("[[", position) else 1)
            table, position = _dotted_key(text, start)
            positions.setdefault(table, (line, column))
            position = _end(_REST, text, position)
        else:
            key, position = _dotted_key(text, position)
            for length in range(1, len(key) + 1):
                positions.setdefault(table + key[:length], (line, column))
            position = _after_value(text, position)
        position = _end(_BLANK, text, position)
    return positions


def nearest_place(found: dict[Path, Place], path: Path) -> Place:
    """The place of a path, or of the longest part of it that has one."""
    for length in range(len(path), 0, -1):
        if path[:length] in found:
            return found[path[:length]]
    return (1, 1)


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


def _dotted_key(text: str, position: int) -> tuple[Path, int]:
    parts: list[str] = []
    while True:
        position = _end(_SPACE, text, position)
        if match := _STRING.match(text, position):
            quoted = match.group()
            plain = quoted[1:-1]
            parts.append(_ESCAPES.sub(r"\1", plain) if quoted[0] == '"' else plain)
        elif match := _BARE.match(text, position):
            parts.append(match.group())
        else:
            return tuple(parts), position
        position = _end(_SPACE, text, match.end())
        if not text.startswith(".", position):
            return tuple(parts), position
        position += 1


def _after_value(text: str, position: int) -> int:
    """Behind the value that begins somewhere after `position`: the end of its last line."""
    depth = 0
    while position < len(text):
        character = text[position]
        if match := _STRING.match(text, position):
            position = match.end()
            continue
        if character == "#":
            position = _end(_REST, text, position)
            continue
        if character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
        elif character == "\n" and depth == 0:
            return position
        position += 1
    return position
