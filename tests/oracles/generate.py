"""Generated cases: a specification of one construct under one context, and a trace for it.

Owns: the table of constructs, and how a whole case follows from a seed or from hypothesis.
Must not know: any matcher. Invariant: one seed, construct and context give one case for ever, under
every hash seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, get_args

from hypothesis import strategies as st

from tests.oracles import spec as s
from tests.oracles.draw import Draw, HypothesisDraw, SeededDraw
from tests.oracles.recipes import Builder, Op
from tests.oracles.recipes_choices import CHOICE_PARTS
from tests.oracles.recipes_defined import CASE_PARTS, WINDOW_PARTS, Built, definition, tied
from tests.oracles.recipes_mixed import defined, mixed
from tests.oracles.recipes_open import open_definition
from tests.oracles.recipes_patterns import PATTERN_PARTS
from tests.oracles.recipes_thinned import THINNED_PARTS
from tests.oracles.recipes_uncertain import UNCERTAIN_PARTS
from tests.oracles.recipes_values import TABLE_PARTS, VALUE_PARTS
from tests.oracles.traces import TYPES, Profile, trace

GeneratedCase: TypeAlias = tuple[s.Spec, list[dict[str, Any]]]
CONTEXTS: tuple[s.Context, ...] = ("unrestricted", "recent")
CONTEXTS_WHOLE: tuple[s.Context, ...] = get_args(s.Context)


def random_case(seed: int, construct: str, context: s.Context) -> GeneratedCase:
    """The case of a seed.

    Args:
        seed: any integer.
        construct: one of `CONSTRUCTS_WHOLE`.
        context: one of `CONTEXTS_WHOLE`.

    Returns:
        A specification and its trace, events as JSON objects in no order.
    """
    return _case(SeededDraw(f"{construct}/{context}/{seed}"), construct, context)


def cases(construct: str, context: s.Context) -> st.SearchStrategy[GeneratedCase]:
    """Hypothesis's cases of a construct under a context."""
    return st.composite(lambda draw: _case(HypothesisDraw(draw), construct, context))()


def specs(construct: str, context: s.Context) -> st.SearchStrategy[s.Spec]:
    """Hypothesis's specifications of a construct under a context."""
    return st.composite(lambda draw: _spec(HypothesisDraw(draw), construct, context))()


def traces(spec: s.Spec, profile: Profile | None = None) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Hypothesis's traces of the primitive types that a specification names."""
    used, told = primitive_types(spec), profile or Profile()
    return st.composite(lambda draw: trace(HypothesisDraw(draw), used, told))()


def primitive_types(spec: s.Spec) -> tuple[str, ...]:
    """The primitive types that some `detect` of the specification names."""
    detects = [case for one in spec.definitions for case in one.cases]
    detects += [one.case for one in spec.subscriptions]
    named = {atom.type for case in detects for atom in s.atoms_of(case.pattern)}
    return tuple(one.name for one in spec.types if one.name in named)


# --- one case ---------------------------------------------------------------------------------


_USUAL = Profile()


@dataclass(frozen=True)
class Construct:
    """How specifications of a construct are drawn and what their traces are like."""

    build: Callable[[Builder], Built]
    profile: Profile = _USUAL


def _case(draw: Draw, construct: str, context: s.Context) -> GeneratedCase:
    spec = _spec(draw, construct, context)
    profile = CONSTRUCTS_WHOLE[construct].profile
    return spec, trace(draw, primitive_types(spec), profile)


def _spec(draw: Draw, construct: str, context: s.Context) -> s.Spec:
    builder = Builder(draw, context)
    definitions, case = CONSTRUCTS_WHOLE[construct].build(builder)
    seq = draw.pick((1, 1, 3))
    subscriptions = [s.Subscription("S1", case, seq=seq, **builder.subscription)]
    if draw.chance(15):
        other = s.Case(s.Atom(s.atoms_of(case.pattern)[0].type))
        subscriptions.insert(draw.integer(0, 1), s.Subscription("S2", other))
    return s.Spec(
        TYPES,
        tuple(subscriptions),
        definitions,
        tuple(builder.sets.items()),
        tuple(builder.regions.items()),
        tuple(builder.tables),
    )


# --- constructs without definitions -----------------------------------------------------------


