"""Compiled passes give what the code gives beside which they are asked: each by itself, and in all.

The tests of the filterer, the clocks, results and the engine run with the passes and without; here
they are held to each other, and to what they cannot take.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import nullcontext
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.engine import native
from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import event_class
from broker.engine.event.identity import digest
from broker.engine.filter.filterer import Filterer, sorted_by_class
from broker.engine.ingest.source_clocks import course
from broker.engine.runtime.results import told
from broker.engine.window.exact import Moments
from headwater import Engine, Event
from headwater.events import taken_out
from language import check_text
from language.tree import Case
from tests.pure import python_alone

ROOT = Path(__file__).resolve().parents[3]
FEWER = settings(max_examples=settings.default.max_examples // 4)  # there are many cases of each
passes = native.passes
pytestmark = pytest.mark.skipif(passes is None, reason="the passes are not compiled")


# --- the passes by themselves -----------------------------------------------------------------

Reading = event_class("Reading", {"n": "int", "x": "float", "t": "text"})
Other = event_class("Other", {"x": "float"})
times = st.integers(-5, 5) | st.sampled_from([2**61, -(2**61), 2**62 + 1, 2**70, -(2**70)])


@given(
    st.lists(times, max_size=6),
    times,
    st.just(WATERMARK_NONE) | times,
    st.integers(0, 6) | st.sampled_from([2**61, 2**63]),
)
def test_a_clock_goes_on_in_the_same_way(ends, newest, passed, lateness_ms):
    events = [
        (Reading if at % 2 else Other)(id=str(at), start=end, end=end)
        for at, end in enumerate(ends)
    ]
    found = course(events, newest, passed, lateness_ms)
    with python_alone():
        wanted = course(events, newest, passed, lateness_ms)
    assert (found.newest, found.late, found.ordered, found.apart) == (
        *(wanted.newest, wanted.late),
        *(wanted.ordered, wanted.apart),
    )
    assert found.ends in ([None] if wanted.ends is None else [None, wanted.ends])
    if not (found.late or found.apart):
        assert found.ends == wanted.ends


@pytest.mark.parametrize("end", [True, 1.0, "1", None])
def test_a_clock_leaves_an_end_that_is_no_plain_integer_to_python(end):
    events = [Reading(id="1", start=0, end=end)]
    assert passes.course(events, 0, None, 0) is None


def test_a_clock_leaves_what_is_no_event_to_python():
    assert passes.course([object()], 0, None, 0) is None
    assert passes.course([], 0, None, 0) is None
    assert passes.course((Reading(id="1", start=0, end=0),), 0, None, 0) is None


whole = st.integers(-40, 40) | times | st.sampled_from([2**62, -(2**62), -(2**63), 2**63])


@given(st.lists(st.lists(whole, max_size=90), max_size=5))
def test_a_set_of_ends_counts_as_a_set_does(lists):
    ends, known = passes.Ends(), set()
    for values in lists:
        ends.update(values)
        known.update(values)
        assert len(ends) == len(known)


@pytest.mark.parametrize("odd", [[1.0], ["1"], [None], [True], (1,)])
def test_a_set_of_ends_takes_integers_alone(odd):
    ends = passes.Ends()
    with pytest.raises(TypeError):
        ends.update(odd)
    ends.update(list(range(1_000)))
    assert len(ends) == 1_000


@given(st.lists(times, max_size=8), times)
def test_what_ends_later_is_told_from_the_rest(ends, watermark):
    events: list[Any] = [object() for _ in ends]
    wanted = [(end, one) for end, one in zip(ends, events, strict=True) if end > watermark]
    found = passes.later(ends, events, watermark)
    if all(-(2**62) <= one <= 2**62 for one in (*ends, watermark)):
        assert list(zip(*found, strict=True)) == wanted
    else:
        assert found is None


floats = st.floats(allow_nan=False, allow_infinity=False) | st.floats(-100, 100, width=16)


@given(st.lists(floats | st.integers(-3, 3), max_size=40), st.lists(floats, max_size=40))
def test_sums_are_exact_in_the_same_unit(first, second):
    found = []
    for alone in (False, True):
        with python_alone() if alone else nullcontext():
            moments = Moments(squared=False)
            moments.take(first)
            moments.settle()
            moments.take(second)
            found.append((moments.plain(), moments.mean(), moments.scale))
    assert found[0] == found[1]


@given(st.lists(floats, max_size=40))
def test_a_sum_in_units_is_that_of_fractions(values):
    exact = sum(map(Fraction, values)) * 2**64
    found = passes.total(values)
    if found is None:
        fits = [Fraction(one) * 2**64 for one in values]
        assert any(one.denominator > 1 or abs(one) >= 2**112 for one in fits)
    else:
        assert found == exact


@pytest.mark.parametrize("odd", [1, True, None, "1", float("nan"), float("inf"), 2.0**60, 2.0**-65])
def test_a_sum_of_what_has_no_such_unit_is_left_to_python(odd):
    assert passes.total([1.0]) == 2**64
    assert passes.total([1.0, odd]) is None


odd_floats = st.sampled_from([float("nan"), float("inf"), 2.0**60, 2.0**-65, 5e-324])


@given(
    st.lists(st.lists(st.none() | floats | odd_floats, max_size=40), max_size=3),
    st.sampled_from([1, 2**64, 2**1074]),
    st.booleans(),
)
def test_what_is_read_of_events_is_added_as_their_values_are(runs, unit, squared):
    """Whatever unit the sum has come to, and what is left to Python among it."""
    read, taken = Moments(squared), Moments(squared)
    for moments in (read, taken):
        moments.refine(max(unit, moments.unit))
    with python_alone():
        done = Moments(squared).take_read([], "a_x")
    assert not done
    for run in runs:
        events = [Other(id=str(at), end=at, a_x=value) for at, value in enumerate(run)]
        values = [value for value in run if value is not None]
        if not read.take_read(events, "a_x"):
            fits = [value for value in values if passes.total([value]) is not None]
            assert not run or squared or len(fits) < len(values)
            values = fits
            read.take(values)
        taken.take(values)
    assert read.plain() == taken.plain()
    assert read.mean() == taken.mean()


def test_sums_of_what_is_no_float_in_a_slot_are_left_to_python():
    one = Reading(id="1", end=1, a_n=1, a_x=0.5)
    assert passes.read_total([one] * 40, "a_x") == (40, 20 * 2**64)
    assert passes.read_total([one], "a_t") == (0, 0)
    assert passes.read_total([one], "a_n") is None
    assert passes.read_total([one], "nothing") is None
    assert passes.read_total([one, Other(id="2", end=2, a_x=1.0)], "a_x") is None
    assert passes.read_total([one, object()], "a_x") is None
    assert passes.read_total((one,), "a_x") is None
    assert passes.read_total([], "a_x") is None


class Louder(Event):
    __slots__ = ()


def test_readings_are_sorted_as_they_come():
    events = [Event(kind, id=str(at), timestamp=at, v=1.0) for at, kind in enumerate("abcabba")]
    found = taken_out(events)
    assert found is not None
    typed, by_class = found
    assert typed == [event.typed for event in events]
    assert list(by_class.items()) == list(sorted_by_class(typed).items())
    assert [type(one) for one in by_class.values()] == [list] * 3


@pytest.mark.parametrize(
    "odd",
    [
        Louder("a", id="1", timestamp=1),
        Event("a", timestamp=1),  # without an id: intake has to say
        {"type": "a", "id": "1", "timestamp": 1},
        None,
    ],
)
def test_readings_among_others_are_left_to_python(odd):
    good = Event("a", id="0", timestamp=0)
    assert passes.readings([good, odd], Event) is None
    assert passes.readings((good,), Event) is None
    assert passes.readings([good], int) is None


def test_readings_of_very_many_types_are_left_to_python():
    few = [Event(f"T{at}", id="1", timestamp=1) for at in range(96)]
    assert len(passes.readings(few, Event)[1]) == 96
    assert passes.readings([*few, Event("T96", id="1", timestamp=1)], Event) is None


def conditions(text: str) -> Any:
    checked = check_text(
        "event Reading(n: int, x: float, t: text)\n"
        f"subscription S from u to a detect Reading({text})"
    ).demand()
    (task,) = checked.graph.tasks.values()
    case: Case = task.node.case
    return case.detect.pattern.conditions


# --- results ----------------------------------------------------------------------------------

DECLARED = "event A(v: float, n: int, t: text)\nevent B(v: float)\nevent C(v: float)\n"
RESULTS = {
    "one place": "detect A as a",
    "two places": "detect A as a and B as `b-2` within 9 s",
    "groups": "detect A as a then B as b within 9 s group by location, source",
    "a definition": "detect D as d",
    "a list": "detect A as a then B+ as b within 9 s",
    "a place that may stay empty": "detect A as a or B as b",
    "an assignment": "detect A as a and B as b within 9 s assign sum = a.v + b.v",
    "a long name": f"detect A as {'a' * 40} and B as é within 9 s",
}
DEFINED = (
    "define D(v) detect B as b and C as c within 9 s assign v = b.v + c.v\n"
    "subscription S seq 3 from u to {actor}\n"
)
ids = st.sampled_from(["e1", "e2", "", "x" * 31, "x" * 32, "x" * 256, "ü", "e\U0001f600"])
milliseconds = st.sampled_from([0, 1, 127, 128, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32])
moments = milliseconds | st.builds(lambda at: 1_700_000_000_000 + at, milliseconds)
mappings = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["A", "B", "C"]),
            "id": ids,
            "timestamp": moments,
            "v": st.sampled_from([-1.5, 0.0, 3.25]),
        },
        optional={
            "location": st.sampled_from(["hall", "höf"]),
            "source": st.sampled_from(["s", "ß"]),
        },
    ),
    max_size=8,
)


def engines(text: str, **given_to: Any) -> Iterator[Engine]:
    """Of one text: with the passes, and of Python alone."""
    yield Engine(text, **given_to)
    with python_alone():
        yield Engine(text, **given_to)


@pytest.mark.parametrize("detect", RESULTS.values(), ids=RESULTS)
@FEWER
@given(items=mappings)
def test_results_say_the_same(detect, items):
    text = DECLARED + DEFINED.format(actor="alerts") + detect
    given_to = [engine.push(items, skip_bad=True) + engine.finish() for engine in both(text)]
    assert given_to[0] == given_to[1]
    for one, other in zip(*given_to, strict=True):
        assert list(one) == list(other)
        assert [list(one[key]) for key in ("group", "values", "events")] == [
            list(other[key]) for key in ("group", "values", "events")
        ]


def both(text: str) -> list[Engine]:
    return list(engines(text, lateness_ms=None))


@given(st.binary(max_size=600).map(lambda data: data.decode("latin-1")), st.integers(0, 2**62))
def test_an_id_is_the_digest_of_what_is_bound(name, end):
    ascii_id = "".join(chr(ord(letter) % 128) for letter in name) or "e"
    text = DECLARED + DEFINED.format(actor="alerts") + "detect A as a"
    end %= 10**12
    (result,) = Engine(text).push([Event("A", id=ascii_id[:256], timestamp=end, v=1.0)])
    (task,) = [one for one in check_text(text).demand().graph.tasks.values() if one.name == "S"]
    assert result["id"] == digest("occurrence", task.key, 0, [("a", [(ascii_id[:256], end)])])


def test_ids_of_any_length_are_digested():
    """Those among them that fill a block of the digest, or two."""
    text = DECLARED + DEFINED.format(actor="alerts") + "detect A as a"
    events = [Event("A", id="x" * at, timestamp=1_000 * at, v=1.0) for at in range(1, 257)]
    found = [engine.push(events) for engine in engines(text)]
    assert len(found[0]) == 256
    assert found[0] == found[1]


class Told:
    """A result of another kind."""

    def __init__(self, said: Any) -> None:
        self.said = said

    def to_dict(self) -> Any:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


def test_results_of_another_kind_tell_themselves():
    others: Any = [Told({"a": 1}), Told({"b": 2})]
    assert told(others) == [{"a": 1}, {"b": 2}]
    with pytest.raises(ValueError, match="no"):
        told([*others, Told(ValueError("no"))])


# --- all together -----------------------------------------------------------------------------

RANGES = [
    f'subscription S{at} seq 1 from u to a detect A(location = "{place}", {low} <= v <= {low + 2})'
    for at, (place, low) in enumerate((p, x / 2) for p in ("hall", "höf") for x in range(-4, 4))
]
SPECIFICATIONS = {
    "ranges": "\n".join(RANGES),
    "ranges and all": "\n".join([*RANGES, "subscription All seq 1 from u to a detect A"]),
    "ranges of integers": "\n".join(one.replace(" v <", " n <") for one in RANGES),
    "open ranges": "\n".join(one.split(", ")[0] + f", n < {at})" for at, one in enumerate(RANGES)),
    "places": "\n".join(
        f'subscription S{at} seq 1 from u to a detect A(location = "{place}")'
        for at, place in enumerate(["hall", "höf", *(f"p{at}" for at in range(10))])
    ),
    "few": "\n".join(
        f"subscription S{at} seq 1 from u to a detect A({text})"
        for at, text in enumerate(["v > 0", "v > 1", "v < -1, n = 1", "v != 0"])
    ),
    "chain": "subscription S seq 1 from u to a detect[first] A then B then C within 9 s"
    " group by location",
    "list": "subscription S seq 1 from u to a detect A then B+ then C(v > 0) within 9 s"
    " group by location",
    "chain by two": "subscription S seq 1 from u to a detect[first] A then B then C within 9 s"
    " group by location, v",
    "any order": "subscription S seq 1 from u to a detect A and B and C within 3 s group by v",
    "without groups": "subscription S seq 1 from u to a detect[first] A then B then C within 5 s",
    "chronicle": "subscription S seq 1 from u to a detect[chronicle] (A and B) then C within 5 s"
    " group by location",
    "means": "define M(m) aggr every 3 s detect A assign m = Avg(A.v) group by location\n"
    "subscription S seq 1 from u to a detect M",
    "means by two": "define M(m) aggr every 3 s detect A assign m = Avg(A.v) group by location, n\n"
    "subscription S seq 1 from u to a detect M",
    "means by number": "define M(m) aggr every 3 s detect A assign m = Avg(A.v) group by v\n"
    "subscription S seq 1 from u to a detect M",
    "sums of what may be null": "define M(m, o) aggr every 3 s detect A assign m = Avg(A.v),"
    " o = Sum(A.n) + Sum(A.v) group by location\n"
    "subscription S seq 1 from u to a detect M",
    "means of all": "define M(m) aggr every 2 s detect A assign m = Avg(A.v)\n"
    "subscription S seq 1 from u to a detect M",
    "means that overlap": "define M(m) aggr every 1 s range 4 s detect A assign m = Sum(A.v)"
    " group by location\n"
    "subscription S seq 1 from u to a detect M",
    "pairs": "subscription S seq 1 from u to a detect A and B(v > 0) within 3 s",
}
kinds = st.sampled_from(["A", "A", "A", "B", "C"])
made_events = st.builds(
    lambda kind, at, v, place, name, more: Event(
        kind,
        id=f"e{name}",
        timestamp=1_000 * at + name % 7,
        **({} if place is None else {"location": place}),
        v=v,
        **(more if kind == "A" else {}),
    ),
    kinds,
    st.integers(0, 12),
    st.integers(-6, 6).map(lambda v: v / 2),
    st.sampled_from([None, "hall", "hall", "höf", "nowhere"]),
    st.integers(0, 40),
    st.sampled_from([{}, {"n": 1}, {"n": 2**60, "t": "é"}]),
)


@pytest.mark.parametrize("text", SPECIFICATIONS.values(), ids=SPECIFICATIONS)
@pytest.mark.parametrize("lateness_ms", [0, 4_000])
@FEWER
@given(batches=st.lists(st.lists(made_events, max_size=12), max_size=4))
def test_an_engine_does_the_same(text, lateness_ms, batches):
    """Also in what it counts, and in the state that it hands on."""
    found = []
    for engine in engines(DECLARED + text, lateness_ms=lateness_ms):
        results = [engine.push(batch) for batch in batches]
        state = engine.state()
        found.append((results, state, engine.finish(), engine.counts))
    assert found[0] == found[1]


def test_what_ends_with_a_run_begins_no_other():
    """Also where it comes after the event that completes the run, in order."""
    told_of = zip("ABCABC", "abcdef", (1, 2, 3, 3, 4, 5), strict=True)
    events = [Event(k, id=n, location="hall", timestamp=t, v=1.0) for k, n, t in told_of]
    text = DECLARED + SPECIFICATIONS["chain"]
    for engine in engines(text):
        found = engine.push(events) + engine.finish()
        assert [one["events"] for one in found] == [{"A": ["a"], "B": ["b"], "C": ["c"]}]


def test_subscriptions_that_come_and_go_are_found_all_the_same():
    """What stands behind a hash is told anew to the pass."""
    wanted = [conditions(f'location = "hall", {at} <= x < {at + 3}') for at in range(12)]
    events = [
        Reading(id=str(at), location="hall", start=at, end=at, a_x=at / 1.0) for at in range(9)
    ]
    filterer = Filterer()
    at_once = (lambda *made: made[3].id,)
    held: list[int] = []
    for one in wanted:
        held.append(filterer.add("Reading", one))
        filterer.make_at_once(held[-1], at_once)
    for gone in (None, 3, 0, 11):
        if gone is not None:
            filterer.remove(held[gone])
        made: list[Any] = []
        assert filterer.route(events, made=made) == []
        there = [at for at, content in enumerate(held) if content in filterer._by_id]
        assert made == [
            str(event.end) for event in events for at in there if at <= event.end < at + 3
        ]
    filterer.make_at_once(held[5], ())
    made = []
    (told_of,) = filterer.route(events, made=made)
    assert told_of == (held[5], events[5:8])


def test_what_a_maker_raises_is_raised():
    wanted = [conditions(f'location = "hall", {at} <= x < {at + 3}') for at in range(12)]
    filterer = Filterer()
    for one in wanted:
        filterer.make_at_once(filterer.add("Reading", one), (partial(int, "no"),))
    with pytest.raises(TypeError):
        filterer.route([Reading(id="1", location="hall", start=1, end=1, a_x=4.0)])


def test_no_more_is_kept_than_python_keeps():
    """A reference too many would keep events for ever; one too few would crash sooner or later."""
    shared = (None, True, False, (), Event, "A", "hall")

    def run() -> tuple[list[int], int]:
        """By how many references, and by how much memory, 5,000 events change what is held."""
        names = ("ranges", "few", "means", "list")
        several = [Engine(DECLARED + SPECIFICATIONS[name]) for name in names]
        before = [sys.getrefcount(one) for one in shared]
        tracemalloc.start()
        for start in range(0, 10_000, 100):
            told_of = [(f"e{at}", at, at % 5 - 2.0) for at in range(start, start + 50)]
            events = [Event("A", id=n, location="hall", timestamp=t, v=v) for n, t, v in told_of]
            assert any([engine.push(events) for engine in several])  # noqa: C419 - all of them
            passes.readings([*events, None], Event)
        del events
        gc.collect()
        traced = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        after = [sys.getrefcount(one) for one in shared]
        return [b - a for a, b in zip(before, after, strict=True)], traced

    run()  # what is kept once and for all
    references, traced = run()
    with python_alone():
        wanted, python_traced = run()
    assert all(abs(a - b) < 500 for a, b in zip(references, wanted, strict=True))
    assert traced < python_traced + 200_000


# --- how it comes there -----------------------------------------------------------------------


@pytest.mark.parametrize(("value", "is_compiled"), [("1", False), ("0", True), ("", True)])
def test_the_environment_may_ask_for_python_alone(value, is_compiled):
    script = "from broker.engine import native; print(native.passes is not None)"
    environ = {**os.environ, "HEADWATER_PURE_PYTHON": value}
    command = [sys.executable, "-c", script]
    said = subprocess.run(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, check=True)
    assert said.stdout.decode().strip() == str(is_compiled)
