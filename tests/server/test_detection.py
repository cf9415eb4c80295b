"""Continued detection gives what a replay gives, however Spark cuts and moves it.

`Spark` here is what Spark does with the operator, in a few lines: rows of a batch in any order, a
watermark that follows the batches before, timers, and state as bytes. The real one runs in
`test_on_spark.py`.
"""

import json
import random
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql.streaming.tws_tester import TwsTester
from pyspark.sql.types import Row

import headwater
from language import check_text
from server.detection.course import DetectionCourse, waiting_of
from server.detection.event_batches import Packing, pack, unpacked
from server.detection.processor import Detector
from server.detection.program import DetectionProgram, checked, needs_one_place, specification_of
from server.detection.result_batches import packed_results, packed_rows, unpacked_results
from server.detection.times import end_of
from server.errors import JobsError
from tests.oracles.generate import CONSTRUCTS, CONTEXTS, random_case
from tests.oracles.render import text_of
from tests.server.logs import event_from, result
from tests.simulation.network.spread import ASSIGNED_MS
from tests.streams import lasted

NEVER_MS = 2**53


@pytest.fixture(autouse=True, scope="module")
def _parts_of_few_events():
    """As many parts as a large batch has, from the few events of a generated case."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("server.detection.course.PART", 3)
        yield


class Spark:
    """One key of the operator; `moves` is how often another process goes on."""

    def __init__(self, program, draw, delay_ms):
        self.program, self.draw, self.delay_ms = program, draw, delay_ms
        self.courses = [DetectionCourse(program), DetectionCourse(program)]
        self.engine = self.waiting = None
        self.results = []
        self.newest = 0
        self.timers = set()

    def batch(self, events):
        watermark = max(0, self.newest - self.delay_ms)
        rows = [(json.dumps(one), "b") for one in events if end_of(one) > watermark]
        assert len(rows) == len(events), "a row was late"
        if rows:
            self._call(watermark, rows)
            self.newest = max([self.newest, *map(end_of, events)])
        self._expire(watermark)

    def _expire(self, watermark):
        while self.timers and min(self.timers) <= watermark:
            self.timers.remove(min(self.timers))
            self._call(watermark, [])

    def _call(self, watermark, rows):
        course = self.draw.choice(self.courses)
        waiting = waiting_of(self.waiting)
        waiting.events += unpacked(pack(self.program, rows))
        state, results = course.run("k", self.engine, waiting, watermark)
        self.engine = state or self.engine
        self.waiting = waiting.pack()
        self.timers = set() if waiting.timer_ms is None else {waiting.timer_ms}
        self.results += results

    def end(self, *, finished=True):
        """Nothing more comes; `finished`: what is due at the end of all time as well."""
        self.newest = NEVER_MS + self.delay_ms
        self.batch([])
        if not finished:
            return self.results
        course = DetectionCourse(self.program)
        return self.results + course._load("k", self.engine).finish()


def replayed(text, events):
    engine = headwater.Engine(text, lateness_ms=None)
    engine.push(events)
    return engine.finish()


def on_spark(text, events, draw, *, finished=True):
    """Events in batches, disordered by no more than the delay of the watermark."""
    longest_ms = max([ASSIGNED_MS, *(lasted(event) for event in events)])
    delay_ms = draw.choice([0, 500, 5_000])
    spark = Spark(DetectionProgram(text, longest_ms=longest_ms, raw=True), draw, delay_ms)
    waiting = sorted(events, key=lambda one: end_of(one) + draw.uniform(0, delay_ms))
    while waiting:
        at = draw.randint(1, len(waiting))
        batch, waiting = waiting[:at], waiting[at:]
        newest = max([spark.newest, *map(end_of, batch)])
        # What the next watermark would make late comes with this batch.
        batch += [one for one in waiting if end_of(one) <= newest - delay_ms]
        waiting = [one for one in waiting if end_of(one) > newest - delay_ms]
        spark.batch(draw.sample(batch, len(batch)))
    return spark.end(finished=finished)


def plain(results):
    return sorted(json.dumps(one, sort_keys=True) for one in results)


def compare(construct, context, seed):
    """Whether the case could be compared, and whether it has results."""
    spec, events = random_case(seed, construct, context)
    text = text_of(spec)
    found = check_text(text)
    if not found.ok or "absent" in text or any(end_of(one) <= 0 for one in events):
        return False, False
    expected = replayed(text, events)
    assert plain(on_spark(text, events, random.Random(seed))) == plain(expected), text
    return True, bool(expected)


@given(
    st.sampled_from(list(CONSTRUCTS)),
    st.sampled_from(list(CONTEXTS)),
    st.integers(min_value=0, max_value=10**6),
)
def test_generated_specifications_give_on_spark_what_a_replay_gives(construct, context, seed):
    compare(construct, context, seed)


@pytest.mark.long
@pytest.mark.timeout(900)
@given(
    st.sampled_from(list(CONSTRUCTS)),
    st.sampled_from(list(CONTEXTS)),
    st.integers(min_value=0, max_value=10**6),
)
def test_many_generated_specifications_do(construct, context, seed):
    compare(construct, context, seed)


def test_the_comparison_above_compares_something():
    cases = [compare(construct, "unrestricted", 1) for construct in CONSTRUCTS]
    assert sum(some for _, some in cases) > len(CONSTRUCTS) / 2


ABSENT = """
event Beat(n: int)
subscription Silent seq 1 from me to alerts detect absent Beat for 2 s
subscription Quick seq 1 from me to alerts detect Beat then[next] Beat as b within 1 s
"""
ABSENT = ABSENT.replace("detect Beat then", "detect Beat as a then")


@given(st.lists(st.integers(1, 60), min_size=1, max_size=15), st.integers(0, 99))
def test_silences_too(seconds, seed):
    events = [
        {"type": "Beat", "id": f"e{n}", "timestamp": 500 * at, "n": n}
        for n, at in enumerate(seconds)
    ]
    begin = min(end_of(one) for one in events)
    expected = [one for one in replayed(ABSENT, events) if one["start"] > begin]
    found = on_spark(ABSENT, events, random.Random(seed))
    assert plain(one for one in found if one["start"] > begin) == plain(expected)


# --- results as events ---------------------------------------------------------------------------


def test_a_result_keeps_its_id_and_interval_and_says_what_it_said():
    said = result(7, 5000, "cold/valley", location="hall", temp=-1.5, tags=["a"], none=None)
    assert event_from(said, "b1") == {
        "type": "cold_valley",
        "id": "cold/valley-hall-7",
        "start": 4500,
        "end": 5000,
        "source": "b1",
        "location": "hall",
        "certainty": "yes",
        "n": 7,
        "temp": -1.5,
    }


def test_values_of_an_alias_are_told_apart_and_types_can_be_named():
    said = result(7, 5000) | {"values": {"t": {"val": 2, "ok": True}}, "group": {"source": "s3"}}
    event = event_from(said, "b1", {"Frost": "Cold"})
    assert (event["type"], event["source"], event["t_val"], event["t_ok"]) == (
        "Cold",
        "s3",
        2,
        True,
    )
    assert "location" not in event


SHORTENED = """
event Frost(n: int, t_val: float, certainty: text)
event Heat(n: int)
subscription Pairs seq 1 from team to desk
  detect Frost as a then[..3 s] Heat as b where a.n <= b.n
