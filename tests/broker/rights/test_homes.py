"""Who may end what in a network: judged as at home, by the rights where the request is made."""

import pytest

from broker.core.refusals import RefusedError
from broker.rights.homes import EndRequest, meant, visible
from broker.rights.judge import Principal, RightsJudge
from broker.rights.table import RightsTable, RoleEntry, UserEntry

OPEN = RightsJudge(RightsTable(), "headwater")


def row(home, subscriber="anna", client="anna", name="Warm"):
    return {"home": home, "subscriber": subscriber, "client": client, "subscription": name}


def code(judge, asker, client, rows, name="Warm"):
    with pytest.raises(RefusedError) as error:
        meant(judge, EndRequest(asker, client, name), rows)
    (trouble,) = error.value.troubles
    return trouble.code, trouble.message


NOBODY = Principal(None)


def test_without_users_a_client_ends_its_own_wherever_they_are():
    rows = [row("hall", name="Cold"), row("roof")]
    assert meant(OPEN, EndRequest(NOBODY, "anna", "Warm"), rows) == (rows[1], "anna")
    mine = row("roof", subscriber="ward", client="bob")
    assert meant(OPEN, EndRequest(NOBODY, "bob", "Warm"), [mine]) == (mine, "bob")


def test_without_users_nobody_ends_what_is_anothers():
    assert code(OPEN, NOBODY, "bob", [row("roof")])[0] == "HW502"
    assert code(OPEN, NOBODY, "bob", [])[0] == "HW505"


def test_a_name_at_several_homes_is_not_chosen_from():
    refused, message = code(OPEN, NOBODY, "anna", [row("roof"), row("hall")])
    assert (refused, message) == (
        "HW515",
        "there are subscriptions `Warm` at several homes: `roof`, `hall`",
    )
    rows = [row("roof", "w1", "bob"), row("roof", "w2", "bob")]
    assert code(OPEN, NOBODY, "bob", rows)[0] == "HW506"


def test_ones_own_comes_before_what_one_submitted_for_others():
    """As at a home, where the subscriber's own name is looked up first."""
    rows = [row("roof", "ward", "anna"), row("hall", "anna", "anna")]
    assert meant(OPEN, EndRequest(NOBODY, "anna", "Warm"), rows)[0] == rows[1]


@pytest.fixture
def judge():
    roles = {
        "operator": RoleEntry(may=("cancel_any",)),
        "nurse": RoleEntry(submit_as=("{user}", "ward-*")),
        "looker": RoleEntry(may=("look",)),
    }
    users = {
        name: UserEntry(roles=(role,))
        for name, role in (("olga", "operator"), ("nina", "nurse"), ("lou", "looker"))
    }
    return RightsJudge(RightsTable(roles=roles, users=users), "headwater")


def test_cancel_any_and_submit_as_reach_other_homes(judge):
    warm = row("roof", "ward-3", "bob")
    for user in ("olga", "nina"):
        request = EndRequest(Principal(user), user, "Warm")
        assert meant(judge, request, [warm]) == (warm, "ward-3")
    others = row("roof", "anna", "bob")
    assert meant(judge, EndRequest(Principal("olga"), "olga", "Warm"), [others])[1] == "anna"
    # What one may not know of is not told of.
    assert code(judge, Principal("nina"), "nina", [others])[0] == "HW505"
    assert not visible(judge, Principal("nina"), others)
    assert code(judge, Principal("lou"), "lou", [warm])[0] == "HW505"


def test_a_narrower_right_resolves_what_a_wider_one_finds_ambiguous(judge):
    rows = [row("roof", "ward-3", "bob"), row("hall", "anna", "anna")]
    assert meant(judge, EndRequest(Principal("nina"), "nina", "Warm"), rows)[0] == rows[0]
    assert code(judge, Principal("olga"), "olga", rows)[0] == "HW515"
