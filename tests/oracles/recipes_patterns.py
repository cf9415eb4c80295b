"""Parts of generated specifications: what must not be, lists, counting, choosing.

Owns: how `without`, `absent`, `next`, `nth`, lists, `distinct`, `first` and `last` are drawn.
Must not know: which context is under test; the builder sets it.
Invariant: every list and every search for the last one is closed, every `distinct` has a `within`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from tests.oracles import spec as s
from tests.oracles.recipes import Builder, compared, single_atoms
from tests.oracles.settings import lists_of, names_of

Built: TypeAlias = tuple[tuple[s.Definition, ...], s.Case]

_GROUPED = 15  # percent of the cases that are partitioned
_CONSUMING = 15
_OFTEN_THEN: tuple[s.Relation, ...] = ("then", "then", "then", "and")


def finished(builder: Builder, pattern: s.Pattern) -> Built:
    """The case: contexts, values, and now and then a partition or consumption."""
    draw = builder.draw
    group_by = ("source",) if draw.chance(_GROUPED) else ()
    case = builder.case(pattern)
    case = replace(case, assign=_values(builder, pattern, group_by), group_by=group_by)
    names = [name for name in names_of(pattern) if not name.startswith("absent:")]
    if names and draw.chance(_CONSUMING):
        case = replace(case, consuming=(draw.pick(names),))
    return (), case


def _values(builder: Builder, pattern: s.Pattern, group_by: Sequence[str]) -> s.Assignments:
    draw = builder.draw
    atoms = single_atoms(pattern)
    values = builder.values(atoms, group_by) if atoms else ()
    listed = sorted(lists_of(pattern))
    if listed and (values or not atoms) and draw.chance(60):
        name = draw.pick(listed)
        function = draw.pick(("Sum", "Avg", "Min", "Max", "First", "Last", "StdDev"))
        values += (("c", s.Aggregate("Count", name)), ("l", s.Aggregate(function, name, "n")))
    return values


def _within(builder: Builder, pattern: s.Pattern, low: int = 3, high: int = 9) -> s.Suffixed:
    return s.Suffixed(pattern, (s.Within(builder.draw.integer(low, high) * 1000),))


def _and_where(pattern: s.Pattern, condition: s.Expr) -> s.Suffixed:
    if isinstance(pattern, s.Suffixed):
        return s.Suffixed(pattern.operand, (*pattern.suffixes, s.Where(condition)))
    return s.Suffixed(pattern, (s.Where(condition),))


# --- what must not be -------------------------------------------------------------------------


def _unwanted(builder: Builder, atoms: Sequence[s.Atom]) -> s.Pattern:
    """What `without` and `absent` look for: an event, or two in a row or together."""
    draw = builder.draw
    if len(atoms) == 1:
        return s.Times(atoms[0], 2) if draw.chance(20) else atoms[0]
    if draw.chance(15):
        name = atoms[1].name
        counted = compared(s.Aggregate("Count", name), ">", s.Lit(draw.integer(0, 1)))
        chain = s.Pair("then", atoms[0], s.Listed(atoms[1], may_be_empty=draw.chance(50)))
        return _and_where(s.Suffixed(chain, (s.Within(draw.integer(2, 4) * 1000),)), counted)
    pattern = builder.tree(atoms, ("then", "and", "or"))
    if draw.chance(70):
        return pattern
    start = draw.pick(atoms).name if draw.chance(40) else None
    suffixed = s.Suffixed(pattern, (s.Within(draw.integer(1, 4) * 1000, start),))
    return _and_where(suffixed, builder.conjunct(atoms)) if draw.chance(60) else suffixed


def without(builder: Builder, *, timed: bool = False) -> Built:
    """`P without Q`, with something before or after it, with a condition that names Q."""
    draw = builder.draw
    atoms = builder.atoms(2, 4, conditions=10)
    at = 1 if timed or len(atoms) == 2 or draw.chance(25) else 2
    wanted: s.Pattern = builder.tree(atoms[:at], ("then", "then", "and", "or"))
    count = 2 if len(atoms) - at > 1 and draw.chance(40) else 1
    unwanted = _unwanted(builder, atoms[at : at + count])
    ms = draw.integer(1, 4) * 1000 if timed else None
    pattern: s.Pattern = s.Without(wanted, unwanted, ms)
    rest = atoms[at + count :]
    if rest:
        after = draw.chance(60)
        pattern = s.Pair("then", pattern, rest[0]) if after else s.Pair("and", rest[0], pattern)
    if draw.chance(30):
        pattern = _within(builder, pattern)
    if draw.chance(35) and not (lists_of(unwanted) or isinstance(unwanted, s.Times)):
        q, p = draw.pick(s.bound_atoms(unwanted)), draw.pick(s.bound_atoms(wanted))
        if draw.chance(20):
            p = draw.pick(s.bound_atoms(unwanted))
        op = draw.pick(("=", "<=", "!="))
        pattern = _and_where(pattern, compared(s.Ref(q.name, "n"), op, s.Ref(p.name, "n")))
    return finished(builder, pattern)


def without_time(builder: Builder) -> Built:
    """`P without[T] Q`."""
    return without(builder, timed=True)


def absent(builder: Builder) -> Built:
    """`absent P for T`, alone, or with partners."""
    draw = builder.draw
    atoms = builder.atoms(1, 3, conditions=15)
    count = 2 if len(atoms) == 3 and draw.chance(30) else 1
    nothing = s.Absent(_unwanted(builder, atoms[:count]), draw.integer(1, 4) * 1000)
    rest: list[s.Pattern] = [*atoms[count:]]
    if not rest:
        return finished(builder, nothing)
    rest.insert(draw.integer(0, len(rest)), nothing)
    pattern = builder.tree(rest, ("then", "then", "and"), bounds=15)
    return finished(builder, _within(builder, pattern) if draw.chance(40) else pattern)


def following(builder: Builder) -> Built:
    """`then[next]`, `and[next]`, at times with a bound."""
    draw = builder.draw
    pattern = builder.tree(builder.atoms(2, 3, conditions=20), ("then", "then", "and"), bounds=15)

    def marked(item: s.Pattern) -> s.Pattern:
        if not isinstance(item, s.Pair):
            return item
        sides = marked(item.left), marked(item.right)
        return replace(item, left=sides[0], right=sides[1], next=draw.chance(75))

    return finished(builder, marked(pattern))


# --- counting and choosing --------------------------------------------------------------------


def nth(builder: Builder) -> Built:
    """`nth k P` in a chain, first in one, beside `and`; of one event or of two in a row."""
    draw = builder.draw
    atoms = builder.atoms(2, 3, conditions=15)
    k = draw.pick((1, 2, 2, 3))
    if len(atoms) == 3 and draw.chance(30):
        counted: s.Pattern = s.Nth(k, s.Pair("then", atoms[0], atoms[1]))
        others: list[s.Pattern] = [atoms[2]]
    else:
        counted, others = s.Nth(k, atoms[0]), [*atoms[1:]]
    op: s.Relation = draw.pick(_OFTEN_THEN)
    at = draw.integer(0, len(others))
    others.insert(at, counted)
    pattern: s.Pattern = others[0]
    for operand in others[1:]:
        bound = builder.bound()
        pattern = s.Pair(op, pattern, operand, bound if draw.chance(20) else None)
    if draw.chance(25):
        pattern = _within(builder, pattern)
    elif draw.chance(20):
        pattern = s.Suffixed(pattern, (s.In(builder.wing()),))
    if draw.chance(25):
        pattern = _and_where(pattern, builder.conjunct(single_atoms(pattern)))
    return finished(builder, pattern)


def chosen(builder: Builder) -> Built:
    """`first P`, and `last P` where something closes it."""
    draw = builder.draw
    one, two, three = builder.atoms(3, 3, conditions=15)
    patterns: tuple[s.Pattern, ...] = (
        s.Pair("then", s.First(one), two),
        _within(builder, s.Pair("and", s.First(one), two)),
        s.Pair("then", s.Pair("then", one, s.First(two)), three),
        _within(builder, s.Pair("then", one, s.First(two))),
        _within(builder, s.Pair("then", s.First(s.Pair("then", one, two)), three)),
        _within(builder, s.Pair("then", s.Pair("then", s.First(one), two), s.Last(three))),
        _within(builder, s.Pair("and", s.Pair("and", s.Last(one), two), s.First(three))),
    )
    pattern = draw.pick(patterns)
    if draw.chance(25):
        pattern = _and_where(pattern, builder.conjunct(single_atoms(pattern)))
    return finished(builder, pattern)


def distinct(builder: Builder) -> Built:
    """`distinct(…) P` of events, `distinct P` of events and of composites."""
    draw = builder.draw
    atoms = builder.atoms(1, 3, conditions=10)
    rest: list[s.Pattern] = [*atoms[1:]]
    if len(atoms) == 3 and draw.chance(40):
        pair = builder.tree(atoms[:2], ("and", "then"))
        operand: s.Pattern = s.Distinct(pair)
        rest = rest[1:]
    else:
        keys = draw.pick((("n",), ("tag",), ("n", "flag"), ("source",), ()))
        operand = s.Distinct(atoms[0], keys)
    rest.insert(draw.integer(0, len(rest)), operand)
    pattern = builder.tree(rest, ("then", "and"))
    return finished(builder, _within(builder, pattern, 2, 8))


# --- lists ------------------------------------------------------------------------------------


def _list_of(builder: Builder, atom: s.Atom) -> s.Listed:
    # `latest` passes over much, so that what is left between two is often nothing.
    empty = 65 if builder.context == "latest" else 40
    return s.Listed(atom, may_be_empty=builder.draw.chance(empty))


def _chain(builder: Builder, elements: Sequence[s.Pattern], bounds: int) -> s.Pattern:
    draw = builder.draw
    pattern = elements[0]
    for element in elements[1:]:
        bound = builder.bound() if draw.chance(bounds) else None
        pattern = s.Pair("then", pattern, element, bound)
    return pattern


def listed(builder: Builder) -> Built:
    """A list between two others, at times two of them, or an operand before or after."""
    draw = builder.draw
    atoms = builder.atoms(3, 5 if draw.chance(30) else 3, conditions=15)
    elements: list[s.Pattern] = [*atoms[:1], _list_of(builder, atoms[1]), *atoms[2:]]
    if len(atoms) == 5:
        elements[3] = _list_of(builder, atoms[3])
    pattern = _chain(builder, elements, 15)
    if draw.chance(25):
        pattern = _within(builder, pattern, 5, 10)
    if draw.chance(30):
        pattern = _and_where(pattern, _list_condition(builder, pattern))
    return finished(builder, pattern)


def listed_last(builder: Builder) -> Built:
    """A list at the end, closed by `within`, `within … from` or a bound."""
    draw = builder.draw
    atoms = builder.atoms(2, 3, conditions=15)
    elements: list[s.Pattern] = [*atoms[:-1], _list_of(builder, atoms[-1])]
    ms = draw.integer(2, 6) * 1000
    close = draw.pick(("within", "within", "from", "bound"))
    if close == "bound":
        pattern: s.Pattern = s.Pair(
            "then", _chain(builder, elements[:-1], 0), elements[-1], s.Bound(None, ms)
        )
    else:
        anchor = atoms[0].name if close == "from" else None
        pattern = s.Suffixed(_chain(builder, elements, 15), (s.Within(ms, anchor),))
    if draw.chance(30):
        pattern = _and_where(pattern, _list_condition(builder, pattern))
    return finished(builder, pattern)


def listed_first(builder: Builder) -> Built:
    """A list at the beginning."""
    draw = builder.draw
    atoms = builder.atoms(2, 3, conditions=15)
    elements: list[s.Pattern] = [_list_of(builder, atoms[0]), *atoms[1:]]
    if draw.chance(20):
        elements[1] = s.Nth(2, atoms[1])
    pattern = _chain(builder, elements, 15)
    if draw.chance(50):
        pattern = _within(builder, pattern)
    if draw.chance(30):
        pattern = _and_where(pattern, _list_condition(builder, pattern))
    return finished(builder, pattern)


def listed_composites(builder: Builder) -> Built:
    """A list of pairs."""
    draw = builder.draw
    one, two, three, four = builder.atoms(4, 4, conditions=10)
    pair = s.Pair(draw.pick(("then", "and")), two, three)
    elements: list[s.Pattern] = [one, s.Listed(pair, may_be_empty=draw.chance(35)), four]
    if draw.chance(40):
        return finished(builder, _within(builder, _chain(builder, elements[:2], 0)))
    return finished(builder, _chain(builder, elements, 0))


def _list_condition(builder: Builder, pattern: s.Pattern) -> s.Expr:
    """On each member, on member and neighbour, or on the whole list."""
    draw = builder.draw
    name = draw.pick(sorted(lists_of(pattern)))
    other = draw.pick(single_atoms(pattern))
    n, m = s.Ref(name, "n"), s.Ref(other.name, "n")
    options: tuple[s.Expr, ...] = (
        compared(n, ">=", s.Lit(draw.integer(0, 2))),
        compared(n, draw.pick((">=", "<=", "!=")), m),
        compared(s.Arith("+", n, m), ">", s.Lit(1)),
        compared(s.Aggregate("Count", name), draw.pick((">", "<=")), s.Lit(draw.integer(0, 2))),
        compared(s.Aggregate("Avg", name, "n"), "<=", s.Lit(draw.pick((1, 1.5, 2)))),
        compared(s.Aggregate(draw.pick(("Max", "Sum", "Last")), name, "n"), ">=", m),
        s.AllOf((compared(n, "<=", s.Lit(2)), compared(s.Aggregate("Count", name), ">", s.Lit(0)))),
    )
    return draw.pick(options)


# --- repetitions ------------------------------------------------------------------------------


def _repeated(builder: Builder, atoms: Sequence[s.Atom], *, times: bool) -> s.Pattern:
    draw = builder.draw
    operand: s.Pattern = atoms[0]
    if len(atoms) == 2:
        operand = s.Pair("then", atoms[0], atoms[1], s.Bound(None, draw.integer(1, 3) * 1000))
    if times:
        return s.Times(operand, draw.pick((2, 2, 3)))
    low = draw.integer(0, 1) * 1000
    return s.Run(operand, s.Bound(low, low + draw.integer(1, 2) * 1000))


def _repetition(*, times: bool) -> Callable[[Builder], Built]:
    def build(builder: Builder) -> Built:
        draw = builder.draw
        atoms = builder.atoms(1, 3, conditions=15)
        count = 2 if len(atoms) > 1 and draw.chance(30) else 1
        pattern = _repeated(builder, atoms[:count], times=times)
        rest: list[s.Pattern] = [*atoms[count:]]
        conditions: list[s.Expr] = []
        name = atoms[0].name
        if draw.chance(30):
            conditions.append(compared(s.Ref(name, "n"), ">=", s.Lit(draw.integer(0, 1))))
        if draw.chance(20):
            most = s.Aggregate("Sum", name, "n")
            conditions.append(compared(most, ">", s.Lit(draw.integer(0, 2))))
        if rest:
            rest = rest[:1]
            rest.insert(draw.integer(0, 1), pattern)
            pattern = builder.tree(rest, ("then", "and"))
        if draw.chance(25):
            pattern = _within(builder, pattern, 4, 10)
        for condition in conditions[:1] if len(conditions) == 1 else []:
            pattern = _and_where(pattern, condition)
        if len(conditions) == 2:
            pattern = _and_where(pattern, s.AllOf(tuple(conditions)))
        return finished(builder, pattern)

    return build


def _repetition_beside(*, times: bool) -> Callable[[Builder], Built]:
    """A repetition with a conjunct on its members and on another place, or another repetition."""

    def build(builder: Builder) -> Built:
        draw = builder.draw
        atoms = builder.atoms(2, 3, conditions=10)
        count = 2 if len(atoms) == 3 and draw.chance(50) else 1
        repeated, (other, *more) = atoms[:count], atoms[count:]
        beside: s.Pattern = other
        if not more and draw.chance(25):
            beside = s.Times(other, 2)
        elif more and draw.chance(50):
            beside = builder.tree([other, *more], ("then", "and"))
        rest = [beside]
        rest.insert(draw.integer(0, 1), _repeated(builder, repeated, times=times))
        pattern = builder.tree(rest, ("then", "and"))
        if draw.chance(25):
            pattern = _within(builder, pattern, 4, 10)
        members = s.Ref(draw.pick(repeated).name, "n")
        if count == 2 and draw.chance(50):
            first, second = (s.Ref(one.name, "n") for one in repeated)
            members = s.Arith("+", first, second)
        op = draw.pick((">=", "<=", "<=", "!="))
        return finished(builder, _and_where(pattern, compared(members, op, s.Ref(other.name, "n"))))

    return build


PATTERN_PARTS: dict[str, Callable[[Builder], Built]] = {
    "without": without,
    "without-time": without_time,
    "absent": absent,
    "next": following,
    "nth": nth,
    "first-of": chosen,
    "distinct": distinct,
    "list": listed,
    "list-last": listed_last,
    "list-first": listed_first,
    "list-of-pairs": listed_composites,
    "times": _repetition(times=True),
    "run": _repetition(times=False),
    "times-beside": _repetition_beside(times=True),
    "run-beside": _repetition_beside(times=False),
}
