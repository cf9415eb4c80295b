"""Running the settings: one cell for each setting, number of subscriptions and approach.

Owns what is run and the figures of each cell. Must not know how they are shown. Invariant: a cell's
figures depend on the recording, the seed and the cell alone; one that was done is not done again.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from broker.network.routing.covering.covering import Check
from broker.network.routing.matching.strategies import STRATEGIES, Strategy
from simulation.papers import drawing
from simulation.papers.bound import lower_bound
from simulation.papers.holding import estimate
from simulation.papers.recording import read_recording
from simulation.papers.sampler import sampler
from simulation.papers.settings import BEYOND, PAPER, WIDTHS, Setting
from simulation.propagation.needed import needed
from simulation.propagation.reading import read_scenario
from simulation.propagation.run import simulate
from simulation.propagation.scenario import PropagationScenario

FSF, OP, MJ = "filter-split-forward", "operator-placement", "multi-join"
NAIVE, CENTRALISED = "naive", "centralised"
APPROACHES = (NAIVE, OP, MJ, FSF, CENTRALISED)
ARRIVAL, SAMPLED = "covering at arrival alone", "sampled covering at arrival"
"""Filter-split-forward as the paper has it: what a neighbour asked for is filtered where it
arrives. The brokers' own strategy also filters before it sends."""

HOLDING = "hold and probe"
"""No approach of anybody's, but an estimate: see `simulation.papers.holding`."""

ALONE = "pairwise covering before sending"
"""Each operator is compared with one other at a time; of this only operators are counted."""

USUAL = 1_000
POINTS = (0, 1, 3, 10, 100)
"""Fewer points than the usual: the fewer, the more probable is an error. With none, all that
the exact tests before the points leave open counts as covered."""


def guessed(points: int, where: str) -> str:
    """Return the name of sampled covering with so many points."""
    return f"sampled covering {where}, {points:,} point{'s' * (points != 1)}"


AT_ARRIVAL, AT_SENDER = "at arrival", "before sending"
GUESSED = {
    **{
        guessed(points, AT_ARRIVAL): Strategy(
            guessed(points, AT_ARRIVAL), received=Check.SAMPLED, sampler=sampler(points)
        )
        for points in POINTS
    },
    **{
        guessed(points, AT_SENDER): Strategy(
            guessed(points, AT_SENDER), sent=Check.SAMPLED, sampler=sampler(points)
        )
        for points in (*POINTS, USUAL)
    },
}
"""With an error, at the fewest subscriptions of each setting."""

BEHIND = (
    "broker/engine/event",
    "broker/engine/filter",
    "broker/network/routing",
    "simulation/papers",
    "simulation/propagation",
)
"""The rooms whose code decides what a run gives."""

SHOWING = ("__main__.py", "plots.py", "tables.py")
"""The files in them that only show it."""

COMPARED = {ALONE: Strategy(ALONE, received=Check.PAIRWISE, sent=Check.PAIRWISE)}
VARIANTS = {
    ARRIVAL: Strategy(ARRIVAL, received=Check.EXACT),
    SAMPLED: Strategy(SAMPLED, received=Check.SAMPLED, sampler=sampler(USUAL)),
    **COMPARED,
    **GUESSED,
}


class Cell(msgspec.Struct, frozen=True):
    """One run."""

    setting: str
    count: int
    approach: str


class Figures(msgspec.Struct, frozen=True):
    """The figures of a run. `needed`: pairs of a subscription and an event that it needs."""

    cell: Cell
    subscription: int
    publication: int
    recall: float
    bound: int
    needed: int
    readings: int


def cells(settings: Sequence[Setting], most: int | None = None) -> list[Cell]:
    """List the runs of these settings, with no more than `most` subscriptions.

    Fewest first, and filter-split-forward before its rivals: so much is known if it is cut short.
    """
    found = [
        Cell(setting.name, count, approach)
        for setting in settings
        for count in setting.counts
        for approach in approaches_of(setting, count)
        if most is None or count <= most
    ]
    ranks = {FSF: 0, HOLDING: 1, MJ: 2}
    return sorted(found, key=lambda cell: (cell.count, ranks.get(cell.approach, len(ranks))))


