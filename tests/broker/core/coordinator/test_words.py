"""What coordinators say to each other: whole, bounded, and of the newest."""

from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.coordinator import bounds
from broker.core.coordinator.checking import Numbers
from broker.core.coordinator.known import Known
from broker.core.coordinator.statement import (
    Measured,
    Part,
    Rated,
    Statement,
    StatementError,
    Submission,
    encoded,
    parts_of,
    word_of,
)
from planner.network import Network
from planner.rounds import messages as m
from planner.rounds.tables import Hosted, Joined, Passing, Tables
from planner.rounds.view import Summary
from tests.broker.core.coordinator.town import Town


def submission(key: str = "b0/0", rates: tuple[int, ...] = (5, 7)) -> Submission:
    inputs = tuple((f"b{number}", "Temp") for number in range(len(rates)))
    return Submission(key, "frost", "b0", inputs, rates, 3)


def statement(serial: int = 1, count: int = 1, life: int = 1) -> Statement:
    some = tuple(submission(f"b0/{number}") for number in range(count))
    return Statement("b0", life, serial, 0, 0, False, some)


def told(known: Known, one: Statement) -> Statement | None:
    found = None
    for part in parts_of(one):
        word = word_of(encoded(part))
        assert isinstance(word, Part)
        found = known.take(word)
    return found


@pytest.mark.parametrize("count", [0, 1, bounds.SUBMISSIONS_MAX])
def test_a_statement_arrives_as_it_was_said(count: int) -> None:
    known = Known()
    one = statement(count=count)
    assert told(known, one) == one
    assert known.statements == {"b0": one}
    again = Known()
    for word in known.words("b0"):
        assert isinstance(word, Part)
        again.take(word)
    assert again.statements == known.statements


def test_large_statements_travel_in_parts_that_a_link_takes() -> None:
    rates = tuple(range(bounds.INPUTS_MAX))
    one = Statement("b0", 1, 1, 0, 0, False, tuple(submission(f"b0/{n}", rates) for n in range(40)))
    parts = parts_of(one)
    assert len(parts) > 1
    assert all(len(encoded(part)) < 2 * bounds.PART_BYTES for part in parts)
    assert told(Known(), one) == one


def test_of_two_statements_the_newer_holds_whichever_comes_first() -> None:
    known = Known()
    for one in (statement(2), statement(1), statement(2), statement(1, life=2)):
        told(known, one)
    assert known.statements["b0"].place == (2, 1)


def test_parts_of_different_statements_are_not_put_together() -> None:
    rates = tuple(range(bounds.INPUTS_MAX))
    some = [
        Statement("b0", 1, n, 0, 0, False, tuple(submission(f"{n}/{i}", rates) for i in range(40)))
        for n in (1, 2)
    ]
    known = Known()
    first, second = (parts_of(one) for one in some)
    for part in (first[0], *second[1:], *first[1:]):
        known.take(part)
    assert known.statements == {"b0": some[0]}


def wrong() -> list[Statement]:
    base, twice = submission(), (("a", "T"),) * 2
    return [
        Statement("b0", 1, 1, 0, 0, False, (base, base)),
        Statement("b0", 1, 1, -1, 0, False, ()),
        Statement("b0", 1, 1, 0, 0, False, (), -1),
        Statement("b0", 1, 1, 0, 0, False, (submission(rates=(-1,)),)),
        Statement("b0", 1, 1, 0, 0, False, (submission(rates=(bounds.RATE_MAX + 1,)),)),
        Statement("b0", 1, 1, 0, 0, False, (Submission("k", "n", "h", (("a", "T"),), (), 0),)),
        Statement("b0", 1, 1, 0, 0, False, (Submission("k", "n", "h", twice, (1, 1), 0),)),
        Statement("b0", 1, 1, 0, 0, False, (submission("k" * (bounds.NAME_CHARS_MAX + 1)),)),
        statement(count=bounds.SUBMISSIONS_MAX + 1),
    ]


@pytest.mark.parametrize("number", range(len(wrong())))
def test_a_statement_beyond_its_bounds_is_refused(number: int) -> None:
    with pytest.raises(StatementError):
        told(Known(), wrong()[number])


def test_a_statement_is_of_the_broker_that_its_parts_name() -> None:
    (part,) = parts_of(statement())
    other = Part("b1", *part_of(part))
    with pytest.raises(StatementError):
        Known().take(other)


