"""Declarations, definitions, windows and subscriptions: what their clauses may say."""

import pytest

from language.limits import WINDOW_MS_MAX, WINDOWS_AT_ONCE_MAX
from tests.language.marked import (
    DECLARED,
    SUBSCRIPTION,
    assert_define,
    assert_detect,
    assert_errors,
)

COUNTED = "  detect A\n  assign n = Count(A)"
DAYS_MAX = WINDOW_MS_MAX // 86_400_000


# --- declarations -----------------------------------------------------------------------------


def test_declarations():
    assert_errors("event E()\nevent F(a: int, b: float, c: text, d: bool, e: bytes)")
    assert_errors("event E(a: «HW216»string, b: «HW216»Int, «HW215»a: int)")
    assert_errors(
        "event E(a: «HW216»flot)\nset S = {1}\nsubscription T from u to f\n"
        "detect E(a > 3, a in S) as e where e.a + 1 > 2\nassign b = abs(e.a)"
    )
    for given in ("type", "id", "source", "srcid", "location", "position", "timestamp", "start"):
        assert_errors(f"event E(«HW211»{given}: text)")
    for given in ("end", "duration", "uncertainty"):
        assert_errors(f"event E(«HW211»{given}: int)")
    assert_errors("set S = {}\nset T = {1, -2.5, 5 s}\nset U = {true, «HW305»1}")
    assert_errors('set S = {«HW302»-"a"}')
    assert_errors('table T from "t.csv" key k\ntable «HW207»T from "u.csv" key k')


def test_names_of_event_types_and_of_values_are_unique_each():
    assert_errors("event E()\nevent «HW207»E()\ndefine «HW207»E()\n  detect E")
    assert_errors('set S = {}\nregion «HW207»S = box(1, 1, 2, 2)\ntable «HW207»S from "s" key k')
    assert_errors("event S()\nset S = {1}\nsubscription S from S to S\ndetect S")


def test_what_is_wrong_with_the_second_of_a_name_is_noted_too():
    assert_define(
        "define D()\n  detect A\ndefine «HW207»D()\n  detect «HW201»Unknown\n"
        "subscription S from u to a\ndetect D\nsubscription «HW207»S from u to a\n"
        "detect A(x > «HW301»t)"
    )


def test_regions():
    assert_errors("region R = circle(45.8, 7.1, 3 km)\nregion Q = circle(1 m, -2 m, 3 m)")
    assert_errors("region R = box(-90, 170, 90, -170)\nregion Q = box(-5 m, -5 m, 5 m, 5 m)")
    assert_errors('region R = polygon(1, 1, 1, 2, 2, 2)\nregion Q = path("a/b c/d")')
    assert_errors("region R = circle(«HW319»91, «HW319»181, «HW114»3)")
    assert_errors("region R = circle(1, «HW318»2 m, «HW314»0 m)")
    assert_errors("region R = «HW312»circle(1, 2)\nregion Q = «HW312»box(1, 2, 3)")
    assert_errors("region R = «HW312»polygon(1, 1, 2, 2, 3)\nregion Q = «HW312»path(1)")
    assert_errors("region R = box(«HW316»2, 1, 1, 2)\nregion Q = «HW217»square(1, 2)")
    assert_errors('region R = path(«HW317»"a//b")\nregion Q = path(«HW317»"/a")')


# --- definitions ------------------------------------------------------------------------------


def test_a_header_and_the_assignments_agree():
    assert_define("define D(x, t)\n  detect A\n  assign x = A.x, t = A.t")
    assert_define("define D(x, «HW226»t)\n  detect A\n  assign x = A.x")
    assert_define("define D(x)\n  detect A\n  assign x = A.x, «HW225»t = A.t")
    assert_define("define D(x, «HW215»x)\n  detect A\n  assign x = A.x, «HW215»x = A.x")
    assert_define("define D(timestamp, start, end)\n  detect A")
    assert_define("define D(«HW226»location)\n  detect A")
    assert_define("define D()\n  detect A\n  assign location = A.location, source = A.source")
    assert_define("define D(«HW211»type, «HW211»id)\n  detect A\n  assign type = 1, id = 2")


def test_what_every_event_has_is_assigned_its_own_kind():
    assert_define("define D()\n  detect A\n  assign position = A.position, location = A.t")
    assert_define("define D()\n  detect A\n  assign position = «HW320»A.t")
    assert_define("define D()\n  detect A\n  assign location = «HW320»A.x")
    assert_define("define D(p)\n  detect A\n  assign p = «HW321»A.position")


