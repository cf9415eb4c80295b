"""What a run of tests prints at its end about itself: how much was generated, what was planted.

Owns the tables. Must not know the tests that count. Invariant: what is printed was counted by tests
that ran in this run, also where several processes shared them.

A test tells with `record_property("generated", [what, construct, context, cases, with results])` or
`record_property("planted", [module, fault, the test that found it or None])`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

Lines = list[str]
WIDTH = 26


def told(reports: Iterable[Any], name: str) -> list[Any]:
    """What tests told under a name, in an order that no sharing of work changes."""
    found = [
        value
        for report in reports
        if getattr(report, "when", None) == "call"
        for key, value in report.user_properties
        if key == name
    ]
    return sorted(found, key=repr)


def generated_tables(said: Iterable[tuple[str, str, str, int, int]]) -> Iterator[tuple[str, Lines]]:
    """For each kind of comparison a title, and a table of cases by construct and context."""
    by_what: dict[str, list[tuple[str, str, int, int]]] = {}
    for what, *row in said:
        by_what.setdefault(what, []).append((row[0], row[1], row[2], row[3]))
    for what, rows in by_what.items():
        yield what, _generated(rows)


def _generated(rows: list[tuple[str, str, int, int]]) -> Lines:
    cases: Counter[tuple[str, str]] = Counter()
    filled: Counter[tuple[str, str]] = Counter()
    for construct, context, count, with_results in rows:
        cases[construct, context] += count
        filled[construct, context] += with_results
    constructs = list(dict.fromkeys(construct for construct, _ in cases))
    contexts = sorted({context for _, context in cases})
    lines = ["".join([" " * WIDTH, *(f"{context:>16}" for context in contexts)])]
    for construct in constructs:
        cells = [_cell(cases[construct, one], filled[construct, one]) for one in contexts]
        lines.append("".join([f"{construct:<{WIDTH}}", *cells]))
    share = 100 * filled.total() // max(1, cases.total())
    least, pair = min((100 * filled[pair] // cases[pair], pair) for pair in cases if cases[pair])
    lines.append(
        f"{cases.total():,} cases, {share} % with results, the least {least} % ({', '.join(pair)})"
    )
    return lines


def _cell(cases: int, filled: int) -> str:
    return f"{f'{cases} {100 * filled // cases:>3} %':>16}" if cases else " " * 16


def planted_table(said: Iterable[tuple[str, str, str | None]]) -> Lines:
    """Planted and found faults by module, then those that survived."""
    rows = list(said)
    planted = Counter(module for module, _, _ in rows)
    found = Counter(module for module, _, test in rows if test is not None)
    by_test = Counter(test.split("::")[0] for _, _, test in rows if test is not None)
    lines = [f"{module:<40}{found[module]:>4} of {planted[module]}" for module in sorted(planted)]
    lines.append(f"{found.total()} of {planted.total()} found; by the first test that failed:")
    lines += [f"  {test:<50}{count:>4}" for test, count in by_test.most_common()]
    return lines + [f"survived: {name} in {module}" for module, name, test in rows if test is None]
