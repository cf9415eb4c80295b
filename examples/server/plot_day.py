"""Draw a day of alerts from the history that a server has written.

    python plot_day.py history 2026-03-01 day.png

Needs matplotlib (`pip install 'headwater[plots]'`). Spark need not run.
"""

# ruff: noqa: INP001 - an example is run, not imported
import argparse
import sys
from collections import Counter
from datetime import date
from pathlib import Path

import matplotlib as mpl
import pyarrow.compute as pc

from server.errors import ServerError
from server.history import table_of

mpl.use("Agg")
from matplotlib import pyplot as plt

BIN_MINUTES = 15


def counts(folder: Path, day: date) -> dict[str, Counter[int]]:
    """By subscription, how many results ended in each quarter of an hour of the day."""
    rows = table_of(folder, ["subscription", "end"])
    found: dict[str, Counter[int]] = {}
    if rows.num_rows:
        rows = rows.filter(
            pc.equal(pc.cast(pc.floor_temporal(rows["end"], unit="day"), "date32"), day)
        )
    for row in rows.to_pylist():
        at = (row["end"].hour * 60 + row["end"].minute) // BIN_MINUTES
        found.setdefault(row["subscription"], Counter())[at] += 1
    return dict(sorted(found.items()))


def draw(folder: Path, day: date, target: Path) -> int:
    """One row of bars for each subscription; how many results there are."""
    found = counts(folder, day)
    hours = [at * BIN_MINUTES / 60 for at in range(24 * 60 // BIN_MINUTES)]
    figure, axes = plt.subplots(
        max(1, len(found)), 1, sharex=True, squeeze=False, figsize=(9, 1.2 + 1.3 * len(found))
    )
    for axis, (name, bins) in zip(axes[:, 0], found.items(), strict=False):
        axis.bar(hours, [bins[at] for at in range(len(hours))], BIN_MINUTES / 60, align="edge")
        axis.set_ylabel(name, rotation=0, ha="right", va="center")
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1, 0].set(xlim=(0, 24), xticks=range(0, 25, 3), xlabel=f"hour of {day}, UTC")
    figure.suptitle("results by quarter of an hour")
    figure.tight_layout()
    figure.savefig(target)
    plt.close(figure)
    return sum(sum(bins.values()) for bins in found.values())


def main() -> None:
    """Read the command line, and draw."""
    parser = argparse.ArgumentParser(description="draw a day of alerts from a history")
    parser.add_argument("history", type=Path, help="the folder that a sink of kind parquet wrote")
    parser.add_argument("day", type=date.fromisoformat, help="such as 2026-03-01, in UTC")
    parser.add_argument("picture", type=Path, help="the file to write: .png, .svg or .pdf")
    given = parser.parse_args()
    try:
        count = draw(given.history, given.day, given.picture)
    except (ServerError, OSError, ValueError) as error:
        parser.error(str(error))
    sys.stdout.write(f"{count} results, drawn in {given.picture}\n")


if __name__ == "__main__":
    main()
