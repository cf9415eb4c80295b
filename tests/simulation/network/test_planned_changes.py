"""One rate doubles, or a host dies: real cells and coordinators follow, and results stay exact.

Sources send at rates that are steady within each phase, so that whatever moves long after a change
moves without one.
"""

from functools import partial

import pytest

from simulation import texts
from simulation.crashes.clients import AskingClient, PublishingSensor, Wish
from simulation.network.links import Link
from simulation.network.planned import PlannedRun
from simulation.network.scenario import Shape

PHASE_MS = 50_000  # long enough to measure a rate, agree and move, and that in two steps
LOOK_MS = 250
AWAY_MS = PHASE_MS  # longer than a host that is not reached is waited for; then it is back
GAPS_MS = (60, 80, 120, 240, 480)  # between two readings of a source
TEXTS = (
    "detect[recent] Temp as t and Humidity as h within 40 ms where t.val > h.val + 8",
    "detect[recent] Temp(val > 2) as t then[..1 s] Humidity(val < 1) as h where t.val > 8",
    "detect Wind as w and Humidity as h within 15 ms where w.val > h.val + 7",
    "detect Temp as t then[..1 s] Wind as w without Humidity(val > 2) as h where t.val > w.val + 8",
)
BOTH = f"subscription Both from client to alerts\n{TEXTS[0]}\n"


class Changing(PlannedRun):
    """Phases of steady rates; `hosts` tells where each cell was, and since when."""

    phases = 6  # the last two are as the one before
    brokers = 6

    def __init__(self, seed):
        self.begin_ms = 0
        self.gaps_ms = {}  # by source, now
        self.hosts = {}  # by cell: (when, where) it began
        super().__init__(seed, Shape(brokers=self.brokers, faults=0))

    # --- what there is ---------------------------------------------------------------------

    def _plan_askers(self):
        random = self.draw
        for number in range(random.randint(1, 3)):
            name = f"client-{number}"
            text = f"subscription S from {name} to alerts\n{random.choice(TEXTS)}\n"
            self._ask(name, texts.DECLARATIONS + text, self.world.random.choice(self.places))

    def _ask(self, name, text, place):
        self._specifications[name] = text
        wish = Wish("submit", text, {text.partition("subscription ")[2].split()[0]: 1})
        self._askers.append(AskingClient(place, name, [wish]))

    def _plan_sensors(self):
        for number in range(self.draw.randint(3, 6)):
            place = self.world.random.choice(self.places)
            self._sensor(number, texts.TYPES[number % 3], place, self.draw.choice(GAPS_MS))

    def _sensor(self, number, type_name, place, gap_ms):
        sensor = PublishingSensor(place, f"s{number}", type_name, 20)
        self._places[sensor.name] = self._where(number)
        sensor.advertise(self._places[sensor.name])
        sensor.begun = True
        self._sensors.append(sensor)
        self.gaps_ms[sensor.name] = gap_ms

    # --- what happens ----------------------------------------------------------------------

    def _plan_readings(self):
        self.begin_ms = self.world.now
        end_ms = self.begin_ms + self.phases * PHASE_MS
        for number in range(self.phases):
            self.world.at(self.begin_ms + number * PHASE_MS, partial(self._phase, number))
        for at in range(self.begin_ms, end_ms, LOOK_MS):
            self.world.at(at, self._look)
        return end_ms + 1_000

    def _look(self):
        """See where each cell is, or goes."""
        for place in self.places:
            if place.process is not None:
                book = place.process.core.network.book
                for name in book.cells:
                    hosts = self.hosts.setdefault(name, [])
                    host = book.goes_to(name)
                    if not hosts or hosts[-1][1] != host:
                        hosts.append((self.world.now - self.begin_ms, host))

    def _phase(self, number):
        self._change(number)
        begin_ms = self.world.now
        for sensor in self._sensors:
            gap_ms = self.gaps_ms[sensor.name]
            for time_ms in range(
                begin_ms + self.draw.randrange(gap_ms), begin_ms + PHASE_MS, gap_ms
            ):
                event = self._reading(f"{sensor.name}-{time_ms}", time_ms, lasting=False)
                self.world.at(time_ms, partial(sensor.publish, [event]))
                said = {"type": sensor.type_name, "source": sensor.name}
                self.arrived.append({**said, **self._places[sensor.name], **event})

    def _change(self, number):
        """A rate doubles, then a host dies, then it is back."""
        if number == 1:
            name = self.draw.choice(list(self.gaps_ms))
            self.gaps_ms[name] //= 2
        elif number == 2:
            hosts = [place for place in self.places if place.process.network.hosted]
            place = self.world.random.choice(hosts)
            place.away_ms = AWAY_MS
            place.end()

    def moved_in_calm(self):
        """What moved, and how often, since all has been as it was for a whole phase."""
        begin_ms = (self.phases - 2) * PHASE_MS
        moves = {name: sum(begin_ms < at for at, _ in hosts) for name, hosts in self.hosts.items()}
        return {name: count for name, count in moves.items() if count}


class Line(Changing):
    """b0 to b4 in a row; b2 wants what comes in at both ends, more of it at b4."""

    phases = 2
    brokers = 5

    def _link_all(self, _more):
        for one, other in zip(self.places, self.places[1:], strict=False):
            link = Link(self.world, one, other, 30)
            one.links[other.name] = other.links[one.name] = link
            self.links.append(link)

    def _plan_askers(self):
        self._ask("client", texts.DECLARATIONS + BOTH, self.places[2])

    def _plan_sensors(self):
        self._sensor(0, "Temp", self.places[0], 80)
        self._sensor(1, "Humidity", self.places[4], 56)

    def _change(self, number):
        if number == 1:
            self.gaps_ms["s0"] //= 2


def test_a_task_follows_a_rate_that_doubles_and_its_results_are_those_of_one_engine():
    run = Line(2)
    outcome = run.run()
    (hosts,) = run.hosts.values()
    assert "b4" in [host for at, host in hosts if at < PHASE_MS]
    assert hosts[-1][1] in {"b0", "b1"}  # nearer to what there is more of by now
    assert len(hosts) <= 4
    assert outcome.results > 10


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("first", range(0, 100, 10))
def test_a_rate_doubles_and_a_host_dies_and_nothing_is_lost_doubled_or_goes_to_and_fro(first):
    moved = 0
    for seed in range(first, first + 10):
        run = Changing(seed)
        run.run()
        # What was drawn may look otherwise, and what a source had kept comes at once when its
        # broker is back; going to and fro as often as a task may would be eight times.
        assert max(run.moved_in_calm().values(), default=0) <= 3
        moved += sum(len(hosts) - 1 for hosts in run.hosts.values())
    assert moved > 5
