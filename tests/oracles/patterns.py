"""Which occurrences a pattern has in a finished trace, by enumeration.

Owns: the reference meaning of atoms and operators; of prefixes; of `last` and `first`.
Must not know: definitions, windows, results; it is given the events of each type.
Invariant: nothing is incremental. Each operator lists all that its operands report, and its context
chooses among what passes every test that can be judged there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tests.oracles import contexts, lists
from tests.oracles import spec as s
from tests.oracles.events import Event, Key, Occurrence, absence, joined
from tests.oracles.expressions import Scope, holds, names_aggregated, names_in
from tests.oracles.relations import (
    RELATIONS,
    bounded,
    comes_after,
    gap_of,
    lies_inside,
    related,
    starts_within,
)
from tests.oracles.settings import (
    JudgedTest,
    Setting,
    condition_holds,
    conjuncts,
    inside,
    lists_of,
    names_of,
)
from tests.oracles.verdicts import Certainty


def occurrences(pattern: s.Pattern, setting: Setting) -> list[Occurrence]:
    """All occurrences of the pattern of a `detect`, in order, each once."""
    restrictions = _restrictions(pattern)
    known = replace(setting, restrictions=restrictions)
    deferred = [
        _deferred(negation, conditions, known)
        for negation, conditions in restrictions.items()
        if not _is_judged_in_place(negation, conditions)
    ]
    found = set(_occurrences(pattern, replace(known, tests=(*setting.tests, *deferred))))
    kept = [one for one in found if _is_chosen(one, found, pattern)]
    return contexts.in_order(kept)


# --- each form --------------------------------------------------------------------------------


def _occurrences(pattern: s.Pattern, setting: Setting) -> list[Occurrence]:
    """What the form reports, in order: its occurrences that pass all that can be judged here."""
    found: list[Occurrence]
    match pattern:
        case s.Atom():
            found = _atom(pattern, setting)
        case s.Or(left, right):
            found = _either(left, right, setting)
        case s.Pair():
            found = _linked(pattern, setting)
        case s.Without():
            found = _without(pattern, setting)
        case s.Suffixed(operand, _):
            found = _occurrences(operand, inside(pattern, setting))
        case s.Listed():
            raise ValueError("a list is an element of a `then` chain")
        case s.Outer():
            raise ValueError("outer stands in windows only")
        case _:
            found = _prefixed(pattern, setting)
    verdicts = [(one, setting.judged(one)) for one in set(found)]
    return contexts.in_order(one.weakened(judged) for one, judged in verdicts if judged)


def _prefixed(pattern: s.Prefixed, setting: Setting) -> list[Occurrence]:
    match pattern:
        case s.Absent():
            return _absent(pattern, setting)
        case s.Times(operand, _):
            disjoint = setting.context in ("first", "chronicle")
            found = _occurrences(operand, setting.for_members())
            return lists.times(pattern, found, disjoint=disjoint)
        case s.Run(operand, _):
            return lists.longest_runs(pattern, _occurrences(operand, setting.for_members()))
        case s.Nth(k, _):
            return _counted(pattern, setting)[k - 1 : k]
        case s.Distinct():
            return _distinct(pattern, setting)
    return _occurrences(pattern.operand, setting)  # `last`, `first`: chosen over the whole pattern


def matches(event: Event, atom: s.Atom, scope: Scope) -> bool:
    """Whether one event meets an atom's conditions; a bare name is the event's own."""
    own = replace(scope, bare=event.value, events={atom.name: (event,)})
    return event.type == atom.type and all(holds(one, own) for one in atom.conditions)


def _atom(atom: s.Atom, setting: Setting) -> list[Occurrence]:
    events = setting.candidates[atom.type]
    met = [event for event in events if matches(event, atom, setting.scope)]
    return [Occurrence((atom.name,), ((event,),), certainty=event.certainty) for event in met]


def _either(left: s.Pattern, right: s.Pattern, setting: Setting) -> list[Occurrence]:
    names, listed = names_of(left) + names_of(right), lists_of(left) | lists_of(right)
    none_left, none_right = ((),) * len(names_of(left)), ((),) * len(names_of(right))
    return [
        Occurrence(names, one.places + none_right, listed, one.certainty)
        for one in _occurrences(left, setting)
    ] + [
        Occurrence(names, none_left + one.places, listed, one.certainty)
        for one in _occurrences(right, setting)
    ]


# --- links ------------------------------------------------------------------------------------


def _linked(pair: s.Pair, setting: Setting) -> list[Occurrence]:
    """What the operator's context chooses among all that may stand."""
    if lists.has_list(pair):
        plain = _occurrences(lists.without_lists(pair), setting)
        return lists.with_lists(pair, plain, setting, _occurrences)
    context = pair.context or setting.context
    if context in ("first", "latest"):
        return _chained(pair, setting, context)
    lefts, rights = _occurrences(pair.left, setting), _operand(pair.right, setting)
    join = _join(pair, setting)
    if context == "chronicle":
        before = setting.memory.before.get(pair, ())
        still = _not_past(join, setting)
        return _remembered(pair, contexts.chronicle(lefts, rights, still, before), setting)
    return contexts.PARTNERS[context](lefts, rights, join)


