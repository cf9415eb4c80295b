"""Generated specifications in which all constructs of patterns meet.

Owns: how operands of every form are put under operators of every context.
Must not know: any matcher. Invariant: what READINGS.md leaves open is not drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.oracles import spec as s
from tests.oracles.recipes import Builder, compared, own, single_atoms
from tests.oracles.recipes_patterns import Built
from tests.oracles.settings import lists_of, names_of

_LINKS: tuple[s.Relation, ...] = (
    *("then", "then", "then", "and", "and", "and", "and", "and"),
    *("before", "concat"),
)
_CHOOSING: tuple[s.Context, ...] = ("unrestricted", "recent", "first", "chronicle")


class _Supply:
    """The atoms of a pattern, handed out in the order of the text."""

    def __init__(self, atoms: Sequence[s.Atom]) -> None:
        self._left = list(atoms)

    def __len__(self) -> int:
        return len(self._left)

    def take(self) -> s.Atom:
        """The next one."""
        return self._left.pop(0)


def _operand(builder: Builder, supply: _Supply) -> s.Pattern:
    """An operand of any form, of one atom or two."""
    draw = builder.draw
    atom = supply.take()
    ms = draw.integer(1, 2) * 1000
    single: tuple[s.Pattern, ...] = (
        *(atom, atom, atom, atom),
        s.Times(atom, 2),
        s.Run(atom, s.Bound(0, ms)),
        s.Nth(draw.integer(1, 2), atom),
        s.Absent(atom, ms),
    )
    if not supply or draw.chance(60):
        return draw.pick(single)
    other = supply.take()
    double: tuple[s.Pattern, ...] = (
        s.Or(atom, other),
        s.Or(atom, other),
        s.Pair("then", atom, other),
        s.Pair("and", atom, other),
        s.Without(atom, other, ms),
        s.Times(s.Pair("then", atom, other), 2),
        s.Pair("then", atom, s.Nth(2, other)),
    )
    return draw.pick(double)


def _linked(builder: Builder, supply: _Supply) -> s.Pattern:
    """Operands under operators; in a `then` chain at times a list between two of them."""
    draw = builder.draw
    pattern = _operand(builder, supply)
    while supply:
        if len(supply) > 1 and draw.chance(25):
            listed = s.Listed(supply.take(), may_be_empty=draw.chance(75))
            pattern = s.Pair("then", s.Pair("then", pattern, listed), _operand(builder, supply))
        elif draw.chance(12):
            pattern = s.Without(pattern, supply.take())
        else:
            pattern = s.Pair(draw.pick(_LINKS), pattern, _operand(builder, supply))
    return pattern


def _with_any_contexts(builder: Builder, pattern: s.Pattern) -> s.Pattern:
    """Each operator names a context or none."""
    draw = builder.draw
    match pattern:
        case s.Atom() | s.Absent():
            return pattern
        case s.Pair(op, left, right):
            options = (*_CHOOSING, "latest") if op == "then" else _CHOOSING
            sides = _with_any_contexts(builder, left), _with_any_contexts(builder, right)
            context: s.Context | None = draw.pick(options) if draw.chance(55) else None
            return replace(pattern, left=sides[0], right=sides[1], context=context)
        case s.Or(left, right):
            return s.Or(_with_any_contexts(builder, left), _with_any_contexts(builder, right))
        case s.Without(left, _):
            return replace(pattern, left=_with_any_contexts(builder, left))
        case s.Outer():
            return pattern
    return replace(pattern, operand=_with_any_contexts(builder, pattern.operand))


def defined(builder: Builder) -> Built:
    """A definition over such a pattern, and what is detected or counted over its events."""
    draw = builder.draw
    pattern = _linked(builder, _Supply(builder.atoms(2, 3, conditions=5)))
    pattern = _with_any_contexts(builder, pattern)
    if draw.chance(30):
        pattern = s.Suffixed(pattern, (s.Within(draw.integer(6, 12) * 1000),))
    atoms, listed = single_atoms(pattern), sorted(lists_of(pattern))
    if atoms:
        worth = builder.whole_value(atoms)
    else:
        worth = s.Aggregate("Count", draw.pick(listed)) if listed else s.Lit(draw.integer(0, 3))
    assign: s.Assignments = (("k", worth),)
    if atoms and draw.chance(50):
        assign += (("source", s.Ref(draw.pick(atoms).name, "source")),)
    if draw.chance(25):
        assign += (("timestamp", own("timestamp")),)
    names = [name for name in names_of(pattern) if not name.startswith("absent:")]
    consuming = (draw.pick(names),) if names and draw.chance(15) else ()
    context = None if builder.context in ("unrestricted", "latest") else builder.context
    case = s.Case(pattern, context, assign, consuming)
    builder.whole["X"] = ("k",)
    made = s.Definition("X", (case,))
    if draw.chance(30):
        return _counted(builder, made)
    over = builder.tree(builder.atoms(1, 2, 10, ("X",)), ("then", "and", "or"))
    return (made,), replace(builder.case(over), assign=builder.values(single_atoms(over)))


def _counted(builder: Builder, made: s.Definition) -> Built:
    """A window over the detected events."""
    draw = builder.draw
    windows: tuple[s.Window, ...] = (
        *(s.Every(4000), s.Every(2000, 4000), s.Trailing(2000), s.Session(1000)),
    )
    group_by = ("source",) if draw.chance(30) else ()
    assign: s.Assignments = (
        ("c", s.Aggregate("Count", "X")),
        ("t", s.Aggregate("Sum", "X", "k")),
        ("l", s.Aggregate("Last", "X", "k")),
    )
    case = s.Case(s.Atom("X"), assign=assign, group_by=group_by)
    counted = s.Definition("W", (case,), draw.pick(windows))
    return (made, counted), s.Case(s.Atom("W"))


def mixed(builder: Builder) -> Built:
    """A pattern of up to five atoms, with suffixes, and what thins or consumes what it reports."""
    draw = builder.draw
    pattern = _linked(builder, _Supply(builder.atoms(3, 4 if draw.chance(75) else 5, conditions=5)))
    pattern = _with_any_contexts(builder, pattern)
    suffixes: list[s.Suffix] = []
    if draw.chance(30):
        suffixes.append(s.Within(draw.integer(8, 14) * 1000))
    atoms = single_atoms(pattern)
    if draw.chance(25):
        suffixes.append(s.Where(_condition(builder, pattern, atoms)))
    if suffixes:
        pattern = s.Suffixed(pattern, tuple(suffixes))
    context = builder.context
    # `latest` is a context of `then` alone, which the detect cannot tell apart.
    case = s.Case(pattern, None if context in ("unrestricted", "latest") else context)
    return (), _thinned(builder, case)


def _condition(builder: Builder, pattern: s.Pattern, atoms: Sequence[s.Atom]) -> s.Expr:
    draw = builder.draw
    listed = sorted(lists_of(pattern))
    if listed and (not atoms or draw.chance(40)):
        count = s.Aggregate("Count", draw.pick(listed))
        return compared(count, draw.pick(("<=", ">=")), s.Lit(draw.integer(0, 2)))
    if not atoms:
        return compared(s.Lit(0), "<=", s.Lit(draw.integer(0, 1)))
    return builder.conjunct(atoms)


def _thinned(builder: Builder, case: s.Case) -> s.Case:
    draw = builder.draw
    names = [name for name in names_of(case.pattern) if not name.startswith("absent:")]
    group_by = ("flag",) if draw.chance(12) else ()
    if draw.chance(12):
        return replace(case, thin="collect", group_by=group_by)
    consuming = (draw.pick(names),) if names and draw.chance(20) else ()
    told = replace(case, group_by=group_by, consuming=consuming)
    return replace(told, thin="one") if draw.chance(12) else told
