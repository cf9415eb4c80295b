"""What patterns may be: operators and options, lists and `last` that end, names and anchors."""

import pytest

from language import check_text
from tests.language.marked import assert_define, assert_detect

RELATIONS = ["meets", "overlaps", "during", "contains", "starts", "finishes", "equals"]


@pytest.mark.parametrize(
    "detect",
    [
        "A",
        "A or B",
        "A and B",
        "A then B",
        *(f"A {relation} B" for relation in RELATIONS),
        "A before B",
        "A concat B",
        "A parallel B",
        "A without B",
        "A without[5 s] B",
        "absent A for 5 mins",
        "A+ then B within 5 s",
        "A* then B",
        "A{3}",
        "A+[900 ms..1100 ms]",
        "A+[..5 s] as run",
        "nth 3 A",
        "A then nth 2 B",
        "last A and B within 5 s",
        "first A and B",
        "distinct(x, t) A then B within 5 s",
        "distinct A then B within 5 s",
        "A within 5 s",
        "A and B within 5 s from A",
        "A and B spread 10 km",
        "A and B in Pass",
        "A and B in box(1, 1, 2, 2)",
        "A and B in Hall",
        "A and B where A.x > B.x",
        "A and B within 5 s spread 10 m in Pass where A.x > B.x",
        "(A as a1 then B as b1) or (B as b2 then A as a2)",
        "A as one and A as two",
        "(A and B) then C",
        "A then (B and C)",
    ],
)
def test_each_form_of_a_pattern_is_understood(detect):
    assert_detect(f"detect {detect}")


@pytest.mark.parametrize("operator", ["then", "before", "and"])
@pytest.mark.parametrize(
    "options",
    ["1 s..5 s", "..5 s", "5 s..", "0 s..0 s", "next", "recent", "next, ..5 s, chronicle",
     "first", "unrestricted"],
)  # fmt: skip
def test_operators_that_choose_a_partner_take_bound_next_and_context(operator, options):
    assert_detect(f"detect A {operator}[{options}] B")


@pytest.mark.parametrize("operator", [*RELATIONS, "concat", "parallel"])
def test_relations_take_a_context_and_nothing_else(operator):
    assert_detect(f"detect A {operator}[recent] B")
    assert_detect(f"detect A {operator}[«HW408»next] B")
    assert_detect(f"detect A {operator}[«HW407»..5 s] B")
    assert_detect(f"detect A {operator}[«HW409»5 s] B")
    assert_detect(f"detect A {operator}[«HW407»1 s..2 s, «HW408»next, recent] B")


def test_or_and_without_take_no_context_and_only_without_a_duration():
    assert_detect("detect A or[«HW408»recent] B")
    assert_detect("detect A or[«HW408»next] B")
    assert_detect("detect A or[«HW407»1 s..2 s] B")
    assert_detect("detect A or[«HW409»5 s] B")
    assert_detect("detect A without[«HW408»chronicle] B")
    assert_detect("detect A without[5 s, «HW408»next] B")
    assert_detect("detect A without[«HW412»1 s..] B")


@pytest.mark.parametrize("operator", ["and", "before", "parallel", "during"])
def test_latest_is_a_context_of_then_alone(operator):
    assert_detect(f"detect A {operator}[«HW413»latest] B")
    assert_detect(f"detect[latest] A then B «HW413»{operator} C")
    assert_detect(f"detect[latest] A {operator}[recent] B then C")
    assert_detect("detect[latest] A then B or C")
    assert_detect("detect[latest] A then B without C")


@pytest.mark.parametrize("context", ["unrestricted", "recent", "latest", "first", "chronicle"])
def test_every_context_can_be_that_of_a_whole_detect(context):
    assert_detect(f"detect[{context}] A then B then C")


def test_options_of_detect_and_of_operators_are_not_mixed_up():
    assert_detect("detect[«HW425»next] A then B")
    assert_detect("detect[«HW425»..5 s] A then B")
    assert_detect("detect A then[«HW421»one] B")
    assert_detect("detect A and[«HW421»collect, recent] B")
    assert_detect("detect A then[«HW421»maybe drop] B")
    assert_detect("detect[«HW122»drop] A then B")
    assert_detect("detect[«HW122»maybe] A then B")
    assert_detect("detect[one, «HW121»one] A then B")
    assert_detect("detect[one, «HW424»collect] A then B")
    assert_detect("detect[collect, «HW121»collect] A then B")
    assert_detect("detect[recent, maybe drop, one] A then B")


