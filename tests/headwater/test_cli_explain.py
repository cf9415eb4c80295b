"""`headwater replay --explain`: which events made a result, and how far one that is missing got."""

import json
import random

import pytest

from broker.core.intake import IntakeOptions
from broker.engine.pattern.layout.pattern import lay_out
from headwater.cli import main
from headwater.engine import Pipeline
from headwater.explaining import pairs as pairs_module
from headwater.explaining import record as record_module
from headwater.explaining.funnel import Walk
from language import check_text

EVENTS = "event A(x: int)\nevent B(x: int)\nevent C(x: int)\n"
SHORT = "subscription S from me to alerts detect "


def event(name, id_, time_s, **more):
    return {"type": name, "id": id_, "timestamp": int(time_s * 1000)} | more


@pytest.fixture
def explain(tmp_path, capsys):
    """What is told of a text over events; `words` go on the command line."""

    def run(text, events, *words, status=0):
        spec, recorded = tmp_path / "spec.hw", tmp_path / "events.jsonl"
        spec.write_text(EVENTS + text)
        recorded.write_text("".join(json.dumps(one) + "\n" for one in events))
        assert main(["replay", str(spec), "--events", str(recorded), "--explain", *words]) == status
        return capsys.readouterr().out

    return run


# --- why --------------------------------------------------------------------------------------


def test_a_result_is_told_with_ids_times_and_places(explain):
    told = explain(
        f"{SHORT}A as a then[..5 s] B as b group by source",
        [
            event("A", "a1", 1, source="s1", location="hall", position=[45.5, 7]),
            event("B", "b1", 3.25, source="s1"),
        ],
    )
    assert told.splitlines()[:4] == [
        "S of me: 1 result",
        '  1. 1970-01-01T00:00:01.000Z to 1970-01-01T00:00:03.250Z source="s1"',
        "     a: A a1, 1970-01-01T00:00:01.000Z from s1 in hall at [45.5, 7.0]",
        "     b: B b1, 1970-01-01T00:00:03.250Z from s1",
    ]


def test_a_detected_event_is_told_with_the_readings_behind_it(explain):
    text = (
        "define D(x) detect A as a and B as b within 5 s assign x = a.x\n"
        f"define W(n) aggr every 10 s detect D assign n = Count(D)\n{SHORT}W as w"
    )
    events = [event("A", "a1", 1, x=1), event("B", "b1", 3, x=1)]
    told = explain(text, events)
    assert "     w: W, 1970-01-01T00:00:09.999Z, detected from" in told
    assert "\n       A a1, 1970-01-01T00:00:01.000Z\n       B b1, 1970-01-01T00:00:03" in told
    (line,) = explain(text, events, "--json").splitlines()
    (member,) = json.loads(line)["results"][0]["events"]["w"]
    assert (member["type"], member["detected_from"]) == ("W", ["a1", "b1"])
    assert [one["id"] for one in member["readings"]] == ["a1", "b1"]


def test_a_list_and_a_silence_are_told_as_what_they_are(explain):
    told = explain(f"{SHORT}A then B+ as bs then C", [
        event("A", "a1", 1), event("B", "b1", 2), event("B", "b2", 3), event("C", "c1", 4)
    ])  # fmt: skip
    assert [line.split(",")[0] for line in told.splitlines()[2:6]] == [
        "     A: A a1",
        "     bs: B b1",
        "     bs: B b2",
        "     C: C c1",
    ]
    assert "of no event: it is a silence" in explain(
        f"{SHORT}absent A for 2 s", [event("A", "a", 1)]
    )


def test_explaining_finds_what_the_replay_finds(explain, tmp_path, capsys):
    rng = random.Random(1)
    events = [event("ABC"[rng.randrange(3)], f"e{n}", n, x=rng.randrange(5)) for n in range(60)]
    text = (
        f"{SHORT}A as a then[recent] B as b within 9 s where a.x < b.x\n"
        "subscription T from me to alerts detect C{2}"
    )
    told = [json.loads(line) for line in explain(text, events, "--json").splitlines()]
    files = ["replay", str(tmp_path / "spec.hw"), "--events", str(tmp_path / "events.jsonl")]
    assert main(files) == 0
    replayed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for one in told:
        own = [result for result in replayed if result["subscription"] == one["subscription"]]
        assert [result["id"] for result in one["results"]] == [result["id"] for result in own]
        assert one["count"] == len(own) > 0


# --- why not ----------------------------------------------------------------------------------

