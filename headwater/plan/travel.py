"""What travels between brokers for a task, and why as it does, for people and programs.

Owns the lines and the form. Must not decide anything: `broker.network.operators` does. Invariant:
the operators are those by which a broker that is the task's home asks others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from broker.network.operators.derivation import Reasoned, reasoned_operators
from broker.network.operators.phrases import in_words
from broker.network.operators.times import Times
from language import Task
from language.taskgraph import cases_of

NOTHING = "nothing travels: what it needs is detected at its home"


@dataclass(frozen=True, slots=True)
class Travelling:
    """The operators of one case, in the order of their words."""

    rows: tuple[tuple[str, Reasoned], ...]

    def lines(self) -> list[str]:
        """Two for each operator: what it asks for, and why its events travel so."""
        if not self.rows:
            return [NOTHING]
        return [
            line
            for words, reasoned in self.rows
            for line in (words, f"  {_how(reasoned)}: {reasoned.why}")
        ]

    def to_list(self) -> list[dict[str, Any]]:
        """As programs get it."""
        return [
            {
                "operator": words,
                "travels": _how(reasoned),
                "why": reasoned.why,
                "id": reasoned.operator.id,
            }
            for words, reasoned in self.rows
        ]


def travelling(task: Task, number: int, times: Times) -> Travelling:
    """Return what a task's home asks other brokers for, for one of its cases."""
    (case,) = [case for case in cases_of(task.node) if case.number == number]
    rows = [
        (in_words(reasoned.operator), reasoned)
        for reasoned in reasoned_operators(task, case, times)
    ]
    return Travelling(tuple(sorted(rows, key=lambda row: row[0])))


def _how(one: Reasoned) -> str:
    return "correlated" if one.operator.correlated else "alone"
