"""Parts of generated specifications: atoms, conditions, trees of operators, expressions.

Owns: how one `detect` is put together from choices.
Must not know: which construct is under test; `generate` asks for the parts.
Invariant: what is made is well-formed and well-typed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from tests.oracles import spec as s
from tests.oracles.draw import Draw
from tests.oracles.traces import LATS, LONS

Op: TypeAlias = s.Relation | Literal["or"]
BOUNDED = ("and", "then", "before")

ALIASES = ("x", "y", "z", "u", "w")
PRIMITIVES = ("A", "B", "C", "D")


def own(name: str) -> s.Ref:
    """A bare name."""
    return s.Ref(None, name)


def compared(left: s.Expr, op: str, right: s.Expr) -> s.Compare:
    """One comparison."""
    return s.Compare((op,), (left, right))


def joined(items: Sequence[s.Expr]) -> s.Expr:
    """One condition, or several by `and`."""
    return items[0] if len(items) == 1 else s.AllOf(tuple(items))


@dataclass
class Builder:
    """Draws the parts of one specification and remembers what they need to be declared.

    `context` is what the operators must have; `types` are the event types to choose from;
    `whole`, per defined type, its attributes that are whole numbers; `subscription` is what else
    the subscription is told, by the names of `spec.Subscription`.
    """

    draw: Draw
    context: s.Context
    types: tuple[str, ...] = PRIMITIVES
    whole: dict[str, tuple[str, ...]] = field(default_factory=dict)
    subscription: dict[str, Any] = field(default_factory=dict)
    sets: dict[str, tuple[s.Scalar, ...]] = field(default_factory=dict)
    regions: dict[str, s.Region] = field(default_factory=dict)
    tables: list[s.Table] = field(default_factory=list)

    # --- atoms and conditions ---------------------------------------------------------------

    def atoms(
        self, low: int, high: int, conditions: int = 25, types: Sequence[str] = ()
    ) -> list[s.Atom]:
        """So many atoms; a type used twice has an alias on every use."""
        count = self.draw.integer(low, high)
        chosen = [*types, *(self.draw.pick(self.types) for _ in range(count - len(types)))]
        made = []
        for kind, alias in zip(chosen, ALIASES, strict=False):
            needs_alias = chosen.count(kind) > 1 or self.draw.chance(30)
            told = (self.condition(kind),) if self.draw.chance(conditions) else ()
            made.append(s.Atom(kind, told, alias if needs_alias else None))
        return made

    def condition(self, kind: str) -> s.Expr:
        """A condition on a type's own values that is more often met than not."""
        if kind in self.whole:
            low = self.draw.integer(-1, 1)
            lasting = compared(own("duration"), "<=", s.Duration((low + 3) * 1000))
            counted = compared(own(self.whole[kind][0]), ">=", s.Lit(low))
            return self.draw.pick((lasting, counted))
        return self.draw.pick((self._plain, self._plain, self._placed, self._reckoned))()

    def _plain(self) -> s.Expr:
        draw = self.draw
        n, v, tag = own("n"), own("v"), own("tag")
        options: tuple[s.Expr, ...] = (
            compared(n, ">=", s.Lit(draw.integer(0, 2))),
            compared(n, "!=", s.Lit(draw.integer(0, 3))),
            compared(n, "<", s.Lit(draw.integer(2, 4))),
            s.Compare(("<=", "<"), (s.Lit(0), n, s.Lit(draw.integer(2, 3)))),
            s.InSet(n, (0, draw.integer(1, 2), 3)),
            compared(v, ">", s.Lit(draw.pick((0, 0.1, 0.25, -2.0)))),
            compared(v, "<=", s.Lit(draw.pick((1.25, 0.3, 2)))),
            compared(tag, "!=", s.Lit(draw.pick(("p", "r")))),
            s.InSet(tag, ("p", draw.pick(("q", "r")))),
            compared(tag, "<", s.Lit("q")),
            own("flag"),
            compared(own("flag"), "=", s.Lit(draw.chance(50))),
        )
        return draw.pick(options)

    def _placed(self) -> s.Expr:
        kind = self.draw.pick(("source", "path", "wing", "area", "srcid"))
        if kind == "source":
            self.sets["Dock"] = ("s1", "s2")
            return s.InSet(own("source"), "Dock")
        if kind == "path":
            path = self.draw.pick(("b", "b/1"))
            return s.InRegion(own("location"), s.PathRegion(path))
        if kind == "wing":
            return s.InRegion(own("location"), self.wing())
        if kind == "area":
            return s.InRegion(own("position"), self.area())
        return compared(own("srcid"), "!=", s.Lit(self.draw.pick(("s1", "s3"))))

    def _reckoned(self) -> s.Expr:
        draw = self.draw
        n, v = own("n"), own("v")
        plain = self._plain()
        options: tuple[s.Expr, ...] = (
            compared(s.Arith("+", n, s.Lit(1)), ">", s.Lit(draw.integer(0, 2))),
            compared(s.Arith("/", s.Lit(2), n), ">=", s.Lit(0.5)),
            compared(s.Arith("*", v, n), "<=", s.Lit(2)),
            compared(s.Arith("-", n, v), ">", s.Lit(-1)),
            compared(s.Negative(n), "<=", s.Lit(-1)),
            compared(own("duration"), "<", s.Duration(draw.integer(1, 3) * 1000)),
            s.Not(plain),
            s.AnyOf((plain, compared(n, "=", s.Lit(draw.integer(0, 3))))),
            s.AllOf((s.Not(compared(n, "=", s.Lit(0))), compared(v, "<", s.Lit(100)))),
        )
        return draw.pick(options)

    def wing(self) -> str:
        """The name of a region that is a path."""
        self.regions["Wing"] = s.PathRegion("b/1")
        return "Wing"

    def area(self) -> str:
        """The name of a region of the globe; positions lie inside, outside or on its border."""
        options: tuple[s.Region, ...] = (
            s.Circle(LATS[1], LONS[1], self.draw.pick((12_000, 15_000, 18_000))),
            s.Box(LATS[0], LONS[0], LATS[1], LONS[2]),
            s.Box(LATS[0], LONS[1], LATS[2], LONS[2]),
            s.Polygon(((LATS[0], LONS[0]), (LATS[2], LONS[0]), (LATS[0], LONS[2]))),
        )
        self.regions["Area"] = self.draw.pick(options)
        return "Area"

    # --- operators --------------------------------------------------------------------------

    def tree(
        self, atoms: Sequence[s.Pattern], ops: Sequence[Op], *, bounds: int = 0, nested: int = 30
    ) -> s.Pattern:
        """The operands in their order under operators that group to the left, or not."""
        if len(atoms) == 1:
            return atoms[0]
        at = len(atoms) - 1
        if self.draw.chance(nested):
            at = self.draw.integer(1, len(atoms) - 1)
        left = self.tree(atoms[:at], ops, bounds=bounds, nested=nested)
        right = self.tree(atoms[at:], ops, bounds=bounds, nested=nested)
        op = self.draw.pick(ops)
        if op == "or":
            return s.Or(left, right)
        bounded = op in BOUNDED and self.draw.chance(bounds)
        return s.Pair(op, left, right, self.bound() if bounded else None)

    def bound(self) -> s.Bound:
        """One with both ends, or open on one side."""
        low, width = self.draw.integer(0, 3) * 1000, self.draw.integer(0, 4) * 1000
        shape = self.draw.pick(("to", "both", "from"))
        if shape == "to":
            return s.Bound(None, low + width)
        return s.Bound(low, low + width if shape == "both" else None)

    def case(self, pattern: s.Pattern) -> s.Case:
        """A case whose operators have the asked context, from `detect` or each by itself."""
        context, draw = self.context, self.draw
        if context == "unrestricted":
            return s.Case(pattern, context if draw.chance(10) else None)
        if context == "latest" and _operators(pattern) - {"then"}:
            return s.Case(_with_contexts(pattern, lambda op: context if op == "then" else None))
        if draw.chance(40):
            return s.Case(pattern, context)
        if draw.chance(20):
            some = _with_contexts(pattern, lambda _: "unrestricted" if draw.chance(40) else None)
            return s.Case(some, context)
        return s.Case(_with_contexts(pattern, lambda _: context), None)

    # --- expressions over what is bound -----------------------------------------------------

    def whole_number(self, atom: s.Atom) -> s.Ref:
        """A whole number that an atom's event has."""
        return s.Ref(atom.name, self.draw.pick(self.whole.get(atom.type, ("n",))))

    def conjunct(self, atoms: Sequence[s.Atom]) -> s.Expr:
        """A condition on one to three of the bound events that is often met."""
        draw = self.draw
        first, second = self._two(atoms)
        x, y = self.whole_number(first), self.whole_number(second)
        later, earlier = s.Ref(second.name, "timestamp"), s.Ref(first.name, "start")
        options: tuple[s.Expr, ...] = (
            compared(y, ">=", x),
            compared(x, "!=", y),
            compared(s.Arith("-", y, x), "<=", s.Lit(draw.integer(0, 2))),
            compared(s.Arith("+", x, y), ">", s.Lit(draw.integer(0, 2))),
            s.Not(compared(x, "=", y)),
            s.AnyOf((compared(x, "<", y), compared(x, "=", s.Lit(0)))),
            compared(x, ">=", s.Lit(draw.integer(0, 1))),
            s.InSet(y, (0, 1, 2)),
            compared(s.Arith("-", later, earlier), ">=", s.Duration(draw.integer(0, 2) * 1000)),
            compared(s.Ref(first.name, "source"), "!=", s.Ref(second.name, "source")),
            compared(x, "<=", s.Arith("+", self.whole_number(atoms[-1]), s.Lit(1))),
        )
        return draw.pick(options)

    def _two(self, atoms: Sequence[s.Atom]) -> tuple[s.Atom, s.Atom]:
        if len(atoms) == 1:
            return atoms[0], atoms[0]
        at = self.draw.integer(0, len(atoms) - 2)
        return atoms[at], atoms[self.draw.integer(at + 1, len(atoms) - 1)]

    def where(self, atoms: Sequence[s.Atom], high: int = 2) -> s.Where:
        """One conjunct or several."""
        count = self.draw.integer(1, high)
        return s.Where(joined([self.conjunct(atoms) for _ in range(count)]))

    def whole_value(self, atoms: Sequence[s.Atom]) -> s.Expr:
        """An assigned whole number; null where an event or an attribute is missing."""
        first, second = self._two(atoms)
        x, y = self.whole_number(first), self.whole_number(second)
        op = self.draw.pick(("+", "-", "*"))
        options: tuple[s.Expr, ...] = (
            *(x, y, s.Arith(op, x, y)),
            *(s.Arith("+", x, s.Lit(1)), s.Negative(x)),
        )
        return self.draw.pick(options)

    def values(self, atoms: Sequence[s.Atom], group_by: Sequence[str] = ()) -> s.Assignments:
        """What a subscription assigns, or nothing."""
        if self.draw.chance(40):
            return ()
        first, second = self._two(atoms)
        ratio = s.Arith("/", self.whole_number(second), self.whole_number(first))
        options: tuple[tuple[str, s.Expr], ...] = (
            ("a", self.whole_value(atoms)),
            ("b", ratio),
            ("at", own("timestamp")),
            ("began", s.Ref(second.name, "start")),
            ("place", s.Ref(first.name, "location")),
            ("by", s.Ref(second.name, "source")),
            *((f"g{i}", s.Ref("group", name)) for i, name in enumerate(group_by)),
        )
        start = self.draw.integer(0, len(options) - 1)
        return options[start : start + 3]


