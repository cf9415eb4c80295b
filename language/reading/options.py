"""What stands in brackets after an operator or after `detect`.

Owns the sorting of the parts and which of them each place may have. Invariant: as for the package.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from language.reading.values import COLLECTOR, between, duration_ms, note, span_of
from language.relations import CONTEXTS
from language.tree import NO_SPAN, Bound, Constant, Span

if TYPE_CHECKING:
    from lark import Token

DETECT_WORDS = ("one", "collect", "maybe drop")
WORDS = (*CONTEXTS, "next", *DETECT_WORDS)


@dataclass(slots=True)
class Options:
    """The parts found between one pair of brackets, each with its place."""

    bound: Bound | None = None
    duration_ms: int | None = None
    context: str | None = None
    words: dict[str, Span] = field(default_factory=dict)
    places: dict[str, Span] = field(default_factory=dict)

    def take(self, key: str, span: Span) -> bool:
        """Mark the part `key` as given; false where it was given before."""
        if key in self.places:
            note("HW121", span, option=key)
            return False
        self.places[key] = span
        return True

    def place(self, key: str) -> Span:
        """Return the span of the part `key`."""
        return self.places.get(key, NO_SPAN)


NONE = Options()


class OptionActions:
    """The actions of the grammar's `options`."""

    def option_scalar(self, children: list[Any]) -> tuple[str, Any, Span]:
        node: Constant = children[0]
        return "duration", duration_ms(node), node.span

    def option_bound(self, children: list[Any]) -> tuple[str, Any, Span]:
        span = between(children[0], children[-1])
        low: int | None = None
        high: int | None = None
        if isinstance(children[0], Constant):
            low = duration_ms(children[0], zero=True)
        if isinstance(children[-1], Constant):
            high = duration_ms(children[-1], zero=True)
        ends = [node for node in (children[0], children[-1]) if isinstance(node, Constant)]
        certain = all(node.unit == "ms" for node in ends)
        if certain and low is not None and high is not None and low > high:
            note("HW315", span)
            high = low
        return "bound", Bound(low, high, span=span), span

    def option_word(self, children: list[Any]) -> tuple[str, Any, Span]:
        word = " ".join(str(token) for token in children)
        return "word", word, between(children[0], children[-1])

    def options(self, children: list[Any]) -> Options:
        options = Options()
        for kind, value, span in children[1:]:
            if kind == "word":
                _take_word(options, value, span)
            elif options.take("bound", span):
                if kind == "bound":
                    options.bound = value
                else:
                    options.duration_ms = value
        return options


def _take_word(found: Options, word: str, span: Span) -> None:
    if word not in WORDS:
        COLLECTOR.get().misspelt("HW122", span, word, WORDS)
    elif word in CONTEXTS:
        if found.take("context", span):
            found.context = word
    elif found.take(word, span):
        found.words[word] = span


def refuse_detect_words(options: Options, operator: Token) -> None:
    """`one`, `collect` and `maybe drop` belong to `detect` alone."""
    for word in DETECT_WORDS:
        if word in options.words:
            note("HW421", options.words[word], option=word)
    if options.duration_ms is not None and str(operator) != "without":
        note("HW409", options.place("bound"), f"[..{options.duration_ms} ms]")


def operator_place(operator: Token, options: Options, key: str) -> Span:
    """Return the span of the part `key` of an operator's options, else of the operator."""
    return options.places.get(key, span_of(operator))