NEAREST = ("1970-01-01T00:00:10.000Z", "1970-01-01T00:00:16.200Z")
TWELVE = [event("A", f"a{n}", n * 10, x=1) for n in range(12)]


def test_how_far_a_pattern_got_and_what_came_nearest(explain):
    """Of 3 B, one after 2 A, one after 5, one before all: 7 pairs in order, the nearest 6.2 s."""
    late = [event("B", "b1", 16.2), event("B", "b2", 47), event("B", "b0", -1)]
    told = explain(f"{SHORT}A as a then[..5 s] B as b", [*TWELVE, *late])
    assert told.splitlines()[:5] == [
        "S of me: no results",
        "  a: 12 events",
        "  b: 3 events",
        "  a then[..5 s] b: 36 pairs, 7 in this order, none with a gap of ..5 s",
        f"    nearest: a1 ({NEAREST[0]}) and b1 ({NEAREST[1]}) missed it by 1.2s",
    ]


NEAR = [0.0, 0.0]
FAR = [0.0, 1.0]  # a degree of longitude on the equator: 111,195 m by the earth's mean radius
MISSES = [
    ("A(x > 5)", [event("A", "a", 0, x=1)], ["A: 1 event, none with x > 5"]),
    ("A(x > 0, x > 5)", [event("A", "a", 0, x=1)], ["A: 1 event, none with x > 5"]),
    ("A in box(10, 10, 20, 20)", [event("A", "a", 0, position=NEAR)], ["none in box("]),
    ("A and B", [event("A", "a", 0)], ["A: 1 event", "B: no events"]),
    (
        "A and B within 5 s",
        [event("A", "a", 0), event("B", "b", 9)],
        ["none within 5 s", "missed it by 4s"],
    ),
    (
        "A then[3 s..] B",
        [event("A", "a", 0), event("B", "b", 1)],
        ["none with a gap of 3 s..", "missed it by 2s"],
    ),
    (
        "A then B",
        [event("A", "a", 4), event("B", "b", 1)],
        ["none in this order", "came 3s too early"],
    ),
    (
        "A and B spread 100 km",
        [event("A", "a", 0, position=NEAR), event("B", "b", 0, position=FAR)],
        ["none spread 100 km", "missed it by 11,195 m"],
    ),
    (
        "A and B spread 100 km",
        [event("A", "a", 0, position=NEAR), event("B", "b", 0)],
        ["B: 1 event, none with a position"],
    ),
    (
        "A as a and B as b where a.x < b.x",
        [event("A", "a", 0, x=5), event("B", "b", 0, x=4)],
        ["none where a.x < b.x", "had a.x = 5, b.x = 4"],
    ),
    (
        "A as a and B as b where a.x < b.x - 2",
        [event("A", f"a{n}", n, x=n) for n in range(5)] + [event("B", "b", 0, x=1)],
        ["5 pairs, 5 of different events, none where", "a0 (", "had a.x = 0, b.x = 1"],
    ),
    (
        "A and B within 2 s from A",
        [event("A", "a", 5), event("B", "b", 1)],
        ["none within 2 s from A"],
    ),
    ("A during B", [event("A", "a", 0), event("B", "b", 4)], ["none as `during` asks"]),
    (
        "A and B group by source",
        [event("A", "a", 0, source="s1"), event("B", "b", 0, source="s2")],
        ["no source has both: s1, but s2"],
    ),
    ("A group by source", [event("A", "a", 0)], ["none with source, by which is grouped"]),
    (
        "(A then B) without C",
        [event("A", "a", 0), event("C", "c", 1), event("B", "b", 2)],
        ["1 without it, none left", "as in a+b (1970-01-01T00:00:02.000Z), into which fell c"],
    ),
    (
        "absent A for 9 s",
        [event("A", "a0", 0), event("A", "a1", 8)],
        [],  # the last one is followed by silence
    ),
    (
        "absent A for 9 s then[..1 s] B",
        [event("A", "a0", 0), event("B", "b", 8)],
        ["1 pair, none in this order", "came 1s too early"],
    ),
    (
        "(absent A for 9 s) without B",
        [event("A", "a0", 0), event("B", "b", 4)],
        ["1 without it, none left", "into which fell b"],
    ),
    ("A{3}", [event("A", "a0", 0), event("A", "a1", 8)], ["the longest row was 2 of 3"]),
    ("nth 3 A", [event("A", "a0", 0), event("A", "a1", 8)], ["nth 3 of A: there were 2"]),
    (
        "A then B+ then C",
        [event("A", "a", 0), event("C", "c", 1)],
        ["nothing for the list B"],
    ),
    (
        "A then[..9 s] B(x > 1)+ as bs then[..3 s] C where Count(bs) >= 2",
        [
            event("A", "a", 0),
            event("B", "b1", 2, x=2),
            event("B", "b2", 4, x=2),
            event("B", "b3", 5, x=1),
            event("C", "c", 6),
        ],
        [
            "list bs: 2 pairs, 2 in its place, 2 with a gap of ..9 s after A",
            "after A, 1 with a gap of ..3 s before C",
            "1 with a member in each list that needs one, none where Count(bs) >= 2",
            "as in a+b2+c (1970-01-01T00:00:06.000Z), with 1 event in bs",
        ],
    ),
    (
        "A then B+ then[..3 s] C",
        [event("A", "a", 0), event("B", "b", 2), event("C", "c", 9)],
        [
            "list B: 1 pair, 1 in its place, none with a gap of ..3 s before C",
            "nearest: a+c (1970-01-01T00:00:09.000Z) and b (",
            "missed it by 4s",
        ],
    ),
    (
        "A then B+ as bs within 5 s where bs.x > A.x",
        [event("A", "a", 0, x=3), event("B", "b1", 2, x=3), event("B", "b2", 9, x=4)],
        ["list bs: 2 pairs, 2 in its place, 1 in time, none where bs.x > A.x"],
    ),
    (
        "A then B* as bs then C within 9 s spread 5 m",
        [
            event("A", "a", 0, position={"x": 0, "y": 0}),
            event("B", "b", 2, position={"x": 8, "y": 0}),
            event("C", "c", 4, position={"x": 1, "y": 0}),
        ],
        ["1 with a member in each list that needs one, 1 within 9 s, none spread 5 m"],
    ),
    (
        "A then[recent] B+ then[recent] C",
        [event("A", "a1", 1), event("B", "b", 2), event("A", "a3", 3), event("C", "c", 4)],
        ["met every condition that was looked at; then `then[recent]`", "left none"],
    ),
]


