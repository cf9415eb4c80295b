"""The experiment of paper 001 on the engine: what a restriction in time keeps and finds.

Owns the drawn events, the relations of the paper's table 1, and the page's figures. Must not know
brokers. Invariant: the same seed gives the same figures, whatever the machine.

    python -m experiments.restriction [--seed N] [--page docs/papers-time.md]

A hundred events, A or B, last some time. Wanted is a B behind the most recent A, within ten units
or without a limit: how many events are kept for that, and how many composite events come of it.
"""

import argparse
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import headwater
from broker.core.intake import IntakeOptions
from experiments.figures import Panel, draw_panels, show_figures, table_lines
from headwater.engine import Pipeline
from language import check_text

EVENTS: Final = 100
UNIT_MS: Final = 1000
LIMIT: Final = 10  # units, the paper's
LONGEST: Final = 10  # an event lasts up to so many units; the paper does not say
GAPS: Final = (1, 2, 4, 8, 16)  # mean units from an end to the next; the paper does not say
GAP: Final = 8  # of the curves: about half is found within the limit, as in the paper
SEEDS: Final = 20  # of the table over gaps
PICTURE: Final = "papers-time.svg"
TEXT: Final = """
event A()
event B()
subscription Pair seq 1 from paper to paper detect A then[{words}] B
"""
RESTRICTED, FREE = f"within {LIMIT}", "no limit"
WORDS: Final = {
    (FREE, "recent"): "recent",
    (RESTRICTED, "recent"): f"..{LIMIT} s, recent",
    (FREE, "unrestricted"): "unrestricted",
    (RESTRICTED, "unrestricted"): f"..{LIMIT} s, unrestricted",
}


class Course(NamedTuple):
    """What was kept and what had come after each event."""

    kept: list[int]
    found: list[int]


def events(seed: int, gap: float) -> list[dict[str, Any]]:
    """Return the drawn events in the order of their ends."""
    draw = random.Random(f"{seed} {gap}")
    made, end_ms = [], 100 * UNIT_MS
    for number in range(EVENTS):
        end_ms += round(draw.expovariate(1 / gap) * UNIT_MS) + 1
        lasted_ms = draw.randrange(LONGEST * UNIT_MS)
        made.append(
            {
                "type": draw.choice("AB"),
                "id": str(number),
                "start": end_ms - lasted_ms,
                "end": end_ms,
            }
        )
    return made


def course(words: str, given: list[dict[str, Any]]) -> Course:
    """Return what the engine keeps and finds, event by event."""
    pipeline = Pipeline(
        check_text(TEXT.format(words=words)).demand(),
        IntakeOptions(lateness_ms=0, typed=True),
        longest_ms=LONGEST * UNIT_MS,
    )
    made = Course([], [])
    count = 0
    for event in given:
        decoded = pipeline.intake.from_mappings([event])
        if decoded.rejections:
            raise ValueError(decoded.rejections[0].message)
        count += len(pipeline.admit(decoded.events))
        made.kept.append(pipeline.matcher.held())
        made.found.append(count)
    made.found[-1] += len(pipeline.finish())
    return made


# --- the relations of table 1 ---------------------------------------------------------------------

Span = tuple[int, int]
# The relation as the paper calls it; as the language does; A and B as intervals and points, each
# pair an interval with an interval, with a point, a point with an interval, with a point. None: NA.
RELATIONS: Final[tuple[tuple[str, str, tuple[tuple[Span, Span] | None, ...]], ...]] = (
    ("A before B", "A before B", (((1, 3), (5, 8)), ((1, 3), (5, 5)), ((1, 1), (5, 8)),
                                  ((1, 1), (5, 5)))),
    ("A meets B", "A meets B", (((1, 3), (3, 8)), ((1, 3), (3, 3)), ((3, 3), (3, 8)), None)),
    ("A overlaps B", "A overlaps B", (((1, 5), (3, 8)), None, None, None)),
    ("A finishes B", "B finishes A", (((1, 8), (3, 8)), ((1, 8), (8, 8)), ((8, 8), (3, 8)), None)),
    ("A during B", "B during A", (((1, 8), (3, 5)), ((1, 8), (5, 5)), None, None)),
    ("A starts B", "A starts B", (((1, 3), (1, 8)), ((1, 8), (1, 1)), ((1, 1), (1, 8)), None)),
    ("A equals B", "A equals B", (((1, 8), (1, 8)), None, None, ((3, 3), (3, 3)))),
)  # fmt: skip
PAIRS: Final = ("I-I", "I-P", "P-I", "P-P")
OPERATORS: Final = ("and", "concat", "then", "parallel")


def one_result(pattern: str, spans: dict[str, Span], **options: Any) -> dict[str, Any] | None:
    """Return what a pattern finds in one event of each type; None: nothing."""
    declared = "".join(f"event {kind}()\n" for kind in spans)
    text = f"{declared}subscription S seq 1 from paper to paper detect {pattern}"
    engine = headwater.Engine(text, lateness_ms=None, **options)
    engine.push(
        [
            {
                "type": kind,
                "id": kind,
                "start": first * UNIT_MS,
                "end": last * UNIT_MS,
            }
            for kind, (first, last) in spans.items()
        ]
    )
    results = engine.finish()
    return results[0] if results else None


def shown(result: dict[str, Any] | None) -> str:
    """Return the interval of a result in units, or that there is none."""
    if result is None:
        return "-"
    return f"{result['start'] // UNIT_MS} to {result['end'] // UNIT_MS}"


