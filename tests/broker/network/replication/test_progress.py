"""Who is asked for progress, and when what is owed is sent."""

from broker.engine.limits import Limits
from broker.network.replication.progress import (
    HURRY_MS,
    LOOK_MS,
    READ_STEP_MS,
    Awaited,
    ProgressLedger,
    awaited,
)

UP, DOWN = "up", "down"
BOTH = [UP, DOWN]
OWED_MS = Limits().progress_ms_max


def test_what_tasks_wait_for_is_asked_once_where_an_origin_is_behind():
    ledger = ProgressLedger(OWED_MS)
    ledger.expect([{"A": 10, "B": 20}])
    asked = ledger.questions(lambda: BOTH, 1, lambda peer, name, _: (peer, name) == (UP, "A"), 0)
    assert [(peer, one.times) for peer, one in asked] == [(UP, {"A": 10})]
    ledger.expect([{"A": 10, "B": 20, "C": 5}])
    assert (
        ledger.questions(lambda: BOTH, 1, lambda peer, name, _: (peer, name) == (UP, "A"), 0) == []
    )


def test_what_a_neighbour_waits_for_is_asked_of_others_alone_and_the_least_time_first():
    ledger = ProgressLedger(OWED_MS)
    ledger.hear(DOWN, awaited({"A": 30}), 0)
    ledger.expect([{"A": 20}])
    asked = ledger.questions(lambda: BOTH, 1, lambda *_: True, 0)
    assert [(peer, one.times) for peer, one in asked] == [(UP, {"A": 20}), (DOWN, {"A": 20})]


def test_a_new_session_is_asked_again():
    ledger = ProgressLedger(OWED_MS)
    ledger.expect([{"A": 10}])
    assert ledger.questions(lambda: [UP], 1, lambda *_: True, 0)
    ledger.leave(UP)
    assert ledger.questions(list, 1, lambda *_: True, 0) == []
    assert ledger.questions(lambda: [UP], 2, lambda *_: True, 0) == [(UP, awaited({"A": 10}))]


def test_what_is_awaited_is_sent_when_all_origins_have_come_as_far_and_not_before():
    ledger = ProgressLedger(OWED_MS)
    ledger.hear(DOWN, awaited({"A": 10}), 0)
    ledger.settle(DOWN, 0)
    ledger.owe(DOWN, 1)
    assert ledger.due(lambda *_: (9, True), 1) == []
    assert ledger.due(lambda *_: (10, True), 1) == [DOWN]
    ledger.settle(DOWN, 1)
    ledger.owe(DOWN, 2)
    assert ledger.due(lambda *_: (99, True), 2) == [], "nobody waits any more"


def test_while_an_origin_is_not_known_nobody_waits_for_it_and_the_question_stands():
    ledger = ProgressLedger(OWED_MS)
    ledger.hear(DOWN, awaited({"A": 10}), 0)
    ledger.owe(DOWN, 1)
    assert ledger.due(lambda *_: (10, False), 1) == [DOWN]
    assert ledger.is_awaited(DOWN)


def test_who_reads_by_event_time_is_told_the_next_step_and_asks_for_another_behind_it():
    ledger = ProgressLedger(OWED_MS)
    came = {UP: 5_000}
    behind = lambda peer, _, time: came[peer] < time  # noqa: E731
    ledger.read({"A": 5_000})
    step = 5_000 + READ_STEP_MS
    assert ledger.questions(lambda: [UP], 1, behind, 0) == [(UP, awaited({"A": step}))]
    ledger.read({"A": step - 1})
    assert ledger.questions(lambda: [UP], 1, behind, 1) == [], "the step stands until it is reached"
    came[UP] = step + 70
    ledger.read({"A": came[UP]})
    assert ledger.questions(lambda: [UP], 1, behind, 2) == [
        (UP, awaited({"A": step + 70 + READ_STEP_MS}))
    ]


def test_what_tasks_wait_for_comes_before_what_is_read():
    ledger = ProgressLedger(OWED_MS)
    ledger.read({"A": 5_000})
    ledger.expect([{"A": 5_001, "B": 9_000}])
    asked = ledger.questions(lambda: [UP], 1, lambda *_: True, 0)
    assert asked == [(UP, awaited({"A": 5_001, "B": 9_000}))]


def test_what_nobody_waits_for_is_sent_once_a_minute():
    ledger = ProgressLedger(OWED_MS)
    ledger.settle(DOWN, 1_000)
    ledger.owe(DOWN, 2_000)
    assert ledger.next_wake() == 1_000 + OWED_MS
    assert ledger.due(lambda *_: (0, True), OWED_MS) == []
    assert ledger.due(lambda *_: (0, True), 1_000 + OWED_MS) == [DOWN]


def test_to_who_hurries_all_that_is_owed_goes_for_a_second_and_others_are_asked_once():
    ledger = ProgressLedger(OWED_MS)
    ledger.settle(DOWN, 1_000)
    ledger.owe(DOWN, 2_000)
    ledger.owe(UP, 2_000)
    ledger.hear(DOWN, Awaited(()), 5_000)
    assert ledger.take_hurries() == [DOWN]
    assert ledger.take_hurries() == []
    assert not ledger.is_awaited(DOWN), "what waits for partners is not to travel for that"
    assert ledger.due(lambda *_: (0, True), 5_000) == [DOWN]
    ledger.settle(DOWN, 5_000)
    assert ledger.due(lambda *_: (0, True), 5_100) == []
    ledger.owe(DOWN, 5_200)
    assert ledger.due(lambda *_: (0, True), 5_200) == [DOWN], "what comes behind it as well"
    assert ledger.due(lambda *_: (0, True), 5_000 + HURRY_MS + 1) == []


def test_tasks_are_looked_at_ten_times_a_second_at_most():
    ledger = ProgressLedger(OWED_MS)
    ledger.feed(1_000)
    assert ledger.looks(1_000)
    ledger.feed(1_001)
    assert not ledger.looks(1_000 + LOOK_MS - 1)
    assert ledger.looks(1_000 + LOOK_MS)


def test_a_time_that_several_types_share_is_named_once():
    assert awaited({"A": 1, "B": 2, "C": 1}) == Awaited(((1, ("A", "C")), (2, ("B",))))


def test_who_passes_over_a_broker_asks_for_more_than_who_waits_for_it():
    """That one is away: all others have come to 10, and nobody behind them is asked for it."""
    ledger = ProgressLedger(OWED_MS)
    ledger.expect([{"A": 10}, {"A": 90}])
    assert ledger.questions(lambda: [UP], 1, lambda _peer, _name, time: time > 50, 0) == [
        (UP, awaited({"A": 90}))
    ]