def _not_past(join: contexts.Join, setting: Setting) -> contexts.Join:
    return lambda p, q: None if setting.memory.is_past(joined((p, q))) else join(p, q)


def _remembered(pair: s.Pair, chosen: list[Occurrence], setting: Setting) -> list[Occurrence]:
    """What of all that was chosen is a candidate still: none of its events has been consumed."""
    setting.memory.chosen[pair] = chosen
    return [one for one in chosen if all(e in setting.candidates[e.type] for e in one.events)]


def _operand(pattern: s.Pattern, setting: Setting, op: str = "then") -> list[Occurrence]:
    """What an operator chooses from; of `nth` all that it counts, of the partition's the one."""
    if isinstance(pattern, s.Nth):
        counted = _counted(pattern, setting)
        return counted if op in ("then", "before") else counted[pattern.k - 1 : pattern.k]
    return _occurrences(pattern, setting)


def _counted(pattern: s.Nth, setting: Setting) -> list[Occurrence]:
    """What `nth` counts: no test from further out has been asked yet."""
    return _occurrences(pattern.operand, replace(setting, tests=()))


def _join(pair: s.Pair, setting: Setting) -> contexts.Join:
    def join(p: Occurrence, q: Occurrence) -> Occurrence | None:
        if p.shares_event_with(q):  # an event fills at most one place
            return None
        if pair.next and not _are_next(pair, (p, q), setting):
            return None
        if isinstance(pair.right, s.Nth) and not _is_nth(pair, (p, q), counted):
            return None
        one = joined((p, q))
        judged = related(pair.op, p, q)
        judged = judged and min(judged, bounded(pair, p, q, setting.drift))
        judged = judged and min(judged, setting.judged(one))
        return one.weakened(judged) if judged else None

    counted = _counted(pair.right, setting) if isinstance(pair.right, s.Nth) else []
    return join


def _are_next(pair: s.Pair, found: tuple[Occurrence, Occurrence], setting: Setting) -> bool:
    """Whether no event of any type that the `detect` names lies strictly in the gap."""
    begin, end = gap_of(pair, *found)
    return not any(
        begin < event.start and event.end < end
        for events in setting.everything.values()
        for event in events
    )


def _is_nth(
    pair: s.Pair, found: tuple[Occurrence, Occurrence], counted: Sequence[Occurrence]
) -> bool:
    """In a chain, whether q is the k-th that follows p; elsewhere the k-th of all."""
    assert isinstance(pair.right, s.Nth)
    p, q = found
    in_chain = pair.op in ("then", "before")
    following = [one for one in counted if not in_chain or RELATIONS[pair.op](p, one)]
    return following[pair.right.k - 1 : pair.right.k] == [q]


# --- chains of like links ---------------------------------------------------------------------

ORDERED = ("then", "before", "meets", "overlaps")


def _like_links(pair: s.Pair, default: s.Context) -> tuple[list[s.Pattern], list[s.Pair]]:
    """The operands of the links of one operator and context that lead up to this one."""
    left = pair.left
    if isinstance(left, s.Pair) and not lists.has_list(left):
        kinds = [(one.op, one.context or default) for one in (left, pair)]
        if kinds[0] == kinds[1]:
            operands, links = _like_links(left, default)
            return [*operands, pair.right], [*links, pair]
    return [left, pair.right], [pair]


