"""What may be compared, calculated and called; what types come of it."""

import pytest

from language import check_text
from language.functions import AGGREGATES, SCALARS
from tests.language.marked import (
    DECLARED,
    SUBSCRIPTION,
    assert_define,
    assert_detect,
    errors,
)

GOOD = [
    "x > 1", "x > 1.5", "20 < x < 25", "20 < x <= y2", 'x = 1 or t = "a"', "x in {1, 2.5}",
    't in {"a", "b"}', "t in {}", "not x > 1", "not (x > 1 and on)", "on", "not on", "on = true",
    "raw = raw", 't < "b"', "x + 1 > y2 * 2 - -3", "x / 2 >= 1.5", "-x < 5", "duration > 5 s",
    "end - start <= 1 min", "timestamp > 0", 'location = "a/b"', "srcid = source",
    "source in Dock", "abs(x) > 1", "max(x, y2, 3) = min(x, y2)", "round(x / 3) = 1",
    'length(concat(t, "!", lower(t))) > 3', 'upper(t) = "A"', "sqrt(x) < 2.5", "floor(1.5) = 1",
    "ceil(x / 2) in Numbers", 'Tags[t].kind = "box"', "Tags[x].weight > 3", "x > 5 km",
    "position in Pass", "position in polygon(1, 1, 1, 2, 2, 2)", 'location in path("a")',
    "-1 = x", "1 > 0", "true",
]  # fmt: skip
BAD = [
    'x > «HW301»"high"', "t = «HW301»5", "«HW301»x in Dock", 'on = «HW301»"true"', "on = «HW301»1",
    "on < «HW304»true", "raw < «HW304»raw", "position = «HW304»position", "«HW309»t in Pass",
    "«HW303»x", "«HW303»t", "not «HW303»x", "x > 1 and «HW303»t", "«HW303»5", '«HW303»"yes"',
    "«HW303»x + 1", "«HW302»t + 1 > 2", "x - «HW302»t > 2", "-«HW302»t = 1", "«HW302»on * 2 > 1",
    "x > «HW302»position + 1", "0 < x < «HW301»t", "«HW203»nope > 1", "«HW203»X > 1",
    't in {"a", «HW305»1}', "x in {1, «HW305»true}", "«HW206»absolute(x) > 1", "«HW307»abs() > 1",
    "«HW307»abs(x, x) > 1", "«HW307»max(x) > 1", "sqrt(«HW306»t) > 1", "length(«HW306»x) > 1",
    "abs(«HW306»t) > 1", "max(x, «HW306»t) < 5",
    "concat(t, «HW306»x) = t", "«HW402»Count(x) > 1", "«HW402»Avg(x) > 1", "«HW205»Tag[t].kind = 1",
    "Tags[«HW306»position].kind = 1", "«HW220»A.x > 1", "«HW220»group.x > 1", "t in «HW204»Docks",
    "x > «HW112»9223372036854775808", "x > «HW112»1e999", 't = «HW117»"a\\q"',
    "abs(«HW203»nope) > abs(«HW203»none)", "x > «HW301»t and t > «HW301»x",
]  # fmt: skip


@pytest.mark.parametrize("condition", GOOD)
def test_what_compares_is_a_good_condition(condition):
    assert_detect(f"detect A({condition.replace('y2', 'x')})")


@pytest.mark.parametrize("condition", BAD)
def test_what_does_not_compare_is_noted_where_it_stands(condition):
    assert_detect(f"detect A({condition})")


@pytest.mark.parametrize("condition", BAD)
def test_an_error_in_one_condition_hides_none_in_another(condition):
    assert_detect(f"detect A({condition}) and B(x > «HW301»t, «HW203»nope = 1)")


def test_where_compares_events_with_each_other():
    assert_detect("detect A and B where A.x > B.x + 5 and A.t = B.t")
    assert_detect("detect A and B where A.t = «HW301»B.x")
    assert_detect("detect A and B where «HW303»A.x")
    assert_detect("detect A and B where A.on and not A.on")
    assert_detect("detect A and B where «HW203»A.y > 1 and «HW203»B.on")
    assert_detect("detect A as one and B where «HW202»A.x > 1")
    assert_detect("detect A and B where «HW202»one.x > 1")
    assert_detect("detect A and B where group.x = A.x\ngroup by x")
    assert_detect("detect A and B where «HW214»group.x = A.x")
    assert_detect("detect A and B where A.timestamp < B.timestamp + 5 mins")
    assert_detect('detect A where Tags[A.t].kind = "box"')


def test_an_event_as_such_is_no_value():
    assert_detect("detect A\nassign e = «HW321»A")
    assert_detect("detect A and B where A = «HW304»B")
    assert_detect("detect A and B where «HW303»A")
    assert_detect("detect A where A > «HW301»1")
    assert_define("define D(e)\n  detect A\n  assign e = «HW321»A")


