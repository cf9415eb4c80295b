"""Relations, contexts, windows, aggregates: each is one record, and nothing of it is missing.

What the records state is held against the reference matcher's definitions, over all pairs of short
intervals and over drawn values.
"""

from dataclasses import fields
from fractions import Fraction
from itertools import chain, combinations, product
from pathlib import Path
from random import Random
from typing import get_args

import pytest
from pyspark.sql import functions as spark

from broker.engine.pattern.uncertainty.relations import PARTNER_SEARCHES, RELATION_TESTS
from broker.engine.window.aggregates import COMPUTATIONS, aggregate
from headwater import Engine
from language import check_text, format_text
from language.functions import AGGREGATES
from language.relations import CONTEXTS, RELATIONS, UNRESTRICTED
from language.tree import WINDOW_PARTS, Window
from tests.oracles import contexts, expressions, generate, recipes_defined
from tests.oracles import relations as reference
from tests.oracles import spec as s
from tests.oracles.events import Event, Occurrence

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
ROOMS = ("language", "broker", "headwater", "planner", "server", "simulation")
INTERVALS = [(start, end) for start in range(5) for end in range(start, 5)]
PAIRS = list(product(INTERVALS, INTERVALS))


def holds(name, p, q):
    """Return what the reference says of two single events."""
    return reference.RELATIONS[name](*(occurrence(*one) for one in ((*p, "p"), (*q, "q"))))


def occurrence(start, end, name):
    return Occurrence((name,), ((Event(("event", name, end), "A", start, end, {}),),))


# --- relations ----------------------------------------------------------------------------------


def test_every_relation_is_tested_and_has_its_reference():
    assert (
        set(RELATIONS)
        == set(RELATION_TESTS)
        == set(reference.RELATIONS)
        == set(get_args(s.Relation))
    )
    assert {*generate.RELATIONS_OF_INTERVALS, "and", "then"} == set(RELATIONS)


@pytest.mark.parametrize("name", RELATIONS)
def test_a_relation_is_told_of_in_the_guide(name):
    rows = [line for line in GUIDE.splitlines() if f"`{name}`" in line or f" {name} " in line]
    said = RELATIONS[name].meaning
    assert any(said in row for row in rows), f"no line tells of {name}: {said}"


@pytest.mark.parametrize("name", RELATIONS)
def test_its_code_asks_what_the_reference_asks(name):
    for p, q in PAIRS:
        times = {"ls": p[0], "le": p[1], "rs": q[0], "re": q[1]}
        touching = not (p[0] == p[1] and q[0] == q[1])  # no two readings meet
        found = all(
            eval(ask.format(**times), {"touching": touching}) for ask in RELATION_TESTS[name].asks
        )
        assert found == holds(name, p, q), (name, p, q)


@pytest.mark.parametrize("name", RELATIONS)
def test_what_is_said_of_its_sides_is_so(name):
    relation = RELATIONS[name]
    met = [(p, q) for p, q in PAIRS if holds(name, p, q)]
    assert met
    lasting = {
        side
        for at, side in enumerate(("left", "right"))
        if all(pair[at][0] < pair[at][1] for pair in met)
    }
    assert relation.lasting == lasting
    closed = {"left"} if all(p[1] <= q[1] for p, q in met) else set()
    closed |= {"right"} if all(q[1] <= p[1] for p, q in met) else set()
    assert relation.closed <= closed
    assert bool(relation.closed) == bool(closed)
    assert relation.follows == (name != "meets" and all(p[1] <= q[0] for p, q in met))
    if relation.in_order:
        assert all(p[0] <= q[0] and p[1] <= q[1] for p, q in met)
    if relation.gap and name != "and":
        assert relation.follows


@pytest.mark.parametrize("name", RELATIONS)
def test_its_inverse_says_the_same_of_the_sides_in_turn(name):
    turned = {pair for pair in PAIRS if holds(name, *pair)}
    inverses = [
        other for other in RELATIONS if {(p, q) for p, q in PAIRS if holds(other, q, p)} == turned
    ]
    assert inverses == ([] if RELATIONS[name].inverse is None else [RELATIONS[name].inverse])


# --- contexts -----------------------------------------------------------------------------------


def test_every_context_has_its_reference_and_cases_are_drawn_with_it():
    assert set(CONTEXTS) == set(get_args(s.Context)) == set(generate.CONTEXTS_WHOLE)
    assert [each for each in CONTEXTS.values() if not each.chooses] == [UNRESTRICTED]


def test_every_context_that_chooses_and_does_not_spend_has_a_search():
    searched = {name for name, each in CONTEXTS.items() if each.chooses and not each.spends}
    assert searched == set(PARTNER_SEARCHES)


@pytest.mark.parametrize("name", CONTEXTS)
def test_a_context_is_told_of_in_the_guide(name):
    row = f"| `{name}` | {CONTEXTS[name].meaning} |"
    assert row in GUIDE.splitlines()


@pytest.mark.parametrize("name", CONTEXTS)
def test_no_other_file_of_ours_names_a_context(name):
    """What varies with a context stands in its record, and everything else reads it there."""
    files = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    named = {
        str(path.relative_to(ROOT))
        for path in files
        for line in path.read_text(encoding="utf-8").splitlines()
        if "context" in line.lower() and f'"{name}"' in line
    }
    assert named <= {"language/relations.py"}


