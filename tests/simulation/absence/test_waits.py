"""A subscription that says how long it waits goes on without those away, and says whom it lacks."""

import json
from random import Random

import pytest

import headwater
from broker.core.messages import EventsReceived, Payload, Stopped
from broker.network.frames.messages import ForgetRequested
from tests.simulation.network.town import Town

EVENT = "event Alarm(room: text)\n"
COUNT = """
define Count(n) aggr every 10 s
detect Alarm
assign n = Count(Alarm)
"""
PATIENT = "subscription Patient from x to alerts detect Count as c\n"
HASTY = "subscription Hasty from x to alerts detect Count as c wait 20 s\n"
TEXT = EVENT + COUNT + PATIENT + HASTY
LINE = [("b0", "b1"), ("b1", "b2")]
WAIT_MS = 20_000
WINDOW_MS = 10_000
STEP_MS = 1_000
AWAY_MS = 100_000


class Waiting(Town):
    """Each broker's source sends an event a second; one of them is away for a while."""

    def __init__(self, seed, edges=LINE, text=TEXT):
        super().__init__(seed, edges, text=text)
        self.sent = {name: [] for name in self.sites}
        self.start({})
        self.run(3_000)  # the first events of a type may come before anybody asks for them
        self.sent = {name: [] for name in self.sites}
        self.first = self.world.now // WINDOW_MS + 1

    def send(self, name):
        site = self.sites[name]
        if site.process is None:
            return  # its sensors have nobody to tell
        number = sum(map(len, self.sent.values()))
        event = {"id": f"e{number}", "timestamp": self.world.now, "room": "r"}
        self.sent[name].append(event)
        data = json.dumps(event).encode()
        site.tell(EventsReceived((Payload("Alarm", f"s-{name}", data),)), {})

    def run(self, for_ms):
        until = self.world.now + for_ms
        while getattr(self, "sent", None) and self.world.now < until:
            for name in self.sites:
                self.send(name)
            super().run(min(STEP_MS, until - self.world.now))
        super().run(max(0, until - self.world.now))

    def leave(self, name, away_ms, back_within_ms=0):
        site = self.sites[name]
        site.tell(Stopped(back_within_ms), {})
        super().run(200)
        site.away_ms = away_ms
        site.end()

    def cut(self, name, away_ms):
        """Cut all links of a broker, which goes on taking what its source sends."""
        for link in self.sites[name].links.values():
            link.cut(away_ms, lost=False)

    def results(self, name):
        """Of each window the count, and whose events it may lack."""
        rows = [json.loads(row.payload) for row in self.home.machine.outbox.rows]
        return {
            row["end"] // WINDOW_MS: (row["values"]["c"]["n"], row.get("without", []))
            for row in rows
            if row["subscription"] == name and row["end"] // WINDOW_MS >= self.first
        }

    def true_counts(self):
        counts = {}
        for events in self.sent.values():
            for event in events:
                window = event["timestamp"] // WINDOW_MS
                counts[window] = counts.get(window, 0) + 1
        return counts

    @property
    def network(self):
        return self.home.process.network