def _plain(builder: Builder, pattern: s.Pattern, group_by: tuple[str, ...] = ()) -> s.Case:
    case = builder.case(pattern)
    return replace(case, assign=builder.values(s.atoms_of(pattern), group_by), group_by=group_by)


def _tree(*ops: Op, low: int = 2, high: int = 3, bounds: int = 0) -> Callable[[Builder], Built]:
    def build(builder: Builder) -> Built:
        pattern = builder.tree(builder.atoms(low, high), ops, bounds=bounds)
        if builder.draw.chance(20):
            pattern = s.Suffixed(pattern, (s.Within(builder.draw.integer(4, 10) * 1000),))
        return (), _plain(builder, pattern)

    return build


RELATIONS_OF_INTERVALS: tuple[s.Relation, ...] = (
    *("before", "meets", "overlaps", "during", "contains", "starts", "finishes", "equals"),
    *("concat", "parallel"),
)


def _related(op: s.Relation) -> Callable[[Builder], Built]:
    """Two operands in the relation; at times one of them is a composite."""

    def build(builder: Builder) -> Built:
        atoms: list[s.Pattern] = [*builder.atoms(2, 3, conditions=10)]
        if len(atoms) == 3:
            at = builder.draw.integer(0, 1)
            inner = builder.tree(atoms[at : at + 2], ("and", "then", "or", "or"))
            atoms[at : at + 2] = [inner]
        return (), _plain(builder, builder.tree(atoms, (op,), bounds=30))

    return build


def _atom(builder: Builder) -> Built:
    (atom,) = builder.atoms(1, 1, conditions=100)
    more = (builder.condition(atom.type),) if builder.draw.chance(40) else ()
    return (), _plain(builder, replace(atom, conditions=atom.conditions + more))


def _suffixed(
    suffix: Callable[[Builder, tuple[s.Atom, ...]], s.Suffix],
    *ops: Op,
    conditions: int = 15,
    low: int = 2,
) -> Callable[[Builder], Built]:
    """A tree with the suffix under test around it, or around a part of it as well or instead."""

    def build(builder: Builder) -> Built:
        draw = builder.draw
        atoms = builder.atoms(low, 3, conditions)
        if len(atoms) == 3 and draw.chance(30):
            inner: s.Pattern = builder.tree(atoms[:2], ops)
            inner = s.Suffixed(inner, (suffix(builder, s.atoms_of(inner)),))
            pattern: s.Pattern = s.Pair(draw.pick(("and", "then")), inner, atoms[2])
            if draw.chance(30):
                pattern = s.Suffixed(pattern, (suffix(builder, s.atoms_of(pattern)),))
        else:
            pattern = builder.tree(atoms, ops)
            pattern = s.Suffixed(pattern, (suffix(builder, s.atoms_of(pattern)),))
        return (), _plain(builder, pattern)

    return build


def _within(builder: Builder, _: tuple[s.Atom, ...]) -> s.Suffix:
    return s.Within(builder.draw.integer(1, 6) * 1000)


def _within_from(builder: Builder, atoms: tuple[s.Atom, ...]) -> s.Suffix:
    anchor = atoms[0] if builder.draw.chance(60) else builder.draw.pick(atoms)
    return s.Within(builder.draw.integer(2, 7) * 1000, anchor.name)


def _where(builder: Builder, atoms: tuple[s.Atom, ...]) -> s.Suffix:
    return builder.where(atoms, 3)


def _in(builder: Builder, _: tuple[s.Atom, ...]) -> s.Suffix:
    return s.In(builder.area() if builder.draw.chance(70) else builder.wing())


def _spread_globe(builder: Builder, _: tuple[s.Atom, ...]) -> s.Suffix:
    return s.Spread(builder.draw.pick((5_000, 12_000, 15_000, 18_000, 20_000)))


def _spread_plane(builder: Builder, _: tuple[s.Atom, ...]) -> s.Suffix:
    return s.Spread(builder.draw.pick((10, 15, 20, 25)))