def relations() -> Iterator[list[str]]:
    """Yield each relation and kind of pair: the paper's composite time, and what is found here."""
    for paper, ours, pairs in RELATIONS:
        for kind, pair in zip(PAIRS, pairs, strict=True):
            if pair is None:
                continue
            spans = dict(zip("AB", pair, strict=True))
            whole = f"{min(s for s, _ in pair)} to {max(e for _, e in pair)}"
            found = [shown(one_result(f"A {word} B", spans)) for word in OPERATORS]
            given = ", ".join(
                f"{name} {first} to {last}" if first < last else f"{name} {first}"
                for name, (first, last) in spans.items()
            )
            mirrored = ours
            if paper == "A finishes B" and kind == "P-I":
                mirrored = "A finishes B"  # the point is the shorter one
            if paper == "A starts B" and kind == "I-P":
                mirrored = "B starts A"
            yield [paper, kind, given, whole, mirrored, shown(one_result(mirrored, spans)), *found]


# --- the period with clocks that drift ----------------------------------------------------------

PERIOD: Final = 10
DRIFT: Final = 0.1


def periods() -> Iterator[list[str]]:
    """Yield what the paper's formula of the period says of pairs, and what is found here."""
    for apart in (8, 9, 10, 11, 12):
        spans = {"A": (100, 100), "B": (100 + apart, 100 + apart)}
        most = apart <= PERIOD * (1 - DRIFT)
        never = not apart < PERIOD * (1 + DRIFT)
        paper = "yes" if most else "no" if never else "maybe"
        result = one_result(f"A and B within {PERIOD} s", spans, drift=DRIFT)
        yield [str(apart), paper, "no" if result is None else str(result["certainty"])]


AMBIGUITY: Final = (
    (
        "2(a), T where A and B overlap",
        "(A concat B) parallel T",
        {"A": (1, 5), "B": (4, 8), "T": (4, 4)},
        "found",
    ),
    (
        "2(a), T within A alone",
        "(A concat B) parallel T",
        {"A": (1, 5), "B": (4, 8), "T": (2, 2)},
        "found",
    ),
    (
        "2(b), B ; (A ; C) where A comes first",
        "B then (A then C)",
        {"A": (1, 1), "B": (2, 2), "C": (3, 3)},
        "not found",
    ),
)


def ambiguity() -> Iterator[list[str]]:
    """Yield the paper's situations of figure 2: what it wants, and what is found here."""
    for name, pattern, spans, wanted in AMBIGUITY:
        result = one_result(pattern, spans)
        yield [name, f"`{pattern}`", wanted, "not found" if result is None else "found"]


# --- the page -----------------------------------------------------------------------------------


def rows_by_gap(seed: int) -> Iterator[list[str]]:
    """Yield the sums over seeds for each mean gap, of the most recent A."""
    for gap in GAPS:
        both = {}
        for limit in (FREE, RESTRICTED):
            courses = [
                course(WORDS[limit, "recent"], events(each, gap))
                for each in range(seed, seed + SEEDS)
            ]
            kept = [count for one in courses for count in one.kept]
            found = sum(one.found[-1] for one in courses)
            both[limit] = (found, sum(kept) / len(kept), max(kept))
        (all_found, mean, most), (found, mean_within, most_within) = both[FREE], both[RESTRICTED]
        yield [
            *(str(gap), f"{all_found / SEEDS:.1f}", f"{found / SEEDS:.1f}"),
            *(f"{100 * found / all_found:.0f} %", f"{mean:.2f}", f"{mean_within:.2f}"),
            *(str(most), str(most_within)),
        ]


def page(seed: int) -> tuple[str, str]:
    """Return the tables of the page, and its drawing."""
    given = events(seed, GAP)
    courses = {key: course(words, given) for key, words in WORDS.items()}
    lines = [f"{EVENTS} events, seed {seed}, mean gap {GAP}, each lasts less than {LONGEST}.", ""]
    lines += ["### Figure 3: restriction in time", ""]
    lines += [f"![events kept and composite events, event by event]({PICTURE})", ""]
    head = ["context", "limit", "kept, mean", "kept, most", "composite events"]
    rows = [
        [
            *(context, limit, f"{sum(one.kept) / EVENTS:.2f}", str(max(one.kept))),
            str(one.found[-1]),
        ]
        for (limit, context), one in courses.items()
    ]
    lines += table_lines(head, rows)
    lines += ["", f"The most recent A by the mean gap, mean of {SEEDS} seeds:", ""]
    head = ["gap", "composite events", "within the limit", "of all", "kept, mean", "within"]
    head += ["kept, most", "within"]
    lines += table_lines(head, list(rows_by_gap(seed)))
    lines += ["", "### Table 1: relations between intervals and points", ""]
    head = ["the paper's", "pair", "events", "the paper's time", "here", "found", *OPERATORS]
    lines += table_lines(head, list(relations()))
    lines += ["", f"The period T = {PERIOD} with clocks that drift by ρ = {DRIFT:g}:", ""]
    lines += table_lines(["apart", "the paper's formula", "here"], list(periods()))
    lines += ["", "### Figure 2: ambiguous meanings", ""]
    lines += table_lines(["situation", "pattern", "the paper wants", "here"], list(ambiguity()))
    panels = [
        Panel(
            title,
            "events so far",
            {
                f"{context}, {limit}": list(enumerate(getattr(one, field), 1))
                for (limit, context), one in courses.items()
                if context in contexts
            },
            stepped=True,
        )
        for title, field, contexts in (
            ("events kept", "kept", ("recent", "unrestricted")),
            ("composite events, most recent A", "found", ("recent",)),
        )
    ]
    return "\n".join(lines) + "\n", draw_panels(panels)


def main() -> int:
    """Print the tables, or put them and the drawing beside them into the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--page", type=Path, help="write the figures into this page")
    options = parser.parse_args()
    text, drawing = page(options.seed)
    show_figures(text, options.page)
    if options.page is not None:
        (options.page.parent / PICTURE).write_text(drawing, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
