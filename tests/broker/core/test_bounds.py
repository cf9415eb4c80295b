"""What is said beforehand of the most that an agent holds is never exceeded by it."""

import random
from fractions import Fraction

import pytest

from broker.core.intake import IntakeOptions
from broker.engine.limits import Limits
from broker.engine.pattern.bounds.bounds import Inputs, bounds_of, stated
from headwater.engine import Pipeline
from language import check_text

EVENTS = "event A(x: int) event B(x: int) event C(x: int)\n"
SHORT = "subscription S from me to alerts detect "
SECOND_MS = 1_000


def streams(seed, per_s, seconds, keys, lateness_ms=0):
    """Readings of each type at its rate, evenly but for where they begin; late within bounds."""
    rng = random.Random(seed)
    events = []
    for name, rate in per_s.items():
        step = SECOND_MS / rate
        at = rng.random() * step
        for number in range(int(seconds * rate)):
            time = int(at + number * step)
            source = f"s{rng.randrange(keys)}"
            event = {"type": name, "id": f"{name}{number}", "timestamp": time, "source": source}
            events.append((time + rng.randint(0, lateness_ms), event | {"x": rng.randrange(10)}))
    events.sort(key=lambda pair: pair[0])
    return [event for _, event in events]


def held_most(text, per_s, *, seconds=60, keys=3, lateness_ms=0, batch=1, uncertainty_ms=0):
    """By (task, case): the bound, and the most that its agent was seen to hold."""
    specification = check_text(EVENTS + text).demand()
    inputs = Inputs({name: Fraction(rate) for name, rate in per_s.items()}, lateness_ms=lateness_ms)
    bounds = bounds_of(specification.graph, inputs)
    pipeline = Pipeline(specification, IntakeOptions(lateness_ms=lateness_ms))
    seats = list(pipeline.matcher._seats.values())
    assert [(seat.task.name, seat.case.number) for seat in seats] == [
        (bound.task, bound.case) for _, _, bound in bounds
    ]
    most = [0] * len(seats)
    events = streams(1, per_s, seconds, keys, lateness_ms)
    if uncertainty_ms:
        events = [event | {"uncertainty": uncertainty_ms} for event in events]
    for at in range(0, len(events), batch):
        pipeline.admit(pipeline.intake.from_mappings(events[at : at + batch]).events)
        for number, seat in enumerate(seats):
            most[number] = max(most[number], seat.agent.held())
    return [(bound, held) for (_, _, bound), held in zip(bounds, most, strict=True)]


PATTERNS = [
    "A",
    "A or B",
    "A and B within 5 s",
    "A and[recent] B within 5 s",
    "A and[recent] B",
    "A then[recent] B",
    "A then B within 5 s",
    "A as a then B as b within 5 s where a.x < b.x",
    "A then B then C within 5 s",
    "A then[recent] B then[recent] C within 5 s",
    "(A and B within 2 s) then C within 5 s",
    "A and B within 2 s from A",
    "A meets B",
    "A during B within 5 s",
    "A without B",
    "(A then B within 3 s) without C",
    "A without[2 s] B",
    "absent A(x = 3) for 2 s",
    "A then B without[2 s] C within 5 s",
    "A{3}",
    "(A then B within 2 s){2}",
    "nth 3 A",
    "distinct(x) A within 5 s",
    "A then[first] B within 5 s",
    "A then[latest] B then[latest] C within 5 s",
    "A then[chronicle] B within 5 s",
    "A and[chronicle] B within 5 s",
    "A then[next] B within 5 s",
    "A then B+ then C within 5 s",
    "A then B* then C within 5 s",
    "A then B+ within 3 s",
    "B+ then A within 3 s",
    "A then last B within 5 s",
    "last A then B within 5 s",
    "A and first B within 5 s",
    "A and B within 5 s consuming A",
    "A and[recent] B within 5 s consuming A",
    "A then[..3 s] B+ then[..2 s] C",
    "A then[recent, ..3 s] B+ then[recent, ..2 s] C",
    "A then[..3 s] B+ then[..2 s] C where C.x > 9",
    "A then[..3 s] B+ then[..2 s] C consuming A",
    "A then[..3 s] B+ then[..2 s] C where C.x > 8 consuming A, B",
    "A then[recent, ..3 s] B+ then[recent, ..2 s] C where C.x > 9 consuming A",
    "A then B+ then C within 5 s consuming A",
    "A as a then[..2 s] C then[..1 s] A+ as x then[..2 s] B where Count(x) > 9",
    "A then[chronicle] B within 5 s consuming A",
    "A without[2 s] B consuming A",
    "A{2} within 2 s consuming A",
    "[one] A and B within 5 s consuming A",
]
GROUPS = {"": 1, " group by source": 3}
SLOW = {"A then last B within 5 s"}