def test_the_values_of_a_list_are_calculated_with_by_aggregates_alone():
    head = "detect A then B+ as bs then C "
    assert_detect(f"{head}\nassign all = bs.x, n = Count(bs), mean = Avg(bs.x) + 1")
    assert_detect(f"{head}\nassign n = «HW302»bs.x + 1")
    assert_detect(f"{head}\nassign n = bs.x > «HW301»1")
    assert_detect(f"{head}\nassign n = not «HW303»bs.x")
    assert_detect(f"{head}where bs.x > A.x and Count(bs) > 2 and Sum(bs.x) / Count(bs) > 1")
    assert_detect(f"{head}where «HW402»Count(A) > 2")
    assert_detect(f"{head}where Sum(«HW430»bs.x + A.x) > 2")
    assert_detect(f"{head}where Sum(«HW306»bs.t) > 2")
    assert_define("define D(n)\n  detect A then B+ as bs then C\n  assign n = «HW321»bs.x")


def test_a_list_of_occurrences_has_no_attributes_of_its_own():
    assert_detect("detect (A then B)+ as pairs then C where Count(pairs) > 2")
    assert_detect("detect (A then B)+ as pairs then C where «HW441»pairs.x > 2")
    assert_detect("detect (A then B)+ as pairs then C where Max(«HW441»pairs.end) > 2")
    assert_detect("detect (A then B)+ as pairs then C\nassign at = «HW441»pairs.end")
    assert_detect("detect (A then B)+ as pairs then C\nconsuming «HW441»pairs")
    assert_detect("detect (A as a then B as b)+ then C where Max(b.end) > 2\nconsuming a, b")


@pytest.mark.parametrize("operand", ["A or B", "(A or B) within 1 s", "A{2}", "A+[..1 s] then B"])
def test_what_has_no_event_of_its_own_in_each_member_has_no_alias(operand):
    assert_detect(f"detect ({operand}){{2}} as «HW422»r")
    assert_detect(f"detect C as c then ({operand})+ as «HW422»r then C as d")
    assert_detect(f"detect ({operand}){{2}}")


@pytest.mark.parametrize(
    "operand", ["A where A.x > 1", "A within 1 s", "A without[1 s] B", "nth 2 A", "A in Pass"]
)
def test_a_list_of_single_events_has_what_every_event_has(operand):
    assert_detect(f"detect ({operand}){{2}} as r where r.start > 1\nassign n = Max(r.end)")
    assert_detect(f"detect ({operand}){{2}} as r\nconsuming r")


# --- functions --------------------------------------------------------------------------------

ARGUMENT = {"number": "x", "text": "t", "ordered": "x", "any": "x"}


@pytest.mark.parametrize("name", SCALARS)
def test_a_function_takes_what_its_form_says(name):
    function = SCALARS[name]
    good = [ARGUMENT[kind] for kind in function.arguments]
    assert not errors(calling(name, good))
    assert [one.code for one in errors(calling(name, good[:-1]))] == ["HW307"]
    more = [*good, good[-1]]
    assert bool(errors(calling(name, more))) is not function.repeats
    for index, kind in enumerate(function.arguments):
        if kind != "any":
            wrong = [*good[:index], "on", *good[index + 1 :]]
            assert [one.code for one in errors(calling(name, wrong))] == ["HW306"]


def calling(name, arguments):
    return f"{DECLARED}{SUBSCRIPTION}detect A({name}({', '.join(arguments)}) in {{}})"


@pytest.mark.parametrize("name", AGGREGATES)
def test_an_aggregate_takes_what_its_form_says(name):
    function = AGGREGATES[name]
    rest = ", 0.5" * (len(function.arguments) - 1)
    assert not errors(aggregating(f"{name}(A.x{rest})"))
    kind = function.arguments[0]
    for attribute, taken in (("t", {"ordered", "any"}), ("on", {"any"}), ("raw", {"any"})):
        found = [one.code for one in errors(aggregating(f"{name}(A.{attribute}{rest})"))]
        assert found == ([] if kind in taken else ["HW306"])
    whole = [one.code for one in errors(aggregating(f"{name}(A{rest})"))]
    assert whole == ([] if name == "Count" else ["HW310"])
    assert [one.code for one in errors(aggregating(f"{name}()"))] == ["HW307"]


def aggregating(value):
    return f"{DECLARED}define D(n) aggr every 5 s\n  detect A\n  assign n = {value}"


@pytest.mark.parametrize("share", ["0", "1", "0.5", "0.95"])
def test_a_quantile_is_of_a_share(share):
    assert not errors(aggregating(f"Quantile(A.x, {share})"))


@pytest.mark.parametrize("share", ["1.5", "-0.1", "95", "true", "A.x"])
def test_a_quantile_is_of_nothing_but_a_share(share):
    found = {one.code for one in errors(aggregating(f"Quantile(A.x, {share})"))}
    assert "HW308" in found