subscription Doubts seq 1 from team to desk
  detect Frost as a where a.certainty != "yes" and a.t_val > 0 group by location
"""
RESULTS = st.builds(
    lambda name, end_ms, lasted_ms, values, more: (
        result(0, end_ms, name) | {"start": end_ms - lasted_ms, "values": values} | more
    ),
    st.sampled_from(["Frost", "Heat", "Other"]),
    st.integers(0, 9000),
    st.sampled_from([0, 0, 700]),
    st.dictionaries(
        st.sampled_from(["n", "m", "t", "location", "certainty", "position"]),
        st.one_of(
            st.integers(0, 3),
            st.sampled_from(["no", "hall", None]),
            st.fixed_dictionaries({"val": st.floats(-1, 1)}),
        ),
    ),
    st.sampled_from([{}, {"certainty": "maybe"}, {"group": {}}, {"group": {"n": 2}}]),
)


@example([result(0, 1000) | {"certainty": "maybe", "values": {"t": {"val": 0.5}}}])
@given(st.lists(RESULTS, max_size=12))
def test_what_an_engine_does_not_declare_it_need_not_get(tmp_path_factory, results):
    """The events that are packed for it give what whole ones give."""
    file = tmp_path_factory.getbasetemp() / "shortened.hw"
    file.write_text(SHORTENED)
    for place, each in enumerate(results):
        each["id"] = f"r{place}"
    packed = unpacked(pack(checked(file), [(json.dumps(each), "b1") for each in results]))
    found = []
    for events in (packed, [event_from(each, "b1") for each in results]):
        engine = headwater.Engine(SHORTENED, None)
        engine.push(events, skip_bad=True)
        found.append(engine.finish())
    assert found[0] == found[1]
    assert all(each["type"] != "Other" and "m" not in each for each in packed)


def test_an_engine_gets_a_reading_as_such(program):
    said = result(1, 4000, extra=2) | {"start": 4000}
    (event,) = unpacked(pack(program, [(json.dumps(said), "b1")]))
    assert event == {
        "type": "Frost",
        "id": "Frost-hall-1",
        "timestamp": 4000,
        "certainty": "yes",
        "n": 1,
        "source": "b1",
        "location": "hall",
    }


NEXT = """
event Frost(n: int, certainty: text)
subscription Long seq 1 from team to desk
detect Frost as a then[..3 s] Frost as b
group by location
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "next.hw").write_text(NEXT)
    return checked(tmp_path / "next.hw", longest_ms=1000)


