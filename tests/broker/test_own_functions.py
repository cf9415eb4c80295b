"""Functions of one's own in a broker: from a file, through a crash, and what is said of faults."""

from __future__ import annotations

import json
import re

import pytest

from broker.core.broker import BrokerOptions
from broker.core.effects import Append, Emit, Reply
from broker.core.messages import EventsReceived, Payload, SpecificationSubmitted
from broker.core.recovery.durable import DurableBroker
from broker.core.recovery.durable_listed import RecoveryError
from broker.core.recovery.records import Record
from broker.engine.event.own import Aggregate, Function
from broker.engine.limits import Limits
from broker.own_functions import FunctionsError, load_functions

NOW = 1_700_000_000_000
TEXT = """
event Temp(val: float)
subscription Rise from anna to log
detect Temp as a then Temp(val > 0) as b within 1 h
assign rise = Rise(a.val, b.val)
"""
FILE = """
from headwater import Aggregate, Function

def rise(a, b):
    return b - a

Rise = Function(rise, "float")
Swing = Aggregate(lambda values: max(values) - min(values))
_hidden = Function(rise)
number = 7
"""


def saved(folder, text):
    path = folder / "own.py"
    path.write_text(text)
    return str(path)


def test_a_file_gives_what_stands_in_it_under_a_name(tmp_path):
    found = load_functions(saved(tmp_path, FILE))
    assert list(found) == ["Rise", "Swing"]
    assert found["Rise"](1.0, 3.0) == 2.0
    assert isinstance(found["Swing"], Aggregate)
    assert load_functions("") == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "no functions; each is a name for a headwater.Function"),
        ("x = 1\nraise ValueError('no model')\n", "own.py:2: ValueError: no model"),
        ("x = 1\n\nx = = 2\n", "own.py:3: invalid syntax"),
        ("import no_such_module_here\n", "own.py:1: ModuleNotFoundError: No module named"),
    ],
)
def test_a_faulty_file_is_a_sentence_that_names_the_line(tmp_path, text, said):
    with pytest.raises(FunctionsError, match=re.escape(said)):
        load_functions(saved(tmp_path, text))


def test_a_file_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(FunctionsError, match="there is no such file of functions"):
        load_functions(str(tmp_path / "none.py"))
    (tmp_path / "own.txt").write_text("x = 1")
    with pytest.raises(FunctionsError, match="not a Python file"):
        load_functions(str(tmp_path / "own.txt"))


class Disk:
    """A broker with functions, and what it had written down."""

    def __init__(self, functions):
        self.records, self.results, self.snapshot = [], [], None
        self.start(functions)

    def start(self, functions):
        options = BrokerOptions(lateness_ms=0)
        self.broker, effects = DurableBroker.recover(
            options, Limits(), self.snapshot, self.records, len(self.results), NOW,
            functions=functions,
        )  # fmt: skip
        self.carry_out(effects)

    def carry_out(self, effects):
        for effect in effects:
            if isinstance(effect, Append):
                self.records.append(Record(effect.number, effect.data))
            elif isinstance(effect, Emit):
                self.results += [json.loads(one.payload)["values"] for one in effect.results]
        return effects

    def submit(self, text=TEXT):
        message = SpecificationSubmitted("anna", "1", text, "here", "token")
        effects = self.carry_out(self.broker.handle(message, NOW))
        return [json.loads(one.payload) for one in effects if isinstance(one, Reply)]

    def send(self, at, val):
        data = json.dumps({"id": f"t{at}", "timestamp": NOW + at, "val": val}).encode()
        message = EventsReceived((Payload("Temp", "t", data, "token"),))
        self.carry_out(self.broker.handle(message, NOW + at))


def rising(version=""):
    return {"Rise": Function(lambda a, b: b - a, "float", version)}


@pytest.mark.parametrize("snapshot", [False, True])
def test_what_was_installed_with_a_function_goes_on_after_a_crash(snapshot):
    disk = Disk(rising())
    assert [one["ok"] for one in disk.submit()] == [True, True]
    disk.send(1, 2.0)
    if snapshot:
        disk.snapshot = disk.broker.snapshot()
    disk.start(rising())
    disk.send(2, 5.0)
    assert disk.results == [{"rise": 3.0}]


def test_without_the_function_a_text_is_refused_and_the_function_named():
    (answer,) = Disk({}).submit()
    assert not answer["ok"]
    assert "Rise" in answer["errors"][0]["message"]


@pytest.mark.parametrize(
    ("later", "said"),
    [({}, "calls a function of one's own that is there no more"), (rising("2"), "another version")],
)
def test_a_snapshot_is_not_taken_up_where_its_texts_mean_something_else(later, said):
    disk = Disk(rising("1"))
    disk.submit()
    disk.snapshot = disk.broker.snapshot()
    with pytest.raises(RecoveryError, match=said):
        disk.start(later)
