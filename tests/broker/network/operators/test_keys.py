"""Keys say what conditions say, and texts of conditions are read as they were written."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from broker.core.intake import IntakeOptions
from broker.engine.event.event import event_class
from broker.network.operators.conditions import compile_condition, conditions_of, read_condition
from broker.network.operators.derivation import operators_of
from broker.network.operators.times import Times
from broker.network.routing.advertisement.operator import Key, Range, Region
from headwater.engine import Pipeline
from language import check_text
from language.printing.expressions import expression_text
from tests.oracles import spec as s
from tests.oracles.draw import SeededDraw
from tests.oracles.events import intake
from tests.oracles.expressions import Scope, holds
from tests.oracles.recipes import Builder
from tests.oracles.render import text_of
from tests.oracles.traces import TYPES, Profile, trace
from tests.oracles.travelling import passes

CERTAIN = Times(uncertainty_ms_max=0)
DECLARED = (
    "event A(n: int, v: float, tag: text, flag: bool)\n"
    'set Dock = {"s1", "s2"}\nregion Area = circle(45.5, 7.0, 3 km)\n'
    'region Wing = path("b/1")\n'
)


def key(condition, suffix=""):
    text = f"{DECLARED}subscription S seq 1 from me to you detect A({condition}){suffix}"
    graph = check_text(text).demand().graph
    (operator,) = operators_of(graph, graph.roots[0], CERTAIN)
    return operator.keys[0]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("n > 1", Key("A", "A", ranges=(Range("n", 1.0, None, True),))),
        ("1 < n <= 3", Key("A", "A", ranges=(Range("n", 1.0, 3.0, True, False),))),
        ("n >= 1, n > 1, 4 > n, n < 9", Key("A", "A", ranges=(Range("n", 1, 4, True, True),))),
        ("v = 1.5", Key("A", "A", ranges=(Range("v", 1.5, 1.5),))),
        ("n in {2}", Key("A", "A", ranges=(Range("n", 2, 2),))),
        ('tag = "p", flag', Key("A", "A", equals=(("flag", True), ("tag", "p")))),
        ("flag = false", Key("A", "A", equals=(("flag", False),))),
        ('source = "s1"', Key("A", "A", source="s1")),
        (
            'srcid = "s1", n < 2',
            Key("A", "A", source="s1", ranges=(Range("n", None, 2, False, True),)),
        ),
        ("location in Wing", Key("A", "A", location="b/1")),
        ('location in path("b"), location in Wing', Key("A", "A", location="b/1")),
        ("position in Area", Key("A", "A", region=Region("circle", (45.5, 7.0, 3000.0)))),
    ],
)
def test_what_fields_can_say_needs_no_condition(condition, expected):
    assert key(condition) == expected


def test_suffixes_that_ask_one_event_are_asked_on_the_way():
    found = key("n > 1", " as x in Area where x.v < 2 and 3 > x.n")
    assert found.exact
    assert found.region is not None
    assert found.ranges == (Range("n", 1, 3, True, True), Range("v", None, 2, False, True))


@pytest.mark.parametrize(
    ("condition", "text", "over"),
    [
        ("n != 1, n > 0", "n != 1 and n > 0", {"ranges": (Range("n", 0, None, True),)}),
        ("n in {1, 3}", "n in {1, 3}", {"ranges": (Range("n", 1, 3),)}),
        ("n > 1 or flag", "n > 1 or flag", {}),
        ("not flag", "not flag", {}),
        ("source in Dock", 'source in {"s1", "s2"}', {}),
        ('location = "b/1"', 'location = "b/1"', {"location": "b/1"}),
        ('tag < "q", v + 1 > n', 'tag < "q" and v + 1 > n', {}),
        ("duration < 2 s", "duration < 2 s", {}),
        ('tag = "p", tag = "q"', 'tag = "p" and tag = "q"', {"equals": (("tag", "p"),)}),
        (f"n > {2**53 + 1}", f"n > {2**53 + 1}", {"ranges": (Range("n", 2.0**53, None, True),)}),
    ],
)  # fmt: skip
def test_what_fields_cannot_say_is_said_in_words_and_they_say_no_less(condition, text, over):
    expected = Key("A", "A", condition=text, **over)
    assert key(condition) == expected


def test_what_the_home_alone_can_judge_is_left_to_it():
    text = (
        'event A(n: int, tag: text)\ntable Tags from "t.csv" key tag\n'
        "subscription S seq 1 from me to you detect A(n > 1, Tags[tag].size > 2)"
    )
    graph = check_text(text, tables=lambda _: "tag,size\np,3\n").demand().graph
    (operator,) = operators_of(graph, graph.roots[0], CERTAIN)
    assert operator.keys[0] == Key("A", "A", ranges=(Range("n", 1, None, True),))


def test_what_is_too_long_for_others_to_read_is_left_to_the_home():
    members = ", ".join(map(str, range(0, 20_000, 2)))
    assert key(f"n in {{{members}}}") == Key("A", "A", ranges=(Range("n", 0, 19_998),))


# --- texts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        *("n >", "n > 1, m > 2", "n) and c(m", "n > 1) as x where (x.n > 1"),
        "n > 1) within 5 s subscription T from a to b detect c(n",
        *("Tags[tag].size > 1", "unheard(n) > 1", "Count(x) > 1", "source in Dock"),
        *("n > 1 " * 20_000, "(" * 500 + "n" + ")" * 500, ""),
    ],
)
def test_a_text_that_is_no_condition_on_one_event_is_refused(text):
    with pytest.raises(ValueError, match=r"condition"):
        read_condition(text)


def test_a_condition_on_an_attribute_that_is_missing_or_of_another_type():
    class Event:
        event_type, id, source, location, position = "A", "e", None, None, None
        start = end = uncertainty = 0
        a_n = "text"

    assert compile_condition("n > 1")(Event()), "who wants it will judge"
    assert not compile_condition("m > 1")(Event()), "a missing attribute is null"
    assert compile_condition("")(Event())


GOOD = (
    *("n > 1", "n in {1, 2} and not flag", 'tag < "q" or v * n <= 2.5', "round(v / n) = 2"),
    *("position in circle(45.5, 7.1, 3 km)", 'location in path("b/1")', "length(tag) >= min(n, 2)"),
    *('concat(tag, "x") != upper(tag)', "sqrt(n) > abs(-v)", "duration < 2 s and 0 < n < 9"),
    "floor(v * 1e300 * 1e300) > 3",
)
WORDS = [*(word for text in GOOD for word in text.split()), *'()"`#\n\\,{}.@*-']


def spoiled(draw):
    """A good condition with some words of others in it."""
    words = draw.choice(GOOD).split(" ")
    for _ in range(draw.randint(1, 4)):
        words[draw.randrange(len(words))] = draw.choice(WORDS)
    return " ".join(words)


def hold_on_any_text(seeds):
    """It is refused, or a test that never fails, and then its canonical text says the same."""
    kind = event_class("A", {"n": "int", "v": "float", "tag": "text", "flag": "bool"})
    full = {"source": "s", "location": "b/1", "position": [45.0, 7.0]}
    events = [
        kind(id="e", start=0, end=5, **full, a_n=3, a_v=1e308, a_tag="p", a_flag=True),
        kind(id="e", start=0, end=0),
        kind(id="e", start=0, end=0, a_n=2**62, a_v=-0.0, a_tag=""),
    ]
    taken = 0
    for seed in seeds:
        text = spoiled(random.Random(seed))
        try:
            condition = read_condition(text)
        except ValueError:
            continue
        assert {compile_condition(text)(event) for event in events} <= {True, False}, text
        assert read_condition(expression_text(condition)) == condition, text
        taken += 1
    assert taken > len(seeds) // 20


def test_a_text_of_anybody_is_refused_or_makes_a_test():
    hold_on_any_text(range(300))


@pytest.mark.long
@pytest.mark.timeout(300)
def test_many_texts_of_anybody_are_refused_or_make_tests():
    hold_on_any_text(range(300, 20_000))


def test_a_text_is_no_number_to_reckon_with():
    kind = event_class("A", {"n": "int", "tag": "text"})
    huge = kind(id="e", start=0, end=0, a_n=2**62, a_tag="much")
    assert compile_condition("concat(tag, tag) * n = n")(huge), "who wants it will judge"


def events_and_keys(seed):
    """A subscription on one atom with some conditions, and a trace; the reference's view too."""
    draw = SeededDraw(f"keys/{seed}")
    builder = Builder(draw, "unrestricted")
    told = tuple(builder.condition("A") for _ in range(draw.integer(1, 3)))
    spec = s.Spec(
        TYPES,
        (s.Subscription("S1", s.Case(s.Atom("A", told))),),
        (),
        tuple(builder.sets.items()),
        tuple(builder.regions.items()),
    )
    return spec, told, [one for one in trace(draw, ("A",), Profile()) if one["type"] == "A"]


