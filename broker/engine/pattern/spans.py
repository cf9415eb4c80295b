"""How long what an operator passes on can last.

Owns the two answers: the most that is possible, for what is kept, and the most by what is known of
the events' types, for what is waited for. Must not know stages. Invariant: the second is never more
than the first while the types keep to what is known of them.
"""

from __future__ import annotations

from broker.engine.pattern.lasting import Foresight
from broker.engine.pattern.operands import Operand, span_max_ms
from broker.engine.pattern.verdicts import Doubt


class Span:
    """The spans of one operator's occurrences; None where they are unbounded."""

    __slots__ = ("_doubt", "_likely", "_most", "_operand", "_version")

    def __init__(self, operand: Operand, doubt: Doubt | None) -> None:
        self._operand = operand
        self._doubt = doubt
        self._version = (-1, -1)  # of what the others were found of
        self._likely: int | None = None
        self._most: int | None = None

    def most_ms(self, foresight: Foresight) -> int | None:
        """The longest nominal span that is possible."""
        self._find(foresight)
        return self._most

    def likely_ms(self, foresight: Foresight) -> int | None:
        """The longest nominal span, if events last no longer than is known of their types."""
        self._find(foresight)
        return self._likely

    def _find(self, foresight: Foresight) -> None:
        doubt = self._doubt
        version = (foresight.durations.version, -1 if doubt is None else doubt.most_ms)
        if version != self._version:
            slack_ms = None if doubt is None else doubt.slack_ms
            self._likely = span_max_ms(self._operand, foresight.longest_ms, slack_ms)
            self._most = span_max_ms(self._operand, foresight.most_ms_of, slack_ms)
            self._version = version
