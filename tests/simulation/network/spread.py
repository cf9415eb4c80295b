"""A generated specification in a network of brokers, its events spread over their sources.

Each source is at a broker of its own choice and publishes its events when they end, by the clock
of the run; the subscriptions are at another one. Links fail and brokers end meanwhile, as in any
run of `simulation.network`, which also checks itself.

Owns which generated cases are some for a network, what one engine finds of these, and how they are
spread. Must not know how brokers detect. Invariant: a case is left out by what it is, never by what
a network makes of it.
"""

import json
import re
from functools import partial
from zlib import crc32

from msgspec import structs

import headwater
from broker.core.messages import EventsReceived, Payload
from broker.engine.limits import Limits
from language import check_text
from simulation.crashes.clients import AskingClient, Packet, PublishingSensor, Wish
from simulation.network import checks
from simulation.network.cells import CellRun
from simulation.network.scenario import BEGIN_MS, LISTENS_EACH, READY_S_MAX, Run, Shape
from tests.oracles.recipes_values import files_of
from tests.oracles.render import text_of

ASSIGNED_MS = 10_000  # generated definitions assign intervals that last so long at most
BROKERS = 6
TYPES = ["A", "B", "C", "D"]
LEAD_MS = (READY_S_MAX + 5) * 1_000
FAULTS_MS = 6_000  # at least so long, so that faults find their moments
QUIET_MS = 30_000
WHOLE_MS = 2**45
SPAN_MS = 3_600_000  # of several cases at once: days of them are too many steps
# Counted from when the tasks begin, which is the first event of a recording.
FROM_THE_BEGINNING = {"absent", "for"}


class Source(PublishingSensor):
    """One that sends events of several types, and says nothing of where it is."""

    def __init__(self, place, name):
        super().__init__(place, name, "", 4)

    def begin(self):
        self._add(
            Packet("advertised", json.dumps({"source": self.name, "types": TYPES}).encode(), [])
        )
        self.begun = True

    def publish(self, events):
        for event in events:
            said = {name: value for name, value in event.items() if name not in ("type", "source")}
            self._add(Packet("events", json.dumps(said).encode(), [event]))

    def _message(self, packet, token):
        if packet.message != "events":
            return super()._message(packet, token)
        return EventsReceived((Payload(packet.events[0]["type"], self.name, packet.data, token),))


class Spread(Run):
    """One run; `results` are what stands in all outboxes, as results are told elsewhere."""

    def __init__(self, seed, text, events, faults=0):
        self.text, self.events = text, events
        times = [end_of(one) for one in events]
        # No source is passed over before the last event: what it says then would rightly be late.
        self._silent_ms = max(times) - min(times) + QUIET_MS
        # The cases of one seed have networks of their own.
        shape = Shape(brokers=BROKERS, faults=faults, scattered=crc32(text.encode()))
        # One in three runs looks at what actors of its own subscriptions are sent: not these.
        super().__init__(LISTENS_EACH * seed + 1, shape)

    @property
    def results(self):
        found = [json.loads(row.payload) for _, row in checks.results_of(self.places)]
        for one in found:
            one.pop("detected_at", None)
        return found

    def _place(self, name):
        place = super()._place(name)
        options = structs.replace(place.machine.options, idle_timeout_ms=self._silent_ms)
        # None of the sources' events lasts, and nobody waits a week for one that does.
        limits = Limits(event_duration_ms_max=ASSIGNED_MS)
        place.machine = structs.replace(place.machine, options=options, limits=limits)
        return place

    def _plan_askers(self):
        found = check_text(self.text).demand()
        seqs = {name: one.seq for (_, name), one in found.subscriptions.items()}
        wish = Wish("submit", self.text, seqs)
        self._specifications["tester"] = self.text
        self._askers.append(AskingClient(self._home(), "tester", [wish]))

    def _plan_sensors(self):
        names = sorted({event["source"] for event in self.events})
        for name, place in zip(names, self._source_places(len(names)), strict=True):
            source = Source(place, name)
            source.begin()
            self._sensors.append(source)

    def _source_places(self, count):
        """Where the sources are, each at a broker of its own."""
        return self.world.random.sample(self.places, count)

    def _plan_readings(self):
        self.world.run(BEGIN_MS + READY_S_MAX * 1_000)
        by_name = {one.name: one for one in self._sensors}
        events = sorted(self.events, key=end_of)
        for event in events:
            publish = partial(by_name[event["source"]].publish, [event])
            self.world.at(end_of(event), publish)
        # What comes again is known to a broker by its id, and has no effect.
        self.arrived = list({(one["id"], end_of(one)): one for one in events}.values())
        end_ms = max(end_of(events[-1]), self.world.now + FAULTS_MS) + 1_000
        for one in self._sensors:  # nothing more will come: what is open is decided
            self.world.at(end_ms + 10_000, one.withdraw)
        return end_ms

    def _settle(self):
        """Besides, wait until those who have withdrawn are waited for no more."""
        self.world.run(self.world.now + self._silent_ms + QUIET_MS)
        super()._settle()