def test_the_operator_as_spark_calls_it(program):
    """By the names of its arguments, with states, timers and keys."""
    tester = TwsTester(
        Detector(program),
        timeMode="EventTime",
        eventTimeExtractor=lambda row: max(map(end_of, unpacked(row["events"]))),
    )
    found = [json.dumps(result(n, end)) for n, end in [(2, 4000), (1, 2000), (3, 9000)]]
    rows = [
        Row(mark_ms=None, events=pack(program, [(one, "b1") for one in part]))
        for part in (found[:2], found[2:])
    ]
    assert tester.test("hall", rows) == []
    said = results_of(tester.setWatermark(5000))
    assert json.loads(said["events"]) == {"a": ["Frost-hall-1"], "b": ["Frost-hall-2"]}
    span = [said[name].timestamp() for name in ("start", "end")]
    assert (span, said["location"]) == ([1.5, 4.0], "hall")
    assert json.loads(said["group"]) == {"location": "hall"}


def results_of(rows):
    """The one result in rows of the operator."""
    packed = pa.RecordBatch.from_pydict({"results": [row["results"] for row in rows]})
    (batch,) = unpacked_results([packed])
    (said,) = batch.to_pylist()
    whole = json.loads(said["payload"])
    for name in ("id", "subscription", "subscriber", "actor", "certainty"):
        assert said[name] == whole[name]
    for name in ("group", "values", "events"):
        assert json.loads(said[name]) == whole[name]
        assert f'"{name}":{said[name]}' in said["payload"]
    return said


def test_what_the_mark_of_a_batch_has_passed_does_not_wait_for_the_next(program):
    """Spark's watermark is that of the batch before; timers are set and taken away by it."""
    tester = TwsTester(
        Detector(program),
        timeMode="EventTime",
        eventTimeExtractor=lambda row: max(map(end_of, unpacked(row["events"]))),
    )

    def row(mark_ms, *pairs):
        found = [(json.dumps(result(n, end)), "b1") for n, end in pairs]
        return Row(mark_ms=mark_ms, events=pack(program, found))

    found = tester.test("hall", [row(4500, (1, 2000)), row(4500, (2, 4000), (3, 9000))])
    said = results_of(found)
    assert json.loads(said["events"]) == {"a": ["Frost-hall-1"], "b": ["Frost-hall-2"]}
    # Those of before are still in the state: what waits is decided when Spark itself gets there.
    assert tester.test("hall", [row(4600, (4, 9500))]) == []
    later = tester.setWatermark(20_000)
    assert json.loads(results_of(later)["events"]) == {"a": ["Frost-hall-3"], "b": ["Frost-hall-4"]}