@pytest.mark.parametrize(
    "time",
    ["A.timestamp", "B.start", "end", "Max(A.end)", "min(A.start, B.end)", "max(start, B.end)"],
)
def test_an_assigned_time_lies_within_the_occurrence(time):
    detect = "A+ then B" if "Max" in time else "A and B"
    assert_define(f"define D()\n  detect {detect}\n  assign timestamp = {time}")
    assert_define(f"define D()\n  detect {detect}\n  assign start = {time}, end = {time} + 5 mins")


@pytest.mark.parametrize("time", ["A.x", "5", "A.end - 1 s", "max(A.end, A.x)", "A.duration"])
def test_a_time_that_may_lie_elsewhere_is_refused(time):
    assert_define(f"define D()\n  detect A and B\n  assign timestamp = «HW414»{time}")
    assert_define(f"define D()\n  detect A and B\n  assign end = «HW414»{time}")
    assert_detect(f"detect A and B\nassign timestamp = {time}")


def test_only_an_end_may_lie_later():
    assert_define("define D()\n  detect A\n  assign timestamp = «HW414»A.end + 1 s")
    assert_define("define D()\n  detect A\n  assign start = «HW414»A.end + 1 s")
    assert_define("define D()\n  detect A\n  assign end = 1 s + A.end + 2 s")
    assert_define("define D()\n  detect A\n  assign end = «HW414»A.end + A.x")
    assert_define("define D()\n  detect A\n  assign «HW433»timestamp = A.end, end = A.end")


def test_circles_are_told_once_each_and_hide_nothing():
    assert_define("define «HW401»D()\n  detect D")
    assert_define(
        "define «HW401»D()\n  detect E\ndefine E()\n  detect F and A\ndefine F()\n  detect D or A"
        "\ndefine «HW401»G()\n  detect G\ndefine H()\n  detect A(x > «HW301»t)"
    )
    assert_define("define D()\n  detect E and F\ndefine E()\n  detect F\ndefine F()\n  detect A")


def test_cases():
    assert_define("define D()\ncase 0:\n  detect A\ncase 7:\n  detect B\n  consuming B")
    assert_define("define D()\ncase 0:\n  detect A\ncase «HW215»0:\n  detect B")
    assert_define("define D()\n  «HW123»detect A\ncase 0:\n  detect B")
    assert_define("define D()\n«HW108»case 0:\n  assign x = 1".replace("D()", "D(x)"))
    assert_define("define D(x)\ncase 0:\n  detect A\n  assign x = «HW202»B.x\ncase 1:\n  detect B"
                  "\n  assign x = B.x\n  consuming «HW212»A")  # fmt: skip


# --- windows ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "window",
    ["every 5 mins", "every 5 s range 1 h", "range 5 mins", "session 5 s", "session 5 s max 1 min",
     'every 1 day in "Europe/Zurich"', 'every 7 days in "UTC"', "range 5 mins every 1 min",
     f"every {DAYS_MAX} days", f"every 1 s range {WINDOWS_AT_ONCE_MAX} s", "every 2 h range 1 h"],
)  # fmt: skip
def test_windows(window):
    assert_define(f"define D(n) aggr {window}\n{COUNTED}")


@pytest.mark.parametrize(
    "window",
    ["«HW429»", "every 5 s «HW427»every 6 s", "every 5 s «HW427»session 6 s", "every «HW113»5",
     "range 5 s «HW427»range 6 s", "«HW428»max 5 s range 6 s",
     'every «HW426»90 mins in "UTC"', 'every 1 day in «HW437»"a b"', 'every 1 day in «HW437»""',
     'every 1 day in «HW437»"../../etc"', f"every 1 s «HW436»range {WINDOWS_AT_ONCE_MAX + 1} s",
     f"«HW435»every {DAYS_MAX + 1} days", f"«HW435»range {DAYS_MAX + 1} days",
     f"session 1 s «HW435»max {DAYS_MAX + 1} days", "every «HW119»99999 weeks"],
)  # fmt: skip
def test_windows_that_cannot_be(window):
    if window == "«HW429»":
        assert_define(f"define D(n) «HW429»aggr\n{COUNTED}")
    elif "99999" in window:
        assert_define(f"define D(n) aggr «HW435»{window}\n{COUNTED}")
    else:
        assert_define(f"define D(n) aggr {window}\n{COUNTED}")


def test_reporting_by_the_clock_without_aggregating():
    assert_define("define D(x) every 5 mins\n  detect A then B\n  assign x = A.x")
    assert_define("define D() «HW428»range 5 s\n  detect A")
    assert_define("define D() «HW428»session 5 s\n  detect A")
    assert_define("define D(n) every 5 s\n  detect A\n  assign n = «HW402»Count(A)")