def hold_to(pattern, group, lateness_ms, seconds):
    per_s = {"A": 3, "B": 5, "C": 2}
    ((bound, held),) = held_most(
        SHORT + pattern + group, per_s, lateness_ms=lateness_ms, seconds=seconds
    )
    most = bound.most(GROUPS[group])
    if most is None:
        assert bound.reasons
        assert bound.limit == ("occurrences_held_max", Limits().occurrences_held_max)
        return
    assert bound.reasons == ()
    assert held <= most


@pytest.mark.parametrize(("group", "lateness_ms"), [("", 3_000), (" group by source", 0)])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_never_holds_more_than_is_said(pattern, group, lateness_ms):
    hold_to(pattern, group, lateness_ms, 15 if pattern in SLOW else 40)


@pytest.mark.long
@pytest.mark.parametrize("lateness_ms", [0, 20_000])
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_never_holds_more_than_is_said_in_minutes(pattern, group, lateness_ms):
    """Silent partitions are looked at once a minute, so that it takes some."""
    hold_to(pattern, group, lateness_ms, 20 if pattern in SLOW else 200)


def test_most_patterns_have_a_limit_and_it_is_not_far_away():
    """A bound of a million would be kept too."""
    near = 0
    for pattern in PATTERNS:
        ((bound, held),) = held_most(SHORT + pattern, {"A": 3, "B": 5, "C": 2}, seconds=10, batch=9)
        most = bound.most()
        assert most is not None
        near += most <= 12 * held + 100
    assert near >= 0.8 * len(PATTERNS)


# --- windows, and definitions upon each other -------------------------------------------------

ASSIGN = "assign n = Count(A) + Sum(B.x)"
WINDOWS = [
    f"aggr every 5 s detect outer A and outer B {ASSIGN}",
    f"aggr every 5 s range 20 s detect outer A and outer B {ASSIGN}",
    f"aggr every 5 s range 18 s detect outer A and outer B {ASSIGN}",
    f"aggr range 10 s detect outer A and outer B {ASSIGN}",
    "aggr session 1 s detect A assign n = Count(A)",
    "aggr session 1 s max 10 s detect A assign n = CountDistinct(A.x)",
    "aggr every 5 s detect A assign n = Median(A.x)",
    "aggr every 1 s range 30 s detect A assign n = Median(A.x) + CountDistinct(A.x)",
    "aggr every 5 s detect distinct(x) A assign n = Count(A)",
    "aggr every 5 s range 10 s detect distinct(x) A assign n = Count(A)",
    "aggr range 5 s detect A assign n = Quantile(A.x, 0.9)",
    "every 5 s detect A as a and B as b within 2 s assign n = a.x",
]


@pytest.mark.parametrize("lateness_ms", [0, 4_000])
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("window", WINDOWS)
def test_a_window_never_holds_more_than_is_said(window, group, lateness_ms):
    text = (
        f"define W(n) {window}{group} {SHORT}W as w then[recent] W as v within 20 s where w.n < v.n"
    )
    found = held_most(text, {"A": 3, "B": 4}, lateness_ms=lateness_ms, seconds=40, batch=5)
    for bound, held in found:
        most = bound.most(GROUPS[group])
        assert most is not None
        assert held <= most


def test_a_moving_window_may_begin_and_end_with_an_event():
    """In 7 s, ends included, are 22 events 1/3 s apart; 10 more in the 3 s that they may be late.

    The silence between the two stretches is in neither.
    """
    text = f"define W(n) aggr range 7 s detect A assign n = Count(A) {SHORT}W"
    (bound, held), _ = held_most(text, {"A": 3}, lateness_ms=3_000)
    assert held <= bound.most()


SHIFTED = [
    "A assign x = A.x, timestamp = start",
    "A or B assign x = A.x, start = A.start, end = B.start",
    "A and B within 5 s assign x = A.x, timestamp = A.timestamp",
    "A as a and B within 5 s assign x = a.x, timestamp = min(a.start, B.timestamp)",
    "A assign x = A.x, end = timestamp + 4 s",
]


