"""The experiments of paper 003 on the planner: radius, overhead, flow, loss, and a laboratory.

Owns what is planned for each of the paper's tables and curves, and the page. Must not plan: the
planner and its rounds do. Invariant: the same scenarios give the same figures on any machine.

    python -m experiments.placing [--page docs/papers-placement.md]

Scenarios are those of `examples/placement`. What is planned knows rates; nothing runs but messages
between planning brokers, in virtual time, and the laboratory's text in one engine.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from experiments.figures import Panel, draw_panels, show_figures, table_lines
from experiments.grouping import Forest
from experiments.overlay import on_tree
from experiments.trial import Trial, size_bytes
from planner.document import read_problem
from planner.flow import Evaluation, evaluate
from planner.layout import carried, lay_out
from planner.methods import Wanted, find
from planner.network import Network
from planner.plan import Plan
from planner.problem import Problem
from planner.rounds.messages import Commit, Envelope, Tell
from planner.rounds.settings import Effort, Settings

EXAMPLES: Final = Path(__file__).resolve().parent.parent / "examples" / "placement"
ALL: Final = 99  # a radius that covers every network here
SEED: Final = 1
INTERVALS: Final = (100, 150, 200, 250, 300)
RADII: Final = (1, 2, 3, 4, 5, 6)
# The paper's table 2: by producing rate, the flow at radius 1 to 6.
PAPERS: Final = {
    100: (73_440, 41_280, 41_280, 41_280, 41_280, 41_280),
    150: (27_623, 27_515, 26_555, 26_555, 26_555, 26_555),
    200: (16_670, 16_670, 16_950, 16_670, 16_670, 16_670),
    250: (10_824,) * 6,
    300: (5_650,) * 6,
}
WINDOW_S: Final = 600  # of table 8
# The paper's table 8 by broker: its base cost and what it sends, in bytes.
PAPERS_SENT: Final = {
    "n1": ("9,201.4", "659.3"),
    "n2": ("2,950.0", "0"),
    "n3": ("9,010.4", "0"),
    "n4": ("11,995.2", "294"),
    "n5": ("5,996.6", "0"),
    "n6": ("422.5M", "294"),
}
LOST_EACH: Final = 0.01  # of the packets on a link, where links lose
BEARS: Final = (100e6, 50e6, 25e6, 12.5e6)  # bytes a second of a link, where they bear no more
PICTURE, OVERHEAD_PICTURE = "papers-placement.svg", "papers-overhead.svg"


def example(name: str) -> Problem:
    """Return a scenario of the examples."""
    return read_problem(json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8")))


def rounds(
    network: Problem, radius: int, *, price: float = 0.0, effort: Effort | None = None
) -> Trial:
    """Return the network once all brokers are quiet."""
    trial = Trial(
        network, Settings(radius=radius, price=price, effort=effort or Effort()), seed=SEED
    )
    trial.until_quiet()
    return trial


@cache
def settled(name: str, radius: int) -> Trial:
    """Return a scenario's network once all brokers are quiet; not to be changed."""
    return rounds(example(name), radius)


def come_to(trial: Trial) -> Evaluation:
    """Return what the placement comes to, on the tree that it was planned on."""
    return evaluate(lay_out(on_tree(trial.problem, trial.tree)), Plan(tuple(trial.hosts)))


@cache
def planned(name: str, method: str) -> tuple[Plan, Evaluation]:
    """Return the plan of one planner for all."""
    plan = find(lay_out(example(name)), Wanted(method, time_limit_s=20))
    return plan.plan, plan.evaluation


def mark(evaluation: Evaluation) -> str:
    """Return a flow, or that there is none without breaking a limit."""
    return f"{evaluation.flow:,.0f}" if evaluation.feasible else "infeasible"


# --- the logical test: table 2, figures 9 to 13 ---------------------------------------------------


def logical(interval: int) -> str:
    """Return the name of the logical test with this interval between events."""
    return f"logical-test-{interval}"


def radius_rows() -> Iterator[list[str]]:
    """Yield the flow by interval and radius, and the paper's beside it."""
    for interval in INTERVALS:
        name = logical(interval)
        flows = [mark(come_to(settled(name, radius))) for radius in RADII]
        others = [mark(planned(name, method)[1]) for method in ("optimal", "hop")]
        yield [str(interval), *flows, *others]
        yield ["the paper", *(f"{flow:,}" for flow in PAPERS[interval]), "", ""]