class CellSpread(CellRun, Spread):
    """The same in cells, which move."""

    def __init__(self, seed, text, events, faults):
        self.moves = 0
        Spread.__init__(self, seed, text, events, faults)


def end_of(event):
    """When an event ends."""
    return event["timestamp"] if "timestamp" in event else event["end"]


def moved(events, lasting=False):
    """Events of a moment, as those of the run's own time; those that last are left out.

    How far back one that lasts may reach, brokers learn only from those that came before.
    `lasting`: they are some of these.
    """
    kept = [one for one in events if ("timestamp" in one or lasting) and one["type"] in TYPES]
    if not kept:
        return []
    later_ms = BEGIN_MS + LEAD_MS - min(one.get("start", end_of(one)) for one in kept)
    times = [[name for name in ("timestamp", "start", "end") if name in one] for one in kept]
    return [
        one | {name: one[name] + later_ms for name in names}
        for one, names in zip(kept, times, strict=True)
    ]


def network_case(spec, events, lasting=False):
    """(text, events as `moved` has them, what one engine finds); None where it is no case."""
    text, events = text_of(spec), moved(events, lasting)
    if not events or files_of(spec) or FROM_THE_BEGINNING & set(text.split()):
        return None
    expected = detected(text, events) if check_text(text).ok else None
    return None if expected is None else (text, events, expected)


def joined_case(cases):
    """As `network_case`, of several (specification, events) as one text.

    Each keeps the names of its own definitions, sets and regions. A definition of each, if there is
    one, is subscribed to once more by itself. Ids are of one case each, and the types are shared.
    """
    lines, declared, events = [], {}, []
    for number, (spec, some) in enumerate(cases):
        if files_of(spec):
            return None
        names = [one.name for one in (*spec.definitions, *spec.subscriptions)]
        names += [name for name, _ in (*spec.sets, *spec.regions)]
        own = text_of(spec)
        if spec.definitions:
            own += f"\nsubscription Again from tester to out\n  detect {spec.definitions[0].name}\n"
        for line in _renamed(own, [*names, "Again"], number).splitlines():
            if line.startswith("event "):
                declared[line] = None
            else:
                lines.append(line)
        events += [one | {"id": f"{number}-{one['id']}"} for one in moved(some) if "id" in one]
    text = "\n".join([*declared, *lines])
    times = [end_of(one) for one in events]
    if not events or max(times) - min(times) > SPAN_MS or FROM_THE_BEGINNING & set(text.split()):
        return None
    expected = detected(text, events) if check_text(text).ok else None
    return None if expected is None else (text, events, expected)


def _renamed(text, names, number):
    """A text in which these names end in a number; what stands between quotes stays."""
    pattern = re.compile(r'"[^"]*"|\b(?:' + "|".join(map(re.escape, names)) + r")\b")
    return pattern.sub(lambda one: one[0] if one[0][0] == '"' else f"{one[0]}_{number}", text)


def detected(text, events):
    """What an engine finds that has all events; None if the end of all time decides some of it."""
    engine = headwater.Engine(text, lateness_ms=WHOLE_MS)
    found = engine.push(events) + engine.advance(WHOLE_MS)
    return None if engine.finish() else plain(found)


def plain(results):
    return sorted(json.dumps(one, sort_keys=True) for one in results)
