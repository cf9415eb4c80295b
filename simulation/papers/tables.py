"""The figures as a part of a page: loads, the paper's claims beside them, and the bound.

Owns the tables and the claims. Must not run anything. Invariant: whether a claim comes out is
computed from the figures by the claim's own words, never written by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from simulation.papers.experiment import (
    ALONE,
    APPROACHES,
    ARRIVAL,
    CENTRALISED,
    FSF,
    GUESSED,
    HOLDING,
    MJ,
    NAIVE,
    OP,
    SAMPLED,
    Cell,
    Figures,
)
from simulation.papers.settings import BEYOND, PAPER, STEP, WIDTHS, Setting

ONE_STATION_MAX, NEAR_MAX = 1.035, 1.15
ENOUGH = 400  # subscriptions

Found = dict[Cell, Figures]
Measure = Callable[[Figures], float]


def publication(figures: Figures) -> float:
    """Events over links."""
    return figures.publication


def subscription(figures: Figures) -> float:
    """Operators over links."""
    return figures.subscription


def ratio(figures: Figures) -> float:
    """Publication load by the lower bound."""
    return figures.publication / figures.bound if figures.bound else 1.0


class Claim(NamedTuple):
    """A statement of the paper about settings; `holds` judges one number of subscriptions in one.

    `shown` is the figure of that number.
    """

    text: str
    settings: tuple[str, ...]
    paper: str
    shown: Callable[[Found, str, int], str]
    holds: Callable[[Found, str, int], bool]


def change(found: Found, at: tuple[str, int], pair: tuple[str, str], measure: Measure) -> float:
    """By which part the first approach has less (negative) or more than the second."""
    ours, theirs = (found[Cell(*at, approach)] for approach in pair)
    return measure(ours) / measure(theirs) - 1.0


def _less(text: str, settings: Sequence[str], pair: tuple[str, str], by: tuple[float, float],
          measure: Measure = publication) -> Claim:  # fmt: skip
    """The first approach has less than the second by between these percentages."""
    least, most = by
    return Claim(
        text,
        tuple(settings),
        f"{-most:g} to {-least:g} %",
        lambda found, name, count: f"{100 * change(found, (name, count), pair, measure):+.1f} %",
        lambda found, name, count: (
            least <= round(-100 * change(found, (name, count), pair, measure), 1) <= most
        ),
    )


def _order(text: str, approaches: Sequence[str], measure: Measure) -> Claim:
    """Each approach has at least as much as the next."""

    def values(found: Found, name: str, count: int) -> list[float]:
        return [measure(found[Cell(name, count, approach)]) for approach in approaches]

    def holds(found: Found, name: str, count: int) -> bool:
        some = values(found, name, count)
        return all(more >= less for more, less in pairwise(some))

    return Claim(
        text,
        tuple(one.name for one in PAPER),
        "yes",
        lambda found, name, count: " / ".join(
            f"{each:,.0f}" for each in values(found, name, count)
        ),
        holds,
    )


def _recall(text: str, settings: Sequence[str], paper: str, least: float, most: float) -> Claim:
    """Filter-split-forward with sampled covering delivers this part of what is needed."""
    return Claim(
        text,
        tuple(settings),
        paper,
        lambda found, name, count: f"{100 * found[Cell(name, count, SAMPLED)].recall:.2f} %",
        lambda found, name, count: least <= found[Cell(name, count, SAMPLED)].recall <= most,
    )


ALL = tuple(one.name for one in PAPER)
CLAIMS = (
    _order("event load: naive ≥ operator placement ≥ multi-join ≥ filter-split-forward",
           (NAIVE, OP, MJ, FSF), publication),
    _less("event load, filter-split-forward against multi-join (VI.C)", ["small"], (FSF, MJ),
          (10, 30)),
    _less("the same (VI.D)", ["medium"], (FSF, MJ), (48, 55.9)),
    _less("the same (VI.E)", ["large"], (FSF, MJ), (56, 62)),
    _less("the same (VI.E)", ["sources"], (FSF, MJ), (54, 68)),
    _order("event load: centralised has the most of all", (CENTRALISED, NAIVE), publication)
    ._replace(settings=("medium",)),
    _order("subscription load: centralised has the least of all",
           (NAIVE, OP, FSF, CENTRALISED), subscription)._replace(settings=("medium",)),
    _less("subscription load, set covering at arrival against pairwise (VI.C)", ["small"],
          (ARRIVAL, OP), (12, 24), subscription)._replace(paper="-18 % on average"),
    _less("the same (VI.D)", ["medium"], (ARRIVAL, OP), (4.5, 17.4), subscription),
    _recall("recall with sampled covering, as in the paper, is at least 93 % (VI.F)", ALL,
            "93 to 100 %", 0.93, 1.0),
    _recall("recall is about 93 % there (VI.F)", ["small"], "93 %", 0.9, 0.95),
)  # fmt: skip


def as_markdown(found: Found, settings: Sequence[Setting], pictures: Sequence[str]) -> str:
    """Everything that the figures say."""
    here = {one.name: one for one in settings}
    paper = [here[one.name] for one in PAPER if one.name in here]
    parts = ["### The paper's claims", *_claims(found, here)]
    parts += ["### Loads", *pictures, *(_loads(found, one) for one in paper)]
    parts += ["### Figure 12: recall by the probability of an error", *_erring(found, paper)]
    parts += ["### How far from the bound", *_bounds(found, here)]
    parts += ["### How wide the ranges are", *_widths(found, here)]
    return "\n\n".join(parts)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is to the left."""
    ruler = ["---", *("---:" for _ in columns[1:])]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (columns, ruler, *rows))