def _chained(pair: s.Pair, setting: Setting, context: s.Context) -> list[Occurrence]:
    """The runs of a whole chain of like links, one at a time."""
    operands, links = _like_links(pair, setting.context)
    joins = [_join(link, setting) for link in links]

    def fits(slots: contexts.Slots) -> Occurrence | None:
        parts = [one for one in slots if one is not None]
        shared = any(a.shares_event_with(b) for i, a in enumerate(parts) for b in parts[:i])
        judged = setting.judged(joined(parts))
        if shared or not judged:
            return None
        if None not in slots and setting.memory.is_past(joined(parts)):
            return None
        whole = slots[0]
        for join, right in zip(joins, slots[1:], strict=True):
            if whole is None or right is None:
                break
            whole = join(whole, right)
            if whole is None:
                return None
        return whole if whole and None not in slots else joined(parts).weakened(judged)

    def expired(
        slots: contexts.Slots, newest: int, now_ms: int, coming: Sequence[Occurrence]
    ) -> bool:
        bound, current = links[newest].bound, slots[newest]
        assert current is not None
        if bound is None or bound.high_ms is None or now_ms <= current.end + bound.high_ms:
            return False
        before, after = slots[: newest + 1], slots[newest + 2 :]
        return not any(fits((*before, q, *after)) is not None for q in coming)

    listed = (
        _occurrences(operands[0], setting),
        *(_operand(link.right, setting, link.op) for link in links),
    )
    chain = contexts.Chain(listed, pair.op in ORDERED, fits, expired)
    before = setting.memory.before.get(pair, ())
    chosen = contexts.runs(chain, before, replaces=context == "latest")
    return _remembered(pair, chosen, setting)


# --- what must not be -------------------------------------------------------------------------


def _restrictions(pattern: s.Pattern) -> dict[s.Without, tuple[s.Expr, ...]]:
    """Per `without` the conjuncts of enclosing `where` that name what it looks for."""
    negations = [one for one in _all_parts(pattern) if isinstance(one, s.Without)]
    conditions = [
        part
        for one in _all_parts(pattern)
        if isinstance(one, s.Suffixed)
        for suffix in one.suffixes
        if isinstance(suffix, s.Where)
        for part in conjuncts(suffix.condition)
    ]
    return {
        one: tuple(c for c in conditions if names_in(c) & set(names_of(one.right)))
        for one in negations
    }


def _all_parts(pattern: s.Pattern) -> list[s.Pattern]:
    """A pattern and all that it is made of, but not what is looked for by `without`, `absent`."""
    if isinstance(pattern, s.Absent):
        return [pattern]
    inner = (pattern.left,) if isinstance(pattern, s.Without) else s.parts_of(pattern)
    return [pattern, *(one for part in inner for one in _all_parts(part))]


def _is_judged_in_place(negation: s.Without, conditions: Iterable[s.Expr]) -> bool:
    """Whether all that its conjuncts name is bound where it stands."""
    known = set(names_of(negation))
    return all(_other_names(negation, condition) <= known for condition in conditions)


def _other_names(negation: s.Without, condition: s.Expr) -> set[str]:
    return set(names_in(condition) | names_aggregated(condition)) - set(names_of(negation.right))


def _without(negation: s.Without, setting: Setting) -> list[Occurrence]:
    found = _occurrences(negation.left, setting)
    conditions = setting.restrictions.get(negation, ())
    if not _is_judged_in_place(negation, conditions):
        return found  # judged further out
    verdicts = [(one, _undisturbed(negation, one, conditions, setting)) for one in found]
    return [one.weakened(judged) for one, judged in verdicts if judged]


def _undisturbed(
    negation: s.Without, one: Occurrence, conditions: Sequence[s.Expr], setting: Setting
) -> Certainty:
    """No if some occurrence that counts certainly lies where none may, maybe if one may do."""
    p, judged = one.part(names_of(negation)), Certainty.YES
    for q in _occurrences(negation.right, setting.for_what_must_not_be()):
        counts = all(condition_holds(c, setting.scope, joined((one, q))) for c in conditions)
        if p.shares_event_with(q) or not counts:
            continue
        if negation.ms is None:
            disturbs = lies_inside(p, q)
        else:
            disturbs = starts_within(p, q, negation.ms, setting.drift)
        judged = min(judged, Certainty(Certainty.YES - min(disturbs, q.certainty)))
    return judged


