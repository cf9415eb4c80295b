"""The experiments of seed paper 2 on the brokers' own routers, written down as a page.

Owns which runs are made, the tables and the drawings. Must not know how scenarios are drawn or run.
Invariant: the same options give the same figures, whatever machine and however many processes.

    python -m bench.papers [--hours H] [--seed N] [--processes N] [--page docs/papers.md]
"""

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from broker.core.routing.covering import Check
from broker.core.routing.strategies import FILTER_SPLIT_FORWARD
from simulation.propagation.needed import needed
from simulation.propagation.papers import (
    SETTINGS,
    Setting,
    least_load,
    read_series,
    scenario_of,
)
from simulation.propagation.run import APPROACHES, simulate

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "examples/data/grand_st_bernard.csv.gz"
FSF = "filter-split-forward"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
# What the paper says of event load against multi-join, and of subscription load against operator
# placement, in per cent less.
CLAIMS = {
    "small": ("10 to 30 %", "18 % on average"),
    "medium": ("48 to 55.9 %", "4.5 to 17.4 %"),
    "large network": ("56 to 62 %", "as medium"),
    "large sources": ("54 to 68 %", "less than medium"),
}
# Other ways to compare operators; of these only what is sent of operators is counted.
COMPARED = {
    "at the receiver, together": FILTER_SPLIT_FORWARD._replace(sent=Check.NONE),
    "at the sender, one by one": FILTER_SPLIT_FORWARD._replace(
        received=Check.PAIRWISE, sent=Check.PAIRWISE
    ),
}
COLOURS = dict(
    zip(APPROACHES, ("#8c8c8c", "#c44e52", "#dd8452", "#4c72b0", "#55a868"), strict=True)
)

# setting, count, approach, near, mixed, hours, seed
Job = tuple[int, int, str, int, bool, float, int]


def one(job: Job) -> dict[str, Any]:
    """One approach on one scenario."""
    place, count, approach, near, mixed, hours, seed = job
    setting = SETTINGS[place]
    series = read_series(DATA, hours)
    scenario = scenario_of(setting, series, count, seed, near=near, mixed_rates=mixed)
    if approach in COMPARED:
        scenario = scenario._replace(readings=())
    wanted = needed(scenario)
    outcome = simulate(scenario, COMPARED.get(approach, approach), wanted)
    return {
        "setting": setting.name,
        "count": count,
        "approach": approach,
        "near": near,
        "mixed": mixed,
        "subscription": outcome.subscription,
        "publication": outcome.publication,
        "recall": outcome.recall,
        "extra": sum(len(some) for some in outcome.delivered.values())
        - sum(len(some) for some in wanted.values()),
        "least": least_load(scenario, wanted),
        "events": len(scenario.readings),
    }


def jobs(hours: float, seed: int) -> list[Job]:
    """All runs: the paper's, and how far from the least load filter-split-forward comes."""
    found: list[Job] = [
        (place, count, approach, 1, False, hours, seed)
        for place, setting in enumerate(SETTINGS)
        for count in setting.counts
        for approach in (*APPROACHES, *COMPARED)
    ]
    medium = SETTINGS[1]
    found += [
        (1, count, FSF, near, mixed, hours, seed)
        for near, mixed in ((3, False), (1, True), (3, True))
        for count in medium.counts[1:]
    ]
    return found


def less(part: float, whole: float) -> str:
    """By how many per cent a number is less than another."""
    return f"{100 * (1 - part / whole):.1f} %" if whole else "-"


