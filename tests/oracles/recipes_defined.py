"""Parts of generated specifications that define event types: cases, chains of definitions, windows.

Owns: what generated definitions assign, group and aggregate, and what subscribes to them.
Must not know: which construct is under test; `generate` asks by the names in the tables below.
Invariant: an assigned `timestamp` lies within its occurrence; an assigned `end` may lie beyond.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from tests.oracles import spec as s
from tests.oracles.recipes import Builder, compared, own

Built: TypeAlias = tuple[tuple[s.Definition, ...], s.Case]

# --- definitions by cases ---------------------------------------------------------------------


def definition(builder: Builder, name: str, cases: int, types: Sequence[str] = ()) -> s.Definition:
    """A definition of so many cases over one or two atoms each; it is added to the types."""
    made = s.Definition(name, tuple(_defining_case(builder, types) for _ in range(cases)))
    shaped = _same_names(made)
    builder.whole[name] = ("k", "m")
    return shaped


def _defining_case(builder: Builder, types: Sequence[str]) -> s.Case:
    draw = builder.draw
    pattern = builder.tree(builder.atoms(1, 2, 20, types), ("and", "then", "or"))
    if draw.chance(25):
        pattern = s.Suffixed(pattern, (s.Within(draw.integer(2, 6) * 1000),))
    atoms = s.atoms_of(pattern)
    assign = (
        ("k", builder.whole_value(atoms)),
        ("m", builder.whole_number(draw.pick(atoms))),
        *_reserved(builder, atoms),
    )
    consuming = (draw.pick(atoms).name,) if draw.chance(30) else ()
    return replace(builder.case(pattern), assign=assign, consuming=consuming)


def _reserved(builder: Builder, atoms: Sequence[s.Atom]) -> s.Assignments:
    """Place, source, position and time of a detected event, each now and then."""
    draw = builder.draw
    some, other = draw.pick(atoms), draw.pick(atoms)
    placed = [name for name in ("location", "source", "position") if draw.chance(50)]
    assign: list[tuple[str, s.Expr]] = [(name, s.Ref(some.name, name)) for name in placed]
    time = draw.integer(0, 5)
    if time == 1:
        assign.append(("timestamp", s.Ref(other.name, draw.pick(("timestamp", "start", "end")))))
    elif time == 2:
        assign.append(("timestamp", own(draw.pick(("timestamp", "start")))))
    elif time == 3:
        late = s.Arith("+", own("timestamp"), s.Duration(draw.integer(1, 4) * 1000))
        assign.append(("end", late))
    elif time == 4:
        # May start after its end, and is dropped then.
        assign.append(("start", s.Ref(some.name, "end")))
        assign.append(("end", s.Ref(other.name, "start")))
    return tuple(assign)


def _same_names(made: s.Definition) -> s.Definition:
    """Every case assigns what any of them does, in the same order: the others' reserved names are
    taken from the case's own span or first atom.
    """
    names = dict.fromkeys(name for case in made.cases for name, _ in case.assign)
    if "timestamp" in names:  # a point and an interval exclude each other
        names = {name: None for name in names if name not in ("start", "end")}
    return replace(made, cases=tuple(_filled(case, tuple(names)) for case in made.cases))


def _filled(case: s.Case, names: tuple[str, ...]) -> s.Case:
    told = dict(case.assign)
    first = s.atoms_of(case.pattern)[0].name
    spare = {name: own(name) for name in ("timestamp", "start", "end")}
    assign = [(name, told.get(name) or spare.get(name) or s.Ref(first, name)) for name in names]
    return replace(case, assign=tuple(assign))


def _subscribing(builder: Builder, atoms: Sequence[s.Atom]) -> s.Case:
    pattern = builder.tree(atoms, ("and", "then", "then", "or"))
    if len(atoms) > 1 and builder.draw.chance(30):
        pattern = s.Suffixed(pattern, (builder.where(s.atoms_of(pattern), 1),))
    return replace(builder.case(pattern), assign=builder.values(s.atoms_of(pattern)))


def _reported(builder: Builder) -> Built:
    """`define X(…) every T`: the same events as without it."""
    made = definition(builder, "X", cases=1)
    (case,) = made.cases
    if builder.draw.chance(50):
        case = replace(case, group_by=("source",))
    told = replace(made, cases=(case,), reported_ms=builder.draw.integer(2, 8) * 1000)
    return (told,), _subscribing(builder, builder.atoms(1, 2, 15, ("X",)))


def _one_case(builder: Builder) -> Built:
    made = definition(builder, "X", cases=1)
    return (made,), _subscribing(builder, builder.atoms(1, 2, 15, ("X",)))


def _several_cases(builder: Builder) -> Built:
    made = definition(builder, "X", cases=builder.draw.integer(2, 3))
    return (made,), _subscribing(builder, builder.atoms(1, 2, 15, ("X",)))


def _nested(builder: Builder) -> Built:
    first = definition(builder, "X", cases=builder.draw.integer(1, 2))
    second = definition(builder, "Y", cases=1, types=("X",))
    types = ("Y", "X") if builder.draw.chance(40) else ("Y",)
    return (first, second), _subscribing(builder, builder.atoms(len(types), 2, 10, types))


def _same_twice(builder: Builder) -> Built:
    made = definition(builder, "X", cases=builder.draw.integer(1, 2))
    return (made,), _subscribing(builder, builder.atoms(2, 2, 10, ("X", "X")))


def tied(builder: Builder) -> Built:
    """Definitions of definitions: of one event several, which only what they are made of parts."""
    draw = builder.draw
    (atom,) = builder.atoms(1, 1, 10)
    count = draw.integer(2, 3)
    cases = [
        s.Case(atom, None, (("k", s.Lit(number)), ("m", builder.whole_number(atom))))
        for number in range(count)
    ]
    definitions = [s.Definition("X", tuple(cases))]
    if draw.chance(40):
        kept: s.Assignments = (("k", s.Aggregate("Last", "X", "k")),)
        kept += (("m", s.Aggregate("Sum", "X", "k")),)
        windows: tuple[s.Window, ...] = (s.Every(2000, 4000), s.Trailing(2000), s.Session(2000))
        window = draw.pick(windows)
        definitions.append(s.Definition("V", (s.Case(s.Atom("X"), None, kept),), window))
    else:
        kept = (("k", s.Ref("X", "k")), ("m", s.Ref("X", "m")))
        definitions.append(s.Definition("V", (s.Case(s.Atom("X"), None, kept),)))
    kept = (("k", s.Ref("V", "k")), ("m", s.Ref("V", "m")))
    definitions.append(s.Definition("Y", (s.Case(s.Atom("V"), None, kept),)))
    builder.whole.update({"X": ("k", "m"), "V": ("k", "m"), "Y": ("k", "m")})
    return tuple(definitions), _choosing(builder)


def _choosing(builder: Builder) -> s.Case:
    """Y alone, with others or the last of it; at times at most so many."""
    draw = builder.draw
    if draw.chance(50):
        builder.subscription["at_most"] = (draw.integer(1, 9), draw.integer(1, 4) * 1000)
    partners = draw.pick(((), (), ("X",), ("V",), ("Y",), (draw.pick(builder.types),)))
    atoms = builder.atoms(1 + len(partners), 1 + len(partners), 10, ("Y", *partners))
    if len(atoms) > 1 and draw.chance(40):
        pick = draw.pick((s.Last, s.First))
        pair = s.Pair("then", pick(atoms[0]), atoms[1])
        return replace(builder.case(pair), assign=(("a", s.Ref(atoms[0].name, "k")),))
    case = _subscribing(builder, atoms)
    consuming = (draw.pick(atoms).name,) if draw.chance(20) else ()
    return replace(case, consuming=consuming)


CASE_PARTS: dict[str, Callable[[Builder], Built]] = {
    "definition": _one_case,
    "cases": _several_cases,
    "nested-definitions": _nested,
    "definition-twice": _same_twice,
    "every-reported": _reported,
}

# --- windows ----------------------------------------------------------------------------------

_KEYS = (("location",), ("source",), ("tag",), ("source", "tag"), ())
_NUMBERS = ("n", "v")
_DISTINCT_KEYS = (("n",), ("tag",), ("source", "flag"), ())
_OFTEN = ("Sum", "Avg", "StdDev")
FUNCTIONS = (
    *("Count", "Min", "Max", "Median", "Quantile", "First", "Last", "CountDistinct"),
    *_OFTEN,
    *_OFTEN,
)


def _aggregate(builder: Builder, alias: str, kind: str) -> s.Expr:
    """One aggregate over a window's operand."""
    draw = builder.draw
    if kind in builder.whole:
        name = draw.pick(builder.whole[kind])
        function = draw.pick(("Sum", "Min", "Max", "Count", "Avg", "First", "Last"))
        return s.Aggregate(function, alias, name)
    function = draw.pick(FUNCTIONS)
    if function in ("Median", "Quantile"):  # whole numbers and quarters: no rounding can differ
        q = draw.pick((0.0, 0.25, 0.5, 0.75, 1.0)) if function == "Quantile" else None
        return s.Aggregate(function, alias, "n", q)
    if function in ("First", "Last", "CountDistinct", "Count"):
        return s.Aggregate(function, alias, draw.pick(("n", "v", "tag")))
    return s.Aggregate(function, alias, draw.pick(_NUMBERS))


