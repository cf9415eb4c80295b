"""Sources that are at several brokers, or go from one to another: no event of theirs is lost."""

import json
from random import Random

import pytest

from broker.core.messages import (
    EventsReceived,
    Payload,
    SourceAdvertised,
    SourceWithdrawn,
    SpecificationSubmitted,
)
from tests.simulation.network.town import LINE, Town

EVENTS = "event Alarm(room: text)\nevent Smoke(room: text)\n"
PLAIN = EVENTS + "subscription All from x to alerts\ndetect Alarm or Smoke\n"
BY_SOURCE = EVENTS + 'subscription All from x to alerts\ndetect Alarm(source = "s")\n'
BY_PLACE = EVENTS + 'subscription All from x to alerts\ndetect Alarm(location = "hall/1")\n'
STEP_MS = 3_000


class Roam(Town):
    """Events are kept under the broker at which they enter; `home` is the first of the line."""

    def __init__(self, text, edges=LINE, seed=1):
        super().__init__(seed, edges, text=text)
        self.acknowledged = set()
        self.sent = {}

    def begin(self, said):
        """Start, with what sources say: (broker, source, more of it)."""
        for site in self.sites.values():
            site.start()
        for name, source, more in said:
            self.advertise(name, source, **more)
        self.home.tell(SpecificationSubmitted("x", "1", self.text), {})
        self.run(20_000)
        assert "active" in self.home.states

    def advertise(self, name, source, **more):
        data = json.dumps({"types": ["Alarm"], **more}).encode()
        self.sites[name].tell(SourceAdvertised(source, data), {})

    def withdraw(self, name, source):
        self.sites[name].tell(SourceWithdrawn(source), {})

    def say(self, name, source, type_name="Alarm", **more):
        """Has an event enter, unless the broker is away; time goes on, so that it is not late."""
        self.run(20)
        if self.sites[name].process is None:
            return
        number = f"e{next(self.ids)}"
        body = {"id": number, "room": "r", "timestamp": self.world.now, **more}
        payload = Payload(type_name, source, json.dumps(body).encode(), number)
        self.sent[number] = (source, more)
        taken = {number: lambda _: self.acknowledged.add(number)}
        self.sites[name].tell(EventsReceived((payload,)), taken)

    def results(self):
        rows = [json.loads(row.payload) for row in self.home.machine.outbox.rows]
        return sorted(one for row in rows for some in row["events"].values() for one in some)

    def ended(self):
        """All that was sent, when it had time to come."""
        self.run(60_000)
        assert self.acknowledged == self.sent.keys()
        return sorted(self.sent)


BOTH = [("b1", "s", {}), ("b3", "s", {})]
OTHERS = [(name, f"o-{name}", {"location": "yard"}) for name in ("b0", "b1", "b2", "b3")]


@pytest.mark.parametrize("text", [PLAIN, BY_SOURCE])
@pytest.mark.parametrize(("leaves", "stays"), [("b1", "b3"), ("b3", "b1")])
def test_a_source_that_leaves_one_broker_is_heard_at_the_other(text, leaves, stays):
    town = Roam(text)
    town.begin(BOTH)
    town.say("b1", "s")
    town.say("b3", "s")
    town.run(STEP_MS)
    town.withdraw(leaves, "s")
    town.run(STEP_MS)
    town.say(stays, "s")
    town.run(STEP_MS)
    town.advertise(leaves, "s")
    town.run(STEP_MS)
    town.say(leaves, "s")
    town.say(stays, "s")
    wanted = town.ended()
    assert len(wanted) == 5
    assert town.results() == wanted


def test_a_source_that_sends_other_types_elsewhere_is_heard_with_all_of_them():
    town = Roam(PLAIN)
    town.begin([("b1", "s", {}), ("b3", "s", {"types": ["Smoke"]})])
    for _ in range(3):
        town.say("b1", "s")
        town.say("b3", "s", "Smoke")
        town.run(STEP_MS)
    assert town.results() == town.ended()


@pytest.mark.parametrize("for_ms", [300, 8_000])
def test_a_broker_that_is_cut_off_takes_no_source_of_another_with_it(for_ms):
    town = Roam(PLAIN)
    town.begin(BOTH)
    town.say("b1", "s")
    town.say("b3", "s")
    town.run(STEP_MS)
    town.links[1].cut(for_ms, lost=True)
    for _ in range(20):
        town.say("b1", "s")
        town.say("b3", "s")
        town.run(50)
    wanted = town.ended()
    assert len(wanted) == 42
    assert town.results() == wanted