def lets_pass_what_is_said(seed):
    """Judged by the reference; and the fields alone let pass no less."""
    spec, told, events = events_and_keys(seed)
    specification = check_text(text_of(spec)).demand()
    graph = specification.graph
    (operator,) = operators_of(graph, graph.roots[0], CERTAIN)
    (found,) = operator.keys
    scope = Scope(sets=dict(spec.sets), regions=dict(spec.regions), tables={})
    intake_ = Pipeline(specification, IntakeOptions()).intake
    for event in events:
        (seen,) = intake(spec.types, [event])
        wanted = all(holds(one, replace(scope, bare=seen.value)) for one in told)
        (given,) = intake_.from_mappings([event]).events
        assert passes(found, given, compile_condition) == wanted, seed
        assert passes(found, given, lambda _: lambda _: True) >= wanted, seed


def is_read_back(seed):
    """The conditions that a key says make that key."""
    spec, _, _ = events_and_keys(seed)
    graph = check_text(text_of(spec)).demand().graph
    (operator,) = operators_of(graph, graph.roots[0], CERTAIN)
    (found,) = operator.keys
    text = ", ".join(expression_text(one) for one in conditions_of(found))
    again = f"{DECLARED}subscription S1 seq 1 from a to b detect A({text})"
    graph = check_text(again).demand().graph
    (other,) = operators_of(graph, graph.roots[0], CERTAIN)
    assert other.keys == operator.keys, seed


def test_a_key_lets_pass_exactly_what_its_conditions_say():
    for seed in range(30):
        lets_pass_what_is_said(seed)
        is_read_back(seed)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_many_keys_let_pass_exactly_what_their_conditions_say():
    for seed in range(30, 3_000):
        lets_pass_what_is_said(seed)
        is_read_back(seed)
