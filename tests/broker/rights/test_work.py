"""A user's share of the work: what is owed to others, who pays it, and when it is forgiven."""

import random

from broker.rights.work import QUIET_TURNS, WorkLedger


def test_who_has_no_quota_never_waits():
    ledger = WorkLedger()
    assert ledger.charge("anna", None, 5.0) is None


def test_a_user_waits_until_others_had_what_is_theirs():
    ledger = WorkLedger()
    wait = ledger.charge("anna", 25, 1.0)
    for _ in range(29):
        ledger.charge("bob", None, 0.1)
        assert wait.goes_on()
    ledger.total_s += 0.2  # of who has no name
    assert not wait.goes_on()


def test_nobody_waits_where_nobody_else_wants_any():
    ledger = WorkLedger()
    for percent in (0, 1, 50):
        wait = ledger.charge("anna", percent, 100.0)
        assert [wait.goes_on() for _ in range(QUIET_TURNS + 1)] == [True] * QUIET_TURNS + [False]


def test_all_connections_of_a_user_owe_together_and_one_does_not_pay_for_another():
    ledger = WorkLedger()
    ledger.charge("anna", 50, 1.0)
    wait = ledger.charge("anna", 50, 1.0)
    ledger.charge("bob", None, 1.5)
    assert wait.goes_on()
    ledger.charge("bob", None, 0.5)
    assert not wait.goes_on()


def test_a_hundred_is_no_bound():
    assert WorkLedger().charge("anna", 100, 1.0) is None


def test_floods_divide_the_work_as_their_quotas_say():
    """In turns: who does not wait takes a portion of any length, the unbounded one in each."""
    chance = random.Random(5)
    ledger = WorkLedger()
    percents = {"anna": 10, "bob": 30}
    waits, took_s = dict.fromkeys(percents), dict.fromkeys(percents, 0.0)
    for _ in range(20_000):
        ledger.charge("carl", None, chance.random() / 10)
        for user, percent in percents.items():
            if waits[user] is None or not waits[user].goes_on():
                portion_s = chance.random()
                took_s[user] += portion_s
                waits[user] = ledger.charge(user, percent, portion_s)
    for user, percent in percents.items():
        # It goes on in whole turns, so that it loses a part of one each time.
        assert 0.9 < took_s[user] / ledger.total_s * 100 / percent <= 1
