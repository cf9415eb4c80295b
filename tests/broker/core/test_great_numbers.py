"""Numbers beyond what events hold: what is calculated from events that are allowed never raises."""

import msgspec
import pytest

from headwater import Engine

pytestmark = pytest.mark.usefixtures("both_ways")

DECLARED = "event A(n: int, v: float)\n"
SUBSCRIPTION = "subscription S from u to a\n"
GREAT = {"type": "A", "id": "a1", "timestamp": 1, "n": 2**62, "v": 1e308}
LEAST = {"type": "A", "id": "a2", "timestamp": 2, "n": -(2**63), "v": -1e308}
PRODUCT = " * ".join(["A.n"] * 20)


def results(text, *events):
    engine = Engine(text, lateness_ms=None)
    return engine.push(list(events)) + engine.finish()


def values(assigned, *events):
    text = f"{DECLARED}{SUBSCRIPTION}detect A\nassign x = {assigned}"
    return [one["values"]["x"] for one in results(text, *events)]


@pytest.mark.parametrize(
    ("assigned", "expected"),
    [
        ("A.n + A.n - 1 + A.n - A.n", 2**63 - 1),
        ("A.n + A.n", None),
        ("A.n * A.n", None),
        ("A.n * A.n / A.n", float(2**62)),
        ("A.v * 10", None),
        ("round(A.v)", None),
        (f"{PRODUCT} * A.v", None),
        (f"{PRODUCT} + 0.5", None),
        (f"sqrt({PRODUCT})", None),
        (f"round({PRODUCT} / 3)", None),
        (f"max({PRODUCT}, A.v)", None),
        ("(round(A.v) + 1) * A.v", None),
    ],
)
def test_a_value_that_no_event_holds_is_null(assigned, expected):
    assert values(assigned, GREAT) == [expected]


def test_the_least_integer_has_no_opposite():
    assert values("-A.n", LEAST) == values("abs(A.n)", LEAST) == [None]
    assert values("-(A.n + 1)", LEAST) == [2**63 - 1]


@pytest.mark.parametrize("condition", ["n * n > n", "n * v / v = n", "n + n + n - n - n = n"])
def test_what_lies_between_is_exact_where_it_is_no_float(condition):
    text = f"{DECLARED}{SUBSCRIPTION}detect A({condition})"
    assert [one["events"]["A"] for one in results(text, GREAT | {"v": 2.0})] == [["a1"]]


@pytest.mark.parametrize("operator", [">", "<="])
def test_a_comparison_with_what_cannot_be_calculated_is_false(operator):
    bare = PRODUCT.replace("A.", "")
    assert not results(f"{DECLARED}{SUBSCRIPTION}detect A({bare} * v {operator} 1)", GREAT)
    assert not results(
        f"{DECLARED}{SUBSCRIPTION}detect A where {PRODUCT} + A.v {operator} 1", GREAT
    )


def test_detected_events_hold_what_can_be_sent():
    """Another broker reads the same: no attribute is beyond what msgpack has for a number."""
    text = (
        f"{DECLARED}define D(i, f)\n  detect A\n  assign i = A.n * A.n, f = max(A.n * A.n, A.v)\n"
        f"{SUBSCRIPTION}detect D"
    )
    [one] = results(text, GREAT | {"v": 0.5})
    assert one["values"]["D"] == {"f": float(2**124)}
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(one)) == one


@pytest.mark.parametrize("operator", [">", "<="])
@pytest.mark.parametrize("name", ["Sum", "Avg", "StdDev", "Max"])
def test_an_aggregate_of_a_list_beyond_all_numbers_compares_to_nothing(name, operator):
    """The sum of two of the greatest floats is none; their mean and the greatest of them are."""
    text = f"{DECLARED}event B()\n{SUBSCRIPTION}"
    text += f"detect A+ as some then B where {name}(some.v) {operator} 3"
    events = [GREAT | {"v": 1.7e308}, GREAT | {"id": "a2", "timestamp": 2, "v": 1.7e308}]
    found = results(text, *events, {"type": "B", "id": "b1", "timestamp": 3})
    expected = {
        "Sum": False,
        "Avg": operator == ">",
        "StdDev": operator == "<=",
        "Max": operator == ">",
    }
    assert bool(found) == expected[name]