class KeptState:
    """A value of Spark's state, with all that was ever written."""

    def __init__(self):
        self.written = []

    def get(self):
        return self.written[-1] if self.written else None

    def update(self, value):
        self.written.append(value)


class Watermark:
    """What Spark tells of timers: the watermark is long ago."""

    def getCurrentWatermarkInMs(self):  # noqa: N802
        return 0


class Handle:
    """What Spark gives to an operator, whose timers nobody needs here."""

    def __init__(self):
        self.states = {}

    def getValueState(self, name, _schema):  # noqa: N802
        return self.states.setdefault(name, KeptState())

    def deleteTimer(self, _ms):  # noqa: N802
        pass

    registerTimer = deleteTimer  # noqa: N815


def test_what_waits_is_written_where_it_changed():
    text = "event Frost(n: int) subscription S seq 1 from a to b detect Frost group by location"
    detector, handle = Detector(DetectionProgram(text)), Handle()
    detector.init(handle)
    waiting = handle.states["waiting"]
    for marks, count in [([1000, 2000, 3000], 1), ([3500], 2), ([3600], 3), ([4000, 5000], 4)]:
        for mark_ms in marks:
            end_ms = 4000 if mark_ms in (3500, 3600) else mark_ms
            said = json.dumps(result(mark_ms, end_ms))
            row = Row(mark_ms=mark_ms, events=pack(DetectionProgram(text), [(said, "b1")]))
            list(detector.handleInputRows(("hall",), iter([row]), Watermark()))
        assert len(waiting.written) == count
    assert waiting_of(waiting.get()[0]).events == []


def test_an_event_waits_until_every_one_that_may_still_come_ends_after_it():
    course = DetectionCourse(
        DetectionProgram("event A(n: int) subscription S seq 1 from a to b detect A", raw=True)
    )
    waiting = waiting_of(None)
    waiting.events.append({"type": "A", "id": "a", "timestamp": 5001})
    assert course.run("k", None, waiting, 5000) == (None, [])
    assert (waiting.timer_ms, len(waiting.events)) == (5001, 1)
    state, (found,) = course.run("k", None, waiting, 5001)
    assert (found["end"], waiting.events, waiting.timer_ms) == (5001, [], None)
    assert state is not None


def test_an_event_without_a_time_is_passed_over_and_told(capsys):
    packed = pack(DetectionProgram(NEXT, raw=True), [('{"type":"Frost","timestamp":"noon"}', None)])
    assert unpacked(packed) == []
    assert "passed over" in capsys.readouterr().err


def test_rows_of_a_page_are_one_row_for_each_key(program):
    results = [result(n, 1000 * n, location=f"hall-{n % 3}") for n in range(10)]
    columns = {
        "_key": [one["group"]["location"] for one in results],
        "payload": [json.dumps(one) for one in results],
        "broker": ["north"] * 10,
        "mark_ms": [4000] * 10,
    }
    batches = [pa.RecordBatch.from_pydict(columns), pa.RecordBatch.from_pydict(columns).slice(0, 1)]
    first, second = Packing(program)(batches)
    said = dict(zip(*(first.column(name).to_pylist() for name in ("_key", "events")), strict=True))
    assert list(said) == ["hall-0", "hall-1", "hall-2"]
    for key, packed in said.items():
        own = [one for one in results if one["group"]["location"] == key]
        assert unpacked(packed) == [event_from(one, "north") for one in own]
    assert second.column("_key").to_pylist() == ["hall-0"]
    assert first.column("mark_ms").to_pylist() == [4000] * 3


def test_what_comes_behind_the_watermark_has_no_effect():
    """Spark sees rows of many events, and does not know which of them are late."""
    course = DetectionCourse(
        DetectionProgram("event A(n: int) subscription S seq 1 from a to b detect A", raw=True)
    )
    waiting = waiting_of(None)
    waiting.events.append({"type": "A", "id": "a", "timestamp": 5000})
    state, (found,) = course.run("k", None, waiting, 5000)
    waiting.events += [{"type": "A", "id": f"a{at}", "timestamp": at} for at in (5000, 4000, 5001)]
    _, (later,) = course.run("k", state, waiting, 6000)
    assert (found["end"], later["end"]) == (5000, 5001)
    # Of a key that is heard of for the first time nothing was decided: it is in time.
    waiting = waiting_of(None)
    waiting.events.append({"type": "A", "id": "b", "timestamp": 4000})
    _, (first,) = course.run("new", None, waiting, 6000)
    assert first["end"] == 4000


