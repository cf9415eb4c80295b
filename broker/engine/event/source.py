"""Generated Python source, compiled once for each shape.

Owns the making of functions from text. Must not know what the functions are for.
Invariant: constants never stand in the text, so that texts of one shape are equal and share one
code object; only the small table of constants belongs to the single function.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any

# Compiling a test takes some 85 µs, binding its constants half a microsecond: a thousand thresholds
# on one attribute compile once.
SHAPES_MAX = 4_096  # distinct shapes kept compiled; a broker's subscriptions have few


@lru_cache(maxsize=SHAPES_MAX)
def _compiled(text: str) -> CodeType:
    return compile(text, "<generated>", "exec")


class Constants:
    """Names for the values that a generated function refers to.

    Equal (value, type) pairs of hashable values share a name, so that a repeated constant does
    not make another shape.
    """

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._temporaries = 0

    def add(self, value: object) -> str:
        """A name that holds the value."""
        # Numbered by their place in the text, so that two texts of one shape get the same names.
        name = f"c{len(self.values)}"
        self.values[name] = value
        return name

    def helper(self, name: str, function: object) -> str:
        """A fixed name for a shared function or class."""
        self.values[name] = function
        return name

    def temporary(self) -> str:
        """A fresh local name."""
        self._temporaries += 1
        return f"t{self._temporaries}"


class Parameters(Constants):
    """Constants that are given to a function when it is called; helpers it knows."""

    def __init__(self) -> None:
        super().__init__()
        self.helpers = Constants()

    def helper(self, name: str, function: object) -> str:
        """Return a fixed name for a shared function or class, as `Constants` does."""
        return self.helpers.helper(name, function)


def shared(text: str, name: str, helpers: Constants) -> Callable[..., Any]:
    """The function called `name` that the text defines: one for all who ask for the same.

    What runs in a thousand copies is never warm; so what differs in constants alone should take
    them as arguments.
    """
    return _shared(text, name, tuple(helpers.values.items()))


@lru_cache(maxsize=SHAPES_MAX)
def _shared(text: str, name: str, helpers: tuple[tuple[str, Any], ...]) -> Callable[..., Any]:
    known = Constants()
    known.values.update(helpers)
    return build(text, name, known)


def build(text: str, name: str, constants: Constants) -> Callable[..., Any]:
    """The function called `name` that the text defines, with its constants bound."""
    namespace = dict(constants.values)
    exec(_compiled(text), namespace)  # text is generated here from a checked tree, never input
    function: Callable[..., Any] = namespace[name]
    return function