# --- lists and last ---------------------------------------------------------------------------


@pytest.mark.parametrize("mark", ["+", "*"])
@pytest.mark.parametrize(
    "closed",
    [
        "A then B{} then C",
        "B{} then C",
        "A then B{} within 5 s",
        "A then[..5 s] B{}",
        "A then (B{} in Pass) within 5 s",
        "A then (B{} where B.x > 1) then C",
        "A then B{} within 5 s from A",
        "(A as a1 then B{} then C) and A as a2",
        "A then B{} as bs then C where Count(bs) > 2",
    ],
)
def test_a_list_that_something_ends_is_good(closed, mark):
    assert_detect(f"detect {closed.replace('{}', mark)}")


@pytest.mark.parametrize("mark", ["+", "*"])
def test_a_list_at_the_end_of_a_chain_must_be_ended(mark):
    assert_detect(f"detect A then «HW404»B{mark}")
    assert_detect(f"detect A then[1 s..] «HW404»B{mark}")
    assert_detect(f"detect A then B{mark} then «HW404»C{mark}")
    assert_detect(f"detect (A then «HW404»B{mark}) and C")
    assert_detect(f"detect A then «HW404»B{mark} spread 10 km")
    assert_detect(f"detect A then «HW404»B{mark} as bs where Count(bs) > 2")
    assert_detect(f"detect A then «HW404»B{mark} without C")


@pytest.mark.parametrize("mark", ["+", "*"])
@pytest.mark.parametrize("operator", ["and", "or", "before", "meets", "during", "concat"])
def test_a_list_stands_in_a_chain_of_then_alone(mark, operator):
    assert_detect(f"detect A {operator} «HW417»B{mark} within 5 s")


@pytest.mark.parametrize("mark", ["+", "*"])
def test_a_chain_has_an_element_that_is_no_list(mark):
    assert_detect(f"detect «HW439»B{mark}")
    assert_detect(f"detect «HW439»B{mark} within 5 s")
    assert_detect(f"detect «HW439»A{mark} then B{mark} within 5 s")
    assert_detect(f"detect A then («HW439»B{mark} within 5 s)")
    assert_detect(f"detect A without «HW439»B{mark}")
    assert_detect(f"detect absent «HW439»B{mark} for 5 s")
    assert_detect(f"detect A{mark} then B{mark} then C")


@pytest.mark.parametrize("prefix", ["last", "first", "nth 2", "distinct", "last first"])
def test_a_list_takes_no_prefix(prefix):
    assert_detect(f"detect A then {prefix} «HW417»B+ within 5 s")


def test_counted_lists_and_runs_end_by_themselves():
    assert_detect("detect A then B{3}")
    assert_detect("detect A then B+[..5 s]")
    assert_detect("detect A then «HW404»B+[1 s..]")
    assert_detect("detect A then B+[1 s..] within 5 mins")
    assert_detect("detect A{«HW411»0}")
    assert_detect("detect A+[«HW410»5 s]")
    assert_detect("detect A+[..5 s, «HW408»recent]")
    assert_detect("detect «HW410»A+[«HW408»next]")


def test_last_must_be_ended_and_needs_a_partner():
    assert_detect("detect last A then B")
    assert_detect("detect A then last B within 5 s")
    assert_detect("detect A then[..5 s] last B")
    assert_detect("detect A and[..5 s] last B")
    assert_detect("detect A during last B within 1 h")
    assert_detect("detect A then «HW405»last B")
    assert_detect("detect «HW405»last A and B")
    assert_detect("detect A then[5 s..] «HW405»last B")
    assert_detect("detect «HW406»last A")
    assert_detect("detect «HW406»last A or B")
    assert_detect("detect («HW406»last A or B) then C")


def test_distinct_needs_an_end_and_known_keys():
    assert_detect("detect «HW431»distinct(x) A")
    assert_detect("detect «HW431»distinct A then B")
    assert_detect("detect distinct(«HW203»nope) A within 5 s")
    assert_detect("detect distinct(x, «HW215»x) A within 5 s")
    assert_detect("detect distinct(srcid) A within 5 s")


def test_outer_belongs_to_windows():
    assert_detect("detect «HW415»outer A")
    assert_define("define D()\n  detect «HW415»outer A then B")


