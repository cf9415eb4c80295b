"""What goes on under a changed text, what begins anew, and what both say of it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.broker import BrokerOptions
from broker.core.effects import Emit
from broker.core.messages import EventsReceived, Payload, SpecificationSubmitted
from broker.core.recovery.durable import DurableBroker
from broker.engine.limits import Limits, make_limits
from tests.broker.core.machine import NOW, Machine

TYPES = "event A(n: int, v: float)\nevent B(n: int, v: float)\n"
PAIR = "define Pair(n)\ndetect A as a then B as b within 1 min\nassign n = a.n\n"
TWICE = "subscription S seq {} from me to {}\ndetect Pair as x then Pair as y\n{}"


def submitted(machine, text):
    """Submit; what becomes of the subscriptions that had another text."""
    reply = machine.submit(text)
    assert reply["ok"] is True, reply
    return [
        (row["subscription"], row["goes_on"], row["keeps"], row["begins"])
        for row in reply.get("changes", ())
    ]


def send(machine, type_name, at, **said):
    """One event, when it happens; the results."""
    machine.wait(NOW + at - machine.now)
    payload = {"timestamp": NOW + at, "id": f"{type_name}{at}", **said}
    return machine.send(payload, type_name=type_name, source=type_name)


@pytest.fixture
def machine():
    return Machine(lateness_ms=0)


def subscription(detect="A as a then B as b", seq=1, actor="x", rest=""):
    return f"{TYPES}subscription S seq {seq} from me to {actor}\ndetect {detect}\n{rest}"


@pytest.mark.parametrize(
    "change",
    [
        {"actor": "y"},
        {"actor": "nearest y"},
        {"rest": "assign n = a.n, since = start"},
    ],
)
def test_half_a_sequence_goes_on_whoever_gets_it_and_whatever_is_assigned(machine, change):
    submitted(machine, subscription())
    send(machine, "A", 0, n=7)
    assert submitted(machine, subscription(seq=2, **change)) == [("S", True, [], [])]
    (result,) = send(machine, "B", 1_000, n=1)
    assert (result["seq"], result["events"]) == (2, {"a": ["A0"], "b": ["B1000"]})
    if "rest" in change:
        assert result["values"] == {"n": 7, "since": NOW}


@pytest.mark.parametrize(
    "detect", ["A(n > 0) as a then B as b", "A as a and B as b", "A as c then B as b"]
)
def test_another_pattern_begins_anew(machine, detect):
    submitted(machine, subscription())
    send(machine, "A", 0, n=7)
    assert submitted(machine, subscription(detect, seq=2)) == [("S", False, [], [])]
    assert send(machine, "B", 1_000, n=1) == []


def test_another_group_another_thinning_and_another_wait_begin_anew(machine):
    rests = ("group by source", "at most 1 per 1 s", "wait 1 min")
    for seq, rest in enumerate(rests, 2):
        assert submitted(machine, subscription(seq=seq, rest=rest)) in (
            [],
            [("S", False, [], [])],
        )


def test_an_attribute_more_of_a_definition_loses_nothing(machine):
    """What its users hold was detected before, and has null for it."""
    submitted(machine, TYPES + PAIR + TWICE.format(1, "x", ""))
    for at, (name, n) in enumerate([("A", 1), ("B", 0), ("A", 2)]):
        send(machine, name, 1_000 * at, n=n)
    more = PAIR.replace("Pair(n)", "Pair(n, m)").replace("n = a.n", "n = a.n, m = b.n")
    values = "assign n = x.n, m = x.m, k = y.m\n"
    changes = submitted(machine, TYPES + more + TWICE.format(2, "x", values))
    assert changes == [("S", True, ["Pair"], [])]
    results = send(machine, "B", 3_000, n=5)
    assert [one["values"] for one in results] == [{"n": 1, "m": None, "k": 5}]


def test_another_value_of_an_attribute_ends_what_users_hold_but_not_what_it_holds(machine):
    submitted(machine, TYPES + PAIR + TWICE.format(1, "x", ""))
    for at, (name, n) in enumerate([("A", 1), ("B", 0), ("A", 2)]):
        send(machine, name, 1_000 * at, n=n)
    other = PAIR.replace("n = a.n", "n = b.n")
    changes = submitted(machine, TYPES + other + TWICE.format(2, "x", ""))
    assert changes == [("S", False, ["Pair"], [])]
    assert send(machine, "B", 3_000, n=5) == []
    send(machine, "A", 4_000, n=0)
    results = send(machine, "B", 5_000, n=6)
    assert {one["values"]["x"]["n"] for one in results} == {5}, (
        "A at 2 s was kept, and the first not"
    )


def test_a_place_that_is_assigned_now_may_be_what_users_group_by(machine):
    submitted(machine, TYPES + PAIR + TWICE.format(1, "x", ""))
    placed = PAIR.replace("Pair(n)", "Pair(n, location)").replace("= a.n", '= a.n, location = "h"')
    changes = submitted(machine, TYPES + placed + TWICE.format(2, "x", ""))
    assert changes == [("S", False, ["Pair"], [])]


def test_what_a_source_may_say_more_is_null_in_what_came_before(machine):
    submitted(machine, subscription())
    send(machine, "A", 0, n=7, w=1)
    wider = subscription(seq=2, rest="assign n = a.n, w = a.w, u = b.w\n").replace(
        "v: float", "v: float, w: int"
    )
    assert submitted(machine, wider) == [("S", True, [], [])]
    (result,) = send(machine, "B", 1_000, n=1, w=9)
    assert result["values"] == {"n": 7, "w": None, "u": 9}


def test_a_task_that_is_suspended_leaves_nothing(machine):
    machine = Machine(make_limits(step_candidates_max=1_000), lateness_ms=0)
    many = subscription("A as a and B as b")
    submitted(machine, many)
    machine.send(*[{"timestamp": NOW, "id": f"a{n}", "n": n} for n in range(200)], type_name="A")
    machine.send(*[{"timestamp": NOW, "id": f"b{n}", "n": n} for n in range(200)], type_name="B")
    assert machine.broker.subscriptions[0].suspended
    changes = submitted(machine, subscription("A as a and B as b", seq=2, actor="y"))
    assert changes == [("S", False, [], [])]
    send(machine, "A", 1_000, n=1)
    assert len(send(machine, "B", 2_000, n=1)) == 1


def test_an_end_is_counted_from_the_beginning(machine):
    submitted(machine, subscription(rest="").replace("to x", "to x for 1 min"))
    send(machine, "A", 0, n=7)
    machine.wait(40_000)
    changed = subscription(seq=2, actor="y").replace("to y", "to y for 1 min")
    assert submitted(machine, changed) == [("S", True, [], [])]
    (row,) = machine.broker.subscriptions
    assert row.ends == NOW + 60_000
    assert len(send(machine, "B", 50_000, n=1)) == 1
    assert send(machine, "B", 70_000, n=1) == []


def test_what_another_text_declared_of_a_type_outlasts_a_restart():
    """Two texts declare different attributes of a type; what is held has those of both."""
    broker, _ = DurableBroker.recover(BrokerOptions(lateness_ms=0), Limits(), None, (), 0, NOW)
    for name, declared in (("S", "n: int"), ("T", "n: int, m: int")):
        text = f"event A({declared})\nevent B()\nsubscription {name} from me to x detect A and B\n"
        broker.handle(SpecificationSubmitted("me", "1", text), NOW)
    data = json.dumps({"timestamp": NOW, "n": 1, "m": 2}).encode()
    broker.handle(EventsReceived((Payload("A", "s", data),)), NOW)
    again, _ = DurableBroker.recover(
        BrokerOptions(lateness_ms=0), Limits(), broker.snapshot(), (), 0, NOW
    )
    message = EventsReceived((Payload("B", "s", b'{"timestamp": %d}' % NOW),))
    given_by = [
        [json.loads(row.payload) for one in broker.handle(message, NOW) if isinstance(one, Emit)
         for row in one.results]
        for broker in (broker, again)
    ]  # fmt: skip
    assert given_by[0] == given_by[1]
    assert {row["subscription"]: row["values"]["A"] for row in given_by[0]}["T"] == {"n": 1, "m": 2}


# --- windows ------------------------------------------------------------------------------------

AGGREGATES = {
    "c": "Count(A)",
    "k": "Count(A.n)",
    "s": "Sum(A.v)",
    "a": "Avg(A.n)",
    "d": "StdDev(A.n)",
    "l": "Min(A.v)",
    "g": "Max(A.n)",
    "f": "First(A.n)",
    "m": "Median(A.n)",
    "u": "CountDistinct(A.n)",
}
WINDOWS = ("every 4 s", "every 2 s range 6 s", "range 5 s", "session 2 s", "session 2 s max 5 s")


def windowed(window, detect, asked, group, seq):
    assigned = ", ".join(f"{name} = {AGGREGATES[name]}" for name in asked)
    grouped = "assign grp = group.source, " if group else "assign "
    header = ", ".join([*(["grp"] if group else []), *asked])
    return (
        f"{TYPES}define W({header}) aggr {window}\ndetect {detect}\n{grouped}{assigned}\n{group}\n"
        f"subscription S seq {seq} from me to x\ndetect W as w\n"
    )


ASKED = st.lists(st.sampled_from(sorted(AGGREGATES)), min_size=1, max_size=4, unique=True)
ROWS = st.lists(
    st.tuples(
        st.integers(0, 1_500),
        st.integers(0, 5),
        st.sampled_from([0.5, -1.0, 2.25]),
        st.sampled_from("pq"),
    ),
    min_size=2,
    max_size=14,
)


@given(
    st.sampled_from(WINDOWS),
    st.sampled_from(["A", "distinct(n) A"]),
    ASKED,
    ASKED,
    st.sampled_from(["", "group by source"]),
    ROWS,
    st.data(),
)
def test_a_window_goes_on_whatever_else_it_is_asked_for(
    window, detect, before, after, group, rows, data
):
    """What was kept is given as if the new text had always been there; what was not, is null."""
    split = data.draw(st.integers(1, len(rows)))
    old = windowed(window, detect, before, group, 1)
    new = windowed(window, detect, after, group, 2)
    changed, fresh = Machine(lateness_ms=0), Machine(lateness_ms=0)
    assert changed.submit(old)["ok"]
    assert fresh.submit(new)["ok"]
    results = [[], []]
    changes = []
    at = 0
    for number, (gap, n, v, source) in enumerate(rows):
        at += gap
        if number == split:
            changes = changed.submit(new)["changes"]
        for one, given_by in zip((changed, fresh), results, strict=True):
            wait = [json.loads(r.payload) for e in one.wait(NOW + at - one.now)
                    if isinstance(e, Emit) for r in e.results]  # fmt: skip
            row = {"timestamp": NOW + at, "id": f"e{number}", "n": n, "v": v}
            given_by += [(number > split, r) for r in wait]
            given_by += [(number >= split, r) for r in one.send(row, type_name="A", source=source)]
    if not changes or "W" not in changes[0]["keeps"]:
        return
    later = [[r for is_later, r in given_by if is_later] for given_by in results]
    spans = [[(r["start"], r["end"], r["detected_at"]) for r in some] for some in later]
    assert spans[0] == spans[1]
    for mine, its in zip(*later, strict=True):
        for name in after:
            value, expected = mine["values"]["w"].get(name), its["values"]["w"].get(name)
            assert value == expected or (value is None and name not in before)


def window_of(machine, at):
    """The one window that is told of until then."""
    effects = machine.wait(NOW + at - machine.now)
    (row,) = [row for one in effects if isinstance(one, Emit) for row in one.results]
    return json.loads(row.payload)


@pytest.mark.parametrize(("asked", "more"), [("a", "ad"), ("k", "ka"), ("s", "sl"), ("c", "cm")])
def test_an_aggregate_more_is_null_until_a_window_had_it_from_its_first_event(machine, asked, more):
    first = 60_000 - NOW % 60_000
    submitted(machine, windowed("every 1 min", "A", asked, "", 1))
    send(machine, "A", first, n=1, v=2.0)
    changes = submitted(machine, windowed("every 1 min", "A", more, "", 2))
    assert changes == [("S", True, ["W"], [])]
    send(machine, "A", first + 1_000, n=3, v=1.0)
    result = window_of(machine, first + 61_000)
    whole = {"a": 2.0, "k": 2, "s": 3.0, "c": 2}
    assert result["values"]["w"] == {asked: whole[asked]}
    send(machine, "A", first + 62_000, n=5, v=2.0)
    result = window_of(machine, first + 190_000)
    assert sorted(result["values"]["w"]) == sorted(more)


def test_an_aggregate_more_is_null_in_a_window_of_older_and_newer_panes(machine):
    """What came before the change is in the window, if in another pane."""
    first = 60_000 - NOW % 60_000
    submitted(machine, windowed("every 10 s range 1 min", "A", "c", "", 1))
    send(machine, "A", first, n=9)
    submitted(machine, windowed("every 10 s range 1 min", "A", "cg", "", 2))
    send(machine, "A", first + 11_000, n=3)
    effects = machine.wait(200_000)
    rows = [json.loads(row.payload) for e in effects if isinstance(e, Emit) for row in e.results]
    values = {(row["end"] - first - NOW) // 10_000: row["values"]["w"] for row in rows}
    assert (values[1], values[6]) == ({"c": 2}, {"c": 1, "g": 3})


def test_what_is_null_stays_so_over_a_restart():
    options = BrokerOptions(lateness_ms=0)
    broker, _ = DurableBroker.recover(options, Limits(), None, (), 0, NOW)
    now = NOW - NOW % 4_000 + 4_000
    for seq, asked in enumerate(("c", "cg"), 1):
        text = windowed("every 4 s", "A", asked, "", seq)
        broker.handle(SpecificationSubmitted("me", "1", text), now)
        now += 1
        data = json.dumps({"timestamp": now, "id": f"e{seq}", "n": seq}).encode()
        broker.handle(EventsReceived((Payload("A", "s", data),)), now)
    again, _ = DurableBroker.recover(options, Limits(), broker.snapshot(), (), 0, now)
    data = json.dumps({"timestamp": now + 4_000, "id": "e3", "n": 3}).encode()
    effects = again.handle(EventsReceived((Payload("A", "s", data),)), now + 4_000)
    (row,) = [row for one in effects if isinstance(one, Emit) for row in one.results]
    assert json.loads(row.payload)["values"]["w"] == {"c": 2}


def test_what_post_combines_has_to_have_been_kept_of_all_events(machine):
    """It would leave a null of a partial result out, as if there were no such partial."""
    text = (
        f"{TYPES}define W(n) aggr every 4 s\npre\n  detect A\n  assign n = {{}}\n"
        "  group by source\npost\n  where n = Sum(n)\n"
        "subscription S seq {} from me to x\ndetect W as w\n"
    )
    submitted(machine, text.format("Count(A)", 1))
    assert submitted(machine, text.format("Count(A) + Count(A)", 2)) == [("S", False, ["W"], [])]
    assert submitted(machine, text.format("Count(A) + Max(A.n)", 3)) == [("S", False, [], ["W"])]
