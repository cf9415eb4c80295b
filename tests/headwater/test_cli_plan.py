"""`headwater check --plan`: everything of a detect is drawn, and nothing upon anything else."""

import json
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.intake import IntakeOptions
from headwater.cli import main
from headwater.engine import Pipeline
from headwater.plan.steps import PlanStep, TaskPlan, plans_of
from headwater.plan.svg import BOLD, laid_out, plan_svg, text_px
from headwater.plan.text import plan_text
from language import check_text
from tests.test_docs import ROOT

SVG = "{http://www.w3.org/2000/svg}"
EVENTS = "event A(x: int, y: text) event B(x: int) event C(x: int)\n"
SHORT = "subscription S from me to alerts detect "


def steps(text, name=None):
    plans = plans_of(check_text(EVENTS + text).demand())
    (plan,) = [one for one in plans if name is None or one.task.name == name]
    return plan


def told(text, name=None):
    return plan_text(steps(text, name))


# --- what is drawn ----------------------------------------------------------------------------

CONSTRUCTS = [
    ('A(x > 5, y = "q") as a', ["filter x > 5", 'y = "q"', "source A  (as a)", "each event"]),
    ("A as a then[1 s..5 s, recent] B", ["detect then[1 s..5 s, recent]"]),
    ("A and[next] B within 5 s", ["detect and[next]", "within 5 s"]),
    ("A during B spread 5 km in box(1, 2, 3, 4)", ["detect during", "spread 5 km", "in box("]),
    ("A without[5 s] B", ["detect without[5 s]"]),
    ("absent A for 10 s", ["detect absent for 10 s"]),
    ("A{3}", ["detect 3 in a row"]),
    ("A+[1 s..2 s] within 5 s", ["longest run, gaps 1 s..2 s"]),
    ("nth 2 A", ["detect nth 2"]),
    ("A then nth 2 B", ["nth 2 after its left"]),
    ("distinct(x) A within 5 s", ["detect distinct(x)"]),
    ("A then[..3 s] B+ then[..4 s] C", ["one or more", "before it ..3 s", "after it ..4 s"]),
    ("A then B* as bs then C where Count(bs) > 2", ["perhaps none", "where Count(bs) > 2"]),
    ("A as a and B as b where a.x < b.x", ["where a.x < b.x"]),
    ("A then last B within 5 s", ["source B  (last)"]),
    ("A as a and B within 5 s from a", ["within 5 s from a"]),
    ("A or B", ["detect or"]),
]


@pytest.mark.parametrize(("pattern", "shown"), CONSTRUCTS)
def test_each_construct_is_drawn(pattern, shown):
    text = told(SHORT + pattern)
    assert [one for one in shown if one not in text] == []


def test_the_operators_stand_as_the_text_groups_them():
    plan = steps(f"{SHORT}A as a then[..5 s] (B as b and C as c)")
    (then,) = plan.root.inputs
    assert (plan.root.kind, then.title) == ("sink", "then[..5 s]")
    first, both = then.inputs
    assert (first.kind, both.title) == ("stamp", "and")
    assert [one.inputs[0].title for one in both.inputs] == ["B", "C"]


def test_a_suffix_stands_where_it_is_written_and_not_beneath():
    text = told(f"{SHORT}(A as a and B as b within 5 s) then C as c within 1 min")
    assert text.count("within 5 s") == text.count("within 1 min") == 1
    assert "and  (within 5 s)" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{SHORT}A as a group by x, source", "stamp by x, source  (taken at once)"),
        (f"{SHORT}A as a", "stamp one partition  (taken at once)"),
        (f"{SHORT}A as a then[recent] B as b", "waits for its turn"),
        ("subscription S from me to a of group.x detect A group by x", "actor a of group.x"),
        ("subscription S from me to a for 7 days detect A at most 3 per 1 min", "3 per 1 min"),
        ("subscription S from me to a for 7 days detect A at most 3 per 1 min", "for 7 days"),
        (f"{SHORT}A as a and B as b consuming a", "consuming a"),
        (f"{SHORT}A as a assign x = a.x + 1", "x = a.x + 1"),
        (SHORT.replace("detect", "detect[one]") + "A and B", "(one)"),
        (SHORT.replace("detect", "detect[maybe drop]") + "A and B", "maybe drop"),
    ],
)
def test_stamp_and_sink_tell_what_is_asked_of_them(text, shown):
    assert shown in told(text)