@pytest.fixture(scope="module")
def absent():
    """One that was cut off at the far end for longer than anybody hasty waits, and is back."""
    town = Waiting(1)
    town.run(30_000)
    town.left_ms = town.world.now
    town.leave("b2", AWAY_MS)
    town.run(AWAY_MS // 2)
    town.meanwhile = {name: town.results(name) for name in ("Patient", "Hasty")}
    town.run(AWAY_MS // 2 + 60_000)
    town.end_ms = town.world.now
    return town


def test_whoever_does_not_say_how_long_waits_for_all(absent):
    before = absent.left_ms // WINDOW_MS
    assert max(absent.meanwhile["Patient"]) <= before
    final, true = absent.results("Patient"), absent.true_counts()
    assert len(final) > 15
    assert all(found == (true[window], []) for window, found in final.items())


def test_whoever_waits_for_a_time_goes_on_and_says_whose_events_are_lacking(absent):
    meanwhile = absent.meanwhile["Hasty"]
    assert max(meanwhile) >= (absent.left_ms + AWAY_MS // 2) // WINDOW_MS - 2
    final, true = absent.results("Hasty"), absent.true_counts()
    assert meanwhile.items() <= final.items()  # what was told is final
    whole = [window for window, (_, without) in final.items() if not without]
    assert all(final[window][0] == true[window] for window in whole)
    lacking = {window: without for window, (_, without) in final.items() if without}
    assert set(map(tuple, lacking.values())) == {("b2",)}
    first, last = min(lacking), max(lacking)
    assert absent.left_ms // WINDOW_MS <= first <= absent.left_ms // WINDOW_MS + 1
    assert last <= (absent.left_ms + AWAY_MS) // WINDOW_MS + 3  # and then nobody is lacking
    assert set(final) == set(absent.results("Patient"))


def test_what_comes_later_is_late_for_that_subscription_alone():
    """A broker that was cut off has gone on taking events: others get them, as ever."""
    town = Waiting(6)
    town.run(30_000)
    town.cut("b2", 60_000)
    town.run(150_000)
    patient, hasty, true = town.results("Patient"), town.results("Hasty"), town.true_counts()
    assert all(found == (true[window], []) for window, found in patient.items())
    assert sum(n < true[window] for window, (n, _) in hasty.items()) >= 3
    assert all(without == ["b2"] for w, (n, without) in hasty.items() if n < true[w])
    notes = town.network.durable.ledger.notes
    assert notes["late_for_waits"] > 20
    assert not notes.get("late_from_afar")


def test_a_home_that_recovers_passes_over_the_same_brokers_and_tells_nothing_twice():
    town = Waiting(2)
    town.run(30_000)
    town.leave("b2", AWAY_MS)
    town.run(45_000)
    before = town.results("Hasty")
    town.home.away_ms = 500
    town.home.end()
    town.run(120_000)
    final = town.results("Hasty")
    assert before.items() <= final.items()
    assert any(without == ["b2"] for _, without in before.values())
    rows = [json.loads(row.payload)["id"] for row in town.home.machine.outbox.rows]
    assert len(rows) == len(set(rows))
    true = town.true_counts()
    assert all(n == true[window] for window, (n, without) in final.items() if not without)
    patient = town.results("Patient")
    assert {window: n for window, (n, _) in patient.items()} == {
        window: true[window] for window in patient
    }


def test_forgetting_a_broker_releases_all():
    town = Waiting(3)
    town.run(30_000)
    town.leave("b2", 10**9)
    town.run(60_000)
    held = max(town.results("Patient"))
    town.home.hear(ForgetRequested("b2"))
    town.run(20_000)
    assert max(town.results("Patient")) > held + 3
    assert not town.network.durable.network.absent.by_origin


def test_a_promise_is_told_at_the_home_and_an_alarm_comes_when_it_is_over():
    town = Waiting(4)
    town.run(10_000)
    left_ms = town.world.now
    town.leave("b2", 10**9, back_within_ms=60_000)
    town.run(20_000)
    away = town.network.status()["away"]["b2"]
    assert away["subscriptions"] == ["Patient"]
    assert away["overdue"] is False
    assert away["back_by"] == pytest.approx(left_ms + 60_000, abs=2_000)
    town.run(60_000)
    assert town.network.status()["away"]["b2"]["overdue"] is True


def test_a_broker_that_is_away_for_less_than_the_wait_is_lacking_nowhere():
    town = Waiting(5)
    town.run(30_000)
    town.leave("b2", WAIT_MS - 5_000)
    town.run(80_000)
    final, true = town.results("Hasty"), town.true_counts()
    assert len(final) > 8
    assert all(found == (true[window], []) for window, found in final.items())


def test_in_a_replay_all_input_is_there_and_nobody_waits():
    events = [
        {"type": "Alarm", "id": f"e{n}", "source": "s", "timestamp": 1_000 * n, "room": "r"}
        for n in range(40)
    ]
    told = {"Patient": [], "Hasty": []}
    engine = headwater.Engine(TEXT)
    for one in [*engine.push(events), *engine.finish()]:
        result = one if isinstance(one, dict) else one.to_dict()
        told[result["subscription"]].append((result["end"], result["values"]))
        assert "partial" not in result
    assert told["Patient"] == told["Hasty"]
    assert len(told["Hasty"]) == 4


def oracle(town, absences):
    """Which windows may lack somebody: those that reach into the time that a clock passed."""
    lacking = set()
    for left_ms, back_ms in absences:
        if back_ms - left_ms >= WAIT_MS:
            lacking |= set(range(left_ms // WINDOW_MS, back_ms // WINDOW_MS + 4))
    return lacking


def check(seed):
    """One run with absences, ends of the home and returns, drawn from the seed."""
    random = Random(seed)
    edges = random.choice([LINE, [("b0", "b1"), ("b0", "b2")], [*LINE, ("b2", "b3")]])
    town = Waiting(seed, edges)
    absences = []
    town.run(20_000)
    for _ in range(random.randint(1, 3)):
        name = random.choice([name for name in town.sites if name != "b0"])
        away_ms = random.choice([3_000, 12_000, 40_000, 70_000])
        left_ms = town.world.now
        if random.random() < 0.5:
            town.leave(name, away_ms)
        else:
            town.cut(name, away_ms)
        if random.random() < 0.5:
            town.run(random.randrange(1_000, away_ms))
            town.home.away_ms = random.choice([100, 2_000])
            town.home.end()
        town.run(max(0, left_ms + away_ms - town.world.now) + random.randrange(20_000))
        absences.append((left_ms, max(town.world.now, left_ms + away_ms)))
    town.run(90_000)
    final, patient, true = town.results("Hasty"), town.results("Patient"), town.true_counts()
    assert final.keys() == patient.keys()
    assert all(found == (true[window], []) for window, found in patient.items())
    may = oracle(town, absences)
    for window, (n, without) in final.items():
        assert without or n == true[window], (seed, window)
        assert n <= true[window], (seed, window)
        assert not without or window in may, (seed, window, absences)
    rows = [json.loads(row.payload)["id"] for row in town.home.machine.outbox.rows]
    assert len(rows) == len(set(rows))
    return sum(bool(without) for _, without in final.values())


@pytest.mark.parametrize("seed", range(8))
def test_whatever_goes_away_and_comes_back_results_are_whole_or_say_what_they_lack(seed):
    check(seed)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_many_absences():
    assert sum(check(seed) for seed in range(100, 400)) > 300