def test_the_operands_of_a_window_are_atoms_joined_by_and():
    head = "define D(n) aggr every 5 s\n  detect {}\n  assign n = Count(A)"
    for good in ("A", "outer A and B", "A(x > 1) and distinct(x) B", "distinct A and outer B",
                 "outer distinct(x) A", "(A and B) and C", "A and (B and C)"):  # fmt: skip
        assert_define(head.format(good))
    for bad in ("A «HW403»then B", "A «HW403»or B", "A «HW403»within 5 s", "A «HW403»without B"):
        assert_define(head.format(bad))
    for bad in ("«HW403»A+", "«HW403»last A", "«HW403»absent A for 5 s", "«HW403»nth 2 A"):
        assert_define(head.format(bad))
    assert_define(head.format("A and[«HW419»recent] B"))
    assert_define(head.format("A and[«HW419»next, «HW419»..5 s] B"))
    assert_define(head.format("distinct(«HW203»y) A"))


def test_a_window_chooses_and_consumes_nothing():
    head = "define D(n) aggr every 5 s\n  detect{} A\n  assign n = Count(A)"
    assert_define(head.format("[«HW419»recent]"))
    assert_define(head.format("[«HW419»one]"))
    assert_define(head.format("") + "\n  «HW419»consuming A")


def test_values_of_a_window_are_aggregated_or_keys():
    head = "define D(n) aggr every 5 s\n  detect A and B\n  assign n = {}\n  group by x"
    for good in ("Count(A)", "Sum(A.x) - Sum(B.x)", "group.x", "group.x + Count(B)", "1", "end"):
        assert_define(head.format(good))
    assert_define(head.format("«HW418»A.x"))
    assert_define(head.format("Sum(«HW402»Max(A.x))"))
    assert_define(head.format("Sum(«HW430»A.x + B.x)"))
    assert_define(head.format("Sum(A.x + group.x)"))
    assert_define(head.format("«HW214»group.t"))
    assert_define(head.format("Sum(«HW202»C.y)"))


def test_partial_results_are_combined_by_name():
    head = "define D(n, m) aggr every 5 s\npre\n  detect A\n  assign n = Count(A), m = Max(A.t)\n"
    assert_define(head + "  group by x\npost\n  where n = Sum(n), m = Max(m)\n  group by m")
    assert_define(head + "post\n  where n = Sum(n), m = «HW418»m")
    assert_define(head + "post\n  where n = Sum(«HW202»k), m = Max(m)")
    assert_define(head + "post\n  where n = Sum(«HW306»m), m = Max(m)")
    assert_define(head + "post\n  where n = Sum(«HW202»A.x), m = Max(m)")
    assert_define(head + "post\n  where n = Sum(n), m = Max(m)\n  group by «HW222»x")
    assert_define(head + "post\n  where n = Sum(n), m = Max(m), timestamp = Max(timestamp)")
    assert_define(head + "post\n  where n = Sum(n), m = Max(m), timestamp = «HW414»Max(n)")


def test_pre_and_post_go_together_and_with_a_window():
    assert_define("define D(n) aggr every 5 s\n«HW420»pre\n" + COUNTED)
    assert_define("define D(n) aggr every 5 s\n" + COUNTED + "\n«HW420»post\n  where n = Sum(n)")
    assert_define("define D(x)\n«HW416»pre\n  detect A\n  assign x = A.x")
    assert_define("define D()\n  detect A\n«HW416»post\n  where location = Last(location)")


# --- subscriptions ----------------------------------------------------------------------------


def test_clauses_of_a_subscription_in_their_order():
    assert_detect("detect A\nassign x = A.x\nconsuming A\ngroup by x, location\nat most 3 per 1 h")
    assert_detect("detect A\nconsuming A\n«HW110»assign x = A.x")
    assert_detect("detect A\ngroup by x\n«HW109»group by t")
    assert_errors(f"{DECLARED}subscription «HW108»S from u to a\nassign x = 1")
    assert_detect("detect A\nat most «HW411»0 per 1 h")
    assert_define("define D()\n  detect A\n  «HW125»at most 1 per 1 h")


def test_how_long_a_subscription_waits_is_a_time_above_zero():
    assert_detect("detect A\ngroup by x\nat most 3 per 1 h\nwait 5 mins")
    assert_detect("detect A\nwait «HW313»0 s")
    assert_detect("detect A\nwait «HW313»-5 s")
    assert_detect("detect A\nwait «HW113»5")
    assert_detect("detect A\nwait «HW113»5 km")
    assert_detect("detect A\nwait 5 s\n«HW109»wait 5 s")
    assert_detect("detect A\nwait 5 s\n«HW110»at most 3 per 1 h")
    assert_define("define D()\n  detect A\n  «HW125»wait 5 s")