def single_atoms(pattern: s.Pattern) -> tuple[s.Atom, ...]:
    """The atoms that stand for one event each."""
    if isinstance(pattern, s.Listed | s.Times | s.Run | s.Absent):
        return ()
    if isinstance(pattern, s.Atom):
        return (pattern,)
    inner = (pattern.left,) if isinstance(pattern, s.Without) else s.parts_of(pattern)
    return tuple(atom for part in inner for atom in single_atoms(part))


def _operators(pattern: s.Pattern) -> set[str]:
    """The operators that choose among pairs."""
    own = {pattern.op} if isinstance(pattern, s.Pair) else set()
    return own.union(*(_operators(part) for part in s.parts_of(pattern)))


def _with_contexts(pattern: s.Pattern, told: Callable[[str], s.Context | None]) -> s.Pattern:
    """The pattern with a context at each operator, but not where all is unrestricted anyway."""
    match pattern:
        case s.Atom() | s.Absent():
            return pattern
        case s.Pair(op, left, right):
            sides = _with_contexts(left, told), _with_contexts(right, told)
            return replace(pattern, left=sides[0], right=sides[1], context=told(op))
        case s.Or(left, right):
            return s.Or(_with_contexts(left, told), _with_contexts(right, told))
        case s.Without(left, _):
            return replace(pattern, left=_with_contexts(left, told))
    if isinstance(pattern, s.Outer):
        return pattern
    return replace(pattern, operand=_with_contexts(pattern.operand, told))
