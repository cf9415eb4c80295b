"""A broker beside mosquitto under the same loads: CPU per message and latency.

Owns the loads, the specifications and the tables. Must not know the broker but as a process.
Invariant: for each load both servers get the same number of messages with byte for byte the same
payloads and deliver as many, in turns, on the same machine.

Without detection a broker does what mosquitto does: it gives each message to a subscriber. With
detection it takes the messages as events, and what the subscriber gets are results.

    python -m bench.mqtt_face [--quick] [--repeats N] [--json]
"""

import itertools
import statistics
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

from msgspec.structs import replace

from bench.load import Load, Outcome, measure
from bench.report import Goal, Options, Report, Table, run
from bench.servers import Server, broker, mosquitto

EVENTS = "headwater/events/Temp/s{source}"
RESULTS = "headwater/results/#"
WITHOUT_GOAL = 1.5
WITH_GOAL = 3.0
LATENCY_NOTE = (
    "Latency counts from the time at which a message was to be sent; `publisher` is by how much "
    "the load itself was behind that."
)
TYPE = "event Temp(val: float, sent_us: int)\n"


class Way(NamedTuple):
    """What a broker does with a load: with `text` it detects, without it passes on."""

    name: str
    text: str = ""
    one_in: int = 1


WAYS = (
    Way("passed on"),
    Way(
        "each message a result",
        TYPE + "subscription Each from bench to bench detect Temp(val > 0) as t\n"
        "assign sent_us = t.sent_us",
    ),
    Way(
        "one message in ten a result",
        TYPE + "subscription Hot from bench to bench detect Temp(val > 26) as t\n"
        "assign sent_us = t.sent_us",
        10,
    ),
    Way(
        "one pair in ten messages, by source",
        TYPE + "subscription Pair from bench to bench\n"
        "detect Temp(val > 26) as hot then[..{gap_ms} ms] Temp(val < 26) as cold\n"
        "assign sent_us = cold.sent_us group by source",
        10,
    ),
)


class Case(NamedTuple):
    """A load, what the broker does with it, and which of the goals it stands for."""

    load: Load
    way: Way
    judged: bool


def cases(options: Options) -> Iterator[Case]:
    """Every case; the goals are of single messages at a steady rate."""
    seconds = 1.0 if options.quick else 3.0
    for qos, rate in itertools.product((0, 1), (1000.0, 5000.0)):
        load = Load(qos=qos, rate=rate, seconds=seconds)
        for way in WAYS:
            yield Case(load, way, judged=True)
    if options.quick:
        return
    for qos in (0, 1):
        for load in (Load(qos=qos, rate=5000.0, burst=50), Load(qos=qos, rate=0.0, burst=10)):
            for way in WAYS[:2]:
                yield Case(load, way, judged=False)


def theirs(case: Case) -> Load:
    """What mosquitto gets: as many messages, and as many of them wanted."""
    return replace(case.load, one_in=case.way.one_in)


def ours(case: Case) -> Load:
    """What the broker gets."""
    load = theirs(case)
    if not case.way.text:
        return load
    load = replace(load, topic=EVENTS, topic_filter=RESULTS)
    if "then" in case.way.text:  # one after each of the hot ones that is not a source's last
        last = range(load.messages() - load.publishers, load.messages())
        load = replace(load, deliveries=load.expected() - sum(map(load.wanted, last)))
    return load


def specification(case: Case) -> str:
    """The case's text; a pair is of a source's two neighbouring messages."""
    load = case.load
    gap_ms = round(1.5 * 1000 * load.publishers / load.rate) if load.rate else 0
    return case.way.text.format(gap_ms=gap_ms)


def load_name(load: Load) -> str:
    """A load in a few words."""
    if not load.rate:
        return f"QoS {load.qos}, as fast as it goes"
    bursts = f", {load.burst} at once" if load.burst > 1 else ""
    return f"QoS {load.qos}, {load.rate:,.0f}/s{bursts}"


