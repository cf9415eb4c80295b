"""The experiments of paper 002, section VI: `python -m simulation.papers --page docs/papers.md`.

Owns the command line and the page's generated part. Must not know what is measured. Invariant: the
page names the recording and the seed that its figures come from.
"""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from simulation.papers import plots, tables
from simulation.papers.experiment import (
    Cell,
    Experiment,
    Figures,
    all_settings,
    cells,
    identity,
    keep,
    kept,
)
from simulation.papers.recording import RecordingError, read_recording, readings_of
from simulation.papers.settings import PAPER, quick

DATA = Path("examples/data/grand_st_bernard.csv.gz")
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
JOBS_MAX = 4
GOOD, FAULTY = 0, 2


def parser() -> ArgumentParser:
    """The options."""
    made = ArgumentParser(
        prog="python -m simulation.papers",
        description="Replay weather stations over networks of brokers, under five approaches.",
        epilog="example: python -m simulation.papers --quick",
    )
    made.add_argument("--data", type=Path, default=DATA, help="a recording (default: %(default)s)")
    made.add_argument("--seed", type=int, default=1, help="what is drawn (default: %(default)s)")
    made.add_argument("--quick", action="store_true", help="small networks: a look within a minute")
    made.add_argument("--most", type=int, help="leave out runs with more subscriptions")
    made.add_argument("--only", help="only the settings with these names, with commas between")
    made.add_argument(
        "--jobs",
        type=int,
        default=min(JOBS_MAX, os.cpu_count() or 1),
        help="runs side by side (default: %(default)s)",
    )
    made.add_argument("--page", type=Path, help="write figures and pictures there")
    made.add_argument("--keep", type=Path, help="keep figures in this file, and reuse what it has")
    made.add_argument("--show", action="store_true", help="show what is kept; run nothing")
    made.add_argument("--scenarios", type=Path, help="keep the scenarios in this folder")
    return made


def main(arguments: list[str]) -> int:
    """Run what is asked for; 2 where that is faulty."""
    said = parser().parse_args(arguments)
    try:
        if said.page is not None:
            _around(said.page)  # what is run for minutes must find its place
        return _run(said)
    except RecordingError as error:
        sys.stderr.write(f"{error}\n")
    except OSError as error:
        sys.stderr.write(f"{error.filename}: {(error.strerror or str(error)).lower()}\n")
    return FAULTY


def _run(said: Namespace) -> int:
    settings = [quick(one) if said.quick else one for one in all_settings()]
    if said.only:
        names = said.only.split(",")
        settings = [one for one in settings if one.name in names]
    recording = read_recording(said.data)
    mark = identity(said.data, said.seed, settings)
    found = kept(said.keep, mark) if said.keep else {}
    wanted = cells(settings, said.most)
    todo = [] if said.show else [cell for cell in wanted if cell not in found]
    began = time.monotonic()

    def done(figures: Figures) -> None:
        found[figures.cell] = figures
        if said.keep:
            keep(said.keep, mark, figures)
        count = sum(cell in found for cell in wanted)
        _tell(figures, count, len(wanted), time.monotonic() - began)

    Experiment(said.data, settings, said.seed, said.scenarios).run(todo, max(1, said.jobs), done)
    ordered: dict[Cell, Figures] = {cell: found[cell] for cell in wanted if cell in found}
    names = {one.name for one in PAPER}
    paper = [one for one in settings if one.name in names]
    pictures = plots.draw(ordered, paper)
    about = (
        f"Recording: `{said.data.name}`, {readings_of(recording):,} readings of"
        f" {len(recording.stations)} complete stations from {_time(recording.since_s)} to"
        f" {_time(recording.until_s)}. Seed {said.seed}; {_time(int(time.time()))[:10]}."
    )
    if said.most is not None:
        about += f" Runs with more than {said.most} subscriptions were left out."
    if missing := len(wanted) - len(ordered):
        about += f" {missing} of {len(wanted)} runs were not made; they show as “-”."
    pictures[plots.NETWORKS] = plots.draw_networks(paper, said.seed)
    shown = [f"![the networks: gateways, relays, sensors]({plots.NETWORKS})"]
    shown += [f"![{title}]({name})" for name, (title, _) in plots.PICTURES.items()]
    text = f"{about}\n\n{tables.as_markdown(ordered, settings, shown if said.page else [])}"
    if said.page is None:
        sys.stdout.write(text + "\n")
        return GOOD
    for name, svg in pictures.items():
        (said.page.parent / name).write_text(svg, encoding="utf-8")
    before, after = _around(said.page)
    said.page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
    return GOOD


def _around(page: Path) -> tuple[str, str]:
    """Read what stands around the figures. Raises RecordingError where they have no place."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise RecordingError(f"{page}: found no lines {BEGIN} and {END}, between which figures go")
    return before, after


def _tell(figures: Figures, done: int, total: int, seconds: float) -> None:
    cell = figures.cell
    sys.stderr.write(
        f"{done}/{total} {seconds:6.0f} s  {cell.setting}, {cell.count} subscriptions,"
        f" {cell.approach}: {figures.subscription:,} operators, {figures.publication:,} events,"
        f" {tables.ratio(figures):.3f} of the bound, recall {figures.recall:.4f}\n"
    )
    sys.stderr.flush()


def _time(seconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