@pytest.mark.parametrize("detect", SHIFTED)
def test_what_may_end_earlier_or_later_is_waited_for_by_its_users(detect):
    """An assigned time may lie before the newest event by as much as an occurrence may span.

    It may lie after it by what is added.
    """
    text = (
        f"define D(x) detect {detect} "
        f"define W(n) aggr range 1 s detect D assign n = Count(D) {SHORT}W"
    )
    for bound, held in held_most(text, {"A": 3, "B": 4}, seconds=40):
        assert held <= bound.most()


def test_what_ends_with_an_event_that_is_kept_for_ever_has_users_without_limit():
    """While the eldest A is held, nothing promises that none will end with it."""
    text = (
        "define D(x) detect A then[recent] B assign x = A.x, timestamp = A.timestamp "
        f"define W(n) aggr range 1 s detect D assign n = Count(D) {SHORT}W"
    )
    _, (bound, _), _ = held_most(text, {"A": 3, "B": 4}, seconds=1)
    assert bound.most() is None
    assert bound.reasons == ("it waits for what may never be decided",)


def test_what_a_definition_detects_is_counted_for_its_users():
    text = (
        "define D(x) detect A as a and B as b within 2 s assign x = a.x "
        "define E(x) detect D as d then[recent] C as c within 3 s assign x = d.x "
        f"{SHORT}E as e and A as a within 5 s where e.x = a.x"
    )
    found = held_most(text, {"A": 2, "B": 3, "C": 1}, seconds=40)
    assert [bound.task for bound, _ in found] == ["D", "E", "S"]
    assert all(held <= bound.most() for bound, held in found)
    assert all(held > 0 for _, held in found)


@pytest.mark.parametrize(
    "pattern", ["A and[recent] B", "A then[recent] B", "(A or B) then[recent] C"]
)
def test_the_latest_is_kept_alone_also_of_uncertain_times(pattern):
    """By hand: of A and B at 3 and 5 a second some 1 s before the watermark, and one of each."""
    per_s = {"A": 3, "B": 5, "C": 2}
    for seconds in (30, 60):
        ((_, held),) = held_most(SHORT + pattern, per_s, seconds=seconds, uncertainty_ms=500)
        assert held <= 40


def test_batches_change_nothing():
    text = f"{SHORT}(A and[recent] B within 2 s) then C within 5 s"
    for batch in (7, 1000):
        ((bound, held),) = held_most(text, {"A": 3, "B": 5, "C": 2}, batch=batch)
        assert held <= bound.most()


def test_a_rate_that_is_not_kept_may_exceed_the_bound():
    """The bound says something: ten times the rate is too much for it."""
    text = f"{SHORT}A and B within 5 s"
    specification = check_text(EVENTS + text).demand()
    ((_, _, bound),) = bounds_of(specification.graph, Inputs(usual=Fraction(1)))
    ((_, held),) = held_most(text, {"A": 10, "B": 10})
    assert held > bound.most()


# --- no limit by the text ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("A and B", "`and` keeps every `A`, as neither `within` nor a bound limits it"),
        ("A then B", "`then` keeps every `A`"),
        ("A as x then[recent] A as y", "`then` keeps every `x`"),
        ("A+[1 s..2 s] within 9 s", "a run of `A` may go on for ever"),
        ("A then nth 2 B within 5 s", "`nth` after `then` keeps every `A`"),
        ("A as x then[first] A as y", "`first` keeps every `x`"),
        ("A+ as x then[..3 s] B consuming x", "`consuming` keeps every `x`"),
        ("A then[..3 s] B* then[..2 s] C", "`then` keeps every `A`"),
    ],
)
def test_what_has_no_limit_by_its_text_is_named_with_the_one_that_holds(pattern, reason):
    ((bound, _),) = held_most(SHORT + pattern, {"A": 3, "B": 5}, seconds=1)
    assert bound.most() is None
    assert any(one.startswith(reason) for one in bound.reasons)
    said = stated(bound, Inputs())
    assert said.startswith("no limit by its text: ")
    assert said.endswith("held to occurrences_held_max, 1,000,000")


def test_the_named_limit_holds_and_what_goes_is_counted():
    text = f"{EVENTS}{SHORT}A and B"
    pipeline = Pipeline(check_text(text).demand(), IntakeOptions())
    (seat,) = pipeline.matcher._seats.values()
    seat.agent._occurrences_max = 50
    events = streams(1, {"A": 10, "B": 10}, 10, 1)
    pipeline.admit(pipeline.intake.from_mappings(events).events)
    assert seat.agent.held() <= 50
    assert seat.agent.dropped()["occurrences_overflow"] == len(events) - 50


# --- the sentence -----------------------------------------------------------------------------