def part_of(part: Part) -> tuple[int, int, int, int, bytes]:
    return part.life, part.serial, part.part, part.parts, part.data


def test_parts_beyond_the_bounds_are_refused() -> None:
    for part in (
        Part("b0", 1, 1, 0, 1, b"x" * (bounds.PART_BYTES + 1)),
        Part("b0", 1, 1, 1, 1, b"x"),
        Part("b0", 1, 1, -1, 1, b"x"),
        Part("b0", 1, 1, 0, 10_000, b"x"),
    ):
        with pytest.raises(StatementError):
            word_of(encoded(part))
    with pytest.raises(StatementError):
        word_of(encoded(Measured("b0", "b1", "k", {"b1": {"T": -1}}, 0)))


def test_the_memory_for_others_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "KNOWN_BYTES_MAX", 1_000)
    known = Known()
    with pytest.raises(StatementError):
        told(known, statement(count=100))
    assert told(known, statement(count=2)) is not None


def test_rates_belong_to_the_statement_that_they_follow() -> None:
    known = Known()
    told(known, statement(2))
    assert known.rate(Rated("b0", 1, 2, "b0/0", "b0", (9, 9), 1))
    assert not known.rate(Rated("b0", 1, 2, "b0/0", "b0", (9, 9), 1)), "nothing new"
    assert not known.rate(Rated("b0", 1, 1, "b0/0", "b0", (1, 1), 1)), "of an older statement"
    assert not known.rate(Rated("b0", 1, 2, "b0/0", "b0", (1,), 1)), "not of these inputs"
    assert not known.rate(Rated("b1", 1, 2, "b0/0", "b0", (1, 1), 1)), "of nobody known"
    assert known.rate(Rated("b0", 1, 2, "b0/0", "b1", (9, 9), 1)), "at another host"
    told(known, statement(3))
    assert known.rates("b0", known.statements["b0"].submissions[0]) == ((5, 7), 3)


def test_an_epoch_is_of_tree_and_statements_in_any_order() -> None:
    one, other = Known(), Known()
    a, b = statement(1), Statement("b1", 1, 1, 0, 0, False, ())
    for known, order in ((one, (a, b)), (other, (b, a))):
        for each in order:
            told(known, each)
    assert one.epoch("t") == other.epoch("t") != one.epoch("u")
    told(other, statement(2))
    assert one.epoch("t") != other.epoch("t")


def bodies(number: int) -> list[m.Body]:
    """Words with a number that stands for nothing among two brokers, one piece, one stream."""
    tables = [
        Tables((Hosted(number, 0, 0),)),
        Tables((), (Passing(number, 0, -1, ()),)),
        Tables((), (Passing(0, 0, number, ()),)),
        Tables((), (Passing(0, 0, -1, (number,)),)),
        Tables((), (), (Joined(0, 0, -1, (), True),)),
    ]
    tells = [m.Tell(Summary(0, 7, 1, None, None, some), 1) for some in tables]
    commits: list[m.Body] = [m.Commit(1, some, ()) for some in tables]
    others: list[m.Body] = [
        m.Tell(Summary(number, 7, 1, None, None, Tables()), 1),
        m.Tell(Summary(0, 8, 1, None, None, Tables()), 1),
        m.Tell(Summary(0, 7, 1, None, None, Tables()), 99),
        m.Commit(1, Tables(), ((number, 0, 1),)),
        m.Commit(1, Tables(), ((0, number, 1),)),
        m.Placed(((number, 1),)),
    ]
    return [*tells, *commits, *others]


def test_words_of_the_rounds_name_only_what_is_there() -> None:
    numbers = Numbers(Network(["a", "b"], [(0, 1)]), pieces=1, streams=1)
    for number in (2, -2):
        for body in bodies(number):
            assert not numbers.fit(m.Envelope(7, 0, 1, body)), body
    good = m.Tell(Summary(0, 7, 1, None, None, Tables((Hosted(0, 0, 0),))), 1)
    assert numbers.fit(m.Envelope(7, 0, -1, good))
    assert not numbers.fit(m.Envelope(7, 2, 1, m.Grant(1)))
    assert not numbers.fit(m.Envelope(7, 0, 2, m.Grant(1)))


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
