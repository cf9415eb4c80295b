"""A coordinator in a broker: what it costs where it is off, and a fault of its own."""

import subprocess
import sys
from random import Random

import pytest

from broker.core.broker import BrokerOptions
from broker.core.coordinator.bounds import CoordinatorSettings
from broker.core.coordinator.statement import StatementError
from broker.core.messages import Woken
from broker.core.network.network_broker import NetworkBroker
from broker.core.network.planning import Planning
from broker.core.recovery.durable import DurableBroker
from broker.engine.limits import Limits
from broker.engine.runtime.budget import in_one_go
from broker.network.effects import Note
from planner.rounds.machine import Rounds
from planner.rounds.settings import Settings


def planning() -> Planning:
    options = BrokerOptions(name="a", networked=True, cells=True)
    broker = NetworkBroker(DurableBroker(options, Limits()), 1)
    found = Planning(broker, 1, CoordinatorSettings(), Rounds(0, Settings(), Random(1)))
    broker.deciding = found
    return found


def test_a_broker_whose_coordinator_is_off_does_not_even_load_the_planner() -> None:
    script = (
        "import sys, broker.site.site, broker.site.networking, broker.http;"
        "print([n for n in sys.modules if n.split('.')[0] == 'planner'"
        " or n.startswith('broker.core.coordinator')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


STRANGE = """event Gust(v: float)
event Rain(mm: float)
define Squall(v) detect Gust as g and Rain as r within 2 s where g.v > r.mm assign v = g.v
define Wet(mm) aggr every 5 s detect Rain as r assign mm = Max(r.mm)
subscription Storm from hall to alerts detect Squall as s without Wet(mm > 3) as w within 1 s
"""
HOSTING = f"""
import asyncio, sys
from types import SimpleNamespace
from broker.config import Config
from broker.config.coordinator import CoordinatorSection
from broker.core.broker import BrokerOptions
from broker.core.recovery.durable import DurableBroker
from broker.engine.limits import Limits
from broker.core.messages import SpecificationSubmitted
from broker.site.networking import Networking
from language.reading.parser import parser

core = DurableBroker(BrokerOptions(name="a", networked=True, cells=True), Limits())
async def made_ready():
    log = SimpleNamespace(epoch="1")
    Networking(Config(coordinator=CoordinatorSection(enabled=True)), core, 1, log)

asyncio.run(made_ready())
before, made = set(sys.modules), parser.cache_info().misses
told = DurableBroker(BrokerOptions(name="b"), Limits())
told.handle(SpecificationSubmitted("hall", "", {STRANGE!r}), 1)
print(len(told.subscriptions), made, parser.cache_info().misses, {{*sys.modules}} - before)
"""


def test_a_broker_that_may_be_host_has_all_loaded_before_it_has_links() -> None:
    """Else the first task that comes stops it for so long that others take it for lost."""
    done = subprocess.run(
        [sys.executable, "-c", HOSTING], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "1 1 1 set()"


def test_a_fault_of_planning_ends_planning_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    one = planning()
    broker = one._broker
    assert one.next_wake() is not None

    def fault(*_: object) -> None:
        raise AssertionError("planned so")

    monkeypatch.setattr(one.coordinator, "touched", fault)
    one.touched()
    assert one.failed == "AssertionError: planned so"
    effects = in_one_go(broker.work(Woken(), 1))
    notes = [effect for effect in effects if isinstance(effect, Note)]
    assert [note.event for note in notes] == ["planning_failed"]
    assert one.next_wake() is None
    assert one.status()["failed"]
    one.wake()
    one.heard("b", b"nonsense")  # nobody listens any more


def test_what_cannot_be_understood_is_no_fault_of_planning() -> None:
    one = planning()
    with pytest.raises(StatementError):
        one.heard("b", b"nonsense")
    assert not one.failed