def said(text, groups=None, **inputs):
    specification = check_text(EVENTS + text).demand()
    given = Inputs(**inputs)
    *_, (_, _, bound) = bounds_of(specification.graph, given)
    return stated(bound, given, groups)


def test_the_bound_is_a_sentence():
    """By hand: in 60.002 s come at most 1201 A; up to 31 that have expired may stay behind."""
    text = f"{SHORT}A and B within 1 min"
    assert said(text, usual=Fraction(20)) == (
        "at most 2,464 events and 0 partial matches at 20 events/s of each type"
    )
    assert said(text, usual=Fraction(1), per_s={"A": Fraction(20)}).endswith(
        " at 20 A/s and 1 events/s of each other type"
    )


def test_within_limits_what_a_bound_would_keep_for_as_long_as_events_may_last():
    """Both hold of a pair, so that the shorter reach counts."""
    ((bound, held),) = held_most(f"{SHORT}A then[..2 s] B within 4 s", {"A": 10, "B": 1})
    assert held <= bound.most() <= 10 * 4 + 31 + 10 + 31


def test_what_each_group_adds_is_said_or_counted():
    text = f"{SHORT}A{{5}} group by source"
    assert said(text) == (
        "at most 1 event and 0 partial matches, with 5 events more in each group,"
        " at 1 events/s of each type"
    )
    assert said(text, 10).startswith("at most 51 events and 0 partial matches at")


def test_what_is_kept_as_events_may_last_is_said_to_be():
    defined = "define D(x) detect B assign x = B.x "
    text = f"{defined}{SHORT}A then[..5 s] D"
    assert said(text).endswith(" at 1 events/s of each type, as an event may last 7 days")
    assert "may last" not in said(f"{text} within 9 s")
    assert "may last" not in said(f"{SHORT}A then[..5 s] B")


def test_the_bound_of_readings_is_not_that_of_events_that_last_a_week():
    """Section 5 of the second paper: of a type that brings readings the last 5 s matter."""
    ((bound, held),) = held_most(f"{SHORT}A then[..5 s] B", {"A": 10, "B": 1})
    assert held <= bound.most() <= 2 * (10 * 5 + 31) + 10


def test_a_bound_above_the_limit_says_what_holds():
    assert said(f"{SHORT}A and B within 10 days", usual=Fraction(20)).endswith(
        "; held to occurrences_held_max, 1,000,000"
    )


# --- the kind ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "why"),
    [
        (f"{SHORT}A(x > 3)", "sharded", "each event alone"),
        (f"{SHORT}A and B within 5 s group by source", "sharded", "of one source"),
        (f"{SHORT}A and B within 5 s group by x", "single", "any origin"),
        (f"{SHORT}A and B within 5 s", "single", "any origin"),
        (f"{SHORT}A at most 1 per 1 s", "single", "any origin"),
    ],
)
def test_the_kind_of_a_subscription_and_why(text, kind, why):
    ((bound, _),) = held_most(text, {"A": 3, "B": 5}, seconds=1)
    assert bound.kind == kind
    assert why in bound.why


@pytest.mark.parametrize(
    ("window", "kind", "why"),
    [
        ("aggr every 5 s detect A assign n = Avg(A.x)", "aggregate", "merge"),
        ("aggr every 5 s range 9 s detect A assign n = Avg(A.x)", "aggregate", "merge"),
        ("aggr every 5 s detect A assign n = Avg(A.x) group by source", "sharded", "one source"),
        ("aggr every 5 s detect A assign n = Avg(A.x) group by x", "aggregate", "merge"),
        ("aggr every 5 s detect A assign n = Median(A.x)", "single", "Median"),
        ("aggr every 5 s detect distinct(x) A assign n = Count(A)", "single", "`distinct`"),
        ("aggr range 5 s detect A assign n = Count(A)", "single", "each event closes"),
        ("aggr session 5 s detect A assign n = Count(A)", "single", "session"),
    ],
)
def test_the_kind_of_a_window_and_why(window, kind, why):
    found = held_most(f"define W(n) {window} {SHORT}W", {"A": 3}, seconds=1)
    bound, _ = found[0]
    assert bound.kind == kind
    assert why in bound.why


def test_grouped_by_source_is_single_where_what_it_needs_is_detected_elsewhere():
    text = f"define D(x, source) detect A as a assign x = a.x, source = a.source {SHORT}D as d"
    grouped = f"{text} then[..5 s] D as e where d.x < e.x group by source"
    (first, _), (second, _) = held_most(grouped, {"A": 3}, seconds=1)
    assert (first.kind, second.kind) == ("sharded", "single")
