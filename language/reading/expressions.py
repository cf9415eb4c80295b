"""The actions that make expressions, sets and regions.

Must not know types: `"a" + 1` is a tree like any other. Invariant: as for the package.
"""

from __future__ import annotations

from functools import lru_cache
from sys import intern
from typing import TYPE_CHECKING, Any

from language import tree
from language.lexicon import SHAPES
from language.limits import SET_MEMBERS_MAX
from language.reading.regions import region_literal
from language.reading.values import (
    Values,
    attribute_name,
    between,
    name_of,
    note,
    span_of,
)

if TYPE_CHECKING:
    from lark import Token

CHAINS_MAX = 256  # chains of operators that are kept once


@lru_cache(maxsize=CHAINS_MAX)
def _chain(operators: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same operators once: thousands of comparisons have few chains of them."""
    return tuple(map(intern, operators))


class Expressions(Values):
    """Actions of the section `expressions` of the grammar."""

    def name(self, children: list[Any]) -> tree.Name:
        return tree.Name(attribute_name(children[0]), span=span_of(children[0]))

    def attribute_of(self, children: list[Any]) -> tree.Attribute:
        base, attribute = children
        owner = "group" if base == "group" else name_of(base)
        return tree.Attribute(owner, attribute_name(attribute), span=between(base, attribute))

    def call(self, children: list[Any]) -> tree.Call:
        function, *arguments, close = children
        return tree.Call(name_of(function), tuple(arguments), span=between(function, close))

    def lookup(self, children: list[Any]) -> tree.Lookup:
        table, _, key, column = children
        span, marks = between(table, column), (("column", span_of(column)),)
        return tree.Lookup(name_of(table), key, name_of(column), span=span, marks=marks)

    def group(self, children: list[Any]) -> tree.Node:
        """A parenthesis: what stands in it."""
        inner: tree.Node = children[0]
        return inner

    def arithmetic(self, children: list[Any]) -> tree.Arithmetic:
        left, operator, right = children
        return tree.Arithmetic(operator.value, left, right, span=between(left, right))

    def comparison(self, children: list[Any]) -> tree.Comparison:
        operators = _chain(tuple([token.value for token in children[1::2]]))
        span = between(children[0], children[-1])
        return tree.Comparison(tuple(children[::2]), operators, span=span)

    def membership(self, children: list[Any]) -> tree.Membership:
        item, _, container = children
        return tree.Membership(item, container, span=between(item, container))

    def negation(self, children: list[Any]) -> tree.Unary:
        return tree.Unary("not", children[1], span=between(*children))

    def logical(self, children: list[Any]) -> tree.Logical:
        operator = children[1].value
        operands: list[tree.Expression] = []
        for operand in children[::2]:
            if isinstance(operand, tree.Logical) and operand.operator == operator:
                operands.extend(operand.operands)
            else:
                operands.append(operand)
        span = between(children[0], children[-1])
        return tree.Logical(operator, tuple(operands), span=span)

    def set_literal(self, children: list[Any]) -> tree.SetLiteral:
        members = children[1:-1]
        span = between(children[0], children[-1])
        if len(members) > SET_MEMBERS_MAX:
            note("HW120", span, count=len(members), limit=SET_MEMBERS_MAX)
            members = members[:1]
        return tree.SetLiteral(tuple(members), span=span)

    def region_name(self, children: list[Any]) -> tree.Name:
        return tree.Name(name_of(children[0]), span=span_of(children[0]))

    def region(self, children: list[Any]) -> tree.RegionLiteral:
        literal: tree.RegionLiteral = children[0]
        return literal

    def shape(self, children: list[Any]) -> tree.RegionLiteral:
        token: Token = children[0]
        name = name_of(token)
        if name not in SHAPES:
            from language.reading.values import COLLECTOR

            COLLECTOR.get().misspelt("HW217", span_of(token), name, SHAPES)
        return region_literal(name, children[1:-1], between(token, children[-1]))
