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
    "at-most": at_most,
    "ending": ending,
    "actor-of-group": actor_of_group,
}