def test_the_first_event_at_another_broker_reaches_who_asks_for_that_source_alone():
    town = Roam(BY_SOURCE)
    town.begin([*OTHERS, ("b1", "s", {})])
    for name in ("b1", "b3", "b2", "b1", "b3"):  # it says nothing before where it comes to
        town.say(name, "s")
        town.run(STEP_MS)
    for name in ("b1", "b2", "b3"):
        town.withdraw(name, "s")
    town.run(STEP_MS)
    town.say("b2", "s")
    wanted = town.ended()
    assert len(wanted) == 6
    assert town.results() == wanted


def test_it_is_given_out_without_waiting_for_another_event():
    town = Roam(BY_SOURCE)
    town.begin([*OTHERS, ("b1", "s", {})])
    town.say("b3", "s")
    town.run(STEP_MS)
    assert len(town.results()) == 1


def test_the_first_event_of_a_source_reaches_who_asks_for_its_place_alone():
    town = Roam(BY_PLACE)
    town.begin(OTHERS)
    town.say("b3", "s", location="hall/1")
    town.advertise("b2", "t", location="hall/1")
    town.say("b2", "t")
    town.run(STEP_MS)
    town.advertise("b2", "o-b2", location="hall/1")  # it has gone there
    town.say("b2", "o-b2")
    wanted = town.ended()
    assert len(wanted) == 3
    assert town.results() == wanted


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("goes", [True, False], ids=["leaves", "moves"])
def test_what_is_on_its_way_is_heard_though_its_source_is_not_there_any_more(goes, seed):
    """What is said of sources overtakes events on links."""
    draw = Random(seed)
    town = Roam(BY_SOURCE if goes else BY_PLACE, seed=seed)
    town.begin([*OTHERS, ("b3", "s", {"location": "hall/1"})])
    for link in town.links:
        link.delay_ms = draw.choice((5, 300, 1_500))
    link = draw.choice(town.links)
    for _ in range(draw.randint(1, 60)):
        town.say("b3", "s")
    # No event gets out of one link, while what is said goes on.
    plan, held = link._plan, []
    link._plan = lambda name, control: plan(name, control) if control else held.append(name)
    town.say("b3", "s")
    if goes:
        town.withdraw("b3", "s")
    else:
        town.advertise("b3", "s", location="yard")
    town.run(STEP_MS)
    link._plan = plan
    for name in held:
        plan(name, False)
    assert held
    wanted = town.ended()
    assert town.results() == wanted


class Drawn(Roam):
    """Sources anywhere, that advertise, send, and leave at random; links and brokers fail."""

    def __init__(self, text, seed):
        super().__init__(text, seed=seed)
        self.draw = Random(seed)
        self.places = {}  # what a source has said of its place at a broker
        self.where = {}  # of each event: who, and at which place

    def step(self):
        draw = self.draw
        name, source = draw.choice(list(self.sites)), draw.choice("stu")
        what, place = draw.random(), draw.choice(("hall/1", "yard"))
        if self.sites[name].process is None:
            return
        if what < 0.15:
            self.places[name, source] = place
            self.advertise(name, source, location=place)
        elif what < 0.3:
            self.places.pop((name, source), None)
            self.withdraw(name, source)
        elif what < 0.36:
            draw.choice(self.links).cut(draw.randint(50, 6_000), lost=draw.random() < 0.5)
        elif what < 0.4:
            self.sites[name].end()
        else:
            known = self.places.get((name, source))
            event = f"e{len(self.where)}"
            self.say(name, source, **({} if known else {"location": place}))
            if event in self.sent:
                self.where[event] = source, known or place

    def go(self):
        self.begin(OTHERS)
        for _ in range(120):
            self.step()
            self.run(self.draw.choice((1, 30, 400, 2_000)))
        self.run(90_000)


def wanted_by(text, source, place):
    return text is PLAIN or (source == "s" if text is BY_SOURCE else place == "hall/1")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("text", [PLAIN, BY_SOURCE, BY_PLACE], ids=["plain", "source", "place"])
@pytest.mark.parametrize("first", [0, pytest.param(5, marks=pytest.mark.long)])
def test_all_that_was_acknowledged_and_is_wanted_is_found_once(text, first):
    for seed in range(first, 5 if first == 0 else 100):
        town = Drawn(text, seed)
        town.go()
        found = town.results()
        # While its broker is cut off, nobody waits for a source that was silent for long.
        late = {one["id"] for one in town.home.late}
        wanted = {one for one, (who, at) in town.where.items() if wanted_by(text, who, at)} - late
        assert len(late) < 10, seed
        assert len(found) == len(set(found)), seed
        assert wanted & town.acknowledged <= set(found) <= wanted, seed
        assert len(found) > 3, seed