def _last(builder: Builder) -> Built:
    """`last` where something closes it: a partner after it, `within`, or a bound."""
    draw = builder.draw
    first, second, third = builder.atoms(3, 3, conditions=15)
    ms = draw.integer(3, 8) * 1000
    within, of_first = (s.Within(ms),), (s.Within(ms, first.name),)
    pairs: tuple[s.Pattern, ...] = (
        s.Suffixed(s.Pair("and", s.Last(first), second), of_first),
        s.Suffixed(s.Pair("and", s.Last(first), second), within),
        s.Pair("then", s.Last(first), second),
        s.Suffixed(s.Pair("then", first, s.Last(second)), within),
        s.Pair("then", first, s.Last(second), s.Bound(None, ms)),
    )
    triples: tuple[s.Pattern, ...] = (
        s.Pair("then", s.Pair("then", first, s.Last(second)), third),
        s.Suffixed(s.Pair("and", s.Pair("and", s.Last(first), second), third), of_first),
        s.Suffixed(s.Pair("then", s.Last(s.Pair("then", first, second)), third), within),
    )
    pattern = draw.pick(triples if draw.chance(40) else pairs)
    if draw.chance(20):
        inner = pattern if isinstance(pattern, s.Suffixed) else s.Suffixed(pattern, ())
        where = builder.where(s.atoms_of(pattern), 1)
        pattern = s.Suffixed(inner.operand, (*inner.suffixes, where))
    case = _plain(builder, pattern)
    if draw.chance(20):
        case = replace(case, consuming=(draw.pick(s.atoms_of(pattern)).name,))
    return (), case


def _grouped(builder: Builder) -> Built:
    draw = builder.draw
    keys = draw.pick((("location",), ("source",), ("tag",), ("n",), ("source", "tag"), ("flag",)))
    pattern = builder.tree(builder.atoms(2, 2), ("and", "then", "or"))
    if draw.chance(30):
        told = s.Ref("group", keys[0])
        named = s.atoms_of(pattern)[0].name
        same = s.Compare(("=",), (told, s.Ref(named, keys[0])))
        pattern = s.Suffixed(pattern, (s.Where(same),))
    return (), _plain(builder, pattern, keys)


def _consuming(builder: Builder) -> Built:
    draw = builder.draw
    atoms = builder.atoms(2, 3, conditions=10)
    pattern = builder.tree(atoms, ("and", "then", "or"))
    if draw.chance(40):
        pattern = s.Suffixed(pattern, (_within(builder, ()),))
    chosen = [atom.name for atom in atoms if draw.chance(40)] or [draw.pick(atoms).name]
    group_by = ("source",) if draw.chance(15) else ()
    return (), replace(_plain(builder, pattern, group_by), consuming=tuple(chosen))


def _mixed(builder: Builder) -> Built:
    """A bit of everything in one `detect`, at times over a definition."""
    draw = builder.draw
    definitions: tuple[s.Definition, ...] = ()
    types: tuple[str, ...] = ()
    if draw.chance(40):
        definitions = (definition(builder, "X", cases=draw.integer(1, 2)),)
        types = ("X",)
    atoms = builder.atoms(2, 4, conditions=10, types=types)
    pattern = builder.tree(atoms, ("and", "then", "or"), bounds=10)
    makers = (_within, _within_from, _where, _in, _spread_globe)
    chances = (40, 10, 40, 5, 5)
    suffixes = tuple(
        make(builder, s.atoms_of(pattern))
        for make, percent in zip(makers, chances, strict=True)
        if draw.chance(percent) and not (types and make in (_in, _spread_globe))
    )
    group_by = ("source",) if not types and draw.chance(15) else ()
    case = _plain(builder, s.Suffixed(pattern, suffixes) if suffixes else pattern, group_by)
    if draw.chance(20):
        case = replace(case, consuming=(draw.pick(atoms).name,))
    return definitions, case


_LONG = Profile(durative=55, span_s=8)
_CROWDED = Profile(events_min=9, events_max=14, durative=60, span_s=5)
_GLOBE = Profile(positions="globe", null=5)
_PLANE = Profile(positions="plane", null=5)

