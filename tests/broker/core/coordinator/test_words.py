"""What coordinators say to each other: whole, bounded, and of the newest."""

from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.coordinator import bounds
from broker.core.coordinator.known import Known
from broker.core.coordinator.statement import (
    BrokerWord,
    Enclosed,
    HostingWord,
    Measured,
    StatementError,
    Submission,
    Turned,
    TurnMoves,
    VersionWord,
    Withdrawn,
    Word,
    encoded,
    word_of,
)
from planner.rounds import messages as m
from tests.broker.core.coordinator.town import Town

LONG = "k" * (bounds.NAME_CHARS_MAX + 1)


def submission(
    serial: int = 1,
    key: str = "b0/0",
    rates: tuple[int, ...] = (5, 7),
    life: int = 1,
    planned: str = "b0",
    term: int = 0,
) -> Submission:
    inputs = tuple((f"b{number}", "Temp") for number in range(len(rates)))
    return Submission(
        "b0", life, serial, 3, key, "frost", "b0", planned, term, inputs, rates, 3, ("b9",)
    )


def words() -> list[Word]:
    return [
        submission(),
        BrokerWord("b0", 1, 2, 3, 4, 5, 6, True),
        Withdrawn("b0", 1, 2, "b0/0"),
        Measured("b0", "b1", "b0/0", {"b2": {"T": 3}}, 4),
        HostingWord("b0", "b0/0", "b1", 2, False),
        Enclosed("b1", encoded(submission())),
        Turned("b0", "", VersionWord(1, 2**55, 3, (("b0", "b0/0", "b1", "b2", 1),))),
        Turned("b0", "b1", TurnMoves(1, (("b0", "b0/0", "b1", "b2", 1),))),
        *(Turned("b0", "b1", body) for body in (m.Want(), m.Reserve(1, 2), m.Grant(1))),
        *(Turned("b0", "b1", body) for body in (m.Refuse(1, stale=True), m.Cancel(1))),
    ]


@pytest.mark.parametrize("word", words(), ids=lambda word: type(word).__name__)
def test_a_word_arrives_as_it_was_said(word: Word) -> None:
    assert word_of(encoded(word)) == word


def test_of_two_words_the_newer_holds_whichever_comes_first() -> None:
    known = Known()
    news = [known.put(word) for word in (submission(2), submission(1), submission(2))]
    assert news == [True, False, False]
    assert known.put(submission(1, life=2))
    assert known.submissions["b0", "b0/0"].place == (2, 1)
    limits = [BrokerWord("b0", 1, serial, 3, serial, 0, 0, False) for serial in (2, 1, 3)]
    assert [known.put_broker(word) for word in limits] == [True, False, True]
    assert known.brokers["b0"].capacity == 3


def test_what_is_withdrawn_is_gone_but_not_by_a_word_of_before() -> None:
    known = Known()
    known.put(submission(5))
    assert known.withdraw(Withdrawn("b0", 1, 4, "b0/0")) is None
    assert known.withdraw(Withdrawn("b0", 1, 6, "b0/0")) == submission(5)
    assert not known.submissions
    assert known.withdraw(Withdrawn("b0", 1, 7, "b0/0")) is None


def test_a_move_holds_until_its_home_has_a_word_of_as_many_terms() -> None:
    known, piece = Known(), ("b0", "b0/0")
    known.put(submission(1))
    assert known.move([(*piece, "b0", "b1", 1)])
    assert not known.move([(*piece, "b0", "b2", 1)]), "two of one term: the first"
    known.put(submission(2))
    assert known.planned(piece) == ("b1", 1), "a word that crossed the move takes nothing back"
    known.put(submission(3, planned="b1", term=1))
    assert known.planned(piece) == ("b1", 1)
    known.put(submission(4, planned="b0", term=1 + bounds.OVERRULED))
    assert known.planned(piece)[0] == "b0", "the home has set another"
    assert not known.move([(*piece, "b1", "b2", 2)]), "agreed on before that was heard"
    assert not known.move([("b7", "x", "b1", "b2", 2)]), "of what nothing is known"


def wrong() -> list[Word]:
    twice = (("a", "T"),) * 2
    base = ("b0", 1, 1, 3, "k", "n", "h", "h", 0)
    return [
        BrokerWord("b0", 1, 1, 3, -1, 0, 0, False),
        BrokerWord("b0", 1, 1, 3, 0, 0, -1, False),
        BrokerWord("b0", 1, 1, -1, 0, 0, 0, False),
        BrokerWord("b0", 1, 1, bounds.HOPS_MAX + 1, 0, 0, 0, False),
        BrokerWord(LONG, 1, 1, 3, 0, 0, 0, False),
        submission(rates=(-1,)),
        submission(rates=(bounds.RATE_MAX + 1,)),
        submission(key=LONG),
        submission(planned=LONG),
        Submission(*base, (("a", "T"),), (), 0),
        Submission(*base, twice, (1, 1), 0),
        Submission(*base[:3], -1, *base[4:], (), (), 0),
        Measured("b0", "b1", "k", {"b1": {"T": -1}}, 0),
        HostingWord("b0", "k", LONG, 1, False),
        Turned("b0", "", VersionWord(1, 2, -1)),
        Turned("b0", "", VersionWord(1, 2, 1, (("b0", "k", "b1", LONG, 1),))),
        Turned("b0", "b1", TurnMoves(1, (("b0", LONG, "b1", "b2", 1),))),
        Enclosed("b1", b"x" * bounds.WORD_BYTES_MAX),
    ]


@pytest.mark.parametrize("number", range(len(wrong())))
def test_a_word_beyond_its_bounds_is_refused(number: int) -> None:
    with pytest.raises(StatementError):
        word_of(encoded(wrong()[number]))


def test_the_memory_for_others_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Known()
    size = len(encoded(submission()))
    monkeypatch.setattr(bounds, "KNOWN_BYTES_MAX", 2 * size)
    known.put(submission(key="b0/0"))
    known.put(submission(key="b0/1"))
    with pytest.raises(StatementError):
        known.put(submission(key="b0/2"))
    assert known.put(submission(2, key="b0/1")), "in the place of what it was"
    known.forget("b0")
    assert known.put(submission(key="b0/2")), "what is forgotten counts no more"


@given(st.binary(max_size=200))
def test_any_bytes_are_a_word_or_refused_with_a_sentence(data: bytes) -> None:
    with suppress(StatementError):
        word_of(data)


def test_a_neighbour_that_talks_nonsense_disturbs_nobody() -> None:
    town = Town(1, 3, [(0, 1), (1, 2)], {("b2", "A"): 3000.0})
    town.submit("b0", {("b2", "A"): 1.0})
    draw = Random(5)
    middle = town.houses["b1"]
    for _ in range(200):
        town.run(0.2)
        data = draw.randbytes(draw.randint(0, 60))
        middle.do(lambda data=data: middle.say("b0", data))
        middle.do(lambda: middle.say("b2", encoded(Measured("b2", "b1", "x", {}, 5))))
    town.run(30)
    assert town.quiet
    assert town.jobs["b0/0"].host == "b2"
    assert town.houses["b0"].counts["frames_malformed"] > 100