def _claims(found: Found, here: dict[str, Setting]) -> list[str]:
    rows = []
    for claim in CLAIMS:
        for name in claim.settings:
            if name not in here:
                continue
            counts = [
                count
                for count in here[name].counts
                if all(Cell(name, count, each) in found for each in (*APPROACHES, ARRIVAL, SAMPLED))
            ]
            kept = [count for count in counts if claim.holds(found, name, count)]
            shown = "; ".join(f"{count}: {claim.shown(found, name, count)}" for count in counts)
            verdict = "yes" if len(kept) == len(counts) else "no"
            if kept and verdict == "no":
                verdict = f"at {', '.join(map(str, kept))}"
            rows.append([claim.text, name, claim.paper, shown, verdict if counts else "not run"])
    return [table(("claim", "setting", "paper", "here, by subscriptions", "comes out"), rows)]


def _loads(found: Found, setting: Setting) -> str:
    rows = []
    for approach in (*APPROACHES, ARRIVAL, SAMPLED):
        cells = [found.get(Cell(setting.name, count, approach)) for count in setting.counts]
        rows.append(
            [
                approach,
                *("-" if one is None else f"{one.subscription:,}" for one in cells),
                *("-" if one is None else f"{one.publication:,}" for one in cells),
                *("-" if one is None else f"{100 * one.recall:.2f} %" for one in cells),
            ]
        )
    operators = [
        f"{found[cell].subscription:,}" if cell in found else "-"
        for cell in (Cell(setting.name, count, ALONE) for count in setting.counts)
    ]
    rows.append([ALONE, *operators, *(["-"] * 2 * len(operators))])
    heads = [
        f"{what}, {count}" for what in ("operators", "events", "recall") for count in setting.counts
    ]
    return f"**{setting.title}**\n\n" + table(["", *heads], rows)


def _erring(figures: Found, paper: Sequence[Setting]) -> list[str]:
    """Sampled covering with ever more points: operators left out wrongly, and what that costs."""
    rows = []
    for setting in paper:
        count = min(setting.counts)
        for where, usual in (("arrival", ARRIVAL), ("sending", FSF)):
            exact = figures.get(Cell(setting.name, count, usual))
            names = [name for name in (*GUESSED, SAMPLED) if where in name]
            for name in names:
                guess = figures.get(Cell(setting.name, count, name))
                if guess is None or exact is None:
                    continue
                left_out = 1.0 - guess.subscription / exact.subscription
                rows.append(
                    [
                        setting.title.partition(":")[0],
                        name if name in GUESSED else f"{name}, 1,000 points",
                        f"{guess.subscription:,}",
                        f"{100 * left_out:.1f} %",
                        f"{guess.publication:,}",
                        f"{100 * guess.recall:.2f} %",
                    ]
                )
    about = "The fewest subscriptions of each setting; operators beside those of exact covering."
    heads = ("setting", "covering", "operators", "left out wrongly", "events", "recall")
    return [about, table(heads, rows)]


def _bounds(found: Found, here: dict[str, Setting]) -> list[str]:
    rows = []
    for setting in [here[one.name] for one in (*PAPER, *BEYOND) if one.name in here]:
        for count in setting.counts:
            ours = found.get(Cell(setting.name, count, FSF))
            if ours is None:
                continue
            others = [found.get(Cell(setting.name, count, each)) for each in (OP, MJ)]
            held = found.get(Cell(setting.name, count, HOLDING))
            goal = _goal(setting, count)
            rows.append(
                [
                    setting.title,
                    f"{count:,}",
                    f"{ours.bound:,}",
                    *("-" if one is None else f"{ratio(one):.2f}" for one in others),
                    f"{ratio(ours):.3f}",
                    "-" if goal is None else f"≤ {goal}",
                    "-" if goal is None else "met" if ratio(ours) <= goal else "missed",
                    "-" if held is None else f"{ratio(held):.3f}",
                ]
            )
    columns = (
        "setting",
        "subscriptions",
        "bound",
        OP,
        MJ,
        FSF,
        "goal",
        "",
        f"{HOLDING} (estimate)",
    )
    return [table(columns, rows)]


def _goal(setting: Setting, count: int) -> float | None:
    if count < ENOUGH or setting.rare:
        return None
    return ONE_STATION_MAX if setting.across == 1 else NEAR_MAX


def _widths(found: Found, here: dict[str, Setting]) -> list[str]:
    rows = []
    medium = here.get("medium")
    for setting in (medium, *(here.get(one.name) for one in WIDTHS)):
        if setting is None:
            continue
        count = ENOUGH if ENOUGH in setting.counts else setting.counts[-1]
        pair = [found.get(Cell(setting.name, count, each)) for each in (FSF, MJ)]
        if None in pair:
            continue
        less = change(found, (setting.name, count), (FSF, MJ), publication)
        rows.append((setting.step, [f"{setting.step:g}", f"{count:,}", f"{100 * less:+.1f} %"]))
    heads = ("step", "subscriptions", "event load, filter-split-forward against multi-join")
    told = f"Medium setting; the step is {STEP:g} everywhere else."
    return [told, table(heads, [row for _, row in sorted(rows, key=lambda pair: pair[0])])]
