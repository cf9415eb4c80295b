"""What runs apart finds together what the whole finds, and nothing runs apart that may meet."""

import json
import random
from collections import Counter, defaultdict
from pathlib import Path

import pyarrow as pa
import pytest

from language import check_text
from server.config import read
from server.detection.event_batches import ShardPacking, unpacked
from server.detection.program import DetectionProgram, checked
from server.detection.shards import SHARDS, parts_of, shards_of
from server.errors import JobsError
from server.jobs.kinds import frame_of, program_of
from server.jobs.reading import IN_STEP_ROWS, SPREAD_ROWS
from tests.oracles.generate import CONSTRUCTS, CONTEXTS, random_case
from tests.oracles.render import text_of
from tests.server.logs import FakeLog, event_from, result
from tests.server.test_detection import end_of, on_spark, plain, replayed
from tests.server.test_on_spark import jobs_file, run_once, said, table

MOVES = Path(__file__).resolve().parents[2] / "examples" / "server" / "moves.hw"

HEAD = """
event A(tag: text, room: text, n: int)
event B(tag: text, room: text, n: int)
"""


def subscription(text, name="S", assign="", group=""):
    return f"subscription {name} seq 1 from me to desk detect {text} {assign} {group}\n"


def keys_of(*texts):
    return [part.key for part in parts_of(DetectionProgram(HEAD + "".join(texts)))]


def test_the_shipped_example_runs_in_two_parts_each_by_tag():
    parts = parts_of(checked(MOVES))
    assert [(part.names, part.key) for part in parts] == [
        (("Unpaid",), "tagID"),
        (("Wandering",), "tagID"),
    ]


@pytest.mark.parametrize(
    ("pattern", "key"),
    [
        ("A as a then B as b where a.tag = b.tag", "tag"),
        ("A as a and B as b within 10 s where a.tag = b.tag", "tag"),
        ("A as a then B as b then A as c where a.tag = b.tag = c.tag", "tag"),
        ("A as a then B as b then A as c where a.tag = b.tag and c.tag = b.tag and a.n > 1", "tag"),
        ("A as a then B as b then A as c where a.tag = b.tag and a.room = c.room", None),
        ("A as a then B as b where a.tag = b.room", None),
        ("A as a then B as b where a.tag = b.tag or a.n > 1", None),
        ("A as a then B as b where not a.tag = b.tag", None),
        ("A as a then B as b where a.tag != b.tag", None),
        ("A as a then B as b without A as c where a.tag = b.tag", None),
        ("A as a then B as b without A as c where a.tag = b.tag and c.tag = a.tag", "tag"),
        ("A as a then[..9 s, next] B as b where a.tag = b.tag", None),
        ("A as a then[..9 s, recent] B as b where a.tag = b.tag", None),
        ("(A as a){2} then B as b", None),
        ("A as a or B as b", None),
        ("A as a", None),
    ],
)
def test_conditions_that_make_events_agree_give_a_key(pattern, key):
    text = HEAD + subscription(pattern)
    assert check_text(text).ok, check_text(text).report()
    assert keys_of(subscription(pattern)) == [key]


def test_a_choice_among_all_events_gives_none():
    pattern = "A as a then B as b where a.tag = b.tag"
    assert keys_of(subscription(pattern).replace("detect", "detect[recent]")) == [None]
    assert keys_of(subscription(pattern, assign="consuming a")) == [None]
    assert keys_of(subscription(pattern, group="group by room")) == ["room"]


C = "define C({names}) detect A as a assign {assign} {group}\n"


@pytest.mark.parametrize(
    ("assign", "group", "consumer", "key"),
    [
        ("tag = group.tag", "group by tag", "group by tag", "tag"),
        ("tag = a.room", "group by tag", "group by tag", None),
        ("tag = a.tag", "", "group by tag", "tag"),
        ("tag = group.tag", "group by tag", "", None),
        ("room = group.tag", "group by tag", "group by room", None),
    ],
)
def test_a_detected_event_has_to_carry_the_key(assign, group, consumer, key):
    define = C.format(names=assign.partition(" ")[0], assign=assign, group=group)
    if not group and key:  # each by itself: of one event all agree
        key = None
    assert keys_of(define, subscription("C as c then B as b", group=consumer)) == [key]


def test_subscriptions_that_share_a_definition_stay_together():
    define = C.format(names="tag", assign="tag = group.tag", group="group by tag")
    first = subscription("C as c", "S", group="group by tag")
    second = subscription("C as c then B as b", "T", group="group by tag")
    third = subscription("B as b", "U")
    parts = parts_of(DetectionProgram(HEAD + define + first + third + second))
    assert [(part.names, part.key) for part in parts] == [(("S", "T"), "tag"), (("U",), None)]
    assert [sorted(part.types) for part in parts] == [["A", "B"], ["B"]]


