"""Which files of user functions are in force, and what neighbours make of each other's."""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace

import msgspec
import pytest

from broker.engine.event.own import Function
from broker.network.functions.exchange import (
    FunctionExchange,
    FunctionGiven,
    FunctionsStated,
    FunctionWanted,
)
from broker.network.functions.files import FILE_BYTES_MAX, NAMES_MAX, FunctionFile
from broker.network.functions.register import FunctionRegister
from broker.own_functions import FunctionsError, load_given

HALF = b"from headwater import Function\nHalf = Function(lambda x: x / 2)\n"
THIRD = b"from headwater import Function\nHalf = Function(lambda x: x / 3)\n"
TWICE = b"from headwater import Function\nTwice = Function(lambda x: x * 2)\n"
BOTH = b"from headwater import Function\nTwice = Function(abs)\nThrice = Function(abs)\n"


def file(name="own", counter=1, broker="b0", data=HALF):
    return FunctionFile(name, counter, broker, "anna", 1_000, data)


def register(*files, load=load_given, configured=None):
    one = FunctionRegister(configured or {}, load)
    one.change(files, ())
    return one


def test_texts_may_call_what_a_file_in_force_brings():
    one = register(file())
    assert one.in_force["Half"](3.0) == 1.5
    assert one.functions_in(file().digest) == ["Half"]
    assert one.change([file(counter=2, data=THIRD)], ())["Half"](3.0) == 1.0
    assert list(one.change([file(counter=3, data=b"")], ())) == []


def test_the_later_file_of_a_name_counts_whatever_the_order():
    """An independent reading: of each name the file with the greatest counter, then broker."""
    names, brokers, contents = ("a", "b", "c"), ("b0", "b1"), (HALF, TWICE, BOTH, b"")
    rng = random.Random(4)
    for _ in range(60):
        ranks = list(itertools.product(names, (1, 2, 3), brokers))
        files = [file(*rank, rng.choice(contents)) for rank in rng.sample(ranks, 9)]
        expected = {
            name: max((each for each in files if each.name == name), key=lambda each: each.rank)
            for name in {each.name for each in files}
        }
        seen = []
        for _ in range(3):
            rng.shuffle(files)
            one = register()
            for each in files:
                one.change([each], ())
            assert {each.name: each for each in one.files()} == expected
            seen.append({name: own.version for name, own in one.in_force.items()})
        assert seen[0] == seen[1] == seen[2]


def test_a_file_whose_function_has_another_owner_is_not_used_and_told_of():
    one = register(file(), file("more", data=TWICE), file("zoo", data=BOTH))
    assert set(one.in_force) == {"Half", "Twice"}, "half of a file was used"
    assert one.faults == {
        "zoo": "a function `Twice` is in the file `more` already; rename one of the two"
    }
    one.change([file("more", 2, data=b"")], ())
    assert set(one.in_force) == {"Half", "Twice", "Thrice"}
    assert one.faults == {}


def test_a_configured_function_is_not_replaced_by_a_given_one():
    configured = {"Half": Function(lambda x: 7.0)}
    one = register(file(), configured=configured)
    assert one.in_force["Half"](3.0) == 7.0
    assert "broker.functions" in one.faults["own"]


def test_a_file_that_cannot_be_run_here_stops_no_other():
    one = register(file(data=b"import no_such_module\n"), file("more", data=TWICE))
    assert list(one.in_force) == ["Twice"]
    assert "ModuleNotFoundError" in one.faults["own"]
    assert one.file("own") is not None, "it is to travel all the same"


def test_without_a_loader_files_are_kept_and_none_is_run():
    one = register(file(data=b"raise SystemExit\n"), load=None)
    assert (one.runs, dict(one.in_force), one.faults) == (False, {}, {})
    assert [each.name for each in one.files()] == ["own"]


def test_a_replaced_file_is_kept_while_a_text_calls_it():
    one, text = register(file()), "assign half = Half ( a.val )"
    digests = one.called(text)
    assert digests == {"Half": file().digest}
    assert one.called("assign half = Halfway(a.val)") == {}
    one.change([file(counter=2, data=THIRD)], digests.values())
    assert one.in_force["Half"](3.0) == 1.0
    assert one.of_text(digests)["Half"](3.0) == 1.5
    again = FunctionRegister({}, load_given)
    again.restore(msgspec.msgpack.decode(msgspec.msgpack.encode(one.state())))
    assert again.of_text(digests)["Half"](3.0) == 1.5
    assert again.files() == one.files()
    one.change([], ())
    with pytest.raises(LookupError, match="`Half` of the file of functions"):
        one.of_text(digests)


