"""What is to be seen of a broker is the same whether its state was taken up again or not.

Not its results alone: what its tasks hold and drop decides, at a limit, what they find later.
"""

import json
from random import Random

import msgspec
import pytest

from broker.core.broker import BrokerOptions
from broker.core.effects import Emit
from broker.core.messages import EventsReceived, Payload, SpecificationSubmitted
from broker.core.recovery.durable_state import RestorableBroker
from broker.engine.limits import Limits
from simulation.crashes import further

BEGIN_MS = 1_700_000_000_000
STEPS = 70
STEPS_MS = (10, 500, 2_000, 2_000, 15_000, 60_000)  # what is silent for minutes is swept
OPTIONS = BrokerOptions(name="site", idle_timeout_ms=86_400_000)
GROUPED = ("Few", "Newest", "Oldest", "Three", "Undisturbed")
ALONE = ("Eaten", "Quiet", "Silent")


def text_of(name, grouped):
    text = further.text_of(name, "anna").rstrip()
    return f"{text}\ngroup by source\n" if grouped and "group by" not in text else text


def taken_up(core):
    state = msgspec.msgpack.decode(msgspec.msgpack.encode(core.state()))
    again = RestorableBroker(core.options, core.limits)
    again.restore(state)
    return again


def messages(random, steps, steps_ms):
    now = BEGIN_MS
    for number in range(steps):
        now += random.choice(steps_ms)
        payloads = []
        for serial in range(random.randint(1, 4)):
            kind = random.choice(("Temp", "Wind", "Humidity"))
            said = {"id": f"{number}-{serial}", "timestamp": now - random.randint(0, 300)}
            said["val"] = random.randint(0, 9)
            source = f"s{random.randint(0, 5)}"
            payloads.append(Payload(kind, source, json.dumps(said).encode(), None))
        yield EventsReceived(tuple(payloads)), now


def seen(core, effects):
    results = [one.payload for e in effects if isinstance(e, Emit) for one in e.results]
    return core.held(), core.dropped(), core.next_wake(), results


@pytest.mark.parametrize("held_max", [1_000_000, 8])
@pytest.mark.parametrize(
    ("name", "grouped"), [*((one, True) for one in GROUPED), *((one, False) for one in ALONE)]
)
def test_a_state_that_is_taken_up_shows_nothing_of_that(name, grouped, held_max):
    compare(name, held_max, STEPS, STEPS_MS, grouped=grouped)


def test_what_is_looked_through_but_now_and_then_is_so_at_the_same_time():
    # So dense that more is kept of what `without` asks about than is looked through at first.
    compare("Undisturbed", 1_000_000, 400, (10, 100), grouped=False)


def compare(name, held_max, steps, steps_ms, *, grouped):
    random = Random(f"{name} 1")
    limits = Limits(occurrences_held_max=held_max)
    one, other = RestorableBroker(OPTIONS, limits), RestorableBroker(OPTIONS, limits)
    for core in (one, other):
        core.handle(SpecificationSubmitted("anna", "1", text_of(name, grouped), None), BEGIN_MS)
        assert len(core.catalogue) == 1
    for message, now in messages(random, steps, steps_ms):
        if random.random() < 0.3:
            other = taken_up(other)
        expected = seen(one, one.handle(message, now))
        assert seen(other, other.handle(message, now)) == expected