def test_consuming_names_what_is_bound_and_excludes_collect():
    assert_detect("detect A then B as b\nconsuming A, b")
    assert_detect("detect A then B as b\nconsuming «HW212»B")
    assert_detect("detect A\nconsuming «HW212»C, «HW212»nobody, A, «HW215»A")
    assert_detect("detect A without B as b\nconsuming «HW434»b")
    assert_detect("detect[collect] A and B\n«HW424»consuming A")
    assert_detect("detect[one] A and B\nconsuming A")


def test_every_input_has_what_is_grouped_by():
    assert_detect("detect A and B\nassign k = group.x, l = group.location\ngroup by location, x")
    assert_detect("detect A and B\ngroup by «HW222»on")
    assert_detect("detect A and C\ngroup by «HW222»k, «HW222»y")
    assert_detect("detect A without C\ngroup by «HW222»k")
    assert_detect("detect A\ngroup by «HW432»position, «HW432»timestamp, «HW432»duration")
    assert_detect("detect A\ngroup by srcid, «HW215»source")
    assert_detect("detect A\nassign k = «HW214»group.t\ngroup by x")
    assert_define("event E(k: int)\nsubscription S from u to a\ndetect C and E\ngroup by «HW311»k")


def test_an_actor_by_key_is_grouped_by_it():
    assert_define("subscription S from u to b of group.x\ndetect A\ngroup by x")
    assert_define("subscription S from u to b of group.«HW214»t\ndetect A\ngroup by x")
    assert_define("subscription S from u to b of group.srcid\ndetect A\ngroup by source")


def test_endings():
    for good in ("for 7 days", 'until "2026-12-31T00:00Z"', 'until "2026-12-31T01:00:00.5+01:00"'):
        assert_define(f"subscription S from u to a {good}\ndetect A")
    for bad in ("for «HW113»7", "for «HW313»-7 days", 'until «HW124»"tomorrow"',
                'until «HW124»"2026-12-31"', 'until «HW124»"2026-13-31T00:00Z"',
                'until «HW124»""'):  # fmt: skip
        assert_define(f"subscription S from u to a {bad}\ndetect A")


def test_a_subscription_is_one_of_its_subscriber():
    assert_define(f"{SUBSCRIPTION}detect A\nsubscription S from other to a\ndetect A")
    assert_define(f"{SUBSCRIPTION}detect A\nsubscription «HW207»S seq 2 from u to b\ndetect B")


def test_names_of_subscriptions_subscribers_and_actors_may_be_paths():
    assert_define("subscription a-b.c/d from u.v/w-x to q/r-s.t\ndetect A")
    assert_define("subscription `two words` from `9lives` to `nearest`\ndetect A")
    assert_define("subscription S from u to «HW106»`a/b`\ndetect A")


def test_the_name_of_an_item_whose_word_is_misspelt_is_not_unknown():
    assert_errors("«HW101»evnt A(x: int)\nsubscription S from u to a\ndetect A")
    assert_define("«HW101»defin D(n)\n  detect A\n  assign n = 1\n" + SUBSCRIPTION + "detect D")
    assert_define("«HW101»sets S = {1}\n" + SUBSCRIPTION + "detect A(x in S and «HW203»y = 1)")
    assert_define("«HW101»hello D(n)\n" + SUBSCRIPTION + "detect «HW201»D")


@pytest.mark.parametrize(
    ("marked", "window"),
    [
        ("D(interval)|assign «HW442»interval = Max(A.x)", "session 5 s"),
        ("D(n)|assign n = Count(A), «HW442»interval = 7", "session 5 s max 9 s"),
        ("D(n, «HW442»interval)|assign n = Count(A)", "session 5 s"),
        ("D(interval)|assign interval = Max(A.x)", "every 5 s"),
        ("D(n)|assign n = Count(A)", "session 5 s"),
    ],
)
def test_the_interval_of_a_session_is_its_own(marked, window):
    head, assign = marked.split("|")
    assert_define(f"define {head} aggr {window}\n  detect A\n  {assign}")


def test_the_interval_of_a_session_is_no_result_of_post():
    head = "define D(interval) aggr session 5 s\npre\n  detect A\n  assign interval = Max(A.x)\n"
    assert_define(f"{head}post\n  where «HW442»interval = Max(interval)")
