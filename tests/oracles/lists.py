"""Lists: `P+` and `P*` in a chain, `P{n}`, and `P+[a..b]`.

Owns: the reference meaning of what fills a list.
Must not know: how the other places of a chain are chosen.
Invariant: a list is made of occurrences of its operand that each fit alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from tests.oracles import spec as s
from tests.oracles.events import Occurrence, joined
from tests.oracles.relations import RELATIONS, in_bound, is_within
from tests.oracles.settings import Setting, names_of
from tests.oracles.verdicts import weakest

Evaluate = Callable[[s.Pattern, Setting], list[Occurrence]]


def as_list(
    members: Sequence[Occurrence], names: tuple[str, ...], beside: Occurrence | None = None
) -> Occurrence:
    """Several occurrences as one whose every name is a list, after what stands beside them."""
    filled = tuple(tuple(event for one in members for event in one.bound(name)) for name in names)
    certainty = weakest(one.certainty for one in members)
    if beside is None:
        return Occurrence(names, filled, frozenset(names), certainty)
    whole = Occurrence(
        beside.names + names,
        beside.places + filled,
        beside.lists | frozenset(names),
        beside.certainty,
    )
    return whole.weakened(certainty)


# --- P{n} and P+[a..b] ------------------------------------------------------------------------


def follows_on(p: Occurrence, q: Occurrence) -> bool:
    """Whether q starts at or after the end of p and is made of other events."""
    return q.start >= p.end and not p.shares_event_with(q)


def times(pattern: s.Times, found: Sequence[Occurrence], *, disjoint: bool) -> list[Occurrence]:
    """Runs of so many successive occurrences; sliding, or each occurrence in one run at most."""
    names, made = names_of(pattern), []
    at = 0
    while at + pattern.count <= len(found):
        run = found[at : at + pattern.count]
        stands = all(follows_on(p, q) for p, q in pairwise(run))
        if stands:
            made.append(as_list(run, names))
        at += pattern.count if stands and disjoint else 1
    return made


def longest_runs(pattern: s.Run, found: Sequence[Occurrence]) -> list[Occurrence]:
    """The sequence cut wherever the gap to the next is out of the bound."""
    runs: list[list[Occurrence]] = []
    for one in found:
        last = runs[-1][-1] if runs else None
        if (
            last is not None
            and is_within(one.start - last.end, pattern.bound)
            and not last.shares_event_with(one)
        ):
            runs[-1].append(one)
        else:
            runs.append([one])
    return [as_list(run, names_of(pattern)) for run in runs]


# --- P+ and P* in a chain ---------------------------------------------------------------------


def flattened(pair: s.Pair) -> tuple[list[s.Pattern], list[s.Pair]]:
    """The elements of a `then` chain and the links between them."""
    if isinstance(pair.left, s.Pair) and pair.left.op == "then":
        elements, links = flattened(pair.left)
        return [*elements, pair.right], [*links, pair]
    return [pair.left, pair.right], [pair]


def has_list(pair: s.Pair) -> bool:
    """Whether a chain has a list among its elements."""
    return pair.op == "then" and any(isinstance(one, s.Listed) for one in flattened(pair)[0])


def without_lists(pair: s.Pair) -> s.Pattern:
    """The chain in which a plain `then` stands for each list, with the context of the link after
    it; a list at either end is left away with its link.
    """
    elements, links = flattened(pair)
    plain: s.Pattern | None = None
    after_list = False
    for element, link in zip(elements, [None, *links], strict=True):
        if isinstance(element, s.Listed):
            after_list = True
        elif plain is None:
            plain = element
        else:
            assert link is not None
            if after_list:
                plain = s.Pair("then", plain, element, context=link.context)
            else:
                plain = replace(link, left=plain)
        if not isinstance(element, s.Listed):
            after_list = False
    if plain is None:
        raise ValueError("a chain of lists alone has no place to count from")
    return plain


def with_lists(
    pair: s.Pair, plain: Iterable[Occurrence], setting: Setting, evaluate: Evaluate
) -> list[Occurrence]:
    """The occurrences of the chain without lists, each with its lists filled from left to right."""
    elements, links = flattened(pair)
    for left, link, right in zip(elements, links, elements[1:], strict=False):
        if link.bound and isinstance(left, s.Listed) and isinstance(right, s.Listed):
            raise ValueError("a bound between two lists has no single gap")
    members = {
        number: evaluate(element.operand, setting.for_members())
        for number, element in enumerate(elements)
        if isinstance(element, s.Listed)
    }
    made = []
    for one in plain:
        whole: Occurrence | None = one
        for number, some in members.items():
            if whole is not None:
                whole = _with_list(number, (elements, links), (whole, some), setting)
        if whole is not None:
            made.append(whole.part(names_of(pair)))
    return made


def _with_list(
    number: int,
    chain: tuple[list[s.Pattern], list[s.Pair]],
    found: tuple[Occurrence, Sequence[Occurrence]],
    setting: Setting,
) -> Occurrence | None:
    """The occurrence with one more list; None where a list that must not be empty is."""
    elements, links = chain
    one, members = found
    element = elements[number]
    assert isinstance(element, s.Listed)
    left = _neighbour(one, elements[:number][::-1])
    right = _neighbour(one, elements[number + 1 :])

    def fits(member: Occurrence) -> bool:
        if one.shares_event_with(member):
            return False
        if left is not None and not _linked(links[number - 1], left, member):
            return False
        if right is not None and not _linked(links[number], member, right):
            return False
        return bool(setting.for_members().judged(joined((one, member)).exact()))

    listed = [member for member in members if fits(member)]
    if not listed and not element.may_be_empty:
        return None
    return as_list(listed, names_of(element), one)


def _neighbour(one: Occurrence, elements: Sequence[s.Pattern]) -> Occurrence | None:
    """What fills the nearest place that is no list."""
    for element in elements:
        if not isinstance(element, s.Listed):
            return one.part(names_of(element))
    return None


def _linked(link: s.Pair, p: Occurrence, q: Occurrence) -> bool:
    if link.next:
        raise ValueError("`next` beside a list would leave it at most one member")
    return RELATIONS["then"](p, q) and in_bound(link, p, q)
