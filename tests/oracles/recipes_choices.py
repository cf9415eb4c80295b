"""Parts of generated specifications: `last` and `first` on one side of an `or`.

Owns: which of these are drawn. Must not know: which context is under test; the builder sets it.
Invariant: every search for the last one is closed, by its side of the `or` or around both.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.oracles import spec as s
from tests.oracles.recipes import Builder
from tests.oracles.recipes_patterns import Built, finished


def beside_others(builder: Builder) -> Built:
    """What is found on the other side has nobody to compete with."""
    draw = builder.draw
    one, two, three, four = builder.atoms(4, 4, conditions=10)
    ms = draw.integer(2, 5) * 1000
    closed, bound = (s.Within(ms),), s.Bound(None, ms)
    anchored = (s.Within(ms, two.name),)
    last, pair = s.Last(one), s.Pair("and", s.Last(one), two)
    patterns: tuple[s.Pattern, ...] = (
        s.Or(s.Suffixed(pair, closed), three),
        s.Or(three, s.Suffixed(pair, anchored)),
        s.Or(three, s.Pair("then", two, last, bound)),
        s.Or(s.Pair("and", last, two, bound), s.Pair("then", s.Last(three), four)),
        s.Suffixed(s.Or(pair, s.Pair("and", three, s.First(four))), closed),
        s.Pair("and", s.Or(s.First(three), s.Pair("then", two, last, bound)), four),
        s.Pair("then", four, s.Or(s.Suffixed(pair, closed), three), bound),
        s.Suffixed(s.Pair("and", last, s.Or(two, s.First(three))), closed),
        s.Pair("then", two, s.Last(s.Pair("then", one, three, bound)), bound),
        s.Suffixed(s.Pair("and", s.Last(s.Pair("and", one, three, bound)), two), closed),
    )
    return finished(builder, draw.pick(patterns))


CHOICE_PARTS: dict[str, Callable[[Builder], Built]] = {"last-beside-or": beside_others}