TURNS = [pattern for pattern, _ in CONSTRUCTS] + [
    "A or B where A.x > 1",
    "A and B consuming A",
    "A then[chronicle] B",
    "first A then B within 5 s",
    "A then B at most 1 per 1 s",
]


@pytest.mark.parametrize("pattern", TURNS)
@pytest.mark.parametrize(
    "detect", ["detect", "detect[recent]", "detect[one]", "detect[maybe drop]"]
)
def test_an_agent_waits_for_its_turn_where_the_plan_says_so(pattern, detect):
    checked = check_text(EVENTS + SHORT.replace("detect", detect) + pattern)
    if checked.specification is None:
        pytest.skip("not in this combination")
    pipeline = Pipeline(checked.specification, IntakeOptions())
    (seat,) = pipeline.matcher._seats.values()
    (plan,) = plans_of(checked.specification)
    assert ("waits for its turn" in plan_text(plan)) == seat.agent.waits


def test_definitions_come_before_their_users_and_say_who_needs_them():
    text = (
        "define W(n) aggr every 5 mins range 1 h detect outer A(x > 3) as a and B as b\n"
        "assign n = Count(a) group by source\n"
        "define Idle(n) detect A as a assign n = a.x\n"
        "define T(n) every 1 min case 0: detect A as a assign n = a.x\n"
        "case 1: detect B as b assign n = b.x\n"
        f"{SHORT}W as w and T as t within 5 mins\n"
    )
    plans = plans_of(check_text(EVENTS + text).demand())
    assert [plan.heading for plan in plans] == [
        "definition W, needed by S",
        "definition T, needed by S, case 0",
        "definition T, needed by S, case 1",
        "subscription S of me",
        "definition Idle, needed by nobody",
    ]
    window = plan_text(plans[0])
    assert "detect window every 5 mins range 1 h" in window
    assert "filter x > 3 ← source A  (as a; outer)" in window
    assert "n = Count(a)" in window
    assert "detect every 1 min  (told at each tick)" in plan_text(plans[1])
    assert "source W  (as w; by its definition)" in plan_text(plans[3])


# --- the drawing ------------------------------------------------------------------------------

TEXT = st.text(max_size=80) | st.sampled_from(["A", "within 5 mins", "ä" * 30, "字" * 40])


def chains():
    def chain(title, details, filtered):
        step = PlanStep("source", title, tuple(details))
        if filtered is not None:
            step = PlanStep("filter", filtered, (), (step,))
        return PlanStep("stamp", "one partition", (), (step,))

    return st.builds(chain, TEXT, st.lists(TEXT, max_size=3), st.none() | TEXT)


def detects(inner):
    def detect(title, details, inputs):
        return PlanStep("detect", title, tuple(details), tuple(inputs))

    return st.builds(
        detect, TEXT, st.lists(TEXT, max_size=4), st.lists(inner, min_size=1, max_size=3)
    )


BODIES = st.recursive(chains(), detects, max_leaves=8)
ROOTS = st.builds(lambda body, title: PlanStep("sink", title, (), (body,)), BODIES, TEXT)
TASK = steps(f"{SHORT}A").task