_WINDOWED = Profile(events_min=7, events_max=14, span_s=24)
# From the Friday before, in steps of two hours, so that the clocks change in between.
_CLOCK_CHANGES_MS = (1_698_364_800_000, 1_711_670_400_000, 1_698_969_600_000)
_WINDOW_PROFILES: dict[str, Profile] = {
    "session-max": replace(_WINDOWED, durative=0),
    "days": replace(_WINDOWED, span_s=48, step_ms=7_200_000, epochs_ms=_CLOCK_CHANGES_MS),
    "distinct-in-window": replace(_WINDOWED, span_s=12),
}
_MORE = Profile(events_min=9, events_max=14)
_PATTERN_PROFILES: dict[str, Profile] = {
    "ending": Profile(span_s=10),
    "distinct": replace(_MORE, durative=0, span_s=8),
    "nth": _MORE,
    "list": replace(_MORE, events_min=11),
    "list-of-pairs": replace(_MORE, events_min=10),
    "times": replace(_MORE, durative=5),
    "run": replace(_MORE, durative=5),
    "last-beside-or": _MORE,
    "times-beside": replace(_MORE, durative=5),
    "run-beside": replace(_MORE, durative=5),
}

_VALUE_PROFILES: dict[str, Profile] = {
    "regions": Profile(positions="globe", null=5),
    "assigned-interval": Profile(durative=30, span_s=8),
}
_UNCERTAIN = Profile(uncertain=50)
_UNCERTAIN_PROFILES: dict[str, Profile] = {
    "uncertain-relations": replace(_CROWDED, uncertain=40),
    "uncertain-list": replace(_MORE, events_min=11, uncertain=40),
    "uncertain-window": replace(_WINDOWED, uncertain=40),
}

CONSTRUCTS: dict[str, Construct] = {
    "atom": Construct(_atom, Profile(durative=20)),
    "or": Construct(_tree("or", "or", "and", "then")),
    "and": Construct(_tree("and")),
    "and-bound": Construct(_tree("and", bounds=80)),
    "then": Construct(_tree("then", high=4)),
    "then-bound": Construct(_tree("then", bounds=80)),
    "durative": Construct(_tree("then", "then", "and", bounds=15), _LONG),
    "within": Construct(_suffixed(_within, "and", "then")),
    "within-from": Construct(_suffixed(_within_from, "and", "and", "then")),
    "where": Construct(_suffixed(_where, "and", "then", "or", low=1)),
    "in": Construct(_suffixed(_in, "and", "then", "or", low=1), _GLOBE),
    "spread-globe": Construct(_suffixed(_spread_globe, "and", "then"), _GLOBE),
    "spread-plane": Construct(_suffixed(_spread_plane, "and", "then"), _PLANE),
    "spread-mixed": Construct(_suffixed(_spread_plane, "and", "or", "then", low=1)),
    **{name: Construct(_related(name), _CROWDED) for name in RELATIONS_OF_INTERVALS},
    "relations": Construct(_tree(*RELATIONS_OF_INTERVALS, "and", "or", bounds=20), _CROWDED),
    "last": Construct(_last),
    "group-by": Construct(_grouped, Profile(events_min=9, events_max=15)),
    "consuming": Construct(_consuming),
    "mixed": Construct(_mixed),
    **{name: Construct(part) for name, part in CASE_PARTS.items()},
    **{
        name: Construct(part, _VALUE_PROFILES.get(name, _USUAL))
        for name, part in VALUE_PARTS.items()
    },
    **{
        name: Construct(part, _WINDOW_PROFILES.get(name, _WINDOWED))
        for name, part in WINDOW_PARTS.items()
    },
}

# What the engine does not run by now is here alone.
CONSTRUCTS_WHOLE: dict[str, Construct] = {
    **CONSTRUCTS,
    **{
        name: Construct(part, _PATTERN_PROFILES.get(name, _USUAL))
        for name, part in (PATTERN_PARTS | CHOICE_PARTS | THINNED_PARTS).items()
    },
    **{
        name: Construct(part, _UNCERTAIN_PROFILES.get(name, _UNCERTAIN))
        for name, part in UNCERTAIN_PARTS.items()
    },
    **{name: Construct(part) for name, part in TABLE_PARTS.items()},
    "definition-whole": Construct(defined, Profile(events_min=9, events_max=13, durative=15)),
    "definition-open": Construct(open_definition, replace(_MORE, durative=10)),
    "mixed-whole": Construct(mixed, Profile(events_min=13, events_max=17, durative=15)),
    "tied-definitions": Construct(tied),
}
