"""What leaves a broker on behalf of one message, gathered by kind.

Owns the gathering and its order. Must not know why something leaves. Invariant: effects come as
late, rejected and retained messages; results; replies; acknowledgements. Nothing is sent twice.
"""

from __future__ import annotations

from typing import Any

from broker.core.effects import (
    Acknowledge,
    Effect,
    Emission,
    Emit,
    Outcome,
    Publication,
    Publish,
    Reply,
)


class Outgoing:
    """Filled while a message is handled, then turned into effects."""

    __slots__ = ("_reasons", "_tokens", "publications", "replies", "results")

    def __init__(self) -> None:
        self.publications: list[Publication] = []
        self.results: list[Emission] = []
        self.replies: list[Reply] = []
        self._tokens: dict[Outcome, list[Any]] = {}
        self._reasons: dict[Outcome, list[str]] = {}

    def acknowledge(self, token: Any, outcome: Outcome = "taken", reason: str = "") -> None:
        """Answer a publisher, if one waits; `reason` is for one who asked for it."""
        if token is not None:
            self._tokens.setdefault(outcome, []).append(token)
            self._reasons.setdefault(outcome, []).append(reason)

    def effects(self) -> list[Effect]:
        """All of it, in the order that the module tells."""
        found: list[Effect] = []
        if self.publications:
            found.append(Publish(tuple(self.publications)))
        if self.results:
            found.append(Emit(tuple(self.results)))
        if self.replies:
            found += self.replies
        for outcome, tokens in self._tokens.items():
            reasons = tuple(self._reasons[outcome])
            found.append(Acknowledge(tuple(tokens), outcome, 0, reasons if any(reasons) else ()))
        return found
