"""What `preview` says of a text, held to what submitting the text next does."""

import json

from hypothesis import given
from hypothesis import strategies as st

from broker.core.broker import Broker, BrokerOptions
from broker.core.effects import Reply
from broker.core.installer import Asker
from broker.core.messages import CancelRequested, SpecificationSubmitted
from broker.core.network.network_broker import NetworkBroker
from broker.core.recovery.durable import DurableBroker
from broker.engine.ingest.advertised import Advertisement
from broker.engine.limits import make_limits

TYPES = "event A(n: int)\nevent B(n: int)\n"
DEFINITIONS = {
    "D": "define D(n) detect A(n > {}) assign n = A.n\n",
    "E": "define E(n) detect D then B within {} s assign n = D.n\n",
}
NAMES = ("S", "T", "U")


@st.composite
def texts(draw):
    """Draw a text of some subscriptions over definitions that other texts may have, too."""
    numbers = {name: draw(st.integers(1, 2)) for name in DEFINITIONS}
    text = TYPES + "".join(one.format(numbers[name]) for name, one in DEFINITIONS.items())
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True)):
        detected, seq = draw(st.sampled_from(["A", "D", "E", "D then E"])), draw(st.integers(1, 3))
        text += f"subscription {name} seq {seq} from anna to b detect {detected}\n"
    if draw(st.integers(0, 9)) == 0:
        text = text.replace("B(n: int)", "B(n: text)")
    return text


def submitted(broker, text):
    """Submit; the first answer."""
    effects = broker.handle(SpecificationSubmitted("anna", "1", text), 0)
    return json.loads(next(one.payload for one in effects if isinstance(one, Reply)))


def previewed(broker, text):
    answer = broker.installer.preview(text, None, Asker("anna"), broker.options)
    return json.loads(answer.payload())


def running(broker):
    """Name by key what runs."""
    rows = {key: task.name for key, task in broker._matcher.tasks().items()}
    return rows, {key: one.task for key, one in broker.catalogue.subscriptions.items()}


def broker_of(**limits):
    return Broker(BrokerOptions(name="hall"), make_limits(**limits))


@given(st.lists(texts(), min_size=1, max_size=4))
def test_what_is_told_is_what_happens(history):
    broker = broker_of()
    for text in history:
        before, tasks_before = running(broker)
        told = previewed(broker, text)
        assert running(broker) == (before, tasks_before), "a preview changes nothing"
        answer = submitted(broker, text)
        assert told["ok"] == answer["ok"]
        after, tasks_after = running(broker)
        if not told["ok"]:
            assert told["errors"] == answer["errors"]
            continue
        broker.check_invariants()
        changes = {row["subscription"]: row["change"] for row in told["subscriptions"]}
        assert list(changes) == answer["subscriptions"]
        for name, change in changes.items():
            key = ("anna", name)
            happened = "new"
            if key in tasks_before:
                happened = "same" if tasks_before[key] == tasks_after[key] else "changed"
            assert change == happened
        defined = set(DEFINITIONS)
        gone = sorted(before[key] for key in before.keys() - after.keys() if before[key] in defined)
        assert sorted(told["ends"]) == gone
        came = {after[key] for key in after.keys() - before.keys() if after[key] in defined}
        begun = {name for row in told["subscriptions"] for name in row["begins"]}
        assert came <= begun
        kept = {after[key] for key in after.keys() & before.keys()}
        assert {name for row in told["subscriptions"] for name in row["keeps"]} <= kept
        begun |= {row["subscription"] for row in told["subscriptions"] if not row["goes_on"]}
        changed = [row for row in told["subscriptions"] if row["change"] == "changed"]
        assert answer.get("changes", []) == changed, "the answer says what the preview said"
        assert {row["task"] for row in told["bounds"]} == begun
        assert told["travels"] == [], "a broker without links asks nobody"


@given(texts(), texts(), st.integers(1, 4))
def test_what_a_limit_refuses_is_told_beforehand(first, second, most):
    broker = broker_of(subscriptions_max=most, types_max=2, definitions_max=most)
    submitted(broker, first)
    told = previewed(broker, second)
    answer = submitted(broker, second)
    assert told["ok"] == answer["ok"]
    assert told.get("errors") == answer.get("errors")


def test_what_would_travel_is_told_where_there_are_links():
    broker = Broker(BrokerOptions(name="hall", networked=True))
    text = TYPES + "subscription S from anna to b detect A(n > 1) and B within 5 s\n"
    (row,) = previewed(broker, text)["travels"]
    assert row == {"task": "S", "lines": ["A(n > 1): each", "B: each"]}


def test_what_would_wait_for_partners_goes_by_what_is_promised_of_times():
    durable = DurableBroker(BrokerOptions(name="hall", networked=True), make_limits())
    broker = NetworkBroker(durable, 1)
    text = TYPES + "subscription S from anna to b detect A(n > 1) and B within 5 s\n"

    def lines():
        (row,) = previewed(durable.network, text)["travels"]
        return row["lines"]

    assert lines() == ["A(n > 1), B: together in less than 5001 ms"]
    said = Advertisement(source="s", uncertainty=300)
    durable.network.promises.advertise(["A"], said)  # in steps: 500 ms, by which both may be off
    assert lines() == ["A(n > 1), B: together in less than 6001 ms"]
    broker.ways.promises.take("another", ("B",), None)  # it is of a version that promises nothing
    assert lines() == ["A(n > 1): each", "B: each"]


def test_types_that_leave_with_their_text_make_room_for_others():
    """A text that replaces the last one of a type may declare it otherwise."""
    broker = broker_of(types_max=2)
    submitted(broker, TYPES + "subscription S from anna to b detect A\n")
    text = "event A(n: text)\nevent C()\nsubscription S seq 2 from anna to b detect A then C\n"
    assert previewed(broker, text)["ok"]
    assert submitted(broker, text)["ok"]
    broker.handle(CancelRequested("anna", "2", "S"), 0)
    assert not running(broker)[0]