def flow_by_second(interval: int, radius: int) -> list[tuple[float, float]]:
    """Return the flow after each change of the placement, from the first whole one on."""
    trial = Trial(example(logical(interval)), Settings(radius=radius, price=0.0), seed=SEED)
    layout = lay_out(on_tree(trial.problem, trial.tree))
    hosts: tuple[int, ...] = ()
    course: list[tuple[float, float]] = []
    while trial.step():
        if (now := tuple(trial.hosts)) != hosts:
            hosts = now
            if min(hosts) >= 0:
                course.append((trial.now / 1000, evaluate(layout, Plan(hosts)).flow))
    return [*course, (trial.now / 1000, course[-1][1])]


def courses() -> str:
    """Return figures 9 to 11: the flow over time, by radius."""
    return draw_panels(
        [
            Panel(
                f"interval {interval}",
                "seconds",
                {f"r = {radius}": flow_by_second(interval, radius) for radius in (1, 2, 3, 6)},
                stepped=True,
            )
            for interval in (100, 150, 200)
        ]
    )


def overheads() -> str:
    """Return figures 12 and 13: messages by radius, and the flow beside the hop-based one."""
    messages = {
        f"interval {interval}": [
            (float(radius), float(sum(settled(logical(interval), radius).counts.messages.values())))
            for radius in RADII
        ]
        for interval in INTERVALS
    }
    flows = {
        "in rounds, r = 4": [
            (float(interval), come_to(settled(logical(interval), 4)).flow) for interval in INTERVALS
        ],
        "hop-based": [
            (float(interval), planned(logical(interval), "hop")[1].flow) for interval in INTERVALS
        ],
    }
    return draw_panels(
        [
            Panel("messages of planning", "radius", messages),
            Panel("flow", "interval between events", flows),
        ]
    )


# --- the nursing home: tables 3 and 4, loss -------------------------------------------------------

HOME: Final = "nursing-home"
PACKET_BYTES: Final = 1500


def overhead(trial: Trial) -> tuple[int, int]:
    """Return messages and bytes, each counted once a link."""
    return sum(trial.counts.messages.values()), sum(trial.counts.bytes.values())


def pushing(trial: Trial) -> tuple[int, int]:
    """Return what it takes to tell one server everything once, and each broker its part."""
    server = trial.layout.numbers[trial.problem.server or trial.problem.nodes[0].id]
    messages = size = 0
    for broker, hops in trial.tree.hops(server).items():
        machine = trial.machines[broker]
        there = Envelope(0, broker, server, Tell(machine.summary(), 0))
        back = Envelope(0, server, broker, Commit(1, machine.tables, ()))
        messages += 2 * hops
        size += hops * (size_bytes(there) + size_bytes(back))
    return messages, size


def flow_rows() -> Iterator[list[str]]:
    """Yield what travels in a second: data and, in the first minute, planning."""
    central = planned(HOME, "central")[1].flow
    rows: list[tuple[str, Evaluation, int]] = []
    for radius in (1, 3, ALL):
        trial = settled(HOME, radius)
        name = "all in view" if radius == ALL else f"r = {radius}"
        rows.append((f"in rounds, {name}", come_to(trial), overhead(trial)[1]))
    for name, method in (("one planner for all", "tabu"), ("hop-based", "hop")):
        rows.append((name, planned(HOME, method)[1], 0))
    rows.append(("centralised", planned(HOME, "central")[1], 0))
    for name, evaluation, planning in rows:
        note = "" if evaluation.feasible else " (over a limit)"
        yield [
            name + note,
            f"{evaluation.flow:,.0f}",
            f"{evaluation.flow / PACKET_BYTES:,.0f}",
            f"{planning:,}",
            f"{central / evaluation.flow:.2f}",
        ]


def overhead_rows() -> Iterator[list[str]]:
    """Yield what planning itself sends, by radius."""
    for radius in (1, 2, 3, 4, 5, 6, 8):
        trial = settled(HOME, radius)
        name = f"r = {radius}" + (", which covers all" if radius == 8 else "")
        messages, size = overhead(trial)
        yield [name, f"{messages:,}", f"{size:,}", f"{trial.now / 1000:.1f}"]
    messages, size = pushing(settled(HOME, 8))
    yield ["centralised: to the server and back", f"{messages:,}", f"{size:,}", ""]


