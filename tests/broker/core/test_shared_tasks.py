"""Definitions that run once for several texts: each subscription gets what it would get alone.

Owns histories of submissions, changes, cancels, events and restarts at one broker, each beside
brokers of which each has one of the subscriptions alone.
"""

import json
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.broker import BrokerOptions
from broker.core.messages import EventsReceived, Payload, ResumeRequested, SpecificationSubmitted
from broker.core.recovery.durable_state import RestorableBroker
from broker.engine.limits import Limits, make_limits
from broker.network.frames import told
from tests.broker.core.machine import Machine
from tests.broker.core.network.test_networked import Core as Networked

TYPES = "event A(n: int)\nevent B(n: int)\n"
DEFINITIONS = {
    "Filter": "define Filter(n) detect A(n > 3) assign n = A.n\n",
    "Pair": "define Pair(n) detect A(n > 2) as a then B as b within 4 s assign n = a.n\n",
    "Chain": "define Chain(n) detect A as a then B as b then A(n < 3) as c within 5 s"
    " assign n = a.n group by source\n",
    "Recent": "define Recent(n) detect [recent] A as a then B(n > 2) as b assign n = a.n\n",
    "Consumed": "define Consumed(n) detect A as a then B as b within 9 s assign n = a.n"
    " consuming a\n",
    "Without": "define Without(n) detect (A as a then A(n > 2) as b) without B within 4 s"
    " assign n = b.n group by source\n",
    "Silence": "define Silence(n) detect absent B for 3 s assign n = 4\n",
    "Quiet": "define Quiet(n) detect absent B for 3 s assign n = 4 group by source\n",
    "Mean": "define Mean(n) aggr every 5 s detect A assign n = Sum(A.n) group by source\n",
    "Slide": "define Slide(n) aggr range 4 s detect A assign n = Sum(A.n)\n",
    "Ranges": "define Ranges(n) aggr range 4 s detect A assign n = Sum(A.n) group by n\n",
    "Session": "define Session(n) aggr session 2 s detect A assign n = Count(A)\n",
    "Empty": "define Empty(n) aggr every 3 s detect outer A assign n = Count(A)\n",
    "Upper": "define Upper(n) detect Pair as p then Mean as m within 9 s assign n = p.n\n",
}
NEEDS = {"Upper": ("Pair", "Mean")}
DETECTED = ("{0}", "{0}(n > 1)", "{0} then B within 4 s", "[recent] {0} then A(n > 1)")
NAMES = ("One", "Two", "Three")


def text_of(name, definition, seq, detected):
    needed = "".join(DEFINITIONS[need] for need in NEEDS.get(definition, ()))
    detect = detected.format(definition)
    return (
        TYPES
        + needed
        + DEFINITIONS[definition]
        + f"subscription {name} seq {seq} from {name} to x detect {detect}\n"
    )


class Core(Machine):
    """A broker's core that may be taken up by another; all results by subscription."""

    def __init__(self):
        self.options = BrokerOptions(lateness_ms=0)
        super().__init__()
        self.broker = RestorableBroker(self.options, Limits())
        self.found = {}
        # The types are declared, so that all cores know all sources: time is the same everywhere.
        self.submit(TYPES + "subscription Base from base to x detect A(n > 9) then B")

    def tell(self, message):
        effects = super().tell(message)
        for result in self.results():
            del result["detected_at"]
            self.found.setdefault(result["subscription"], []).append(result)
        return effects

    def restart(self):
        state = msgspec.msgpack.encode(self.broker.state())
        self.broker = RestorableBroker(self.options, Limits())
        self.broker.restore(msgspec.msgpack.decode(state))
        self.broker.check_invariants()
        assert msgspec.msgpack.encode(self.broker.state()) == state


def happen(steps):
    """Have steps happen at one core and at one for each subscription; (shared, what each found)."""
    shared, alone = Core(), {name: Core() for name in NAMES}
    for number, (what, *how) in enumerate(steps):
        cores = [shared, *alone.values()]
        if what == "wait":
            for core in cores:
                core.wait(how[0])
        elif what == "restart":
            shared.restart()
        elif what == "event":
            type_name, n, source = how
            for core in cores:
                core.wait(1)
                one = {"timestamp": core.now, "n": n, "id": f"e{number}"}
                core.send(one, type_name=type_name, source=source)
        else:
            both = (shared, alone[how[0]])
            asked = (text_of(how[0], *how[1:]), how[0]) if what == "submit" else (how[0], how[0])
            replies = [getattr(core, what)(*asked) for core in both]
            for reply in replies:
                codes = [error["code"] for error in reply.get("errors", ())]
            assert all(code.startswith("HW5") for code in codes), reply  # the texts are right
            assert replies[0] == replies[1], (what, how)
    for core in (shared, *alone.values()):
        core.wait(60_000)
    return shared, {name: core.found.get(name, []) for name, core in alone.items()}


def compare(steps):
    shared, alone = happen(steps)
    assert {name: shared.found.get(name, []) for name in NAMES} == alone
    return sum(map(len, alone.values()))


EVENTS = st.tuples(
    st.just("event"), st.sampled_from("AAB"), st.integers(0, 5), st.sampled_from(["s", "t"])
)
SUBMITTED = st.tuples(
    st.just("submit"),
    st.sampled_from(NAMES),
    st.sampled_from(list(DEFINITIONS)),
    st.integers(1, 3),
    st.sampled_from(DETECTED),
)
OTHERS = st.one_of(
    st.tuples(st.just("cancel"), st.sampled_from(NAMES)),
    st.tuples(st.just("wait"), st.sampled_from([300, 1_000, 2_500, 7_000])),
    st.just(("restart",)),
)