def _window_assign(
    builder: Builder, atoms: Sequence[s.Atom], group_by: Sequence[str]
) -> s.Assignments:
    """`k` is a whole number, a few aggregates follow, then place and time."""
    draw = builder.draw
    first, last = atoms[0], atoms[-1]
    count = s.Aggregate("Count", first.name)
    if len(atoms) > 1 and draw.chance(50):
        whole: s.Expr = s.Arith("-", count, s.Aggregate("Count", last.name))
    else:
        whole = count
    assign: list[tuple[str, s.Expr]] = [("k", whole)]
    for number in range(draw.integer(1, 3)):
        atom = draw.pick(atoms)
        assign.append((f"a{number}", _aggregate(builder, atom.name, atom.type)))
    if "location" in group_by:
        assign.append(("location", s.Ref("group", "location")))
    if draw.chance(15):
        assign.append(("w", s.Ref("window", draw.pick(("start", "end")))))
    if draw.chance(45):
        assign += _times_of_window(builder, atoms)
    return tuple(assign)


_LAST_MS = s.Arith("-", s.Ref("window", "end"), s.Duration(1))


def _times_of_window(builder: Builder, atoms: Sequence[s.Atom]) -> s.Assignments:
    """When a window's event happens: times of its events, of the window, or of both."""
    draw = builder.draw
    name = draw.pick(atoms).name
    early, late = s.Aggregate("Min", name, "start"), s.Aggregate("Max", name, "timestamp")
    begins = s.Ref("window", "start")
    ways: tuple[s.Assignments, ...] = (
        (("timestamp", s.Aggregate(draw.pick(("Max", "Min")), name, "timestamp")),),
        (("timestamp", s.Ref(None, draw.pick(("start", "end")))),),
        (("timestamp", s.Ref("window", "start")),),
        (("start", begins),),
        (("start", begins), ("end", _LAST_MS)),
        (("start", begins), ("end", late)),
        (("start", early), ("end", s.Arith("+", late, s.Duration(draw.pick((0, 500, 900)))))),
        (("start", begins), ("end", s.Arith("-", s.Ref("window", "end"), s.Duration(500)))),
        (("start", s.Arith("+", begins, s.Duration(draw.pick((0, 1, 900))))),),
    )
    return draw.pick(ways)


