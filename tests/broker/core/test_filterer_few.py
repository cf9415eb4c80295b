"""Few contents of a type are asked together first; each still gets exactly what it wants."""

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.engine.event.event import event_class
from broker.engine.filter.filterer import FEW, Filterer
from language.tree import Comparison, Constant, Name

pytestmark = pytest.mark.usefixtures("both_ways")

Reading = event_class("Reading", {"val": "float", "level": "int"})
HOLDS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
NUMBERS = st.integers(-3, 3) | st.sampled_from([-1.5, 0.5, 2.0])

thresholds = st.tuples(st.sampled_from(["val", "level"]), st.sampled_from(sorted(HOLDS)), NUMBERS)
contents = st.lists(st.lists(thresholds, max_size=2), min_size=1, max_size=FEW)
readings = st.lists(
    st.builds(
        lambda val, level: Reading(id="r", start=0, end=0, a_val=val, a_level=level),
        st.none() | st.sampled_from([-3.0, -1.5, 0.0, 0.5, 2.0, 3.0]),
        st.none() | st.integers(-3, 3),
    ),
    max_size=8,
)


def holds(event, threshold):
    name, sign, number = threshold
    value = getattr(event, f"a_{name}")
    return value is not None and HOLDS[sign](value, number)


@given(contents, readings)
def test_each_content_gets_what_it_wants(asked, events):
    """Conditions that are single thresholds, several of one attribute, and longer ones."""
    filterer = Filterer()
    wanted = {}
    for conditions in asked:
        tree = tuple(
            Comparison((Name(name), Constant(number)), (sign,)) for name, sign, number in conditions
        )
        hits = [e for e in events if all(holds(e, condition) for condition in conditions)]
        wanted[filterer.add("Reading", tree)] = hits
    routed = filterer.route(events)
    assert routed == sorted((key, hits) for key, hits in wanted.items() if hits)
    anybody = [event for event in events if any(event in hits for hits in wanted.values())]
    assert filterer.filtered_count == len(events) - len(anybody)


@pytest.mark.parametrize("sign", [sign for sign in HOLDS if sign not in ("=", "!=")])
@given(st.lists(NUMBERS, min_size=2, max_size=FEW), readings)
def test_the_weakest_threshold_on_an_attribute_speaks_for_all(sign, asked, events):
    filterer = Filterer()
    wanted = {}
    for number in asked:
        content = filterer.add("Reading", (Comparison((Name("val"), Constant(number)), (sign,)),))
        wanted[content] = [event for event in events if holds(event, ("val", sign, number))]
    assert dict(filterer.route(events)) == {key: hits for key, hits in wanted.items() if hits}