@given(st.lists(st.one_of(EVENTS, EVENTS, EVENTS, SUBMITTED, OTHERS), max_size=40))
def test_each_subscription_gets_what_it_would_get_alone(steps):
    compare(steps)


def drawn(seed):
    """Draw a history in which most texts share one definition."""
    draw = random.Random(seed)
    favoured = draw.sample(list(DEFINITIONS), 2)
    steps = []
    for _ in range(draw.randrange(30, 120)):
        kind = draw.random()
        if kind < 0.72:
            steps.append(
                ("event", draw.choice("AAB"), draw.randrange(6), draw.choice(["s", "t", "u"]))
            )
        elif kind < 0.84:
            definition, name = draw.choice(favoured), draw.choice(NAMES)
            steps.append(("submit", name, definition, draw.randrange(1, 9), draw.choice(DETECTED)))
        elif kind < 0.88:
            steps.append(("cancel", draw.choice(NAMES)))
        elif kind < 0.97:
            steps.append(("wait", draw.choice([300, 1_000, 2_500, 7_000])))
        else:
            steps.append(("restart",))
    return steps


@pytest.mark.parametrize(
    "seeds", [range(5), pytest.param(range(5, 1_000), marks=pytest.mark.long)], ids=["few", "many"]
)
def test_in_many_histories_each_subscription_gets_what_it_would_get_alone(seeds):
    assert sum(compare(drawn(seed)) for seed in seeds) > len(seeds)


def machine_with(definitions_max):
    machine = Machine(Limits(definitions_max=definitions_max), lateness_ms=0)
    assert machine.submit(text_of("One", "Pair", 1, "{0}"))["ok"]
    machine.send({"timestamp": machine.now, "n": 4}, type_name="A")
    return machine


def end_what_has_begun(machine):
    for type_name in "BA":
        machine.wait(5_000)
        machine.send({"timestamp": machine.now, "n": 0}, type_name=type_name)


def test_each_instance_of_a_definition_counts_where_it_is_begun_and_no_more_when_they_are_one():
    machine = machine_with(1)
    reply = machine.submit(text_of("Two", "Pair", 1, "{0}"))
    assert [error["code"] for error in reply["errors"]] == ["HW504"]
    assert "definitions_max" in reply["errors"][0]["message"]
    assert len(machine.broker.subscriptions) == 1
    machine = machine_with(2)
    assert machine.submit(text_of("Two", "Pair", 1, "{0}"))["ok"]
    # A filter holds nothing, and would be one; yet it is another definition.
    assert not machine.submit(text_of("Three", "Filter", 1, "{0}"))["ok"]
    end_what_has_begun(machine)
    assert machine.submit(text_of("Three", "Filter", 1, "{0}"))["ok"]


def read(core, type_name, now):
    data = json.dumps({"timestamp": now, "n": 4}).encode()
    core.tell(EventsReceived((Payload(type_name, "s", data),)), now)


def resumed(machine, name):
    machine.tell(ResumeRequested(name, "1", name, "here", "token"))
    return machine.reply()


def test_what_is_resumed_beside_what_others_keep_counts_as_well():
    text = (
        "event A(n: int)\ndefine Wild(n) detect A as a and A as b and A as c assign n = a.n\n"
        "subscription {0} from {0} to x detect Wild\n"
    )
    for most in (1, 2):
        limits = make_limits(definitions_max=most, step_candidates_max=2_000, step_bytes_max=10**6)
        machine = Machine(limits, lateness_ms=0)
        assert all(machine.submit(text.format(name), name)["ok"] for name in NAMES[:2])
        for n in range(60):
            machine.now += 1
            machine.send({"timestamp": machine.now, "n": n}, type_name="A")
        assert machine.broker.catalogue.suspended == 2
        assert resumed(machine, "One")["ok"] == (most > 1)
        assert machine.broker.catalogue.suspended == 3 - most
        assert resumed(machine, "Two")["ok"] == (most > 1)


def test_what_becomes_active_where_no_more_may_run_shares_what_runs_and_that_is_counted():
    text = TYPES + DEFINITIONS["Pair"] + "subscription {0} from x to y detect Pair\n"
    found = {}
    for most in (1, 2):
        core = Networked("hall", definitions_max=most)
        core.tell(SpecificationSubmitted("c", "r", text.format("One")), 1_001)
        core.tell(SpecificationSubmitted("c", "r", text.format("Two")), 1_002)
        core.tell(told.Activated((("x", "One"),), apart=True), 1_100)
        read(core, "A", 1_500)
        core.tell(told.Activated((("x", "Two"),), apart=True), 1_600)
        read(core, "B", 1_700)
        found[most] = [result["subscription"] for result in core.results]
        assert core.core.ledger.notes.get("definitions_joined", 0) == 2 - most
    assert found == {1: ["One", "Two"], 2: ["One"]}


def test_windows_of_groups_become_one_when_what_was_before_the_later_has_left():
    machine = Machine(Limits(), lateness_ms=0)

    def send(n):
        machine.wait(500)
        machine.send({"timestamp": machine.now, "n": n}, type_name="A")

    machine.submit(text_of("One", "Ranges", 1, "{0}"))
    for n in (1, 2, 3):
        send(n)
    machine.submit(text_of("Two", "Ranges", 1, "{0}"))
    assert machine.broker.catalogue.shared == 0
    for n in [2, 2, 1, 2, 1, 1, 2] * 6:  # of one group comes no more, the others come otherwise
        send(n)
    assert machine.broker.catalogue.shared == 1
