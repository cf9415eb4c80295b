"""Parts of generated specifications about values: functions, tables, regions, assigned intervals.

Owns: how expressions with functions and tables are drawn, and regions written in place.
Must not know: traces, but for the values that they choose from.
Invariant: what is made is well-typed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.oracles import spec as s
from tests.oracles.recipes import Builder, compared, own, single_atoms
from tests.oracles.recipes_patterns import Built
from tests.oracles.traces import LATS, LONS

# Not every tag is in it, and not every cell holds something.
TAGS = s.Table(
    "Tags",
    "tags.csv",
    "tag",
    'tag,kind,size,weight\np,near,2,0.5\nq,"far, far",,1\nsome,,7,-2.25\n',
)


def _number(builder: Builder, n: s.Expr, v: s.Expr) -> s.Expr:
    """A number made of a whole one and another one."""
    draw = builder.draw
    options: tuple[s.Expr, ...] = (
        s.Call("abs", (s.Arith("-", n, s.Lit(2)),)),
        s.Call("min", (n, s.Lit(draw.integer(1, 2)))),
        s.Call("max", (n, v, s.Lit(0))),
        s.Call("round", (v,)),
        s.Call("floor", (s.Arith("/", n, s.Lit(2)),)),
        s.Call("ceil", (s.Arith("+", v, s.Lit(0.5)),)),
        s.Call("sqrt", (s.Arith("-", n, s.Lit(1)),)),
        s.Call("round", (s.Arith("+", n, s.Lit(0.5)),)),
    )
    return draw.pick(options)


def _text(builder: Builder, tag: s.Expr) -> s.Expr:
    draw = builder.draw
    options: tuple[s.Expr, ...] = (
        s.Call("upper", (tag,)),
        s.Call("lower", (s.Call("upper", (tag,)),)),
        s.Call("concat", (tag, s.Lit("-"), tag)),
        s.Call("concat", (s.Lit("é"), tag)),
    )
    return draw.pick(options)


def _condition(builder: Builder, of: Callable[[str], s.Expr]) -> s.Expr:
    draw = builder.draw
    n, v, tag = of("n"), of("v"), of("tag")
    options: tuple[s.Expr, ...] = (
        compared(_number(builder, n, v), draw.pick(("<=", ">=", "!=")), s.Lit(draw.integer(0, 2))),
        compared(_number(builder, n, v), "<=", _number(builder, n, v)),
        compared(_text(builder, tag), draw.pick(("!=", ">=")), s.Lit(draw.pick(("P", "q-q", "p")))),
        compared(s.Call("length", (_text(builder, tag),)), "<=", s.Lit(draw.integer(1, 3))),
    )
    return draw.pick(options)


def functions(builder: Builder) -> Built:
    """Functions in conditions, in `where` and in `assign`."""
    draw = builder.draw
    atoms = builder.atoms(1, 2, conditions=0)
    told = [replace(one, conditions=(_condition(builder, own),)) for one in atoms[:1]]
    pattern = builder.tree([*told, *atoms[1:]], ("then", "and", "or"))
    name = draw.pick(atoms).name
    if draw.chance(40):
        condition = _condition(builder, lambda attribute: s.Ref(name, attribute))
        pattern = s.Suffixed(pattern, (s.Where(condition),))
    n, v, tag = (s.Ref(name, attribute) for attribute in ("n", "v", "tag"))
    assign = (("a", _number(builder, n, v)), ("b", _number(builder, n, v)))
    return (), replace(builder.case(pattern), assign=(*assign, ("c", _text(builder, tag))))


def _column(builder: Builder, key: s.Expr) -> s.Expr:
    """A condition on what a table holds of a key."""
    draw = builder.draw
    kind, size, weight = (s.Lookup("Tags", key, one) for one in ("kind", "size", "weight"))
    options: tuple[s.Expr, ...] = (
        compared(kind, "=", s.Lit(draw.pick(("near", "far, far")))),
        s.InSet(kind, ("near", "else")),
        compared(size, draw.pick((">=", "!=")), s.Lit(draw.integer(0, 7))),
        compared(weight, ">=", s.Lit(0.5)),
        s.Not(compared(kind, "=", s.Lit("near"))),
    )
    return draw.pick(options)


def tables(builder: Builder) -> Built:
    """Tables in conditions, in `where` and in `assign`."""
    draw = builder.draw
    builder.tables.append(TAGS)
    atoms = builder.atoms(1, 2, conditions=0)
    told = [replace(one, conditions=(_column(builder, own("tag")),)) for one in atoms[:1]]
    pattern = builder.tree([*told, *atoms[1:]], ("then", "and", "or"))
    name = draw.pick(atoms).name
    key = s.Ref(name, "tag")
    if draw.chance(40):
        pattern = s.Suffixed(pattern, (s.Where(_column(builder, key)),))
    assign: s.Assignments = tuple((one, s.Lookup("Tags", key, one)) for one in ("kind", "size"))
    if draw.chance(40):
        assign += (("w", s.Arith("+", s.Lookup("Tags", key, "weight"), s.Ref(name, "n"))),)
    return (), replace(builder.case(pattern), assign=assign)


def _region(builder: Builder) -> s.Region:
    draw = builder.draw
    options: tuple[s.Region, ...] = (
        s.Circle(draw.pick(LATS), draw.pick(LONS), draw.pick((10_000, 14_000, 17_000, 20_000))),
        s.Box(LATS[0], LONS[0], LATS[draw.integer(1, 2)], LONS[draw.integer(1, 2)]),
        s.Box(LATS[1], LONS[draw.integer(0, 1)], LATS[2], LONS[2]),
        s.Polygon(((LATS[0], LONS[0]), (LATS[2], LONS[0]), (LATS[2], LONS[2]))),
        s.Polygon(
            (
                *((LATS[0], LONS[0]), (LATS[2], LONS[0]), (LATS[1], LONS[1])),
                *((LATS[2], LONS[2]), (LATS[0], LONS[2])),
            )
        ),
        s.PathRegion(draw.pick(("b", "b/1", "b/1/x", "b/10"))),
    )
    return draw.pick(options)


def regions(builder: Builder) -> Built:
    """`in` a region written in place, of conditions and of patterns."""
    draw = builder.draw
    atoms = builder.atoms(1, 2, conditions=0)
    marked: list[s.Atom] = []
    for atom in atoms:
        region = _region(builder)
        where = own("location" if isinstance(region, s.PathRegion) else "position")
        inside: s.Expr = s.InRegion(where, region)
        if draw.chance(25):
            inside = s.Not(inside)
        marked.append(replace(atom, conditions=(inside,)) if draw.chance(50) else atom)
    pattern = builder.tree(marked, ("then", "and", "or"))
    if draw.chance(70):
        pattern = s.Suffixed(pattern, (s.In(_region(builder)),))
    return (), replace(builder.case(pattern), assign=builder.values(atoms))


def assigned_interval(builder: Builder) -> Built:
    """Readings that hold for a while, in relations to others."""
    draw = builder.draw
    (atom,) = builder.atoms(1, 1, conditions=20)
    held = s.Arith("+", own("timestamp"), s.Duration(draw.integer(1, 5) * 1000))
    assign: s.Assignments = (("k", s.Ref(atom.name, "n")), ("end", held))
    if draw.chance(40):
        assign += (("start", own(draw.pick(("start", "end")))),)
    if draw.chance(40):
        assign += (("location", s.Ref(atom.name, "location")),)
    made = s.Definition("X", (s.Case(atom, assign=assign),))
    builder.whole["X"] = ("k",)
    other = ("X",) if draw.chance(30) else ()
    atoms = builder.atoms(2, 2, 10, ("X", *other))
    if draw.chance(50):
        atoms.reverse()
    pattern = builder.tree(
        atoms, ("during", "contains", "overlaps", "parallel", "concat", "then", "and")
    )
    return (made,), replace(builder.case(pattern), assign=builder.values(single_atoms(pattern)))


VALUE_PARTS: dict[str, Callable[[Builder], Built]] = {
    "functions": functions,
    "regions": regions,
    "assigned-interval": assigned_interval,
}
TABLE_PARTS: dict[str, Callable[[Builder], Built]] = {"tables": tables}


def files_of(spec: s.Spec) -> Sequence[tuple[str, str]]:
    """What must stand beside the file of the specification: paths and texts."""
    return tuple((one.path, one.text) for one in spec.tables)
