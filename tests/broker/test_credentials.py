"""Passwords are kept as hashes that only the password opens."""

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.credentials import Users, check_hash, check_password, hash_password

CHEAP = "scrypt$2$1$1$" + base64.b64encode(b"12345678").decode() + "$"


def cheap(password: str) -> str:
    """A hash of the least cost, made by the standard library alone."""
    digest = hashlib.scrypt(
        password.encode("utf-8", "surrogatepass"), salt=b"12345678", n=2, r=1, p=1
    )
    return CHEAP + base64.b64encode(digest).decode()


@given(st.text(), st.text())
def test_only_the_password_that_was_hashed_is_taken(password, other):
    assert check_password(password, cheap(password))
    assert check_password(other, cheap(password)) == (other == password)


def test_a_new_hash_has_a_salt_of_its_own_and_does_not_hold_the_password():
    one, two = hash_password("sesame"), hash_password("sesame")
    assert one != two
    assert check_password("sesame", one)
    assert check_password("sesame", two)
    assert not check_password("Sesame", one)
    assert "sesame" not in one


@given(st.text(alphabet="scrypt$0123456789abc=+/-", max_size=60))
def test_a_text_that_is_no_hash_is_refused_and_nothing_else_happens(text):
    with pytest.raises(ValueError, match="password hash"):
        check_hash(text)


@pytest.mark.parametrize("n", ["1048576", "3", "0", "-2", "1" * 30])
def test_a_hash_cannot_ask_for_the_whole_machine(n):
    parts = cheap("x").split("$")
    parts[1] = n
    if n == "1048576":
        parts[2] = "8"
    with pytest.raises(ValueError, match="password hash"):
        check_hash("$".join(parts))


def test_a_user_comes_in_with_the_right_password_only():
    users = Users({"anna": cheap("a"), "bert": cheap("b")})
    assert users
    assert not Users({})
    assert users.login("anna", "a")
    assert not users.login("anna", "b")
    assert not users.login("bert", "a")
    assert not users.login("nobody", "a")
    assert not users.login("", "")


def test_a_login_is_remembered_only_once_it_was_good():
    users = Users({"anna": cheap("a")})
    assert not users.remembered("anna", "a")
    assert not users.login("anna", "b")
    assert not users.remembered("anna", "b")
    assert users.login("anna", "a")
    assert users.remembered("anna", "a")
    assert not users.remembered("anna", "b")
    assert not users.remembered("ann", "aa")