def test_values_that_are_equal_are_in_one_shard():
    (part,) = parts_of(DetectionProgram(HEAD + subscription("A as a", group="group by n")))
    assert part.key == "n"
    shards = [part.shard({"type": "A", "n": value}) for value in (1, 1.0)]
    assert len(set(shards)) == 1
    spread = Counter(part.shard({"type": "A", "n": value}) for value in range(1000))
    assert len(spread) == SHARDS
    assert part.shard({"type": "A"}) is None
    assert part.shard({"type": "Z", "n": 1}) is None
    assert part.shard({"type": "A", "n": 10**400}) in range(SHARDS)


def test_a_job_that_nothing_keeps_apart_is_refused(tmp_path):
    jobs = """
[sources.region]
brokers = { a = "http://127.0.0.1:1" }
[jobs.both]
kind = "detect"
source = "region"
specification = "both.hw"
parted = true
sink = "shown"
[sinks.shown]
kind = "console"
"""
    (tmp_path / "jobs.toml").write_text(jobs)
    (tmp_path / "both.hw").write_text(HEAD + subscription("A as a then B as b"))
    read_jobs = read(tmp_path / "jobs.toml")
    with pytest.raises(JobsError, match=r"jobs\.both: it cannot run in parts: there is nothing by"):
        program_of(read_jobs, read_jobs.jobs["both"], raw=False)
    (tmp_path / "both.hw").write_text(MOVES.read_text())
    program_of(read_jobs, read_jobs.jobs["both"], raw=False)


def apart(text, events, seed):
    """What the shards find, each by itself."""
    draw = random.Random(seed)
    shards = shards_of(DetectionProgram(text, raw=True))
    by_shard = defaultdict(list)
    for event in events:
        for key in shards.keys(event):
            by_shard[key].append(event)
    results = []
    for key in sorted(by_shard):
        results += on_spark(shards.program_of(key).text, by_shard[key], draw)
    return shards, results


