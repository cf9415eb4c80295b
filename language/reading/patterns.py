"""The actions that make patterns.

Owns which options an operator may have and what an alias can name. Must not know event types.
Invariant: as for the package.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from language import tree
from language.reading.expressions import Expressions
from language.reading.options import NONE, OptionActions, Options, refuse_detect_words
from language.reading.values import (
    between,
    distance_m,
    duration_ms,
    integer,
    marks_of,
    note,
    owner_name,
    place,
    span_of,
    unique_names,
)
from language.relations import CONTEXTS, RELATIONS, WITH_GAP

if TYPE_CHECKING:
    from lark import Token


class Patterns(Expressions, OptionActions):
    """Actions of the section `patterns` of the grammar."""

    def bare_atom(self, children: list[Any]) -> tree.Atom:
        return tree.Atom(owner_name(children[0]), span=span_of(children[0]))

    def atom(self, children: list[Any]) -> tree.Atom:
        token, *conditions, close = children
        return tree.Atom(owner_name(token), tuple(conditions), span=between(token, close))

    def alias(self, children: list[Any]) -> tree.Node:
        operand, _, token = children
        name = owner_name(token)
        if not isinstance(operand, tree.Atom | tree.Repeat):
            note("HW422", span_of(token), name=name)
        elif operand.alias is not None:
            note("HW423", span_of(token), name=name, other=operand.alias)
        else:
            marks = (("alias", span_of(token)),)
            return replace(operand, alias=name, span=between(operand, token), marks=marks)
        return cast("tree.Node", operand)

    def repeat(self, children: list[Any]) -> tree.Repeat:
        operand, sign, *others = children
        options: Options = others[0] if others else NONE
        span = between(operand, sign)
        if not others:
            return tree.Repeat(sign.value, operand, span=span)
        for key, where in options.places.items():
            if key != "bound":
                note("HW408", where, option=key, operator="+")
        if options.bound is None:
            note("HW410", options.place("bound") if "bound" in options.places else span)
        gap = options.bound or tree.Bound(None, options.duration_ms or 1)
        return tree.Repeat("run", operand, gap=gap, span=span)

    def repeat_count(self, children: list[Any]) -> tree.Repeat:
        operand, _, token, close = children
        span = between(operand, close)
        return tree.Repeat("count", operand, count=_positive(token), span=span)

    def select(self, children: list[Any]) -> tree.Select:
        word, operand = children
        return tree.Select(word.value, operand, span=between(word, operand))

    def nth(self, children: list[Any]) -> tree.Select:
        word, token, operand = children
        return tree.Select("nth", operand, k=_positive(token), span=between(word, operand))

    def distinct(self, children: list[Any]) -> tree.Select:
        word, *keys, _, operand = children
        names = unique_names(keys, "distinct", attributes=True)
        return tree.Select(
            "distinct",
            operand,
            keys=names,
            span=between(word, operand),
            marks=marks_of(keys, "key"),
        )

    def absent(self, children: list[Any]) -> tree.Absent:
        word, operand, _, duration = children
        return tree.Absent(operand, duration_ms(duration), span=between(word, duration))

    def link(self, children: list[Any]) -> tree.Link:
        left, operator, *others = children
        right: tree.Pattern = others[-1]
        options: Options = others[0] if len(others) == 2 else NONE
        bound = _operator_bound(operator, options) if others[0] is options else None
        return tree.Link(
            operator.value,
            left,
            right,
            bound=bound,
            context=_operator_context(operator, options),
            next=_operator_next(operator, options),
            span=between(left, right),
            marks=(("operator", span_of(operator)), *options.places.items()),
        )

    def where(self, children: list[Any]) -> tree.Where:
        operand, _, condition = children
        return tree.Where(operand, condition, span=between(operand, condition))

    def within(self, children: list[Any]) -> tree.Within:
        operand, word, duration, *others = children
        anchor = owner_name(others[-1]) if others else None
        last = others[-1] if others else duration
        marks = (("within", span_of(word)), ("anchor", place(last)))
        time_ms = duration_ms(duration, zero=True)
        return tree.Within(operand, time_ms, anchor, span=between(operand, last), marks=marks)

    def spread(self, children: list[Any]) -> tree.Spread:
        operand, _, distance = children
        metres = distance_m(distance, zero=True)
        return tree.Spread(operand, metres, span=between(operand, distance))

    def in_region(self, children: list[Any]) -> tree.InRegion:
        operand, _, region = children
        return tree.InRegion(operand, region, span=between(operand, region))


def _positive(token: Token) -> int:
    value = integer(token)
    if value < 1:
        note("HW411", span_of(token))
        return 1
    return value


def _operator_bound(operator: Token, options: Options) -> tree.Bound | None:
    refuse_detect_words(options, operator)
    name = str(operator)
    if name == "without":
        if options.duration_ms is not None:
            return tree.Bound(None, options.duration_ms, span=options.place("bound"))
        if options.bound is not None:
            note("HW412", options.bound.span)
        return None
    if options.bound is not None and name not in WITH_GAP:
        note("HW407", options.bound.span, operator=name)
        return None
    return options.bound


def _operator_context(operator: Token, options: Options) -> str | None:
    name = str(operator)
    if options.context is None:
        return None
    if name not in RELATIONS:
        note("HW408", options.place("context"), option=options.context, operator=name)
        return None
    context = CONTEXTS[options.context]
    if name not in context.relations:
        words = {"context": context.name, "relations": context.scope, "operator": name}
        note("HW413", options.place("context"), **words)
        return None
    return options.context


def _operator_next(operator: Token, options: Options) -> bool:
    name = str(operator)
    if "next" in options.words and name not in WITH_GAP:
        note("HW408", options.words["next"], option="next", operator=name)
        return False
    return "next" in options.words
