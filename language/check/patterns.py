"""What patterns must be: conditions, suffixes, lists and `last` that must end, contexts.

Owns what an operator may stand beneath. Must not know assignments. Invariant: as for the package.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from language import tree
from language.check.expressions import Scope, attribute_type, check_condition
from language.check.scope import Binder, Bindings, names_within, never_together
from language.diagnostics import quote
from language.relations import CONTEXTS, RELATIONS
from language.walk import conjuncts, descendants

if TYPE_CHECKING:
    from collections.abc import Mapping

    from language.check.declarations import Declared
    from language.diagnostics import Collector


@dataclass(frozen=True)
class _Around:
    """The surroundings of a part of a pattern.

    `closed`: something ends it; `partner`: an occurrence has another place to agree in; `listed`:
    it is a pattern of its own, which a list would be alone; `timed`: a `within` is around.
    """

    closed: bool = False
    partner: bool = False
    listed: bool = True
    timed: bool = False


class PatternChecker:
    """Checks the pattern of one case."""

    def __init__(
        self, detect: tree.Detect, declared: Declared, collector: Collector, *, windowed: bool
    ) -> None:
        self.detect = detect
        self.declared = declared
        self.collector = collector
        self.windowed = windowed
        self.bindings: Bindings = Binder(declared, collector).bind(detect.pattern)

    def check(self, group: Mapping[str, str]) -> None:
        """Note all errors of the pattern; `group` are the grouping attributes with their types."""
        self.group = group
        if self.windowed:
            self._window(self.detect.pattern)
        else:
            self._visit(self.detect.pattern, _Around())

    # --- windows ---

    def _window(self, node: tree.Pattern) -> None:
        """The operands of a window: atoms, perhaps `outer` or `distinct`, joined by `and`."""
        if isinstance(node, tree.Atom):
            self._atom(node)
        elif isinstance(node, tree.Link) and node.operator == "and":
            if node.bound is not None:
                self.collector.note("HW419", node.bound.span, None, part="bound")
            for part, given in (("context", node.context), ("next", node.next)):
                if given:
                    self.collector.note("HW419", node.place(part), None, part=f"`{given}`")
            self._window(node.left)
            self._window(node.right)
        elif isinstance(node, tree.Select) and node.kind in {"outer", "distinct"}:
            self._distinct(node)
            self._operand(node.operand, {node.kind})
        else:
            self.collector.note("HW403", _place(node))

    def _operand(self, node: tree.Pattern, above: set[str]) -> None:
        """Check what `outer` and `distinct`, each once, stand before: one atom."""
        if isinstance(node, tree.Select) and node.kind in {"outer", "distinct"} - above:
            self._distinct(node)
            self._operand(node.operand, above | {node.kind})
        elif isinstance(node, tree.Atom):
            self._atom(node)
        else:
            place = node.span if isinstance(node, tree.Select) else _place(node)
            self.collector.note("HW403", place)

    # --- patterns ---

    def _visit(self, node: tree.Pattern, around: _Around) -> None:
        if isinstance(node, tree.Atom):
            self._atom(node)
        elif isinstance(node, tree.Link):
            self._link(node, around)
        elif isinstance(node, tree.Repeat):
            self._repeat(node, around)
        elif isinstance(node, tree.Select):
            self._select(node, around)
        elif isinstance(node, tree.Absent):
            self._visit(node.operand, _Around(closed=True))
        elif isinstance(node, tree.Where):
            self._where(node)
            self._visit(node.operand, replace(around, listed=True))
        elif isinstance(node, tree.Within):
            self._anchor(node)
            self._visit(node.operand, replace(around, closed=True, timed=True, listed=True))
        else:
            if isinstance(node, tree.InRegion):
                self._region(node)
            self._visit(node.operand, replace(around, listed=True))

    def _atom(self, node: tree.Atom) -> None:
        atom = self.declared.event_types.get(node.type)
        scope = Scope("condition", self.declared, self.collector, self.bindings, atom)
        for condition in node.conditions:
            check_condition(condition, scope)

    def _link(self, node: tree.Link, around: _Around) -> None:
        operator = node.operator
        context = CONTEXTS[node.context or self.detect.context]
        if operator in RELATIONS and operator not in context.relations:
            place = node.place("context" if node.context else "operator")
            words = {"context": context.name, "relations": context.scope, "operator": operator}
            self.collector.note("HW413", place, None, **words)
        if operator == "then":
            self._chain(node, around)
            return
        bounded = _bounded(node)
        if operator == "or":
            left = right = replace(around, partner=False, listed=False)
        elif operator == "without":
            left = around
            right = _Around(closed=True)
        else:
            closing = RELATIONS[operator].closed
            both = replace(around, partner=True, listed=False)
            ends = around.closed or bounded
            left = replace(both, closed=around.closed or "left" in closing or (
                bounded and operator == "and"))  # fmt: skip
            right = replace(both, closed=ends or "right" in closing)
        self._visit(node.left, left)
        self._visit(node.right, right)

    def _chain(self, node: tree.Link, around: _Around) -> None:
        """A chain of `then`; lists are chosen after its other elements, so there must be one."""
        elements, links = _chain_of(node)
        both = replace(around, partner=True, listed=False)
        lists = 0
        for position, element in enumerate(elements):
            followed = position < len(links)
            closed = around.closed or followed or (position > 0 and _bounded(links[position - 1]))
            listed = _list_in(element)
            lists += listed is not None
            if listed is None:
                self._visit(element, replace(both, closed=closed))
            else:
                self._element(element, listed, replace(around, closed=closed))
        for link, left, right in zip(links, elements[:-1], elements[1:], strict=True):
            beside = [operand for operand in (left, right) if _list_in(operand) is not None]
            self._beside(link, len(beside))
        if lists == len(elements):
            first = _list_in(elements[0]) or elements[0]
            self.collector.note("HW439", first.span)

    def _beside(self, link: tree.Link, lists: int) -> None:
        """A `then` with so many lists beside it: between two lists nothing holds."""
        if link.next and lists:
            hint = "say by conditions, or by `without`, what must not lie between"
            words = {"operator": "then beside a list", "option": "next"}
            self.collector.note("HW408", link.place("next"), hint, **words)
        if lists < 2:
            return
        hint = "each of the lists lies between its nearest neighbours that are no lists"
        between = "then between two lists"
        if link.bound is not None:
            self.collector.note("HW407", link.bound.span, hint, operator=between)
        if link.context is not None:
            words = {"operator": between, "option": link.context}
            self.collector.note("HW408", link.place("context"), hint, **words)

    def _element(self, element: tree.Pattern, found: tree.Repeat, around: _Around) -> None:
        """A list that is an element of a chain, with the suffixes of its own."""
        if not around.closed:
            self.collector.note("HW404", found.span, None, form=f"P{found.kind}")
        while element is not found:
            if isinstance(element, tree.Where):
                self._where(element)
            elif isinstance(element, tree.InRegion):
                self._region(element)
            element = element.operand  # type: ignore[union-attr]
        self._visit(found.operand, _Around(closed=around.closed, timed=around.timed))

    def _repeat(self, node: tree.Repeat, around: _Around) -> None:
        if node.kind in {"+", "*"}:
            self.collector.note("HW439" if around.listed else "HW417", node.span)
        elif node.kind == "run" and not around.closed and _unbounded(node.gap):
            self.collector.note("HW404", node.span, None, form="P+[a..]")
        self._visit(node.operand, _Around(closed=around.closed, timed=around.timed))

    def _select(self, node: tree.Select, around: _Around) -> None:
        if node.kind == "outer":
            self.collector.note("HW415", node.span)
        elif node.kind == "last":
            if not around.partner:
                self.collector.note("HW406", node.span)
            elif not around.closed:
                self.collector.note("HW405", node.span)
        elif node.kind == "distinct":
            self._distinct(node)
            if not around.timed:
                self.collector.note("HW431", node.span)
            if isinstance(node.operand, tree.Repeat) and node.operand.kind in {"+", "*"}:
                self._distinct_list(node, node.operand, around)
                return
        self._visit(node.operand, replace(around, listed=False))

    def _distinct_list(self, node: tree.Select, found: tree.Repeat, around: _Around) -> None:
        """A list after `distinct`, which goes with each member."""
        keys = f"({', '.join(node.keys)})" if node.keys else ""
        what = found.operand.type if isinstance(found.operand, tree.Atom) else "…"
        hint = f"write {quote(f'(distinct{keys} {what}){found.kind}')}, a list of what is distinct"
        self.collector.note("HW417", found.span, hint)
        self._visit(found.operand, _Around(closed=around.closed, timed=around.timed))

    def _distinct(self, node: tree.Select) -> None:
        if isinstance(node.operand, tree.Atom):
            event_type = self.declared.event_types.get(node.operand.type)
            for key in node.keys:
                attribute_type(event_type, key, node.place(f"key {key}"), self.collector)

    def _where(self, node: tree.Where) -> None:
        seen = names_within(node.operand)
        scope = Scope(
            "where",
            self.declared,
            self.collector,
            self.bindings,
            names=seen,
            group=self.group,
        )
        check_condition(node.condition, scope)
        for part in conjuncts(node.condition):
            named = {
                name: reference.span
                for reference in descendants(part)
                for name in _names_of(reference)
            }
            apart = never_together(named, seen)
            if apart is not None:
                self.collector.note("HW440", named[apart[0]], name=apart[0], other=apart[1])

    def _anchor(self, node: tree.Within) -> None:
        if node.anchor is None:
            return
        names = names_within(node.operand)
        seen = names.get(node.anchor)
        if seen is None or node.anchor not in self.bindings.names:
            candidates = [name for name in self.bindings.names if name in names]
            self.collector.misspelt("HW213", node.place("anchor"), node.anchor, candidates)
        elif seen.beneath:
            self.collector.note("HW434", node.place("anchor"), None, name=node.anchor)
        elif seen.kind == "list":
            self.collector.note("HW438", node.place("anchor"), None, name=node.anchor)

    def _region(self, node: tree.InRegion) -> None:
        region = node.region
        if isinstance(region, tree.Name) and region.name not in self.declared.regions:
            if region.name in self.declared.sets:
                hint = "a set is asked for in a condition: `source in …`"
                self.collector.note("HW221", region.span, hint, name=region.name)
            elif region.name not in self.declared.broken:
                self.collector.misspelt("HW204", region.span, region.name, self.declared.regions)


def _names_of(node: tree.Node) -> tuple[str, ...]:
    """The name of a place that an expression begins with."""
    if isinstance(node, tree.Attribute):
        return (node.base,)
    return (node.name,) if isinstance(node, tree.Name) else ()


def _place(node: tree.Pattern) -> tree.Span:
    """The word of a part of a pattern that should not be there."""
    if isinstance(node, tree.Link):
        return node.place("operator")
    return node.place("within")


def _bounded(link: tree.Link) -> bool:
    """Tell whether a bound ends the gap before the right operand."""
    return link.bound is not None and link.bound.high_ms is not None


def _chain_of(node: tree.Link) -> tuple[list[tree.Pattern], list[tree.Link]]:
    """The elements of a chain of `then` in the order of the text, and the links between them."""
    elements: list[tree.Pattern] = []
    links: list[tree.Link] = []
    left: tree.Pattern = node
    while isinstance(left, tree.Link) and left.operator == "then":
        elements.append(left.right)
        links.append(left)
        left = left.left
    return [left, *reversed(elements)], links[::-1]


def _list_in(element: tree.Pattern) -> tree.Repeat | None:
    """The list that an element of a chain is, perhaps in parentheses with a `where` or `in`."""
    while isinstance(element, tree.Where | tree.InRegion):
        element = element.operand
    return element if isinstance(element, tree.Repeat) and element.kind in {"+", "*"} else None


def _unbounded(gap: tree.Bound | None) -> bool:
    return gap is None or gap.high_ms is None
