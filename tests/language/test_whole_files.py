"""All errors of a file are found, and none where there is none."""

from pathlib import Path

import pytest

from language import check_text, format_text
from language.limits import DIAGNOSTICS_MAX
from tests.language.marked import assert_errors, errors
from tests.oracles.worked_cases import WORKED_CASES

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.hw"))

SPECIFIED = """
event Tracking(direction: int, left: text, right: text)
event Temp(val: float)
event NurseTablet()
event AvgTemp5Mins(avg: float)
event AirTemp(value: float)
event Humidity(value: float)
event WindSpeed(value: float)
set Dock = {"reader-1", "reader-2"}           # with `source in Dock`
region Pass = circle(45.87, 7.17, 3 km)       # also box, polygon, path
table Tags from "tags.csv" key tagID           # reference data

define MoveIn(location, timestamp)
case 0:
  detect Tracking(direction = 0)
  assign location = Tracking.left, timestamp = Tracking.timestamp
  consuming Tracking
case 1:
  detect Tracking(direction = 1)
  assign location = Tracking.right, timestamp = Tracking.timestamp
  consuming Tracking

define MoveOut(location, timestamp)
  detect Tracking
  assign location = Tracking.left, timestamp = Tracking.timestamp

define PeopleCount2Mins(location, count, timestamp) aggr every 2 mins
pre
  detect outer MoveIn and outer MoveOut
  assign location = group.location, count = Count(MoveIn) - Count(MoveOut),
         timestamp = Max(MoveOut.timestamp)
  group by location
post
  where location = group.location, count = Sum(count), timestamp = Max(timestamp)
  group by location

subscription TempOut seq 1 from User1 to AirController
detect last PeopleCount2Mins(count > 0) as PeopleCount
   and AvgTemp5Mins(avg < 20 or avg > 25) as AvgTempOut within 5 mins from PeopleCount
assign temp = AvgTempOut.avg, location = group.location, timestamp = PeopleCount.timestamp
consuming AvgTempOut
group by location

subscription Frost from station-team to alerts
detect AirTemp(value <= 0) and Humidity(value > 80) and WindSpeed(value < 2)
   within 5 mins spread 10 km in Pass
"""
PATTERNS = [
    "A then B then D within 6 s", "detect[first] A then B then C then D within 6 s",
    "A and[recent] B", "A as x then[chronicle] A as y", "B then (A then C)",
    "(A then[..2 s] B){3}", "A then[2 s..2500 ms] B", "A+[900 ms..1100 ms]",
    "A and B\nconsuming B", "A then[recent] B+ then[recent] C", "A then[1 s..60 s] B",
    "A then[next] B", "A and[recent] B", "A then[..10 s, chronicle] B",
    "A then B where B.val > A.val + 5", "A then B+ as b then C where Count(b) > 2",
    "A then B+ as b then C where Avg(b.val) > 2 and b.val > A.val", "A(20 < val < 25)",
    "A(val = 1 or val = 2)", "A(val in {1, 2})", 'A(location in path("building-a"))',
    "A meets B", "A overlaps B", "A during B", "A contains B", "A starts B", "A finishes B",
    "A equals B", "A concat B", "A parallel B", "A without B", "A without[5 s] B",
    "absent A for 5 mins", "nth 3 A", "A then nth 2 B", "distinct(val) A then B within 5 s",
]  # fmt: skip


def test_what_the_languages_description_shows_is_good():
    assert_errors(SPECIFIED)


@pytest.mark.parametrize("detect", PATTERNS)
def test_what_the_languages_description_shows_of_patterns_is_good(detect):
    head = "".join(f"event {name}(val: float)\n" for name in "ABCD")
    word = "" if detect.startswith("detect") else "detect "
    assert_errors(f"{head}subscription S from u to a\n{word}{detect}")


@pytest.mark.parametrize("case", WORKED_CASES, ids=lambda case: case.name)
def test_a_worked_case_is_good(case):
    assert_errors(case.text)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_good_and_runs(path):
    checked = check_text(path.read_text(encoding="utf-8"), file=path.name)
    assert checked.ok, checked.report()


def test_there_are_examples():
    assert len(EXAMPLES) >= 4
    assert len(WORKED_CASES) >= 30


BROKEN = """\
event A(x: «HW216»integer, t: text)
event B(x: int«HW102»
event C(y: float)
set S = {1, «HW305»"two"}
«HW101»regin R = circle(1, 2, 3 km)
region R = circle(«HW319»100, 2, 3 km)

define D(v, «HW226»w)
  detect A(«HW203»u > 1) then C
  assign v = C.y + «HW302»A.t

define E(n) aggr every «HW313»0 s
  detect C «HW403»then A
  assign n = Count(C)

subscription One from u to a
detect A(t > 5) and Unknown «HW101»withn 5 s
assign x = A.x
group «HW101»byy x

subscription Two from u to a
detect «HW439»C+
assign q = «HW202»nobody.q
group by «HW222»x

subscription «HW207»Two from u to a
detect C and «HW209»A and «HW209»A within 5 s from «HW213»B
at most «HW411»0 per 5 s
"""


def test_every_error_of_a_file_is_found_not_the_first_only():
    """Of an item with a clause that cannot be read the other clauses are read, not judged."""
    assert_errors(BROKEN)


GOOD_ITEM = "subscription N{} from u to a\ndetect A(x > {}) then B within 5 s\n"


@pytest.mark.parametrize("broken", [0, 3, 7, 9])
@pytest.mark.parametrize(
    "fault", ["detect A(x >) ", "detect A then", "detect A(x > 1", 'detect A(t = "a', "detect A)"]
)
def test_one_item_that_cannot_be_read_hides_no_other(broken, fault):
    """Ten subscriptions, one broken, two others with errors of meaning."""
    items = [GOOD_ITEM.format(n, n) for n in range(10)]
    items[broken] = f"subscription N{broken} from u to a\n{fault}\n"
    items[2] = GOOD_ITEM.format(2, '"two"') if broken != 2 else items[2]
    items[5] = GOOD_ITEM.format(5, "nope")
    text = "event A(x: int, t: text)\nevent B()\n" + "".join(items)
    found = errors(text)
    lines = [one.line for one in found]
    assert lines.count(3 + 2 * 2 + 1) == 1
    assert lines.count(3 + 5 * 2 + 1) == 1
    assert any(one.code.startswith("HW1") for one in found)
    assert all(3 + 2 * broken <= one.line <= 3 + 2 * broken + 2 for one in found
               if one.code.startswith("HW1"))  # fmt: skip


def test_an_item_that_cannot_be_read_is_not_said_to_be_unknown():
    assert_errors("event A(x: «HW101»)\nset S = {1, «HW101»}\nsubscription U from u to a\n"
                  "detect A(x > 1, x in S, y = 1)\ngroup by z")  # fmt: skip


def test_a_text_full_of_errors_is_told_of_up_to_a_limit():
    text = "event A(x: int)\n" + "subscription S from u to a\ndetect A(y > 1)\n" * 2_000
    assert len(check_text(text).diagnostics) == DIAGNOSTICS_MAX


def test_errors_come_in_the_order_of_the_text():
    found = errors(check_text(BROKEN).text.replace("«", "").replace("»", " "))
    assert [one.start for one in found] == sorted(one.start for one in found)


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "\ufeff# nothing", " \t\r\n# a\r\n#b"])
def test_a_text_without_items_is_good(text):
    assert check_text(text).demand().graph.tasks == {}
    assert format_text(text) == "".join(
        f"{line.strip(chr(0xFEFF)).strip()}\n" for line in text.splitlines() if "#" in line
    )