def _operands(
    builder: Builder, outer: int, types: Sequence[str] = (), distinct: int = 0
) -> s.Pattern:
    """One to three atoms of different types, `outer` and `distinct` at the given shares."""
    draw = builder.draw
    atoms = builder.atoms(max(1, len(types)), 3, 20, types)
    seen: list[s.Atom] = []
    for atom in atoms:
        if atom.type not in {one.type for one in seen}:
            seen.append(atom)
    single: list[s.Atom | s.Distinct] = [
        s.Distinct(atom, draw.pick(_DISTINCT_KEYS)) if draw.chance(distinct) else atom
        for atom in seen
    ]
    marked: list[s.Pattern] = [s.Outer(one) if draw.chance(outer) else one for one in single]
    pattern = marked[0]
    for operand in marked[1:]:
        pattern = s.Pair("and", pattern, operand)
    return pattern


def windowed(
    builder: Builder,
    window: s.Window,
    outer: int = 15,
    types: Sequence[str] = (),
    distinct: int = 0,
) -> Built:
    """A definition over a window, and what subscribes to it."""
    draw = builder.draw
    pattern = _operands(builder, outer, types, distinct)
    group_by = draw.pick((("location",), ("source",), ()) if types else _KEYS)
    assign = _window_assign(builder, s.atoms_of(pattern), group_by)
    made = s.Definition("W", (s.Case(pattern, None, assign, (), group_by),), window)
    return (made,), _over_window(builder, made)


def _over_window(builder: Builder, made: s.Definition) -> s.Case:
    """The window's events alone, or with a partner under the context that is asked for."""
    draw = builder.draw
    builder.whole[made.name] = ("k",)
    if draw.chance(60 if builder.context == "unrestricted" else 30):
        (atom,) = builder.atoms(1, 1, 20, (made.name,))
        return replace(builder.case(atom), assign=builder.values((atom,)))
    partner = made.name if draw.chance(40) else draw.pick(builder.types)
    return _subscribing(builder, builder.atoms(2, 2, 10, (made.name, partner)))


def _every(builder: Builder) -> Built:
    return windowed(builder, s.Every(builder.draw.pick((4, 5, 10)) * 1000))


def _every_range(builder: Builder) -> Built:
    every = builder.draw.pick((4, 5, 10)) * 1000
    return windowed(builder, s.Every(every, builder.draw.pick((3, 5, 8, 10, 20)) * 1000))


def _range(builder: Builder) -> Built:
    return windowed(builder, s.Trailing(builder.draw.integer(1, 8) * 1000))