@given(st.lists(ROOTS, max_size=3), TEXT)
def test_no_box_overlaps_another_and_no_line_crosses_one(roots, note):
    plans = [(TaskPlan(TASK, 0, "a plan", root), [note]) for root in roots]
    panels, width, height = laid_out(plans)
    boxes = [box for panel in panels for box in panel.root.all()]
    for number, box in enumerate(boxes):
        assert box.x > 0
        assert box.x + box.width < width
        assert box.y > 0
        assert box.y + box.height < height
        titled = text_px(box.lines[0]) * BOLD
        assert max(titled, *map(text_px, box.lines)) < box.width
        for other in boxes[:number]:
            apart_x = box.x >= other.x + other.width or other.x >= box.x + box.width
            apart_y = box.y >= other.y + other.height or other.y >= box.y + box.height
            assert apart_x or apart_y
    for segment in segments(plan_svg(plans)):
        assert not [box for box in boxes if crosses(segment, box)]


def segments(svg):
    """The straight pieces of all lines, as (x, y, x, y)."""
    for path in ET.fromstring(svg).iter(f"{SVG}path"):
        if "marker-end" not in path.attrib:
            continue
        moves = path.attrib["d"][1:].replace("H", " H").replace("V", " V").split()
        x, y = float(moves[0]), float(moves[1])
        for move in moves[2:]:
            value = float(move[1:])
            to_x, to_y = (value, y) if move[0] == "H" else (x, value)
            yield (min(x, to_x), min(y, to_y), max(x, to_x), max(y, to_y))
            x, y = to_x, to_y


def crosses(segment, box, slack=0.2):
    """Whether a piece lies inside a box by more than rounding; at an edge lines begin and end."""
    left, top, right, bottom = segment
    return (
        right > box.x + slack
        and left < box.x + box.width - slack
        and bottom > box.y + slack
        and top < box.y + box.height - slack
    )


def test_a_planted_line_through_a_box_is_found():
    (panel,), *_ = laid_out([(TaskPlan(TASK, 0, "a plan", steps(f"{SHORT}A").root), [])])
    box = panel.root
    middle = box.y + box.height / 2
    assert crosses((box.x - 5, middle, box.x + 5, middle), box)
    assert not crosses((box.x - 5, middle, box.x, middle), box)


def test_whatever_a_text_holds_is_escaped():
    svg = plan_svg([(steps(f'{SHORT}A(y = "<&>\\u0007") as a'), ["<note> & more"])])
    texts = [one.text for one in ET.fromstring(svg).iter(f"{SVG}text")]
    assert "<note> & more" in texts
    assert any("<&>" in (text or "") for text in texts)


# --- the command ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.hw")), ids=lambda p: p.stem)
def test_the_examples_are_drawn(path, tmp_path, capsys):
    svg = tmp_path / "plan.svg"
    assert main(["check", str(path), "--plan", "--svg", str(svg)]) == 0
    out = capsys.readouterr().out
    specification = check_text(path.read_text()).demand()
    names = [*specification.definitions, *(name for _, name in specification.subscriptions)]
    assert all(f" {name}" in out for name in names)
    drawn = ET.parse(svg)
    assert len(list(drawn.iter(f"{SVG}rect"))) > len(names)


def test_errors_are_told_and_what_has_none_is_drawn(tmp_path, capsys):
    good, bad, svg = tmp_path / "good.hw", tmp_path / "bad.hw", tmp_path / "plan.svg"
    good.write_text(f"{EVENTS}{SHORT}A as a then B as b")
    bad.write_text(f"{EVENTS}{SHORT}Z")
    assert main(["check", str(bad), str(good), "--plan", "--svg", str(svg)]) == 1
    captured = capsys.readouterr()
    assert f"{bad}:2:" in captured.err
    assert captured.out.startswith("subscription S of me\n  sink actor alerts\n")
    assert "then" in svg.read_text()
    assert main(["check", str(bad), str(good), str(tmp_path / "no.hw"), "--plan", "--json"]) == 2
    first, second, third = json.loads(capsys.readouterr().out)
    assert first["errors"]
    assert first["tasks"] == third["tasks"] == []
    (plan,) = second["tasks"]
    assert (plan["kind"], plan["name"], plan["case"]) == ("subscription", "S", 0)
    assert plan["steps"]["inputs"][0]["title"] == "then"