class Servers:
    """Running servers: mosquitto, and a broker for each specification."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._brokers: dict[str, Server] = {}
        self._run = itertools.count(1)
        self.mosquitto = stack.enter_context(mosquitto())
        if self.mosquitto is not None:
            self.measure(self.mosquitto, Load(seconds=0.3))

    def broker(self, text: str) -> Server:
        """The broker that runs this text, begun and warmed up where there is none."""
        if text not in self._brokers:
            server = self._brokers[text] = self._stack.enter_context(broker(text))
            for qos in (0, 1):
                load = Load(seconds=0.3, qos=qos, deliveries=0)
                if text:
                    load = replace(load, topic=EVENTS, topic_filter=RESULTS)
                self.measure(server, load)
        return self._brokers[text]

    def measure(self, server: Server, load: Load) -> Outcome:
        """One run."""
        return measure(server.pid, server.port, replace(load, run=next(self._run)))


class Figures(NamedTuple):
    """What one case came to: medians of the repeats."""

    case: Case
    there: Outcome | None
    here: Outcome
    ratio: float | None


def compare(chosen: list[Case], repeats: int) -> list[Figures]:
    """All cases, mosquitto and ourselves in turns; mosquitto once per load in each round."""
    here: list[list[Outcome]] = [[] for _ in chosen]
    there: list[list[Outcome]] = [[] for _ in chosen]
    with ExitStack() as stack:
        servers = Servers(stack)
        for _ in range(repeats):
            known: dict[Load, Outcome] = {}
            for place, case in enumerate(chosen):
                load = theirs(case)
                if servers.mosquitto is not None:
                    if load not in known:
                        known[load] = servers.measure(servers.mosquitto, load)
                    there[place].append(known[load])
                server = servers.broker(specification(case))
                here[place].append(servers.measure(server, ours(case)))
    return [_figures(*each) for each in zip(chosen, there, here, strict=True)]


def _figures(case: Case, there: list[Outcome], here: list[Outcome]) -> Figures:
    if not there:
        return Figures(case, None, _median(here), None)
    ratios = [b.cpu_us / a.cpu_us for a, b in zip(there, here, strict=True)]
    return Figures(case, _median(there), _median(here), statistics.median(ratios))


def _median(outcomes: list[Outcome]) -> Outcome:
    """Each figure's median; the counts are those of the run that delivered least."""
    worst = min(outcomes, key=lambda one: one.delivered)
    figures = {
        name: statistics.median(getattr(one, name) for one in outcomes)
        for name in ("seconds", "cpu_us", "p50_us", "p99_us", "lag_p99_us")
    }
    return replace(worst, cut=any(one.cut for one in outcomes), **figures)


def report(options: Options) -> Report:
    """Measure, and put it into tables."""
    chosen = list(cases(options))
    repeats = options.times(3)
    found = compare(chosen, repeats)
    latencies = [one for one in found if one.case.judged]
    notes = [
        f"Medians of {repeats}; a message is one event of 100 bytes, from ten publishers.",
        LATENCY_NOTE,
    ]
    notes += [_lost(one) for one in found if _lost(one)]
    if found[0].there is None:
        notes.append("mosquitto is not installed: no ratios.")
    return Report(
        "Through the MQTT face",
        [_cpu_table(found), _latency_table(latencies)],
        _goals(found),
        notes,
    )


def _cpu_table(found: list[Figures]) -> Table:
    columns = ["µs of CPU a message", "mosquitto", "broker", "ratio", "messages/s"]
    rows = []
    for case, there, here, ratio in found:
        rows.append(
            [
                f"{load_name(case.load)}, {case.way.name}",
                "-" if there is None else f"{there.cpu_us:.1f}",
                f"{here.cpu_us:.1f}",
                "-" if ratio is None else f"{ratio:.2f}",
                f"{here.published / here.seconds:,.0f}",
            ]
        )
    return Table("CPU for a message", columns, rows)


def _latency_table(found: list[Figures]) -> Table:
    columns = ["µs", "mosquitto p50", "p99", "broker p50", "p99", "publisher p99"]
    rows = []
    for case, there, here, _ in found:
        pair = ["-", "-"] if there is None else [f"{there.p50_us:,.0f}", f"{there.p99_us:,.0f}"]
        rows.append(
            [
                f"{load_name(case.load)}, {case.way.name}",
                *pair,
                f"{here.p50_us:,.0f}",
                f"{here.p99_us:,.0f}",
                f"{here.lag_p99_us:,.0f}",
            ]
        )
    return Table("From sensor to subscriber", columns, rows)


def _goals(found: list[Figures]) -> list[Goal]:
    goals = []
    for text, limit, detects in (
        ("CPU per message beside mosquitto's, without detection", WITHOUT_GOAL, False),
        ("CPU per message beside mosquitto's, with detection", WITH_GOAL, True),
    ):
        values = [
            round(one.ratio, 2)
            for one in found
            if one.ratio is not None and one.case.judged and bool(one.case.way.text) == detects
        ]
        goals.append(Goal(text, limit, values, " ×", "mosquitto is not installed"))
    return goals


def _lost(one: Figures) -> str:
    """What a run did not deliver, or the empty text."""
    said = []
    for name, outcome in (("mosquitto", one.there), ("the broker", one.here)):
        if outcome is not None and (outcome.delivered != outcome.expected or outcome.cut):
            cut = " and was cut off" if outcome.cut else ""
            said.append(f"{name} delivered {outcome.delivered} of {outcome.expected}{cut}")
    where = f"{load_name(one.case.load)}, {one.case.way.name}"
    return f"{where}: {', '.join(said)}." if said else ""


if __name__ == "__main__":
    sys.exit(run(__doc__, report))
