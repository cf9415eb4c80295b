"""A TOML file as tables and the places of their keys.

Owns the reading of the file and the sentences for one that cannot be read. Must not know what the
keys mean. Invariant: whatever the file holds, the outcome is tables or a ConfigError.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

from broker.config.errors import ConfigError
from broker.config.places import nearest_place, places

FILE_BYTES_MAX = 262_144  # some thousand users; whatever is longer was named by mistake


class Document:
    """The tables of one TOML file; `place` tells where a key stands in it."""

    def __init__(self, path: Path) -> None:
        """Reads the file. Raises ConfigError."""
        text = _text(path)
        try:
            self.tables: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(_syntax_error(path, text, str(error))) from None
        except ValueError:
            raise ConfigError(f"{path}:1:1: not TOML: a number has too many digits") from None
        except RecursionError:
            raise ConfigError(f"{path}:1:1: nested too deeply to be a configuration") from None
        self.path = path
        self.folder = str(path.parent)
        self._lines = text.split("\n")
        self._places = places(text)

    def position(self, *keys: str) -> tuple[int, int]:
        """Return line and column of a key, or of the nearest of its tables that has a line."""
        return nearest_place(self._places, keys)

    def place(self, *keys: str) -> str:
        """Return `file:line:column` of a key, see `position`."""
        line, column = self.position(*keys)
        return f"{self.path}:{line}:{column}"

    def caret(self, *keys: str) -> str:
        """Return the key of that line, never its value, and below it a caret."""
        line, column = self.position(*keys)
        # A value may be a password's hash, or the password that somebody took for one.
        shown = self._lines[line - 1].partition("=")[0].rstrip()
        return f"    {shown}\n    {' ' * (column - 1)}^"


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"{path}: cannot be read: {reason}") from None
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(f"{path}: longer than {FILE_BYTES_MAX} bytes, so no configuration")
    try:
        return data.decode("utf-8").removeprefix("\ufeff")  # some editors begin every file with it
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}:1: not UTF-8") from None


def _syntax_error(path: Path, text: str, message: str) -> str:
    place = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)", message)
    if place is None:
        return f"{path}:1:1: not TOML: {message}"
    line, column = place.groups()
    if line is None:
        line, column = str(text.count("\n") + 1), "1"
    plain = message[: place.start()]
    return f"{path}:{line}:{column}: not TOML: {plain[:1].lower()}{plain[1:]}"