def _session(builder: Builder) -> Built:
    return windowed(builder, s.Session(builder.draw.integer(1, 4) * 1000))


def _session_max(builder: Builder) -> Built:
    gap_ms, more_ms = builder.draw.integer(1, 4) * 1000, builder.draw.integer(0, 6) * 1000
    return windowed(builder, s.Session(gap_ms, gap_ms + more_ms))


def _days(builder: Builder) -> Built:
    zone = builder.draw.pick(("Europe/Zurich", "America/New_York", "Asia/Kolkata"))
    return windowed(builder, s.Days(builder.draw.pick((1, 1, 2, 3)), zone))


def _distinct(builder: Builder) -> Built:
    return windowed(builder, _any_window(builder), distinct=70)


def _quantiles(builder: Builder) -> Built:
    """Median and Quantile of any numbers, with shares that are no sums of halves."""
    draw = builder.draw
    atom = s.Atom(draw.pick(builder.types))
    group_by = draw.pick(_KEYS)
    assign: s.Assignments = (("k", s.Aggregate("Count", atom.name)),)
    for number, share in enumerate((None, draw.pick((0.1, 0.3, 0.9)), draw.pick((0.05, 0.99)))):
        function = "Median" if share is None else "Quantile"
        aggregate = s.Aggregate(function, atom.name, draw.pick(_NUMBERS), share)
        assign += ((f"q{number}", aggregate),)
    made = s.Definition("W", (s.Case(atom, None, assign, (), group_by),), _any_window(builder))
    return (made,), _over_window(builder, made)


def _any_window(builder: Builder) -> s.Window:
    windows: tuple[s.Window, ...] = (
        s.Every(5000),
        s.Every(5000, 10_000),
        s.Trailing(5000),
    )
    return builder.draw.pick(windows)


def _outer(builder: Builder) -> Built:
    return windowed(builder, _any_window(builder), outer=60)


def _window_over_definition(builder: Builder) -> Built:
    first = definition(builder, "X", cases=builder.draw.integer(1, 2))
    (made,), case = windowed(builder, _any_window(builder), types=("X",))
    return (first, made), case


def _pre_post(builder: Builder) -> Built:
    """Partial results by one key, combined by the same or a coarser one."""
    draw = builder.draw
    pattern = _operands(builder, 30)
    first, last = s.atoms_of(pattern)[0], s.atoms_of(pattern)[-1]
    pre_keys = draw.pick((("location",), ("location", "tag"), ("location", "source")))
    told: tuple[tuple[str, s.Expr], ...] = (
        ("location", s.Ref("group", "location")),
        ("k", s.Arith("-", s.Aggregate("Count", first.name), s.Aggregate("Count", last.name))),
        ("t", s.Aggregate("Sum", last.name, draw.pick(_NUMBERS))),
        ("h", s.Aggregate("Max", first.name, "n")),
    )
    combined: tuple[tuple[str, s.Expr], ...] = (
        ("k", s.Aggregate("Sum", None, "k")),
        ("t", s.Aggregate("Sum", None, "t")),
        ("h", s.Aggregate("Max", None, "h")),
    )
    if draw.chance(40):
        early = draw.pick((s.Aggregate("Max", last.name, "timestamp"), s.Ref("window", "start")))
        told += (("timestamp", early),)
        combined += (("timestamp", s.Aggregate("Max", None, "timestamp")),)
    elif draw.chance(40):
        combined += (("start", s.Ref("window", "start")), ("end", _LAST_MS))
    post_keys: tuple[str, ...] = ()
    if draw.chance(85):
        post_keys = ("location",)
        combined += (("location", s.Ref("group", "location")),)
    window = draw.pick((s.Every(5000), s.Every(10_000), s.Every(5000, 10_000)))
    pre = s.Case(pattern, None, told, (), pre_keys)
    made = s.Definition("W", (pre,), window, s.Post(combined, post_keys))
    return (made,), _over_window(builder, made)


def _filtered_window(builder: Builder) -> Built:
    """Only the windows whose count passes."""
    definitions, _ = _every(builder)
    atom = s.Atom("W", (compared(own("k"), ">=", s.Lit(builder.draw.integer(1, 2))),))
    return definitions, replace(builder.case(atom), assign=builder.values((atom,)))


WINDOW_PARTS: dict[str, Callable[[Builder], Built]] = {
    "every": _every,
    "every-range": _every_range,
    "range": _range,
    "outer": _outer,
    "pre-post": _pre_post,
    "filtered-window": _filtered_window,
    "window-over-definition": _window_over_definition,
    "session": _session,
    "session-max": _session_max,
    "days": _days,
    "distinct-in-window": _distinct,
    "quantiles": _quantiles,
}
