"""What must hold of the reference matcher whatever is read into the language's description.

Owns: laws between constructs, over generated traces; single outcomes stand in `test_oracles`.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from tests.oracles import spec as s
from tests.oracles.draw import SeededDraw
from tests.oracles.generate import random_case
from tests.oracles.matcher import run
from tests.oracles.traces import TYPES, Profile, trace

A, B, C = (s.Atom(name) for name in "ABC")
Events = list[dict[str, Any]]


def drawn(count: int, **profile: Any) -> Iterator[Events]:
    told = Profile(events_min=8, events_max=14, **profile)
    for seed in range(count):
        yield trace(SeededDraw(f"properties/{seed}"), ("A", "B", "C"), told)


def found(pattern: s.Pattern, events: Events, **more: Any) -> list[dict[str, Any]]:
    definitions = more.pop("definitions", ())
    told = {key: more.pop(key) for key in ("at_most", "for_ms") if key in more}
    drift = more.pop("drift", 0)
    subscription = s.Subscription("S", s.Case(pattern, **more), **told)
    return run(s.Spec(TYPES, (subscription,), definitions), events, drift)


def keys(results: list[dict[str, Any]]) -> Counter[str]:
    return Counter(json.dumps(result["structure"], sort_keys=True) for result in results)


def members(results: list[dict[str, Any]]) -> list[str]:
    return [
        json.dumps(one) for r in results for listed in r["structure"].values() for one in listed
    ]


# --- lists ------------------------------------------------------------------------------------


def test_one_in_a_row_is_the_event_itself() -> None:
    for events in drawn(20):
        assert keys(found(s.Times(A, 1), events)) == keys(found(A, events))


def test_longest_runs_hold_every_event_once() -> None:
    for events in drawn(30):
        every = members(found(A, events))
        for bound in (s.Bound(0, 1000), s.Bound(1000, 3000), s.Bound(2000, None)):
            assert sorted(members(found(s.Run(A, bound), events))) == sorted(every)


def test_a_list_adds_nothing_to_what_is_chosen_and_an_empty_one_takes_nothing_away() -> None:
    for events in drawn(20):
        plain = found(s.Pair("then", A, C), events)
        for may_be_empty in (True, False):
            chain = s.Pair("then", s.Pair("then", A, s.Listed(B, may_be_empty)), C)
            whole = found(chain, events)
            pairs = Counter(
                json.dumps({name: r["structure"][name] for name in "AC"}, sort_keys=True)
                for r in whole
            )
            assert pairs <= keys(plain)
            assert not may_be_empty or pairs == keys(plain)


# --- what must not be -------------------------------------------------------------------------


def test_what_must_not_be_only_takes_away() -> None:
    pair = s.Pair("then", A, B)
    for events in drawn(20):
        every = keys(found(pair, events))
        assert keys(found(s.Without(pair, C), events)) <= every
        assert keys(found(s.Without(pair, C, 2000), events)) <= every
        assert keys(found(replace(pair, next=True), events)) <= every


def test_next_leaves_no_more_than_neighbours() -> None:
    """Of readings at different times each has at most one next B."""
    for events in drawn(20, durative=0):
        apart = list({one.get("timestamp"): one for one in events}.values())
        nexts = found(s.Pair("then", A, B, next=True), apart)
        assert max(Counter(r["events"]["A"][0] for r in nexts).values(), default=0) <= 1


def test_each_end_begins_an_absence_or_is_followed_in_time() -> None:
    for events in drawn(30):
        every = found(A, events)
        absences = {r["start"]: r["end"] for r in found(s.Absent(A, 2000), events)}
        for result in every:
            u = result["end"]
            met = any(r["start"] <= u + 2000 and r["end"] > u for r in every)
            assert (u in absences) != met
            assert met or absences[u] == u + 2000


# --- thinning ---------------------------------------------------------------------------------


def completed(result: dict[str, Any]) -> tuple[int, str]:
    """Of points the last in order is the last by time and id."""
    identities = [one for listed in result["structure"].values() for one in listed]
    return max((end, ident) for _, ident, end in identities)


def test_one_and_collect_report_once_for_each_event_that_completes() -> None:
    pattern = s.Pair("and", s.Pair("then", A, B), C)
    for events in drawn(20, durative=0):
        every = found(pattern, events)
        one, collected = (found(pattern, events, thin=thin) for thin in ("one", "collect"))
        wanted = {completed(result) for result in every}
        assert keys(one) <= keys(every)
        for thinned in (one, collected):
            assert Counter(completed(result) for result in thinned) == Counter(wanted)
        assert set(members(collected)) == set(members(every))


def test_at_most_leaves_no_crowd() -> None:
    for events in drawn(20):
        kept = found(A, events, at_most=(2, 3000))
        assert keys(kept) <= keys(found(A, events))
        for result in kept:
            before = sum(0 <= result["end"] - one["end"] < 3000 for one in kept)
            assert before <= 2 + sum(one["end"] == result["end"] for one in kept)
            earlier = kept[: kept.index(result)]
            assert sum(result["end"] - one["end"] < 3000 for one in earlier) < 2


def test_an_end_cuts_off_what_comes_after() -> None:
    for events in drawn(20):
        every = found(s.Pair("then", A, B), events)
        kept = found(s.Pair("then", A, B), events, for_ms=5000)
        assert kept == every[: len(kept)]


# --- windows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [s.Every(4000), s.Session(1000), s.Session(2000, 5000)])
def test_windows_that_do_not_overlap_hold_every_event_once(window: s.Window) -> None:
    counted = s.Case(A, assign=(("c", s.Aggregate("Count", "A")),), group_by=("source",))
    definition = s.Definition("W", (counted,), window)
    for events in drawn(30):
        every = found(A, events)
        windows = found(s.Atom("W"), events, definitions=(definition,))
        assert sum(r["values"]["W"]["c"] for r in windows) == len(every)
        ids = [one for r in windows for one in r["primitives"]["W"]]
        assert sorted(ids) == sorted(r["events"]["A"][0] for r in every)


def test_every_without_aggr_makes_the_same_events() -> None:
    for seed in range(30):
        spec, events = random_case(seed, "every-reported", "unrestricted")
        (made,) = spec.definitions
        plain = replace(spec, definitions=(replace(made, reported_ms=None),))
        assert run(spec, events) == run(plain, events)


# --- uncertain time ---------------------------------------------------------------------------

PATTERNS = (
    s.Pair("then", A, B),
    s.Pair("then", A, B, s.Bound(1000, 3000)),
    s.Pair("overlaps", A, B),
    s.Pair("parallel", s.Pair("and", A, B), C),
    s.Suffixed(s.Pair("and", A, B), (s.Within(2000),)),
    s.Suffixed(s.Pair("then", A, B), (s.Within(3000, "A"),)),
)


def split(results: list[dict[str, Any]]) -> tuple[Counter[str], Counter[str]]:
    """What is certain, and all."""
    return keys([r for r in results if r["certainty"] == "yes"]), keys(results)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_more_doubt_makes_fewer_certain_and_more_possible(pattern: s.Pattern) -> None:
    doubtful = 0
    for events in drawn(10, durative=30):
        exact = [{**one, "uncertainty": 0} for one in events]
        some = [{**one, "uncertainty": 400} for one in events]
        much = [{**one, "uncertainty": 1300} for one in events]
        steps = [split(found(pattern, one)) for one in (exact, some, much)]
        steps.append(split(found(pattern, much, drift=0.2)))
        assert steps[0][0] == steps[0][1]
        for (certain, possible), (fewer, more) in pairwise(steps):
            assert fewer <= certain
            assert possible <= more
        doubtful += steps[-1][0] != steps[-1][1]
        dropped = found(pattern, much, maybe_drop=True)
        assert split(dropped) == (steps[2][0], steps[2][0])
    assert doubtful >= 5