def test_counting_begins_with_one():
    assert_detect("detect nth «HW411»0 A")
    assert_detect("detect A then nth 1 B")


# --- names ------------------------------------------------------------------------------------


def test_a_type_used_twice_needs_an_alias_on_every_use():
    assert_detect("detect A as first_one then A as other")
    assert_detect("detect «HW209»A then «HW209»A")
    assert_detect("detect A as a then «HW209»A")
    assert_detect("detect «HW209»A without A as other")
    assert_detect("detect «HW209»A or «HW209»A(x > 1)")
    assert_detect("detect «HW209»A then (B and «HW209»A)")


def test_an_alias_names_one_place():
    assert_detect("detect A as one and B as «HW208»one")
    assert_detect("detect A and B as «HW208»A")
    assert_detect("detect (A and B) as «HW422»both")
    assert_detect("detect (A as one) as «HW423»other")
    assert_detect("detect A as B and B as A where B.on")


def test_unknown_types_are_noted_each():
    assert_detect("detect «HW201»Unknown then «HW201»Other and A")
    assert_detect("detect «HW201»a")
    assert_detect("detect «HW201»Dock")


def test_an_anchor_is_a_single_event_of_the_pattern_before():
    assert_detect("detect A and B within 5 s from B")
    assert_detect("detect A as one and B within 5 s from one")
    assert_detect("detect A as one and B within 5 s from «HW213»A")
    assert_detect("detect A and B within 5 s from «HW213»C")
    assert_detect("detect A and (B and C within 5 s from «HW213»A)")
    assert_detect("detect A without B within 5 s from «HW434»B")
    assert_detect("detect A then B+ as many within 5 s from «HW438»many")


def test_a_where_sees_what_stands_before_it():
    assert_detect("detect (A then B where A.x > B.x) and C")
    assert_detect("detect A then (B where «HW219»A.x > B.x)")
    assert_detect("detect A as one where «HW202»A.x > 1")
    assert_detect("detect A then B where «HW203»A.nope > 1")
    assert_detect("detect A then B where «HW202»x > 1")


def test_without_names_its_events_for_where_alone():
    assert_detect("detect A without B where B.x = A.x")
    assert_detect("detect A without B as no where no.x = A.x\nassign n = «HW434»no.x")
    assert_detect("detect A without B\nconsuming «HW434»B")
    assert_detect("detect absent A as gone for 5 s where «HW434»gone.x > 1")
    assert_detect("detect A then absent (B without C) for 5 s where «HW434»C.y > 1")


def test_what_must_not_be_is_a_pattern_with_suffixes_of_its_own():
    assert_detect("detect absent (A then B where A.x < B.x) for 5 s")
    assert_detect("detect absent (A then B within 5 s from A) for 5 s")
    assert_detect("detect absent (A without B where B.x = A.x) for 5 s")
    assert_detect("detect A without (B then C within 5 s from B where B.x = C.y)")
    assert_detect("detect A without (B then C+ within 5 s from «HW438»C)")
    assert_detect("detect A without (absent (B where B.x > 1) for 5 s where «HW434»B.x > 1)")


def test_a_condition_names_what_one_without_excludes():
    assert_detect("detect A as a without (B without C) where B.x = a.x and C.y = B.x")
    assert_detect("detect A as a without (B without C) where «HW440»a.x = C.y")
    assert_detect("detect A as a without B without C where C.y = «HW440»B.x")
    assert_detect("detect A as a without B without C where B.x = a.x and C.y = a.x")
    assert_detect("detect A without B or C where B.x = C.y")


def test_where_comes_last():
    assert_detect("detect A where A.x > 1 «HW101»within 5 s")
    assert_detect("detect A where A.x > 1 «HW101»in Pass")
    assert_detect("detect (A where A.x > 1) within 5 s")


def test_regions_and_sets_have_their_places():
    assert_detect("detect A in «HW221»Dock")
    assert_detect("detect A in «HW204»Nowhere")
    assert_detect("detect A in «HW204»Tags")
    assert_detect("detect A(source in Dock, x in Numbers, position in Pass, location in Hall)")
    assert_detect("detect A(«HW309»location in Pass)")
    assert_detect("detect A(«HW309»position in Hall)")
    assert_detect("detect A(«HW309»x in Hall)")
    assert_detect("detect A(«HW301»x in Dock)")
    assert_detect("detect A(t in «HW204»Nowhere)")