def test_functions_of_the_users_own_are_known_by_name():
    assert_detect("detect A(Score(x, t) > 1)\nassign face = Find(A)", ["Score", "Find"])
    assert_detect("detect A(«HW206»Scor(x) > 1)", ["Score"])
    assert_detect("detect A(Score(«HW203»nope) > 1)", ["Score"])


def test_what_a_function_of_the_users_own_makes_fits_everywhere():
    """Its kind is not known, and what else the definition has is."""
    head = "define D(v, w)\n  detect A\n  assign v = Score(A), w = A.t\n" + SUBSCRIPTION
    assert_define(head + 'detect D(v > 1 or v = "a", abs(v) > 2)\ngroup by v', ["Score"])
    assert_define(head + "detect D(v > 1, w > «HW301»1, «HW203»u > 1)", ["Score"])
    assert_define(head + "detect D as one and D as other where one.v = other.w", ["Score"])


# --- the types of definitions -----------------------------------------------------------------


def attributes_of(definition):
    checked = check_text(DECLARED + definition)
    return checked.demand().event_types["D"].attributes


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("A.x", "int"), ("A.x + 1", "int"), ("A.x * 1.0", "float"), ("A.x / 2", "float"),
        ("-A.x", "int"), ("A.t", "text"), ("A.on", "bool"), ("A.raw", "bytes"), ("A.x > 1", "bool"),
        ("A.source", "text"), ("A.duration", "int"), ("end - start", "int"), ("5 s", "int"),
        ("abs(A.x)", "int"), ("max(A.x, 1.5)", "float"), ("sqrt(A.x)", "float"), ("1.5", "float"),
        ("round(A.x / 2)", "int"), ("lower(A.t)", "text"), ("A.x in {1}", "bool"),
        ("5 km", "float"),
    ],
)  # fmt: skip
def test_an_assigned_attribute_has_the_type_of_its_value(value, kind):
    assert attributes_of(f"define D(v)\n  detect A\n  assign v = {value}") == {"v": kind}


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("Count(A)", "int"), ("Count(A.t)", "int"), ("Sum(A.x)", "int"), ("Sum(A.x / 2)", "float"),
        ("Avg(A.x)", "float"), ("Min(A.t)", "text"), ("Max(A.x)", "int"), ("StdDev(A.x)", "float"),
        ("Median(A.x)", "float"), ("Quantile(A.x, 0.9)", "float"), ("First(A.raw)", "bytes"),
        ("Last(A.on)", "bool"), ("CountDistinct(A.t)", "int"), ("Count(A) / 2", "float"),
    ],
)  # fmt: skip
def test_an_aggregate_has_the_type_that_it_makes(value, kind):
    definition = f"define D(v) aggr every 5 s\n  detect A\n  assign v = {value}"
    assert attributes_of(definition) == {"v": kind}


def test_cases_agree_on_the_types_of_attributes():
    head = "define D(v)\ncase 0:\n  detect A\n  assign v = A.x\ncase 1:\n  detect {}\n  assign v = "
    assert attributes_of(head.format("C") + "C.y") == {"v": "float"}
    assert_define(head.format("B") + "«HW322»B.t")


def test_a_definition_is_used_with_the_types_that_it_makes():
    head = "define D(v, k)\n  detect C\n  assign v = C.y, k = C.k\n"
    assert_define(f'{head}{SUBSCRIPTION}detect D(v > 1, k = "a")')
    assert_define(f'{head}{SUBSCRIPTION}detect D(v > «HW301»"1", «HW203»y > 1)')
    assert_define(f'{SUBSCRIPTION}detect D(v > «HW301»"1")\n{head}')


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        (".5", "write `0.5`"),
        ("1.", "write `1.0`"),
        ("0x10", "write numbers in decimal digits, with nothing between them"),
        ("1_000", "write numbers in decimal digits, with nothing between them"),
        ("5s30ms", "one number and one unit: for example 90 s, not 1min30s"),
    ],
)
def test_what_begins_as_a_number_and_is_none_is_told_whole(written, hint):
    text = f"{DECLARED}{SUBSCRIPTION}detect A(x > {written})"
    [one] = errors(text)
    assert (one.code, one.hint, text[one.start : one.end]) == ("HW103", hint, written)


def test_a_keyword_is_no_misspelt_one():
    [one] = errors(f"{DECLARED}{SUBSCRIPTION}detect absent A for 5 s as none")
    assert one.code == "HW101"
    assert "alias" in one.hint
    [one] = errors(f"{DECLARED}{SUBSCRIPTION}detect A to B")
    assert "did you mean" not in one.hint


def test_an_unknown_attribute_is_answered_by_those_that_there_are():
    [one] = errors(f"{DECLARED}{SUBSCRIPTION}detect C where C.zzz > 1")
    assert (one.code, one.hint.split(",")[:2]) == ("HW203", ["`C` has y", " k"])
    [one] = errors(f"{DECLARED}{SUBSCRIPTION}detect A(x = null)")
    assert (one.code, "null cannot be written" in one.hint) == ("HW203", True)
