"""A broker beside mosquitto under the same loads: CPU per message and latency.

Owns the loads, the specifications and the tables. Must not know the broker but as a process.
Invariant: for each load both servers get as many messages with payloads of the same form, in turns,
on the same machine.

Without detection a broker does what mosquitto does: it gives each message to a subscriber. With
detection it takes the messages as events, and what the subscriber gets are results. The ratio is to
mosquitto giving each message to a subscriber, as it must where somebody else is to detect; where
there are fewer results than messages, the ratio to mosquitto delivering as few is told too.

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
LAG_US_MAX = 10_000  # a publisher so late makes bursts of a steady load
WITHOUT_GOAL = 1.5
WITH_GOAL = 3.0
LATENCY_NOTE = (
    "Latency counts from the time at which a message was to be sent; `publisher` is by how much "
    "the load itself was behind that."
)
FEW_NOTE = (
    "The ratio is to mosquitto giving every message to a subscriber; `to as few`: to mosquitto "
    "whose subscriber wants as few messages as there are results."
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
    seconds = 1.0 if options.quick else 2.0
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


def ours(case: Case) -> Load:
    """What the broker gets: some of the messages are wanted."""
    load = replace(case.load, one_in=case.way.one_in)
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

    def __init__(self, stack: ExitStack, tries: int) -> None:
        self._stack = stack
        self._tries = tries
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
        """One run; another where the machine was too busy to keep the publisher's pace."""
        for left in reversed(range(self._tries)):
            outcome = measure(server.pid, server.port, replace(load, run=next(self._run)))
            if not load.rate or outcome.lag_p99_us < LAG_US_MAX or not left:
                return outcome
        raise AssertionError("there is at least one try")


class Figures(NamedTuple):
    """What one case came to, medians of the repeats.

    `there` is mosquitto delivering all messages, `few` delivering as many as there are results.
    """

    case: Case
    here: Outcome
    there: Outcome | None
    ratio: float | None
    few_ratio: float | None


class Round(NamedTuple):
    """One case's runs of one round."""

    here: Outcome
    there: Outcome | None
    few: Outcome | None


def compare(chosen: list[Case], repeats: int, tries: int = 1) -> list[Figures]:
    """All cases, mosquitto and ourselves in turns; mosquitto once per load in each round."""
    rounds: list[list[Round]] = [[] for _ in chosen]
    with ExitStack() as stack:
        servers = Servers(stack, tries)
        for _ in range(repeats):
            known: dict[Load, Outcome] = {}
            for place, case in enumerate(chosen):
                there = few = None
                if servers.mosquitto is not None:
                    loads = [case.load, replace(case.load, one_in=case.way.one_in)]
                    for load in loads:
                        if load not in known:
                            known[load] = servers.measure(servers.mosquitto, load)
                    there, few = (known[load] for load in loads)
                server = servers.broker(specification(case))
                rounds[place].append(Round(servers.measure(server, ours(case)), there, few))
    return [_figures(*each) for each in zip(chosen, rounds, strict=True)]


def _figures(case: Case, rounds: list[Round]) -> Figures:
    here = _median([one.here for one in rounds])
    there = [one.there for one in rounds if one.there is not None]
    if not there:
        return Figures(case, here, None, None, None)
    ratios = [one.here.cpu_us / one.there.cpu_us for one in rounds if one.there is not None]
    few = [one.here.cpu_us / one.few.cpu_us for one in rounds if one.few is not None]
    return Figures(case, here, _median(there), statistics.median(ratios), statistics.median(few))


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
    found = compare(chosen, repeats, 1 if options.quick else 3)
    latencies = [one for one in found if one.case.judged]
    notes = [
        f"Medians of {repeats}; a message is one event of 100 bytes, from ten publishers.",
        LATENCY_NOTE,
        FEW_NOTE,
    ]
    notes += [_lost(one) for one in found if _lost(one)]
    if found[0].there is None:
        notes.append("mosquitto is not installed: no ratios.")
    return Report(
        "Through the MQTT face",
        [_cpu_table(found), _latency_table(latencies)],
        goals_of(found),
        notes,
    )


def _cpu_table(found: list[Figures]) -> Table:
    columns = ["µs of CPU a message", "mosquitto", "broker", "ratio", "to as few", "messages/s"]
    rows = []
    for case, here, there, ratio, few_ratio in found:
        rows.append(
            [
                f"{load_name(case.load)}, {case.way.name}",
                "-" if there is None else f"{there.cpu_us:.1f}",
                f"{here.cpu_us:.1f}",
                "-" if ratio is None else f"{ratio:.2f}",
                "-" if few_ratio is None or case.way.one_in == 1 else f"{few_ratio:.2f}",
                f"{here.published / here.seconds:,.0f}",
            ]
        )
    return Table("CPU for a message", columns, rows)


def _latency_table(found: list[Figures]) -> Table:
    columns = ["µs", "mosquitto p50", "p99", "broker p50", "p99", "publisher p99"]
    rows = []
    for case, here, there, *_ in found:
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


def goals_of(found: list[Figures]) -> list[Goal]:
    """The goals, each with the ratios of its cases."""
    goals = []
    for text, limit, ways in (
        ("without detection", WITHOUT_GOAL, WAYS[:1]),
        ("with detection, a result in ten messages", WITH_GOAL, WAYS[2:]),
        ("with detection, each message a result", WITH_GOAL, WAYS[1:2]),
    ):
        values = [
            round(one.ratio, 2)
            for one in found
            if one.ratio is not None and one.case.judged and one.case.way in ways
        ]
        about = f"CPU per message beside mosquitto's, {text}"
        goals.append(Goal(about, limit, values, " ×", "mosquitto is not installed"))
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