@pytest.mark.parametrize(("pattern", "events", "shown"), MISSES)
def test_each_operator_tells_what_ended_it(pattern, events, shown, explain):
    told = explain(SHORT + pattern, events)
    assert ("S of me: no results" in told) == bool(shown)
    assert [one for one in shown if one not in told] == []


def test_nothing_above_what_nothing_passed_is_told(explain):
    told = explain(f"{SHORT}(A and B within 1 s) then C", [
        event("A", "a", 0), event("B", "b", 9), event("C", "c", 20)
    ])  # fmt: skip
    assert "A and B: 1 pair" in told
    assert "then" not in told


def test_a_definition_that_was_never_detected_is_explained_beneath(explain):
    text = (
        "define D(x) case 0: detect A(x > 5) as a assign x = a.x\n"
        "case 1: detect B(x > 7) as b assign x = b.x\n"
        f"define W(n) aggr every 5 s detect D assign n = Count(D)\n{SHORT}W as w"
    )
    lines = explain(text, [event("A", "a", 0, x=1), event("B", "b", 0, x=2)]).splitlines()
    assert lines[1:-1] == [
        "  w: no events",
        "  W was never detected:",
        "    D: no events",
        "    no window had an event of each operand that is not `outer`",
        "    D was never detected:",
        "      case 0:",
        "        a: 1 event, none with x > 5",
        "      case 1:",
        "        b: 1 event, none with x > 7",
    ]


def test_a_sample_is_said_to_be_one(explain, monkeypatch):
    monkeypatch.setattr(record_module, "EVENTS_MAX", 5)
    told = explain(f"{SHORT}A and B within 1 s", [*TWELVE, event("B", "b", 5)])
    assert "A: 5 events" in told
    assert "(this is of a sample: the first " in told
    (line,) = explain(f"{SHORT}A and B within 1 s", TWELVE, "--json").splitlines()
    assert json.loads(line)["sampled"] is True


def test_of_too_many_pairs_the_nearest_in_time_are_looked_at(explain, monkeypatch):
    monkeypatch.setattr(pairs_module, "PAIRS_MAX", 200)
    events = [event("A", f"a{n}", n * 10) for n in range(50)]
    events += [event("B", f"b{n}", n * 10 + 6.5) for n in range(50)]
    told = explain(f"{SHORT}A then[..6 s] B", events)
    assert "A then[..6 s] B: 200 pairs" in told
    assert "missed it by 500ms" in told
    assert "of a sample" in told


