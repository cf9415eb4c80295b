"""Generated definitions that nothing bounds, whose events are known late, and who waits for them.

Owns: what such definitions detect, and the silences, lists, runs and relations over their events.
Must not know: any matcher. Invariant: an assigned `timestamp` lies within its occurrence.
"""

from __future__ import annotations

from dataclasses import replace

from tests.oracles import spec as s
from tests.oracles.recipes import Builder, own
from tests.oracles.recipes_defined import Built
from tests.oracles.settings import lists_of

_RELATIONS: tuple[s.Relation, ...] = ("parallel", "starts", "during", "concat", "overlaps")


def open_definition(builder: Builder) -> Built:
    """A definition that waits for what lies between, and one that waits for its beginnings."""
    draw = builder.draw
    pattern = _waiting(builder)
    if draw.chance(25):
        pattern = s.Suffixed(pattern, (s.Within(draw.integer(4, 9) * 1000),))
    silent = {one.name for one in _denied(pattern)} | set(lists_of(pattern))
    atoms = [atom for atom in s.atoms_of(pattern) if atom.name not in silent]
    assign: s.Assignments = (("k", builder.whole_value(atoms)),)
    time = draw.integer(0, 5)
    if time <= 1:
        assign += (("timestamp", s.Ref(draw.pick(atoms).name, "timestamp")),)
    elif time == 2:
        assign += (("timestamp", own("start")),)
    group_by = ("source",) if draw.chance(20) else ()
    builder.whole["X"] = ("k",)
    made = s.Definition("X", (s.Case(pattern, None, assign, group_by=group_by),))
    over = _over(builder)
    listed = set(lists_of(over)) | {one.name for one in _denied(over)}
    bound = [atom for atom in s.atoms_of(over) if atom.name not in listed]
    if isinstance(over, s.Absent):
        return (made,), builder.case(over)
    return (made,), replace(builder.case(over), assign=builder.values(bound))


def _waiting(builder: Builder) -> s.Pattern:
    """Of three atoms: the first and the last, and what may or must not lie between."""
    draw = builder.draw
    first, between, last = builder.atoms(3, 3, conditions=10)
    context: s.Context | None = draw.pick((None, None, None, "recent", "first", "chronicle"))
    pair = s.Pair("then", first, last, context=context)
    listed = s.Listed(between, may_be_empty=draw.chance(75))
    options: tuple[s.Pattern, ...] = (
        s.Pair("then", s.Pair("then", first, listed, context=context), last, context=context),
        s.Pair("then", s.Without(first, between), last, context=context),
        s.Without(pair, between),
        s.Without(s.Pair("and", first, last), between),
        s.Pair("then", first, s.Without(last, between, 1000), context=context),
        pair,
    )
    return draw.pick(options)


def _over(builder: Builder) -> s.Pattern:
    """Who has to know when the events begin that are still to come."""
    draw = builder.draw
    made, other = builder.atoms(2, 2, 10, ("X",))
    ms = draw.integer(1, 4) * 1000
    near = s.Bound(None, ms)
    options: tuple[s.Pattern, ...] = (
        s.Without(other, made, ms),
        s.Without(other, made, ms),
        s.Absent(made, ms),
        s.Pair("then", other, s.Listed(made), near),
        s.Pair("then", other, made, near),
        s.Pair("and", other, made, near),
        s.Pair("then", s.Listed(made), other),
        s.Pair(draw.pick(_RELATIONS), other, made),
        s.Suffixed(s.Pair("then", other, made), (s.Within(ms),)),
        s.Suffixed(s.Pair("and", made, other), (s.Within(2 * ms),)),
    )
    return draw.pick(options)


def _denied(pattern: s.Pattern) -> tuple[s.Atom, ...]:
    """The atoms that must not be there."""
    own_ones = s.atoms_of(pattern.right) if isinstance(pattern, s.Without) else ()
    return own_ones + tuple(atom for part in s.parts_of(pattern) for atom in _denied(part))
