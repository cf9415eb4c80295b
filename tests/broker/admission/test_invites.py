"""Codes and invites: what holds, for how long, and what a mistake or a guess does."""

import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.admission import invites, seal
from broker.admission.code import ID_BYTES, SECRET_BYTES, CodeError, InviteCode, read, written
from broker.admission.invites import HOLDS_MS, KNOWN_MS, WRONG_MAX, InviteError, Invites

CODES = st.builds(
    InviteCode,
    st.binary(min_size=ID_BYTES, max_size=ID_BYTES),
    st.binary(min_size=SECRET_BYTES, max_size=SECRET_BYTES),
    st.text(max_size=60),
)


@given(CODES)
def test_a_code_is_read_as_it_was_written(code):
    text = written(code)
    assert read(text) == code
    assert read(f" {text[:20].upper()} {text[20:]}\n") == code
    assert str(code.secret) not in repr(code)


@given(CODES, st.data())
def test_a_code_with_a_wrong_character_is_told(code, data):
    """Nobody is asked in vain, and no try of a code that holds is lost to a slip."""
    text = written(code)
    place = data.draw(st.integers(5, len(text) - 1))
    other = data.draw(st.sampled_from("abcdefghijklmnopqrstuvwxyz234567").filter(
        lambda letter: letter != text[place]
    ))  # fmt: skip
    slipped = text[:place] + other + text[place + 1 :]
    try:
        assert read(slipped) == code  # the last letter has bits that say nothing
        assert place == len(text) - 1
    except CodeError:
        pass


@given(st.text(max_size=200))
def test_any_other_text_is_no_code(text):
    with pytest.raises(CodeError):
        read(text)
    with pytest.raises(CodeError):
        read(f"join1{text}")


def test_an_invite_holds_once_and_for_ten_minutes():
    book = Invites()
    book.make(b"a", b"s", 1_000)
    book.make(b"b", b"s", 1_000)
    with pytest.raises(InviteError, match="knows no such code"):
        book.holding(b"c", 1_000)
    invite = book.holding(b"a", 1_000 + HOLDS_MS - 1)
    book.use(invite, "pi3", 2_000)
    with pytest.raises(InviteError, match="is used"):
        book.holding(b"a", 2_000)
    assert not invite.secret, "kept longer than it is of use"
    assert book.is_given("pi3", 2_000 + HOLDS_MS - 1)
    with pytest.raises(InviteError, match="is over"):
        book.holding(b"b", 1_000 + HOLDS_MS)
    assert not book.is_given("pi3", 2_000 + HOLDS_MS)
    with pytest.raises(InviteError, match="knows no such code"):
        book.holding(b"b", 1_000 + KNOWN_MS)


def test_who_guesses_has_ten_tries():
    book = Invites()
    book.make(b"a", b"s", 0)
    for _ in range(WRONG_MAX):
        book.holding(b"a", 1).wrong += 1
    with pytest.raises(InviteError, match="too often"):
        book.holding(b"a", 1)


def test_how_many_invites_are_kept_is_bounded():
    book = Invites()
    for number in range(invites.INVITES_MAX):
        book.make(bytes([number]), b"s", number)
    with pytest.raises(InviteError, match="wait"):
        book.make(b"more", b"s", 1_000)
    book.make(b"more", b"s", KNOWN_MS)


def test_only_who_has_the_code_and_asked_reads_the_answer():
    secret, invite = secrets.token_bytes(20), b"12345678"
    asking, other = seal.SealedRequest(secret, invite), seal.SealedRequest(secret, invite)
    request = asking.seal(b"let me in " + asking.public)
    other.seal(b"me too " + other.public)
    assert seal.open_request(secret, invite, request).endswith(asking.public)
    answer = seal.seal_answer(secret, request, asking.public, b"the secret")
    assert asking.open(answer) == b"the secret"
    with pytest.raises(seal.SealError):
        other.open(answer)  # as who has recorded the line and learns the code later
    changed = answer[:40] + bytes([answer[40] ^ 1]) + answer[41:]
    for wrong in (b"", answer[:-1], bytes(32) + answer[32:], changed):
        with pytest.raises(seal.SealError):
            asking.open(wrong)
    for key, name, data in (
        (secret[:-1] + b"x", invite, request),
        (secret, b"another1", request),
        (secret, invite, request[:-1]),
        (secret, invite, b""),
    ):
        with pytest.raises(seal.SealError):
            seal.open_request(key, name, data)


def test_without_the_package_a_sentence_says_what_brings_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cryptography", None)
    with pytest.raises(seal.PackageMissingError, match=r"headwater\[joining\]"):
        seal.needed()