@pytest.mark.parametrize("duration", ["-5 s", "0 s", "-1 day"])
def test_durations_are_above_zero_but_in_bounds_and_within(duration):
    assert_detect(f"detect A without[«HW313»{duration}] B")
    assert_detect(f"detect absent A for «HW313»{duration}")
    assert_detect(f"detect A\nat most 1 per «HW313»{duration}")
    assert_define(f"define D(n) aggr every «HW313»{duration}\n  detect A\n  assign n = Count(A)")


def test_no_time_and_no_distance_is_a_condition_and_less_is_none():
    assert_detect("detect A and B within 0 s")
    assert_detect("detect A as x and B within 0 ms from x")
    assert_detect("detect A and B spread 0 m")
    assert_detect("detect A and B within «HW313»-5 s")
    assert_detect("detect A and B spread «HW314»-5 m")


def test_bounds_have_two_ends_in_order_and_none_below_zero():
    assert_detect("detect A then[«HW313»-5 s..] B")
    assert_detect("detect A then[..«HW313»-5 s] B")
    assert_detect("detect A then[«HW315»6 s..5 s] B")
    assert_detect("detect A then[«HW409»5 s] B")
    assert_detect("detect A then[«HW113»1..5 s] B")
    assert_detect("detect A then[1 s..«HW113»5 km] B")
    assert_detect("detect A then[..5 s, «HW121»..6 s] B")


def test_quantities_have_the_right_unit():
    assert_detect("detect A within «HW113»5")
    assert_detect("detect A within «HW113»5 km")
    assert_detect('detect A within «HW113»"5 s"')
    assert_detect("detect A spread «HW114»5")
    assert_detect("detect A spread «HW114»5 s")
    assert_detect("detect A spread «HW314»-5 m")
    assert_detect("detect A within 5 «HW115»metres")


@pytest.mark.parametrize(
    ("assigned", "codes"),
    [
        ("n = Count(A), s = Sum(A.x), xs = A.x", []),
        ("n = A.x + 1", ["HW302"]),
    ],
)
def test_what_is_collected_is_a_list(assigned, codes):
    text = (
        "event A(x: int)\nevent B(x: int)\nsubscription S from u to a\n"
        f"detect[collect] A then B where A.x < B.x\nassign {assigned}"
    )
    assert [one.code for one in check_text(text).diagnostics] == codes


@pytest.mark.parametrize(
    ("pattern", "codes"),
    [
        ("A then B+ then[..1 s] C+ within 5 s", ["HW407"]),
        ("A then B+ then[1 s..] C* then D", ["HW407"]),
        ("A then B+ then[..1 s] C+", ["HW407"]),
        ("A then (B+ where B.n > 1) then[..1 s, recent] (C* in r) then D", ["HW407", "HW408"]),
        ("A then B+ then[first] C+ then D", ["HW408"]),
        ("A then[1 s..] B+ then C+ then[recent, ..9 s] D", []),
        ("A then (B+ then[..1 s] D) then[..1 s] C+", []),
    ],
)
def test_nothing_holds_between_two_lists(pattern, codes):
    text = (
        "event A(n: int)\nevent B(n: int)\nevent C(n: int)\nevent D(n: int)\n"
        f'region r = path("a")\nsubscription S from u to a\ndetect {pattern}'
    )
    assert [one.code for one in check_text(text).diagnostics] == codes


@pytest.mark.parametrize(
    ("written", "better"),
    [
        ("distinct(n) B+", "(distinct(n) B)+"),
        ("distinct(n, k) B* as l", "(distinct(n, k) B)*"),
        ("distinct B(n > 1)+", "(distinct B)+"),
    ],
)
def test_distinct_goes_with_the_members_of_a_list(written, better):
    head = "event A()\nevent B(n: int, k: int)\nevent C()\nsubscription S from u to a\ndetect "
    (found,) = check_text(f"{head}A then {written} then C within 9 s").diagnostics
    assert found.code == "HW417"
    assert found.hint == f"write `{better}`, a list of what is distinct"
    assert not check_text(f"{head}A then {better} then C within 9 s").diagnostics


@pytest.mark.parametrize("link", ["A then B+ then[next] C", "A then[next] B* then C"])
def test_nothing_is_next_to_a_list(link):
    text = f"event A()\nevent B()\nevent C()\nsubscription S from u to a\ndetect {link} within 5 s"
    assert [one.code for one in check_text(text).diagnostics] == ["HW408"]
