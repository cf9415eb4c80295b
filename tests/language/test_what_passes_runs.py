"""What the checker lets pass, the engine runs: any pattern, any change to a good text."""

from dataclasses import replace
from itertools import count

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from headwater import Engine
from language import EventType, check_text, tree
from language.printing.items import item_text
from language.relations import CONTEXTS
from language.walk import rewrite
from tests.language import trees
from tests.language.corpus import EXAMPLES
from tests.language.marked import DECLARED
from tests.language.test_any_text import mutated
from tests.oracles.worked_cases import WORKED_CASES

SENSIBLE = frozenset(
    ("HW401", "HW404", "HW405", "HW406", "HW407", "HW408", "HW413", "HW415", "HW417", "HW424",
     "HW431", "HW434", "HW438", "HW439", "HW440", "HW128")
)  # fmt: skip
"""What may be wrong with a pattern whose names and values are good."""

TYPES = ("A", "B", "C")
HEAD = "".join(f"event {name}(x: int, t: text)\n" for name in TYPES)


def fitted(pattern: tree.Pattern) -> tree.Pattern:
    """The pattern with names that there are: each event has an alias, keys and regions exist."""
    numbers = count()
    names: list[str] = []

    def change(node: tree.Node) -> tree.Node:
        if isinstance(node, tree.Atom):
            number = next(numbers)
            names.append(f"e{number}")
            conditions = ()
            if node.conditions:
                name, low = tree.Name("x"), tree.Constant(number % 3)
                conditions = (tree.Comparison((name, low), (">=",)),)
            return tree.Atom(TYPES[number % 3], conditions, f"e{number}")
        if isinstance(node, tree.Repeat):
            return replace(node, alias=None)
        if isinstance(node, tree.Select) and node.kind == "distinct":
            return replace(node, keys=("x",) if isinstance(node.operand, tree.Atom) else ())
        if isinstance(node, tree.Within) and node.anchor is not None:
            first = next(iter(beneath(node.operand)), None)
            return replace(node, anchor=first)
        if isinstance(node, tree.InRegion):
            return replace(node, region=tree.RegionLiteral("path", path="a"))
        if isinstance(node, tree.Where):
            sides = (tree.Attribute(first_of(node.operand), "x"), tree.Constant(1))
            return replace(node, condition=tree.Comparison(sides, ("!=",)))
        return node

    return rewrite(pattern, change)


def beneath(pattern: tree.Pattern) -> list[str]:
    from language.walk import atoms

    return [atom.alias for atom in atoms(pattern) if atom.alias]


def first_of(pattern: tree.Pattern) -> str:
    return beneath(pattern)[0]


VALUES = {"int": 1, "float": 1.5, "text": "a", "bool": True, "bytes": "YQ=="}


def events(types, seconds):
    """Events of all types in turn at the given seconds, every other one half a second long."""
    return [
        {
            **{name: VALUES[kind] for name, kind in types[number % len(types)].attributes.items()},
            "type": types[number % len(types)].name,
            "id": f"i{number}",
            "source": "s",
            "location": "a/b",
            "position": [1.0, 1.0],
            "start": 1_000 * at,
            "end": 1_000 * at + 500 * (number % 2),
        }
        for number, at in enumerate(seconds)
    ]


def run(text, seconds):
    types = check_text(text).demand().event_types.values()
    engine = Engine(text, lateness_ms=None, file=__file__)  # tables stand beside this file
    given = events([one for one in types if not one.defined] or [EventType("A")], seconds)
    return engine.push(given) + engine.finish()


times = st.lists(st.integers(0, 12), max_size=8)


@st.composite
def subscriptions(draw):
    """A subscription of any pattern, and of any other clause."""
    pattern = fitted(draw(trees.patterns))
    report = draw(st.sampled_from(["all", "all", "one", "collect"]))
    case = tree.Case(
        0,
        tree.Detect(pattern, draw(st.sampled_from(list(CONTEXTS))), report=report),
        consuming=(first_of(pattern),) if draw(st.integers(0, 3)) == 0 else (),
        group_by=draw(st.sampled_from([(), (), ("location",), ("x", "source")])),
    )
    at_most = draw(st.sampled_from([None, None, tree.Thinning(1, 3_000)]))
    for_ms = draw(st.sampled_from([None, None, 5_000]))
    return tree.Subscription("S", 1, "u", tree.Actor("a"), case, for_ms=for_ms, at_most=at_most)


@settings(max_examples=300, suppress_health_check=[HealthCheck.filter_too_much])
@given(subscriptions(), times)
def test_any_pattern_that_passes_runs(subscription, seconds):
    text = HEAD + item_text(subscription)
    checked = check_text(text)
    assert {one.code for one in checked.diagnostics} <= SENSIBLE, checked.report()
    assume(checked.ok)
    run(text, seconds)


WORKED = [case.text for case in WORKED_CASES if check_text(case.text).ok]


@settings(max_examples=100, suppress_health_check=[HealthCheck.filter_too_much])
@given(mutated(WORKED), times)
def test_any_change_to_a_text_that_passes_runs(text, at):
    assume(check_text(text).ok)
    run(text, at)


@pytest.mark.parametrize("text", [DECLARED, *EXAMPLES])
def test_good_texts_run_on_nothing(text):
    if check_text(text).ok:
        assert run(text, []) == []


AGGREGATED = {
    "Count({})": "int", "Count({}.x)": "int", "Sum({}.x)": "int", "Avg({}.x * 2)": "float",
    "Min({}.t)": "text", "Max({}.end)": "int", "StdDev({}.x)": "float", "Median({}.x)": "float",
    "Quantile({}.x, 0.9)": "float", "First({}.t)": "text", "Last({}.x)": "int",
    "CountDistinct({}.t)": "int",
}  # fmt: skip
WINDOWS = [
    "every 3 s", "every 2 s range 5 s", "every 5 s range 2 s", "range 4 s", "session 2 s",
    "session 2 s max 3 s", 'every 1 day in "UTC"', 'every 1 day in "UTC" range 2 days',
]  # fmt: skip


@st.composite
def windowed(draw):
    """A definition with any window, operands and aggregates, and a subscription to it."""
    operands, names = [], []
    for number in range(draw(st.integers(1, 3))):
        names.append(f"e{number}")
        prefix = draw(
            st.sampled_from(["", "", "outer ", "distinct(x) ", "distinct ", "outer distinct "])
        )
        condition = draw(st.sampled_from(["", "(x >= 1)", '(t = "a")']))
        operands.append(f"{prefix}{TYPES[number % 2]}{condition} as e{number}")
    values = [
        draw(st.sampled_from(sorted(AGGREGATED))).format(draw(st.sampled_from(names)))
        for _ in range(draw(st.integers(1, 4)))
    ]
    header = ", ".join(f"v{number}" for number in range(len(values)))
    assigned = ", ".join(f"v{number} = {value}" for number, value in enumerate(values))
    group = draw(st.sampled_from(["", "\n  group by location", "\n  group by x, t"]))
    return (
        f"{HEAD}define D({header}) aggr {draw(st.sampled_from(WINDOWS))}\n"
        f"  detect {' and '.join(operands)}\n  assign {assigned}{group}\n"
        "subscription S from u to a\ndetect D as one\nsubscription T from u to a\n"
        "detect D as one then[recent] D as other\n"
    )


@settings(max_examples=150)
@given(windowed(), times)
def test_any_window_runs(text, seconds):
    run(text, seconds)