def _deferred(negation: s.Without, conditions: Sequence[s.Expr], setting: Setting) -> JudgedTest:
    """The test of a `without` whose conjuncts name what is bound further out."""
    others = {name for c in conditions for name in _other_names(negation, c)}
    return JudgedTest(
        lambda one: _undisturbed(negation, one, conditions, setting),
        frozenset(names_of(negation.left)) | others,
    )


def _absent(pattern: s.Absent, setting: Setting) -> list[Occurrence]:
    """Once for each beginning or end of a p after which no p comes for so long.

    Of several that end at one nominal time the most certain stands, and of these the least
    uncertain in time.
    """
    found = _occurrences(pattern.operand, setting.for_what_must_not_be())
    since = list(found)
    if setting.beginning is not None:
        instant = absence(pattern.name, setting.beginning, setting.beginning)
        since.append(Occurrence((pattern.name,), ((instant,),)))
    silent: dict[int, tuple[Certainty, int]] = {}
    for p in since:
        disturbed = (min(comes_after(p, q, pattern.ms, setting.drift), q.certainty) for q in found)
        certain = min(p.certainty, Certainty(Certainty.YES - max(disturbed, default=Certainty.NO)))
        told = (certain, -max(event.uncertainty for event in p.spans))
        silent[p.end] = max(told, silent.get(p.end, told))
    return [
        Occurrence(
            (pattern.name,),
            ((absence(pattern.name, u, u + pattern.ms, -minus),),),
            certainty=certain,
        )
        for u, (certain, minus) in sorted(silent.items())
        if certain
    ]


# --- prefixes that choose ---------------------------------------------------------------------


def _distinct(pattern: s.Distinct, setting: Setting) -> list[Occurrence]:
    """What has no earlier like within the time around it."""
    found = _occurrences(pattern.operand, setting)
    return [
        one
        for number, one in enumerate(found)
        if not any(_alike(pattern, earlier, one, setting) for earlier in found[:number])
    ]


def _alike(pattern: s.Distinct, earlier: Occurrence, one: Occurrence, setting: Setting) -> bool:
    if setting.within_ms is not None and one.end - earlier.start > setting.within_ms:
        return False
    if not pattern.keys:
        return earlier.end == one.end
    assert isinstance(pattern.operand, s.Atom)
    return same_keys(pattern.keys, earlier.events[0], one.events[0])


def same_keys(keys: Sequence[str], a: Event, b: Event) -> bool:
    """Whether two events agree in attributes; null agrees with nothing."""
    return all(a.value(key) is not None and a.value(key) == b.value(key) for key in keys)


def choices(pattern: s.Pattern) -> list[tuple[tuple[str, ...], bool]]:
    """The names under each `last` and `first` of a pattern, and whether it is `last`."""
    own = []
    if isinstance(pattern, s.Last | s.First):
        own = [(names_of(pattern.operand), isinstance(pattern, s.Last))]
    if isinstance(pattern, s.Atom | s.Absent):
        return own
    inner = (pattern.left,) if isinstance(pattern, s.Without) else s.parts_of(pattern)
    return own + [one for part in inner for one in choices(part)]


def _is_chosen(one: Occurrence, found: Iterable[Occurrence], pattern: s.Pattern) -> bool:
    """Of the occurrences that agree in every other place, the one with the latest or earliest."""
    for names, is_last in choices(pattern):
        others = [name for name in one.names if name not in names]
        mine = _key_of_part(one, names)
        for rival in found:
            if all(rival.bound(name) == one.bound(name) for name in others):
                theirs = _key_of_part(rival, names)
                if (theirs > mine) if is_last else (theirs < mine):
                    return False
    return True


def _key_of_part(one: Occurrence, names: tuple[str, ...]) -> Key:
    """The order of what is bound to some names; () where they stand for nothing."""
    return one.part(names).order if any(one.bound(name) for name in names) else ()
