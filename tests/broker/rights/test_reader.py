"""The rights file: what it says, and the sentences for what is wrong in it."""

import tomllib

import pytest

from broker.credentials import hash_password, new_token, token_digest
from broker.rights.reader import RightsError, read_rights
from broker.rights.table import Quota, RightsTable, RoleEntry, TokenEntry

DIGEST = "sha256$" + "0" * 64
HASH = hash_password("sesame")


def read(text: str) -> RightsTable:
    return read_rights(tomllib.loads(text))


def test_the_form_of_the_file_is_read_as_it_is_documented():
    table = read(
        f"""
        [roles.sensor]
        publish = ["events/+/{{user}}"]
        [roles.nurse]
        subscribe = ["results/{{user}}/#", "actors/tablets/#"]
        submit_as = ["{{user}}"]
        read_types = ["Motion", "Door", "Fall*"]
        drive = ["tablets/*"]
        may = ["look"]
        [users.t7]
        roles = ["sensor"]
        [users.eve]
        roles = ["nurse", "publish"]
        password = "{HASH}"
        [tokens.prometheus]
        roles = ["look"]
        digest = "{DIGEST}"
        until = "2027-12-31T00:00Z"
        [joins.hall]
        roles = ["publish"]
        [everyone]
        roles = ["look"]
        [quotas.default]
        connections = 20
        subscriptions = 200
        [quotas.address]
        connections = 100
        [quotas.users.eve]
        unbounded = true
        """
    )
    assert table.roles["sensor"] == RoleEntry(publish=("events/+/{user}",))
    assert table.roles["nurse"].read_types == ("Motion", "Door", "Fall*")
    assert table.users["eve"].roles == ("nurse", "publish")
    assert table.passwords == {"eve": HASH}
    until_ms = 1_830_211_200_000
    assert table.tokens["prometheus"] == TokenEntry(
        roles=("look",), digest=DIGEST, until_ms=until_ms
    )
    assert (table.joins, table.everyone) == ({"hall": ("publish",)}, ("look",))
    assert table.quotas.default == Quota(connections=20, subscriptions=200)
    assert table.quotas.address == Quota(connections=100)
    assert table.quotas.of_user("eve") == Quota(unbounded=True)
    assert table.quotas.of_user(None) == table.quotas.default


def test_an_empty_file_asks_nobody_for_a_name_and_one_user_closes_it():
    assert read("").is_open
    assert read("[quotas.default]\nconnections = 1").is_open
    assert not read("[users.ann]").is_open
    assert not read(f"[tokens.spark]\ndigest = '{DIGEST}'").is_open


@pytest.mark.parametrize(
    ("text", "keys", "says"),
    [
        ("[role.a]", "role", "there is no table `role`; did you mean `roles`?"),
        ("[[rights]]\nallow = 'both'", "rights", "is said by [roles.NAME]"),
        ("roles = 3", "roles", "write [roles.NAME]"),
        ("[roles]\na = 3", "roles.a", "write [roles.a]"),
        ("[roles.a]\npublsh = []", "roles.a.publsh", "did you mean `publish`?"),
        ("[roles.look]", "roles.look", "a role that every broker knows"),
        ("[roles.'a b']", "roles.a b", "the name `a b` will not do"),
        ("[roles.a]\npublish = 3", "roles.a.publish", "a list of texts"),
        ("[roles.a]\npublish = ['a/#/b']", "roles.a.publish", "a wildcard is not a level"),
        ("[roles.a]\ndeny = ['x{user}']", "roles.a.deny", "`{user}` is not a level of its own"),
        ("[roles.a]\ndrive = ['{client}']", "roles.a.drive", "braces stand for nothing but"),
        ("[roles.a]\nmay = ['drian']", "roles.a.may", "did you mean `drain`?"),
        ("[users.ann]\nroles = ['lok']", "users.ann.roles", "did you mean `look`?"),
        ("[users.ann]\npassword = 'sesame'", "users.ann.password", "headwater user passwd ann"),
        ("[users.ann]\npassword = 3", "users.ann.password", "headwater user passwd ann"),
        ("[users.ann]\nrole = 'look'", "users.ann.role", "did you mean `roles`?"),
        ("[tokens.t]\nroles = []", "tokens.t.digest", "headwater token add"),
        (f"[tokens.t]\ndigest = '{DIGEST}'\nuntil = 'soon'", "tokens.t.until", "with its zone"),
        (f"[tokens.t]\ndigest = '{DIGEST}'\nuntil = '2027-01-01'", "tokens.t.until", "its zone"),
        (f"[users.t]\n[tokens.t]\ndigest = '{DIGEST}'", "tokens.t", "is a user already"),
        ("[quotas.adress]", "quotas.adress", "did you mean `address`?"),
        ("[quotas.default]\nconnections = -1", "quotas.default.connections", "from 0 to"),
        ("[quotas.default]\nconnections = true", "quotas.default.connections", "from 0 to"),
        ("[quotas.default]\nwork_percent = 101", "quotas.default.work_percent", "from 0 to 100"),
        ("[quotas.default]\nunbounded = 1", "quotas.default.unbounded", "true or false"),
    ],
)
def test_a_fault_is_told_with_its_place_and_the_way_out(text, keys, says):
    with pytest.raises(RightsError) as caught:
        read(text)
    (fault,) = caught.value.faults
    assert ".".join(fault.keys) == keys
    assert says in fault.sentence
    assert "sesame" not in fault.sentence, "it may be the password itself"


def test_all_faults_are_listed_at_once():
    with pytest.raises(RightsError) as caught:
        read("[roles.a]\nmay = ['x']\nb = 1\n[users.c]\nroles = ['d']\n[quotas.e]")
    assert len(caught.value.faults) == 4


def test_hashes_are_not_shown():
    """What is logged of a table must not help anybody to guess."""
    table = read(f"[users.a]\npassword = '{HASH}'\n[tokens.b]\ndigest = '{DIGEST}'")
    assert HASH not in repr(table)
    assert DIGEST not in repr(table)


def test_tokens_are_long_and_kept_as_hashes():
    one, other = new_token(), new_token()
    assert one != other
    assert len(one) > 40
    assert token_digest(one) == token_digest(one) != token_digest(other)
    assert one not in token_digest(one)
