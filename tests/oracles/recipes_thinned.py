"""Parts of generated specifications that thin what is reported.

Owns: how `one`, `collect`, `at most`, `for`, `until` and actors of groups are drawn.
Must not know: which context is under test; the builder sets it.
Invariant: times are such that something is left out and something is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.oracles import spec as s
from tests.oracles.recipes import Builder, single_atoms
from tests.oracles.recipes_patterns import Built, chosen, listed

_ACTOR_KEYS = ("location", "source", "tag")


def _pattern(builder: Builder) -> s.Pattern:
    draw = builder.draw
    pattern = builder.tree(builder.atoms(2, 3, conditions=10), ("then", "then", "and", "or"))
    if draw.chance(30):
        return s.Suffixed(pattern, (s.Within(draw.integer(3, 8) * 1000),))
    return pattern


def one(builder: Builder) -> Built:
    """`detect[one]`, at times with consumption."""
    draw = builder.draw
    pattern = _pattern(builder)
    atoms = single_atoms(pattern)
    group_by = ("source",) if draw.chance(20) else ()
    consuming = (draw.pick(atoms).name,) if draw.chance(40) else ()
    return (), replace(
        builder.case(pattern),
        thin="one",
        group_by=group_by,
        consuming=consuming,
        assign=builder.values(atoms, group_by),
    )


def collect(builder: Builder) -> Built:
    """`detect[collect]`; at times of a list, or of what `first` and `last` choose."""
    if builder.draw.chance(35):
        definitions, case = builder.draw.pick((listed, chosen))(builder)
        return definitions, replace(case, thin="collect", consuming=(), assign=())
    group_by = ("source",) if builder.draw.chance(20) else ()
    case = builder.case(_pattern(builder))
    return (), replace(case, thin="collect", group_by=group_by)


def _decided_later(builder: Builder) -> s.Pattern:
    """What is known only after the event that completes it: `last` and `first`, `absent`, both."""
    draw = builder.draw
    one, two, three = builder.atoms(3, 3, conditions=10)
    ms = draw.integer(1, 4) * 1000
    silence = s.Absent(three, ms)
    bound = s.Bound(None, ms)
    patterns: tuple[s.Pattern, ...] = (
        s.Pair("then", one, s.Last(two)),
        s.Pair("and", s.Last(one), two),
        s.Pair("then", s.Pair("then", one, two), s.Last(three)),
        s.Pair("and", s.Pair("then", one, s.First(two)), s.Last(three)),
        s.Pair("and", s.Pair("then", one, s.Last(two)), silence),
        s.Pair("and", s.First(one), silence),
    )
    open_patterns: tuple[s.Pattern, ...] = (
        s.Pair("and", one, silence),
        s.Pair("and", silence, s.Pair("and", one, two)),
        s.Pair("then", s.Pair("then", one, two), silence),
        s.Pair("then", one, silence, bound),
        s.Pair("and", one, silence, bound),
        s.Pair("then", silence, s.Or(one, two)),
        s.Or(one, s.Pair("and", two, silence)),
        s.Pair("and", s.Suffixed(s.Pair("and", one, silence), (s.Within(ms + 2000),)), two),
        s.Pair("and", s.First(s.Pair("then", one, two)), silence),
    )
    if draw.chance(40):
        return draw.pick(open_patterns)
    return s.Suffixed(draw.pick(patterns), (s.Within(draw.integer(3, 8) * 1000),))


def one_decided_later(builder: Builder) -> Built:
    """`detect[one]` of such; at times with consumption, or with `at most`."""
    draw = builder.draw
    pattern = _decided_later(builder)
    consuming = (draw.pick(single_atoms(pattern)).name,) if draw.chance(25) else ()
    return (), replace(_grouped_or_few(builder, pattern), thin="one", consuming=consuming)


def collect_decided_later(builder: Builder) -> Built:
    """`detect[collect]` of such; at times with `at most`."""
    return (), replace(_grouped_or_few(builder, _decided_later(builder)), thin="collect")


def _grouped_or_few(builder: Builder, pattern: s.Pattern) -> s.Case:
    draw = builder.draw
    if draw.chance(15):
        builder.subscription["at_most"] = (draw.integer(1, 2), draw.integer(1, 6) * 1000)
    return replace(builder.case(pattern), group_by=("source",) if draw.chance(20) else ())


def at_most(builder: Builder) -> Built:
    """`at most N per T`, at times of a group, at times with consumption."""
    draw = builder.draw
    pattern = builder.tree(builder.atoms(1, 2, conditions=10), ("then", "and", "or"))
    atoms = single_atoms(pattern)
    group_by = draw.pick(((), ("source",), ("tag",)))
    consuming = (draw.pick(atoms).name,) if draw.chance(20) else ()
    builder.subscription["at_most"] = (draw.integer(1, 2), draw.integer(1, 6) * 1000)
    case = builder.case(pattern)
    told = builder.values(atoms, group_by)
    return (), replace(case, group_by=group_by, consuming=consuming, assign=told)


def ending(builder: Builder) -> Built:
    """`for T` from the beginning, or `until` a time near those of the traces."""
    draw = builder.draw
    if draw.chance(60):
        builder.subscription["for_ms"] = draw.integer(3, 12) * 1000
    else:
        builder.subscription["until"] = draw.pick(
            ("1970-01-01T00:00:06Z", "2023-11-14T22:13:26Z", "2023-11-14T23:13:28+01:00")
        )
    pattern = _pattern(builder)
    consuming = (draw.pick(single_atoms(pattern)).name,) if draw.chance(15) else ()
    return (), replace(builder.case(pattern), consuming=consuming)


def actor_of_group(builder: Builder) -> Built:
    """`to out of group.key`."""
    key = builder.draw.pick(_ACTOR_KEYS)
    builder.subscription["actor_of"] = key
    pattern = builder.tree(builder.atoms(1, 2, conditions=10), ("then", "and", "or"))
    return (), replace(builder.case(pattern), group_by=(key,))


THINNED_PARTS: dict[str, Callable[[Builder], Built]] = {
    "one": one,
    "collect": collect,
    "one-decided-later": one_decided_later,
    "collect-decided-later": collect_decided_later,
    "at-most": at_most,
    "ending": ending,
    "actor-of-group": actor_of_group,
}