TEXTS = [
    MOVES.read_text().replace("10 mins", "10 s"),
    HEAD
    + C.format(names="tag, n", assign="tag = group.tag, n = a.n", group="group by tag")
    + subscription("C as c then B as b where b.n >= c.n", "S", "assign n = c.n", "group by tag")
    + subscription("A as a and B as b within 5 s where a.room = b.room", "T", "assign n = b.n"),
    HEAD
    + "define Sums(tag, total) aggr every 10 s detect A as a"
    + " assign tag = group.tag, total = Sum(a.n) group by tag, room\n"
    + subscription("Sums(total > 3) as s then Sums as t", "S", "assign n = t.total", "group by tag")
    + subscription("A as a then B as b then A as c where a.tag = b.tag = c.tag", "T"),
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("seed", range(6))
def test_shards_find_what_the_whole_finds(text, seed):
    draw = random.Random(seed)
    events = []
    for n in range(150):
        kind = "Stays" if "Stays" in text else draw.choice("AB")
        tag = draw.choice(["c1", "c2", "c3", "c4", None])
        event = {"type": kind, "id": f"e{n}", "timestamp": 1000 + 400 * n, "n": draw.randrange(5)}
        event |= {"source": "s", "room": draw.choice("xyz"), "location": "hall"}
        event["readerID"] = draw.choice(["shelf", "exit", "counter"])
        event |= {} if tag is None else {"tag": tag, "tagID": tag}
        event = {
            name: value for name, value in event.items() if kind == "Stays" or name[-2:] != "ID"
        }
        events.append(event)
    shards, found = apart(text, events, seed)
    assert shards.worthwhile
    expected = replayed(text, events)
    assert plain(found) == plain(expected)
    assert len({result["subscription"] for result in expected}) == len(shards.parts)


def test_generated_specifications_run_apart_where_they_may():
    """Grouped by what the generator groups by, under all operators and contexts."""
    tried = 0
    for seed in range(400):
        draw = random.Random(seed)
        construct, context = draw.choice(list(CONSTRUCTS)), draw.choice(list(CONTEXTS))
        spec, events = random_case(seed, construct, context)
        text = text_of(spec)
        if not check_text(text).ok or "absent" in text or any(end_of(one) <= 0 for one in events):
            continue
        if shards_of(DetectionProgram(text, raw=True)).worthwhile:
            _, found = apart(text, events, seed)
            assert plain(found) == plain(replayed(text, events)), text
            tried += 1
    assert tried >= 20


def test_rows_of_a_page_become_one_row_for_each_shard():
    shards = shards_of(DetectionProgram(HEAD + TEXTS[1].removeprefix(HEAD), raw=True))
    texts = [
        f'{{"type":"A","id":"{n}","timestamp":{n},"tag":"t{n % 40}","room":"r"}}' for n in range(80)
    ]
    texts.append('{"type":"A","tag":"t1"}')
    columns = {"_key": [None] * 81, "payload": texts, "broker": ["b"] * 81}
    columns["mark_ms"] = pa.array([None] * 81, pa.int64())
    (packed,) = ShardPacking(shards)([pa.RecordBatch.from_pydict(columns)])
    keys = packed.column("_key").to_pylist()
    assert len(set(keys)) == len(keys)
    assert {key.partition("/")[0] for key in keys} == {"0", "1"}
    sizes = [len(unpacked(events)) for events in packed.column("events").to_pylist()]
    assert sum(sizes) == 160


ON_SPARK = """
event Frost(n: int)
event Heat(n: int)
subscription Same seq 1 from team to desk
  detect Frost as a then[..5 s] Heat as b where a.location = b.location and a.n > 3
subscription Three seq 1 from team to desk
  detect (Frost as a){3} within 1 min
  assign n = group.n, seen = Count(a)
  group by n
subscription All seq 1 from team to desk
  detect Heat as a then[..5 s, next] Heat as b
"""
JOB = """
[jobs.apart]
kind = "detect"
source = "region"
specification = "apart.hw"
longest = "1 min"
delay = "0 s"
parted = true
sink = "db"
"""


class AskedError(Exception):
    """Raised in the place of a stream, with the options that were given to its source."""


class NoSpark:
    """A session of two cores that goes no further than to the options of a source."""

    def __init__(self):
        self.sparkContext = self.readStream = self.dataSource = self
        self.defaultParallelism = 2

    def register(self, _source):
        pass

    def format(self, _name):
        return self

    def options(self, **given):
        raise AskedError(given)


@pytest.mark.parametrize(
    ("parted", "text", "batch_rows"),
    [
        ("true", "A as a then B as b where a.tag = b.tag", SPREAD_ROWS),
        ("true", "A as a then B as b", SPREAD_ROWS),  # by location
        ("true", "A as a then B as b where a.n = 1", IN_STEP_ROWS),  # all of its events meet
        ("false", "A as a then B as b where a.tag = b.tag", IN_STEP_ROWS),
    ],
)
def test_a_batch_is_as_large_as_one_engine_takes_well(tmp_path, parted, text, batch_rows):
    by_location = "group by location" if text.endswith("as b") else ""
    other = "" if by_location else subscription("A as a then B as b where a.tag = b.tag", "T")
    (tmp_path / "apart.hw").write_text(HEAD + subscription(text, group=by_location) + other)
    job = JOB.replace("parted = true", f"parted = {parted}")
    (tmp_path / "jobs.toml").write_text(f"""
        [sources.region]
        brokers = {{ a = "http://127.0.0.1:1" }}
        [sinks.db]
        kind = "database"
        url = "sqlite:///{tmp_path}/out.db"
        {job}
    """)
    jobs = read(tmp_path / "jobs.toml")
    with pytest.raises(AskedError) as asked:
        frame_of(NoSpark(), jobs, jobs.jobs["apart"], "consumer")
    assert asked.value.args[0]["maxRowsPerBatch"] == str(batch_rows)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_spark_runs_parts_and_shards_and_goes_on(spark, tmp_path):
    with FakeLog("ea") as a, FakeLog("eb") as b:
        logs = {"a": a, "b": b}
        file = jobs_file(tmp_path, logs, JOB, batch_rows=60)
        (tmp_path / "apart.hw").write_text(ON_SPARK)
        draw = random.Random(7)
        for begin in (0, 100):
            for n in range(begin, begin + 100):
                for shift, (name, log) in enumerate(logs.items()):
                    kind = draw.choice(["Frost", "Heat"])
                    row = result(n % 7, 1000 * n + 400 * shift + 500, kind, f"hall-{n % 3}")
                    log.add(row | {"id": f"{name}-{n}"})
            run_once(spark, file)
        for log in logs.values():
            log.add(result(0, 36_000_000, "End"))
            log.add(result(0, 72_000_000, "End"))
        run_once(spark, file)
        events = [event_from(each, broker) for broker, each in said(logs)]
        expected = [each for each in replayed(ON_SPARK, events) if each["end"] < 30_000_000]
        rows = [json.loads(row["payload"]) for row in table(tmp_path, "apart")]
        assert plain(rows) == plain(expected)
        assert {each["subscription"] for each in expected} == {"Same", "Three", "All"}