def outward(source: int, links: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the links of a stream's tree, each behind the one that leads to it."""
    order: list[tuple[int, int]] = []
    reached = [source]
    for node in reached:
        onward = [link for link in links if link[0] == node]
        order += onward
        reached += [b for _, b in onward]
    return order


def lost_share(problem: Problem, hosts: tuple[int, ...], bears: float, each: float) -> float:
    """Return the part of all bytes that should arrive where they are wanted, and do not.

    A link loses a packet with the chance `each`; where it is given more than it `bears`, it loses
    what is too much, of all streams alike. What was lost before is no load any more.
    """
    network = Network.of(problem)
    streams = carried(lay_out(problem), hosts)
    ways = [
        outward(stream.source, network.canonical(stream.source, stream.targets)[0])
        for stream in streams
    ]
    passing: dict[tuple[int, int], float] = {}
    wanted = arrived = 0.0
    for _ in range(100):  # until loads and losses agree; they do within some twenty passes
        loads: dict[tuple[int, int], float] = {}
        wanted = arrived = 0.0
        for stream, way in zip(streams, ways, strict=True):
            left = {stream.source: 1.0}
            for a, b in way:
                loads[a, b] = loads.get((a, b), 0.0) + float(stream.rate) * left[a]
                left[b] = left[a] * passing.get((a, b), 1.0) * (1.0 - each)
            for target in stream.targets:
                wanted += float(stream.rate)
                arrived += float(stream.rate) * left[target]
        passing = {link: min(1.0, bears / load) for link, load in loads.items()}
    return 1.0 - arrived / wanted if wanted else 0.0


def loss_rows() -> Iterator[list[str]]:
    """Yield the part that is lost on links that lose, and on links that bear no more."""
    problem = example(HOME)
    hosts: Mapping[str, tuple[int, ...]] = {
        "in rounds, r = 3": tuple(settled(HOME, 3).hosts),
        "hop-based": planned(HOME, "hop")[0].hosts,
        "centralised": planned(HOME, "central")[0].hosts,
    }
    for name, placed in hosts.items():
        shares = [lost_share(problem, placed, float("inf"), LOST_EACH)]
        shares += [lost_share(problem, placed, bears, 0.0) for bears in BEARS]
        yield [name, *(f"{100 * share:.1f} %" for share in shares)]


# --- shared events: figures 4 to 6 ----------------------------------------------------------------

# Section 5: the edges follow from the names; the text does not tell them.
REQUESTS: Final[tuple[dict[str, list[str]], ...]] = (
    {"Face": ["Video"], "FaceLabel": ["Face"], "Stranger": ["FaceLabel"]},
    {"Face": ["Video"], "FaceLabel": ["Face"], "Members": ["FaceLabel"]},
    {"Body": ["Video"], "ActLabel": ["Body", "Motion"], "Anomaly": ["ActLabel"]},
)


def group_rows() -> Iterator[list[str]]:
    """Yield the groups that a broker may choose, and what is left for its neighbours."""
    forest = Forest.merged(REQUESTS)
    for number, group in enumerate(forest.alternatives().groups, 1):
        rest = "; ".join(" + ".join(names) for names in forest.left(group))
        yield [str(number), " + ".join(group), rest]


# --- the laboratory: tables 5 to 8 ----------------------------------------------------------------

LABORATORY: Final = "laboratory"


def found_rows() -> Iterator[list[str]]:
    """Yield the subscriptions of tables 5 to 7, and what one engine finds in half an hour."""
    sys.path.insert(0, str(EXAMPLES))
    from run_laboratory import ACTORS, HOMES, events, wanted  # type: ignore[import-not-found]

    text = (EXAMPLES / "laboratory.hw").read_text(encoding="utf-8")
    by_name = Counter(key.split()[0] for key in wanted(text, events()).elements())
    actors = {"TempOut": "AirController", "HumidOut": "AirController", "FaceOfArrival": "Gateway"}
    for table, name in enumerate(HOMES, 5):
        at = f"{actors[name]} at {ACTORS[actors[name]]}"
        yield [str(table), name, HOMES[name], at, str(by_name[name])]


def sent(evaluation: Evaluation, broker: int) -> float:
    """Return the bytes that a broker sends in a window."""
    return WINDOW_S * sum(float(load) for (a, _), load in evaluation.loads.items() if a == broker)


def laboratory_rows() -> Iterator[list[str]]:
    """Yield for each broker its tasks, and what it sends by this plan and by others."""
    problem = example(LABORATORY)
    layout = lay_out(problem)
    plan, evaluation = planned(LABORATORY, "tabu")
    headers = {aggregate.header for aggregate in layout.aggregates}
    names: dict[int, list[str]] = {}
    for number, (piece, host) in enumerate(zip(layout.pieces, plan.hosts, strict=True)):
        task = piece.task
        star = "∗ " if number in headers else ""
        if star + task not in names.setdefault(host, []):
            names[host].append(star + task)
    others = [planned(LABORATORY, method)[1] for method in ("central", "hop")]
    for number, node in enumerate(problem.nodes):
        figures = [*others, evaluation]
        yield [
            node.id,
            ", ".join(names.get(number, ["-"])),
            *(f"{sent(each, number):,.0f}" for each in figures),
            *PAPERS_SENT[node.id],
        ]
    yield [
        "all",
        "",
        *(f"{WINDOW_S * float(each.flow):,.0f}" for each in [*others, evaluation]),
        *("", ""),
    ]


# --- the page -------------------------------------------------------------------------------------

PAPERS_HEADS: Final = ("the paper's base cost", "the paper's output flow")
CURVES: Final = f"""Figures 9 to 11, the flow over time:

![flow over time by radius]({PICTURE})

Figures 12 and 13, messages by radius and the flow beside the hop-based one:

![messages by radius, flow by interval]({OVERHEAD_PICTURE})"""


def sections() -> Iterator[tuple[str, list[str], list[list[str]], str]]:
    """Yield the tables: a title, a head, rows, and what stands below."""
    home = example(HOME)
    yield (
        "Table 2: the flow of the logical test, by radius",
        ["interval", *(f"r = {radius}" for radius in RADII), "optimum", "hop-based"],
        list(radius_rows()),
        CURVES,
    )
    yield (
        f"Table 3: the nursing home, {len(home.nodes)} brokers",
        ["approach", "flow, bytes/s", "packets/s", "bytes of planning", "centralised is"],
        list(flow_rows()),
        "",
    )
    yield (
        "Table 4: what planning sends in the nursing home",
        ["approach", "messages", "bytes", "until quiet, s"],
        list(overhead_rows()),
        "",
    )
    heads = [f"links bear {bears / 1e6:g} MB/s" for bears in BEARS]
    yield (
        "Loss in the nursing home",
        ["approach", f"links lose {100 * LOST_EACH:g} % each", *heads],
        list(loss_rows()),
        "",
    )
    yield (
        "Figures 4 to 6: groups that may part",
        ["group", "a broker takes", "is left"],
        list(group_rows()),
        "",
    )
    yield (
        "Tables 5 to 7: the laboratory's subscriptions",
        ["table", "subscription", "home", "actor", "results in half an hour"],
        list(found_rows()),
        "",
    )
    yield (
        f"Table 8: bytes that each broker of the laboratory sends in {WINDOW_S} s, as planned",
        ["broker", "tasks (∗ header)", "all at n1", "hop-based", "as planned", *PAPERS_HEADS],
        list(laboratory_rows()),
        "",
    )


def page() -> str:
    """Return the tables of the page."""
    lines = [f"Planning in rounds in virtual time, seed {SEED}; scenarios of `examples/placement`."]
    for title, head, rows, below in sections():
        lines += ["", f"### {title}", "", *table_lines(head, rows)]
        lines += ["", below] if below else []
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print the tables, or put them and the drawings beside them into the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", type=Path, help="write the figures into this page")
    options = parser.parse_args()
    show_figures(page(), options.page)
    if options.page is not None:
        pictures: dict[str, Any] = {PICTURE: courses, OVERHEAD_PICTURE: overheads}
        for name, draw in pictures.items():
            (options.page.parent / name).write_text(draw(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
