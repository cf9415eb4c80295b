"""The errors that the language raises.

Owns the root of every error of the project's own. Any other exception that leaves a package is a
bug of ours. Must not know how diagnostics are found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from language.diagnostics import Diagnostic


class HeadwaterError(Exception):
    """The root of all errors that are told to users in a sentence."""


class LanguageError(HeadwaterError):
    """A specification is faulty; `diagnostics` holds every error found, in order of place."""

    def __init__(self, message: str, diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        super().__init__(message)
        self.diagnostics = diagnostics