def test_bounds_are_told_of_each_task_that_runs(tmp_path, capsys):
    spec = tmp_path / "good.hw"
    spec.write_text(
        f"{EVENTS}define Idle(x) detect A as a assign x = a.x\n"
        f"{SHORT}A and B within 1 min group by source"
    )
    assert main(["check", str(spec), "--bounds"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("subscription S of me\n  sharded: each group is of one source")
    assert "Idle" not in out
    assert " at 1 events/s of each type\n" in out
    command = ["check", str(spec), "--rate", "20", "--rate", "A=0.5", "--lateness", "2s"]
    assert main([*command, "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    bound = told["tasks"][0]["bound"]
    assert bound["stated"].endswith(" at 0.5 A/s and 20 events/s of each other type")
    assert bound["limit"] == {"name": "occurrences_held_max", "value": 1_000_000}
    assert bound["events"] > 20 * 62
    assert main([*command, "--plan"]) == 0
    assert f"  {bound['stated']}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--rate", "A=fast"], "expected as Temp=20"),
        (["--rate", "-1"], "expected"),
        (["--rate", "Aa=1"], "--rate Aa: no such event type; did you mean `A`?"),
        (["--groups", "x"], "--groups"),
        (["--groups", "0"], "--groups"),
        (["--groups", "-1"], "--groups"),
    ],
)
def test_rates_that_are_none_are_refused(words, says, tmp_path, capsys):
    spec = tmp_path / "good.hw"
    spec.write_text(f"{EVENTS}{SHORT}A")
    assert main(["check", str(spec), *words]) == 2
    assert says in capsys.readouterr().err


def test_a_drawing_that_cannot_be_written_is_said(tmp_path, capsys):
    spec = tmp_path / "good.hw"
    spec.write_text(f"{EVENTS}{SHORT}A")
    assert main(["check", str(spec), "--svg", str(tmp_path / "no" / "x.svg")]) == 2
    assert "cannot be written: no such file" in capsys.readouterr().err


# --- what travels -----------------------------------------------------------------------------


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "a.hw"
    path.write_text(EVENTS + SHORT + "A(x > 5) and B within 5 s\n")
    return str(path)


def test_what_travels_is_told_with_why(written, capsys):
    assert main(["check", written, "--operators"]) == 0
    # An event may last a week, but not one that lies within 5 s of another.
    assert capsys.readouterr().out == (
        "subscription S of me\n"
        "  A(x > 5), B: together in less than 5001 ms\n"
        "    correlated: one without partners is in no occurrence\n"
    )


def test_uncertain_clocks_make_partners_further_apart(written, capsys):
    assert main(["check", written, "--operators", "--uncertainty", "1s", "--drift", "0.1"]) == 0
    assert "together in less than 7501 ms" in capsys.readouterr().out
    assert main(["check", written, "--operators", "--uncertainty", "24h"]) == 0
    assert "  A(x > 5): each\n    alone: " in capsys.readouterr().out


def test_what_travels_is_json_for_programs(written, capsys):
    assert main(["check", written, "--operators", "--json"]) == 0
    ((task,),) = [one["tasks"] for one in json.loads(capsys.readouterr().out)]
    ((operator),) = task["operators"]
    assert operator["travels"] == "correlated"
    assert operator["operator"] == "A(x > 5), B: together in less than 5001 ms"
    assert operator["why"]


def test_of_a_faulty_text_nothing_travels(tmp_path, capsys):
    path = tmp_path / "b.hw"
    path.write_text("subscription S from me to you detect Nope\n")
    assert main(["check", str(path), "--operators"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "HW201" in captured.err