# --- programs ------------------------------------------------------------------------------------


def test_a_program_brings_its_tables_along(tmp_path):
    (tmp_path / "tags.csv").write_text("tagID,kind\nc7,toy\n")
    (tmp_path / "toys.hw").write_text(
        'event Read(tagID: text)\ntable Tags from "tags.csv" key tagID\n'
        'subscription Toys seq 1 from a to b detect Read as r where Tags[r.tagID].kind = "toy"\n'
    )
    program = checked(tmp_path / "toys.hw")
    Path(tmp_path / "tags.csv").unlink()
    assert specification_of(program).graph.roots
    assert DetectionCourse(program)._engine is not None


def test_a_faulty_text_is_refused_with_its_place(tmp_path):
    (tmp_path / "bad.hw").write_text("subscription X seq 1 from a to b detect Nothing")
    with pytest.raises(JobsError, match=r"bad\.hw:1:\d+: HW"):
        checked(tmp_path / "bad.hw")
    with pytest.raises(JobsError, match="cannot be read"):
        checked(tmp_path / "none.hw")


GROUPED = """
event A(n: int)
define B(location, n) detect A assign {assign} n = A.n {group}
subscription S seq 1 from me to alerts detect B as x then B as y group by location
"""


@pytest.mark.parametrize(
    ("assign", "group", "why"),
    [
        ("location = group.location,", "group by location", None),
        ("location = A.location,", "group by location", "does not assign location"),
        ("location = A.location,", "", "B is not grouped by location"),
    ],
)
def test_what_may_run_in_parts_by_location(assign, group, why):
    text = GROUPED.format(assign=assign, group=group)
    found = needs_one_place(specification_of(DetectionProgram(text)))
    assert (found is None) if why is None else (why in found)


@given(st.lists(st.integers(0, 12), max_size=20), st.integers(1, 30), st.integers(1, 6))
def test_a_value_holds_few_bytes_and_few_results_and_none_is_lost(sizes, bytes_max, results_max):
    rows = [{"n": n, "text": "x" * size} for n, size in enumerate(sizes)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("server.detection.result_batches.BYTES_MAX", 20 + bytes_max)
        patch.setattr("server.detection.result_batches.RESULTS_MAX", results_max)
        values = list(packed_rows(rows))
    batch = pa.RecordBatch.from_pydict({"results": pa.array(values, pa.binary())})
    held = [each.column("payload").to_pylist() for each in unpacked_results([batch])]
    assert [json.loads(row) for part in held for row in part] == rows
    for part in held:
        assert len(part) <= results_max
        assert len(part) == 1 or sum(map(len, part)) <= 20 + bytes_max
    # None could have been in the value before.
    for part, following in pairwise(held):
        assert len(part) == results_max or sum(map(len, part)) + len(following[0]) > 20 + bytes_max


@pytest.mark.parametrize(
    ("group", "values", "location"),
    [
        ({"location": "hall"}, {"location": "yard"}, "hall"),
        ({"location": None}, {"location": "yard"}, "yard"),
        ({}, {"location": 7}, "7"),
        ({"location": "é"}, {}, "é"),
        ({}, {"n": 1}, None),
    ],
)
def test_a_result_is_at_the_location_of_its_group_or_at_the_one_assigned(group, values, location):
    parts = {"group": group, "values": values}
    (packed,) = packed_results([result(1, 2) | parts, result(2, 3) | parts | {"events": None}])
    (batch,) = unpacked_results([pa.RecordBatch.from_pydict({"results": [packed]})])
    rows = batch.to_pylist()
    assert [row["location"] for row in rows] == [location] * 2
    assert [json.loads(row["events"] or "null") for row in rows] == [{"t": ["e-1"]}, None]
    assert [json.loads(row["group"]) for row in rows] == [group] * 2