def test_a_text_of_another_broker_gets_the_versions_that_it_was_checked_with():
    home, host = register(file()), register(file(counter=2, data=THIRD))
    versions = home.versions("Half(a.val)", home.called("Half(a.val)"))
    with pytest.raises(LookupError, match=r"`Half` of version .* another version"):
        host.for_versions(versions)
    with pytest.raises(LookupError, match="no such function"):
        register().for_versions(versions)
    assert register(file()).for_versions(versions).in_force["Half"](3.0) == 1.5


def test_removals_are_not_remembered_without_end():
    one = register()
    for number in range(NAMES_MAX + 5):
        one.change([file(f"f{number}", number + 1, data=b"")], ())
    assert len(one.files()) == NAMES_MAX
    assert one.file("f0") is None, "the oldest goes first"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"x = = 1\n", "own.py:1: invalid syntax"),
        (b"x = 1\n", "own.py: no functions"),
        (b"\nraise ValueError('no model')\n", "own.py:2: ValueError: no model"),
        (b"raise SystemExit(3)\n", "own.py:1: SystemExit: 3"),
        (
            b"from headwater import Function\nabs = Function(len)\n",
            "`abs` is a function of the lan",
        ),
        (b"\xff\xfe\n", "own.py"),
        (b"a\0b", "own.py"),
    ],
)
def test_a_faulty_file_is_a_sentence(data, said):
    with pytest.raises(FunctionsError) as error:
        load_given("own", data)
    assert said in str(error.value)


# --- neighbours ---------------------------------------------------------------------------------


class Line:
    """Brokers in a row, and what they say to each other; a link may lose what is under way."""

    def __init__(self, count):
        self.registers = [register() for _ in range(count)]
        self.under_way, self.sent = [], []
        self.exchanges = [self._exchange(number) for number in range(count)]

    def _exchange(self, me):
        def keep(files):
            self.registers[me].change(files, ())

        def say(peer, body):
            self.under_way.append((me, int(peer), body))

        return FunctionExchange(self.registers[me], say, keep)

    def neighbours(self, me):
        return [str(each) for each in (me - 1, me + 1) if 0 <= each < len(self.registers)]

    def link(self, left):
        self.exchanges[left].begin(str(left + 1))
        self.exchanges[left + 1].begin(str(left))

    def settle(self):
        while True:
            for me, exchange in enumerate(self.exchanges):
                exchange.spread(SimpleNamespace(standing=self.neighbours(me)))
            if not self.under_way:
                return
            sender, to, body = self.under_way.pop(0)
            self.sent.append(body)
            self.exchanges[to].hear(str(sender), body)


def test_a_file_given_at_one_end_comes_to_the_other_and_no_link_carries_it_twice():
    line = Line(4)
    for left in range(3):
        line.link(left)
    line.registers[0].change([file()], ())
    line.settle()
    assert all(each.files() == [file()] for each in line.registers)
    assert sum(isinstance(body, FunctionGiven) for body in line.sent) == 3
    line.registers[3].change([file(counter=2, data=b"")], ())
    line.settle()
    assert all(dict(each.in_force) == {} for each in line.registers)


def test_whoever_comes_later_gets_all_and_one_file_at_a_time():
    line = Line(2)
    line.registers[0].change([file(f"f{number}", number + 1) for number in range(5)], ())
    line.link(0)
    while line.under_way:
        sender, to, body = line.under_way.pop(0)
        assert not any(isinstance(other, FunctionGiven) for *_, other in line.under_way)
        line.exchanges[to].hear(str(sender), body)
    assert line.registers[1].files() == line.registers[0].files()


def test_what_a_link_loses_is_asked_for_at_the_next_session():
    line = Line(2)
    line.link(0)
    line.registers[0].change([file()], ())
    line.exchanges[0].spread(SimpleNamespace(standing=["1"]))
    line.under_way.clear()
    line.settle()
    assert line.registers[1].files() == []
    line.link(0)
    line.settle()
    assert line.registers[1].files() == [file()]


def test_a_neighbour_of_an_older_version_is_told_nothing():
    line = Line(2)
    line.exchanges[0].begin("1", takes=False)
    line.registers[0].change([file()], ())
    line.settle()
    assert line.sent == []


@pytest.mark.parametrize(
    "message",
    [
        FunctionGiven(file("../own")),
        FunctionGiven(file(data=b"x" * (FILE_BYTES_MAX + 1))),
        FunctionGiven(file(counter=2**60)),
        FunctionsStated((("", 1, "b0"),)),
        FunctionsStated(tuple((f"f{number}", 1, "b0") for number in range(2 * NAMES_MAX + 1))),
    ],
)
def test_what_no_broker_would_send_is_refused(message):
    line = Line(2)
    line.link(0)
    with pytest.raises(ValueError):
        line.exchanges[1].hear("0", message)
    assert line.registers[1].files() == []


def test_a_file_that_is_not_there_is_not_answered_with_another():
    line = Line(2)
    line.link(0)
    line.exchanges[0].hear("1", FunctionWanted("none"))
    assert line.under_way == []