def page(found: list[dict[str, Any]], hours: float, seed: int) -> str:
    """The tables in Markdown."""
    by = {(each["setting"], each["count"], each["approach"], each["near"], each["mixed"]): each
          for each in found}  # fmt: skip
    lines = [
        f"{hours:g} hours of readings, seed {seed}; events: "
        + ", ".join(f"{name} {events:,}" for name, events in _events(found).items())
        + ".",
        "",
        "| setting | subscriptions | approach | operators | events | recall | extra | / least |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for setting in SETTINGS:
        for count in setting.counts:
            for approach in APPROACHES:
                each = by[setting.name, count, approach, 1, False]
                lines.append(
                    f"| {setting.name} | {count} | {approach} | {each['subscription']:,} "
                    f"| {each['publication']:,} | {each['recall']:.4f} | {each['extra']} "
                    f"| {each['publication'] / each['least']:.3f} |"
                )
    lines += [
        "",
        "Filter-split-forward against its rivals, and what the paper says:",
        "",
        "| setting | events, under multi-join | paper | operators, under placement | paper |",
        "|---|---|---|---|---|",
    ]
    lines += [_against(setting, by) for setting in SETTINGS]
    lines += [
        "",
        "Operators sent by filter-split-forward, according to where they are compared and how:",
        "",
        "| setting | subscriptions | "
        + " | ".join(COMPARED)
        + " | at the sender, together | operator placement |",
        "|---|---|---|---|---|---|",
    ]
    for setting in SETTINGS:
        for count in setting.counts:
            sent = [
                f"{by[setting.name, count, approach, 1, False]['subscription']:,}"
                for approach in (*COMPARED, FSF, "operator-placement")
            ]
            lines.append(f"| {setting.name} | {count} | {' | '.join(sent)} |")
    lines += [
        "",
        "How far filter-split-forward is from the least load (medium):",
        "",
        "| workload | subscriptions | events sent | least | ratio |",
        "|---|---|---|---|---|",
    ]
    lines += [_distance(each) for each in found if each["near"] > 1 or each["mixed"]]
    return "\n".join(lines) + "\n"


def _distance(each: dict[str, Any]) -> str:
    """The row of a workload beside the least load."""
    where = "one station" if each["near"] == 1 else f"{each['near']} near stations"
    rates = ", two attributes every half hour" if each["mixed"] else ""
    return (
        f"| {where}{rates} | {each['count']} | {each['publication']:,} "
        f"| {each['least']:,} | {each['publication'] / each['least']:.3f} |"
    )


def _events(found: list[dict[str, Any]]) -> dict[str, int]:
    return {
        each["setting"]: each["events"]
        for each in found
        if not each["mixed"] and each["approach"] not in COMPARED
    }


def _against(setting: Setting, by: dict[Any, dict[str, Any]]) -> str:
    events, operators = [], []
    for count in setting.counts:
        mine, joined, placed = (
            by[setting.name, count, approach, 1, False]
            for approach in (FSF, "multi-join", "operator-placement")
        )
        events.append(less(mine["publication"], joined["publication"]))
        operators.append(less(mine["subscription"], placed["subscription"]))
    claimed = CLAIMS[setting.name]
    return (
        f"| {setting.name} | {', '.join(events)} | {claimed[0]} "
        f"| {', '.join(operators)} | {claimed[1]} |"
    )


def drawing(found: list[dict[str, Any]]) -> str:
    """Loads and recall over subscriptions: a row for each figure, a column for each setting."""
    from io import StringIO

    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows = (
        ("subscription", "operators sent"),
        ("publication", "events sent"),
        ("recall", "recall"),
    )
    with mpl.rc_context({"svg.hashsalt": "headwater", "svg.fonttype": "none", "font.size": 8}):
        figure = Figure(figsize=(12, 7), layout="constrained")
        axes = figure.subplots(len(rows), len(SETTINGS))
        for row, (key, words) in enumerate(rows):
            for column, setting in enumerate(SETTINGS):
                at = axes[row][column]
                for approach in APPROACHES:
                    some = [
                        each
                        for each in found
                        if each["setting"] == setting.name
                        and each["approach"] == approach
                        and each["near"] == 1
                        and not each["mixed"]
                    ]
                    at.plot(
                        [each["count"] for each in some],
                        [each[key] for each in some],
                        marker="o",
                        markersize=3,
                        color=COLOURS[approach],
                        label=approach,
                    )
                at.set_ylim(bottom=0)
                at.set_title(f"{setting.name} {setting.nodes}/{setting.stations * 5}")
                at.set_xlabel("subscriptions")
                at.set_ylabel(words)
        axes[0][0].legend(frameon=False)
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def ran(todo: list[Job], processes: int) -> list[dict[str, Any]]:
    """The outcome of every run, told on standard error as it is there."""
    found: list[dict[str, Any]] = []
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for each in pool.map(one, todo):
            found.append(each)
            print(json.dumps(each), file=sys.stderr, flush=True)
    return found


def main() -> int:
    """Run everything; print the tables or put them into the page, with the drawing beside it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=8.0, help="of readings; default: all 8")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--page", type=Path, help="write the figures into this page")
    parser.add_argument("--found", type=Path, help="keep what was found there, as JSON lines")
    parser.add_argument("--use", type=Path, help="what was kept before, in place of running")
    options = parser.parse_args()
    if options.use:
        lines = options.use.read_text(encoding="utf-8").splitlines()
        found = [json.loads(line) for line in lines]
    else:
        found = ran(jobs(options.hours, options.seed), options.processes)
    if options.found:
        options.found.write_text("".join(json.dumps(each) + "\n" for each in found))
    tables = page(found, options.hours, options.seed)
    if options.page is None:
        print(tables, end="")
        return 0
    text = options.page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    options.page.write_text(f"{before}{BEGIN}\n\n{tables}\n{END}{after}", encoding="utf-8")
    options.page.with_suffix(".svg").write_text(drawing(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