def approaches_of(setting: Setting, count: int) -> tuple[str, ...]:
    """All where the paper has figures; elsewhere those that a comparison is about."""
    name = setting.name
    if name in {one.name for one in PAPER}:
        erring = GUESSED if count == min(setting.counts) else ()
        return (*APPROACHES, ARRIVAL, SAMPLED, HOLDING, *COMPARED, *erring)
    return (MJ, FSF) if name in {one.name for one in WIDTHS} else (OP, MJ, FSF, HOLDING)


def all_settings() -> tuple[Setting, ...]:
    """In the order of the page."""
    return (*PAPER, *BEYOND, *WIDTHS)


def identity(data: Path, seed: int, settings: Sequence[Setting]) -> str:
    """Digest what figures depend on: those of another one are not to be reused."""
    digest = hashlib.sha256(data.read_bytes())
    digest.update(repr((seed, tuple(settings))).encode())
    for file in behind():
        digest.update(meaning(file.read_text(encoding="utf-8")).encode())
    return digest.hexdigest()[:16]


def behind() -> list[Path]:
    """List the files whose code decides what a run gives."""
    root = Path(__file__).parents[2]
    files = [file for folder in BEHIND for file in sorted((root / folder).rglob("*.py"))]
    return [file for file in files if file.name not in SHOWING]


def meaning(source: str) -> str:
    """Return what a module does, as a text: another comment or docstring is no other code."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not _is_text(each)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def run_cell(folder: Path, cell: Cell) -> Figures:
    """One run, over the scenario that lies in the folder."""
    scenario = drawing.first(read_scenario(folder / f"{cell.setting}.json"), cell.count)
    if cell.approach in COMPARED:
        scenario = scenario._replace(readings=())
    wanted = needed(scenario)
    if cell.approach == HOLDING:
        return _estimated(scenario, cell, wanted)
    strategy = VARIANTS.get(cell.approach) or STRATEGIES[cell.approach]
    outcome = simulate(scenario, strategy, wanted)
    return Figures(
        cell,
        outcome.subscription,
        outcome.publication,
        outcome.recall,
        lower_bound(scenario, wanted),
        sum(map(len, wanted.values())),
        len(scenario.readings),
    )


def _estimated(scenario: PropagationScenario, cell: Cell, wanted: dict[str, set[str]]) -> Figures:
    pairs = sum(map(len, wanted.values()))
    bound = lower_bound(scenario, wanted)
    return Figures(cell, 0, estimate(scenario).held, 1.0, bound, pairs, len(scenario.readings))


class Experiment:
    """Settings over a recording. Scenarios are written to `folder`, or to a temporary one."""

    def __init__(
        self, data: Path, settings: Sequence[Setting], seed: int, folder: Path | None = None
    ) -> None:
        self.data = data
        self.settings = tuple(settings)
        self.seed = seed
        self._folder = folder

    def run(
        self,
        todo: Sequence[Cell],
        jobs: int,
        done: Callable[[Figures], None] = lambda _: None,
    ) -> list[Figures]:
        """The figures of these cells, in their order. Raises RecordingError, OSError."""
        with TemporaryDirectory() as temporary:
            folder = self._folder or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            recording = read_recording(self.data)
            names = {cell.setting for cell in todo}
            for setting in self.settings:
                if setting.name in names:
                    drawing.write(setting, recording, self.seed, folder)
            found = {}
            for figures in _carried_out(folder, todo, jobs):
                found[figures.cell] = figures
                done(figures)
        return [found[cell] for cell in todo]


def _carried_out(folder: Path, todo: Sequence[Cell], jobs: int) -> Iterator[Figures]:
    if jobs == 1:
        yield from map(partial(run_cell, folder), todo)
        return
    with ProcessPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(run_cell, folder, cell) for cell in todo]):
            yield future.result()


# --- figures that were kept -------------------------------------------------------------------


class _Kept(msgspec.Struct, frozen=True):
    identity: str
    figures: Figures


def kept(path: Path, identity_: str) -> dict[Cell, Figures]:
    """Read what an earlier run wrote of the same experiment; a line cut short is passed over."""
    found: dict[Cell, Figures] = {}
    if not path.exists():
        return found
    for line in path.read_bytes().splitlines():
        try:
            one = msgspec.json.decode(line, type=_Kept)
        except msgspec.DecodeError:
            continue
        if one.identity == identity_:
            found[one.figures.cell] = one.figures
    return found


def keep(path: Path, identity_: str, figures: Figures) -> None:
    """Add a line."""
    with path.open("ab") as file:
        file.write(msgspec.json.encode(_Kept(identity_, figures)) + b"\n")
