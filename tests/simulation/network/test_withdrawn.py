"""Sources that end while a host does not hear of it: what was open is decided all the same."""

import json

import pytest

import headwater
from broker.core.messages import EventsReceived, Payload, SourceWithdrawn
from broker.network.frames import frames
from broker.network.origin import offers
from tests.simulation.network.town import Town

EVENT = "event Alarm(room: text)\n"
COUNTED = """
define Count(n) aggr every 10 s
detect Alarm
assign n = Count(Alarm)
subscription Counts from x to alerts
detect Count as c
"""
WANTED = """
subscription Pairs from x to alerts
detect[recent] Alarm(room = "r0") as a then[..5 s] Alarm(room = "r1") as b
"""
SILENT = """
subscription Silences from x to alerts
detect absent Alarm(room = "none") for 10 s
"""
STEP_MS = 3_000
COUNT = 12


class Ending(Town):
    """Sources at the last broker of a line send and end while the home is away."""

    def __init__(self, text, each=1):
        super().__init__(1, [("b0", "b1"), ("b1", "b2")], text=EVENT + text)
        self.each = each
        self.sent = []

    def send(self):
        number = len(self.sent)
        event = {"id": f"e{number}", "timestamp": self.world.now, "room": f"r{number % 2}"}
        self.sent.append(event)
        payload = Payload("Alarm", "s-b2", json.dumps(event).encode())
        self.sites["b2"].tell(EventsReceived((payload,)), {})

    def withdraw(self):
        for site in self.sites.values():
            if site.process is not None:
                site.tell(SourceWithdrawn(f"s-{site.name}"), {})

    def go(self):
        for site in list(self.sites.values())[:2]:  # these never sent anything
            site.tell(SourceWithdrawn(f"s-{site.name}"), {})
        self.run(3_000)
        self.home.away_ms = (COUNT + 3) * STEP_MS
        self.home.end()
        for number in range(COUNT):
            for beside in range(self.each):
                self.world.at(self.world.now + number * STEP_MS + beside, self.send)
        self.world.at(self.world.now + COUNT * STEP_MS, self.withdraw)
        self.run(self.home.away_ms + 60_000)

    def given_out(self):
        return sorted(one for _, _, one in self.found)

    def expected(self):
        """Of the results of one engine those that the end of all time does not decide."""
        engine = headwater.Engine(EVENT + self.text.removeprefix(EVENT))
        events = [{"type": "Alarm", "source": "s-b2", **one} for one in self.sent]
        found = [*engine.push(events), *engine.advance(self.world.now)]
        return sorted(one["id"] for one in found)


@pytest.mark.parametrize("text", [COUNTED, WANTED], ids=["windows", "pairs"])
def test_what_was_open_when_sources_ended_is_decided_at_a_host_that_comes_back(text):
    town = Ending(text)
    town.start({})
    town.go()
    assert len(town.expected()) > 2
    assert town.given_out() == town.expected()


def test_a_silence_is_told_of_at_a_host_that_heard_of_nothing_but_the_end():
    town = Ending(SILENT)
    town.start({})
    town.go()
    assert len(town.found) == 1


def test_nobody_goes_past_events_of_sources_that_ended_while_a_part_of_them_is_on_its_way(
    monkeypatch,
):
    monkeypatch.setattr(frames, "PART_EVENTS", 5)
    monkeypatch.setattr(offers, "OFFER_EVENTS", 15)
    town = Ending(WANTED, each=10)
    town.start({})
    for link in town.links:  # one part is heard, and the next one long afterwards
        link.delay_ms = 2_000
    town.go()
    town.run(120_000)
    assert len(town.expected()) > 30
    assert town.given_out() == town.expected()