# --- the diagnostic pass against the engine ---------------------------------------------------

PATTERNS = [
    "A(x > 1) as a and B as b within 4 s where a.x < b.x",
    "A then[1 s..5 s] B",
    "A and[..2 s] B",
    "(A as a then B as b within 5 s) then C as c within 9 s where a.x <= c.x",
    "A or B",
    "(A or B) then C within 3 s",
    "A then B without C",
    "(A then B within 6 s) without C",
    "A as a without[2 s] C as c where a.x = c.x",
    "absent A for 2 s then[..2 s] B",
    "A{2}",
    "A{3} as s where Sum(s.x) > 4",
    "A+[1 s..2 s] within 20 s",
    "A and B within 3 s from A",
    "A and B spread 3 m",
    "A in box(0 m, 0 m, 2 m, 2 m)",
    "nth 3 A(x > 1)",
]


@pytest.mark.parametrize("group", ["", " group by source"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_what_the_walk_lets_through_is_what_the_engine_reports(pattern, group):
    """Where nothing is chosen, both are all that meets the conditions."""
    found = 0
    checked = check_text(EVENTS + SHORT + pattern + group)
    specification = checked.demand()
    for seed in range(6):
        rng = random.Random(seed)
        items = []
        for number in range(40):
            place = {"x": rng.randrange(4), "y": rng.randrange(4)}
            more = {"x": rng.randrange(4), "source": f"s{rng.randrange(2)}", "position": place}
            items.append(event("AABC"[rng.randrange(4)], f"e{number}", number * 0.7, **more))
        pipeline = Pipeline(specification, IntakeOptions())
        events = pipeline.intake.from_mappings(items).events
        samples = {name: [one for one in events if one.event_type == name] for name in "ABC"}
        case = specification.graph.tasks[specification.graph.roots[0]].node.case
        pipeline.matcher.begin(0)
        left = Walk(lay_out(case), case.group_by, samples, 0).run().left
        reported = pipeline.admit(events) + pipeline.finish()
        assert left == len(reported)
        found += left
    assert found > 0


# --- the command ------------------------------------------------------------------------------


def test_it_goes_to_a_file_where_one_is_named(explain, tmp_path):
    path = tmp_path / "why.txt"
    assert explain(f"{SHORT}A", TWELVE, "--output", str(path)) == ""
    assert path.read_text().startswith("S of me: 12 results\n")
    explain(f"{SHORT}A", TWELVE, "--output", str(tmp_path / "no" / "x"), status=2)


def test_faults_of_text_and_input_are_told_as_in_a_replay(tmp_path, capsys):
    spec, recorded = tmp_path / "spec.hw", tmp_path / "events.jsonl"
    words = ["replay", str(spec), "--events", str(recorded), "--explain"]
    recorded.write_text('{"type": "A"}\n{"type": "A", "timestamp": 1}\n{"type": "Z"}\n')
    spec.write_text(f"{EVENTS}{SHORT}Z")
    assert main(words) == 2
    assert f"{spec}:4:41: HW201" in capsys.readouterr().err
    assert main([*words, "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["errors"][0]["line"] == 4
    spec.write_text(f"{EVENTS}{SHORT}A")
    assert main(words) == 2
    assert capsys.readouterr().err.startswith(f"{recorded}:1: ")
    assert main([*words, "--json"]) == 2
    assert json.loads(capsys.readouterr().err)["errors"][0]["line"] == 1
    assert main([*words, "--skip-bad"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("S of me: 1 result\n")
    assert captured.err == "passed over: bad lines 1, undeclared_type 1\n"


def test_uncertain_times_are_said_to_be_taken_at_their_word(explain):
    told = explain(f"{SHORT}A(x > 9)", [event("A", "a", 0, x=1, uncertainty=5)])
    assert "(uncertain times are taken at their word)" in told


def test_who_is_called_as_we_are_is_told_so(tmp_path, capsys):
    spec = tmp_path / "spec.hw"
    spec.write_text(f"{EVENTS}subscription S from headwater-explain to alerts detect A")
    assert main(["replay", str(spec), "--events", str(spec), "--explain"]) == 2
    assert "no room for the subscriptions of headwater-explain" in capsys.readouterr().err


def test_events_as_they_come_may_be_late(explain):
    assert explain(f"{SHORT}A", TWELVE, "--lateness", "1s").startswith("S of me: 12 results")
