"""Given functions in a core with a journal: whatever happens, a text means what it meant."""

from __future__ import annotations

import json
import random

import pytest

from broker.core.broker import BrokerOptions
from broker.core.effects import Append, Emit, Reply
from broker.core.messages import (
    CancelRequested,
    EventsReceived,
    FunctionsChanged,
    Payload,
    SpecificationSubmitted,
)
from broker.core.recovery.durable import DurableBroker
from broker.core.recovery.durable_listed import RecoveryError
from broker.core.recovery.records import Record
from broker.engine.limits import Limits
from broker.network.functions.files import FunctionFile
from broker.network.functions.register import FunctionRegister
from broker.own_functions import load_given

NOW = 1_700_000_000_000
TEXT = """
event Temp(val: float)
subscription {name} from anna to log
detect Temp as t
assign scaled = Scale(t.val)
"""


def file(factor, counter, data=None):
    source = f"from headwater import Function\nScale = Function(lambda x: x * {factor}, 'float')\n"
    return FunctionFile(
        "own", counter, "b0", "anna", NOW, source.encode() if data is None else data
    )


class Disk:
    """A broker, and what it had written down."""

    def __init__(self):
        self.records, self.results, self.snapshot, self.at = [], [], None, 0
        self.start()

    def start(self, load=load_given):
        self.broker, effects = DurableBroker.recover(
            BrokerOptions(lateness_ms=0), Limits(), self.snapshot, self.records,
            len(self.results), NOW + self.at, functions=FunctionRegister({}, load),
        )  # fmt: skip
        self.carry_out(effects)

    def tell(self, message):
        return self.carry_out(self.broker.handle(message, NOW + self.at))

    def carry_out(self, effects):
        for effect in effects:
            if isinstance(effect, Append):
                self.records.append(Record(effect.number, effect.data))
            elif isinstance(effect, Emit):
                assert [one.offset for one in effect.results] == list(
                    range(len(self.results), len(self.results) + len(effect.results))
                )
                for one in effect.results:
                    told = json.loads(one.payload)
                    self.results.append((told["subscription"], told["values"]["scaled"]))
        return [json.loads(one.payload) for one in effects if isinstance(one, Reply)]

    def submit(self, name):
        return self.tell(SpecificationSubmitted("anna", "1", TEXT.format(name=name), "to", "t"))

    def send(self, val):
        self.at += 1
        data = json.dumps({"id": f"t{self.at}", "timestamp": NOW + self.at, "val": val}).encode()
        before = len(self.results)
        self.tell(EventsReceived((Payload("Temp", "s", data),)))
        return self.results[before:]


def test_whoever_gives_a_file_is_answered_behind_its_record():
    disk = Disk()
    effects = disk.broker.handle(FunctionsChanged((file(2, 1),), "to"), NOW)
    (append,) = [one for one in effects if isinstance(one, Append)]
    (reply,) = [one for one in effects if isinstance(one, Reply)]
    assert (reply.reply_to, reply.after) == ("to", append.number)


def test_a_text_is_refused_before_its_functions_come_and_after_they_went():
    disk = Disk()
    assert not disk.submit("A")[0]["ok"]
    disk.tell(FunctionsChanged((file(2, 1),)))
    assert disk.submit("A")[0]["ok"]
    assert disk.send(3.0) == [("A", 6.0)]
    disk.tell(FunctionsChanged((file(2, 2, b""),)))
    assert not disk.submit("B")[0]["ok"]
    assert disk.send(5.0) == [("A", 10.0)], "what is installed goes on"


@pytest.mark.parametrize("snapshot", [False, True])
def test_an_installed_text_keeps_the_file_that_it_was_checked_with(snapshot):
    disk = Disk()
    disk.tell(FunctionsChanged((file(2, 1),)))
    disk.submit("A")
    disk.tell(FunctionsChanged((file(3, 2),)))
    disk.submit("B")
    disk.snapshot = disk.broker.snapshot() if snapshot else None
    disk.start()
    assert sorted(disk.send(2.0)) == [("A", 4.0), ("B", 6.0)]
    assert sorted(disk.broker.callers().values()) == [["anna/A"], ["anna/B"]]


def test_a_replaced_file_goes_with_the_last_text_that_calls_it():
    disk = Disk()
    disk.tell(FunctionsChanged((file(2, 1),)))
    disk.submit("A")
    disk.tell(FunctionsChanged((file(3, 2),)))
    assert len(disk.broker.given.state()[1]) == 1
    disk.tell(CancelRequested("anna", "2", "A", "to", "t"))
    disk.tell(FunctionsChanged((file(4, 3),)))
    assert disk.broker.given.state()[1] == []


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_broker_that_may_not_run_what_is_installed_does_not_start(snapshot):
    """It would lose the subscription in silence, which its journal alone tells of."""
    disk = Disk()
    disk.tell(FunctionsChanged((file(2, 1),)))
    disk.submit("A")
    disk.snapshot = disk.broker.snapshot() if snapshot else None
    with pytest.raises(RecoveryError, match="run_given_functions"):
        disk.start(load=None)


def test_one_that_may_not_run_them_starts_where_no_text_needs_them():
    disk = Disk()
    disk.tell(FunctionsChanged((file(2, 1),)))
    disk.snapshot = disk.broker.snapshot()
    disk.start(load=None)
    assert dict(disk.broker.functions) == {}
    assert [each.name for each in disk.broker.given.files()] == ["own"]


@pytest.mark.parametrize("seed", range(12))
def test_results_are_those_of_a_broker_that_never_crashed(seed):
    """The oracle keeps the factor of each subscription from when it was submitted."""
    rng, disk = random.Random(seed), Disk()
    factor, counter, installed = None, 0, {}
    for _ in range(60):
        match rng.choice(["give", "take", "submit", "cancel", "send", "send", "crash", "save"]):
            case "give":
                factor, counter = rng.choice([2, 3, 5]), counter + 1
                disk.tell(FunctionsChanged((file(factor, counter),)))
            case "take":
                factor, counter = None, counter + 1
                disk.tell(FunctionsChanged((file(0, counter, b""),)))
            case "submit":
                name = rng.choice("ABC")
                if name not in installed:
                    assert disk.submit(name)[0]["ok"] == (factor is not None)
                    installed |= {name: factor} if factor is not None else {}
            case "cancel" if installed:
                name = rng.choice(sorted(installed))
                assert disk.tell(CancelRequested("anna", "2", name, "to", "t"))[0]["ok"]
                del installed[name]
            case "send":
                val = float(rng.randrange(1, 100))
                expected = sorted((name, val * each) for name, each in installed.items())
                assert sorted(disk.send(val)) == expected
            case "crash":
                disk.start()
            case "save":
                disk.snapshot = disk.broker.snapshot()
    disk.broker.check_invariants()
