"""Submitted texts against quotas: counted by user, and refused where they hold without limit."""

import pytest

from broker.core.refusals import QUOTA, UNBOUNDED
from broker.engine.limits import make_limits
from broker.rights.contents import beyond_quota
from broker.rights.judge import Principal
from broker.rights.table import Quota
from language import check_text
from tests.broker.core.machine import DECLARED, HOT, Machine, subscription

ANNA, BOB, ANYBODY = Principal("anna"), Principal("bob"), Principal(None)
WILD = DECLARED + subscription("Wild", "Temp as a and Temp as b and Temp as c", "anna")


def codes(text, asker=ANNA, quota=None, installed=(), **limits):
    checked = check_text(text).specification
    quota, bounds = quota or Quota(), make_limits(**limits)
    return [trouble.code for trouble in beyond_quota(asker, checked, installed, quota, bounds)]


def test_what_has_no_limit_by_its_text_is_refused_where_that_is_not_allowed():
    assert codes(WILD) == codes(WILD, ANYBODY, unbounded_allowed=0) == [UNBOUNDED]
    within = WILD.replace("Temp as c", "Temp as c within 10 s")
    assert codes(within) == codes(HOT) == codes(within, ANYBODY, unbounded_allowed=0) == []


@pytest.mark.parametrize(("unbounded", "allowed"), [(True, 0), (True, 1), (False, 0), (False, 1)])
def test_a_quota_decides_for_users_and_the_limit_for_who_has_no_name(unbounded, allowed):
    quota = Quota(unbounded=unbounded)
    assert (codes(WILD, quota=quota, unbounded_allowed=allowed) == []) == unbounded
    # Who has no name has no quota either, whatever the default is.
    assert (codes(WILD, ANYBODY, quota, unbounded_allowed=allowed) == []) == bool(allowed)


def test_a_user_has_so_many_subscriptions_installed_and_the_same_text_again_is_no_further_one():
    machine, two = Machine(lateness_ms=0), Quota(contents=2)
    texts = [HOT.replace("Hot", f"Hot{number}") for number in range(3)]
    for text in texts[:2]:
        assert codes(text, quota=two, installed=machine.broker.subscriptions) == []
        assert machine.submit(text, "anna")["ok"]
    installed = machine.broker.subscriptions
    assert codes(texts[2], quota=two, installed=installed) == [QUOTA]
    assert codes(texts[1], quota=two, installed=installed) == []
    assert codes(texts[1], quota=Quota(contents=0), installed=installed) == []
    changed = texts[1].replace("> 30", "> 31")
    assert codes(changed, quota=two, installed=installed) == []  # it takes the other's place
    assert codes(texts[2], BOB, two, installed) == codes(texts[2], ANYBODY, two, installed) == []


def test_the_refusal_names_the_quota_and_the_way_out():
    (trouble,) = beyond_quota(
        ANNA, check_text(HOT).specification, (), Quota(contents=0), make_limits()
    )
    assert trouble.message == (
        "`anna` would have 1 subscriptions installed, and the quota `contents` is 0"
    )
    assert "have `contents` raised under [quotas]" in trouble.hint
    assert trouble.line is not None