@pytest.mark.parametrize("name", PARTNER_SEARCHES)
def test_a_search_takes_what_the_reference_takes(name):
    search = PARTNER_SEARCHES[name]
    choose = getattr(contexts, name)
    for count in range(5):
        lefts = [occurrence(at, at, f"a{at}") for at in range(count)]
        right = occurrence(9, 9, "q")
        expected = [one.order for one in choose(lefts, [right], lambda p, q: p)]
        assert [one.order for one in taken(search, lefts)] == expected


def taken(search, candidates):
    """Return what the search's code takes of candidates, looking from the last one back."""
    lines = ["out = []", *search.begin, "for old in reversed(candidates):"]
    lines += ["    " + line.format(append="out.append(old)") for line in search.meet]
    names = {"candidates": candidates}
    exec("\n".join(lines), names)
    return names["out"]


def test_a_search_says_rightly_that_only_the_newest_counts():
    for name, search in PARTNER_SEARCHES.items():
        kept = [taken(search, range(10 - count, 10)) for count in range(1, 6)]
        assert search.newest_only == all(took == [9] for took in kept), name


@pytest.mark.parametrize("name", CONTEXTS)
def test_what_is_said_of_a_context_is_so(name):
    """Over two pairs of readings: what is left out, and what is reported only once."""
    context = CONTEXTS[name]
    found = [set(match) for match in matches(name, "then", "a1 a2 b3 b4")]
    assert context.chooses == (len(found) < 4)
    if context.runs:  # one at a time, and the next begins after it
        assert len(found) == 1
    assert context.spends == all(not x & y for x, y in combinations(found, 2))
    for relation in RELATIONS:
        allowed = relation in context.relations
        assert check_text(written(name, relation)).ok == allowed


def written(context, relation):
    return f"event A() event B()\nsubscription S from u to a\ndetect A {relation}[{context}] B"


def matches(context, relation, trace):
    """Return the ids of each match."""
    engine = Engine(written(context, relation), lateness_ms=None)
    engine.push(
        [{"type": one[0].upper(), "id": one, "timestamp": int(one[1:])} for one in trace.split()]
    )
    return [tuple(chain(*one["events"].values())) for one in engine.finish()]


# --- windows ------------------------------------------------------------------------------------


def test_every_length_of_a_window_is_one_part_of_its_header():
    lengths = {field.name for field in fields(Window) if field.name.endswith("_ms")}
    assert lengths == {part.field for part in WINDOW_PARTS.values()}
    assert {part.beside for part in WINDOW_PARTS.values()} <= {*WINDOW_PARTS, None}


@pytest.mark.parametrize("word", WINDOW_PARTS)
def test_a_window_is_written_checked_printed_and_told_of(word):
    part = WINDOW_PARTS[word]
    before = "" if part.beside is None else f"{part.beside} 2 s "
    text = counting(f"aggr {before}{word} 5 s")
    checked = check_text(text)
    assert checked.ok, checked.report()
    window = checked.specification.definitions["W"].window
    assert getattr(window, part.field) == 5_000
    assert f"{before}{word} 5 s" in format_text(text)
    assert any(f"`aggr {before and 'session G '}{word} " in line for line in GUIDE.splitlines())


@pytest.mark.parametrize("word", WINDOW_PARTS)
def test_what_is_said_of_a_part_is_so(word):
    part = WINDOW_PARTS[word]
    before = "" if part.beside is None else f"{part.beside} 2 s "
    assert check_text(counting(f"aggr {word} 5 s")).ok == (part.beside is None)
    told = {each.code for each in check_text(counting(f"{before}{word} 5 s")).diagnostics}
    assert ("HW428" in told) == part.aggregated
    for other in WINDOW_PARTS.values():
        if other is not part and other.beside is None and other.word != part.beside:
            held = check_text(counting(f"aggr {before}{word} 5 s {other.word} 2 s"))
            assert held.ok == (not part.alone and not other.alone and not before), other.word


def counting(header):
    count = "" if not header.startswith("aggr") else "\nassign n = Count(A)"
    names = "n" if count else ""
    return (
        f"event A()\ndefine W({names}) {header}\ndetect A{count}\n"
        "subscription S from u to a\ndetect W"
    )


# --- aggregates ---------------------------------------------------------------------------------


def test_every_aggregate_is_computed_and_has_its_reference():
    assert set(AGGREGATES) == set(COMPUTATIONS) == set(expressions.AGGREGATES)
    assert set(recipes_defined.FUNCTIONS) == set(AGGREGATES)


@pytest.mark.parametrize("name", AGGREGATES)
def test_over_a_list_it_has_the_value_of_the_reference(name):
    draw = Random(name)
    share = 0.25 if AGGREGATES[name].takes_share else None
    for length in (0, 0, 1, 2, 3, 5, 8):
        for values in (
            [draw.randint(-5, 5) for _ in range(length)],
            [draw.choice((-1.5, 0.0, 0.25, 3.0)) for _ in range(length)],
        ):
            asked = s.Aggregate(name, "A", "v", share)
            exact = AGGREGATES[name].share if share is None else Fraction(1, 4)
            expected = expressions.AGGREGATES[name](values, asked)
            assert aggregate(name, values, exact) == expected


@pytest.mark.parametrize("name", AGGREGATES)
def test_what_is_said_of_it_is_so(name):
    function = AGGREGATES[name]
    share = Fraction(1, 4) if function.takes_share else function.share
    assert aggregate(name, [], share) == function.over_none
    draws = [[Random(f"{name}{at}").randint(1, 9) for _ in range(4)] for at in range(40)]
    chosen = all(aggregate(name, values, share) in values for values in draws)
    assert not function.chooses or chosen
    assert function.takes_share == (len(function.arguments) == 2)
    assert function.spark is None or callable(getattr(spark, function.spark))
