"""A plan as tables.

Owns the columns and their words. Must not know how a plan was found. Invariant: every piece of the
problem stands in the table of tasks once.
"""

from collections.abc import Sequence

from planner.layout import Layout
from planner.methods import Found
from planner.plan import Plan

ROWS_MAX = 200  # of brokers and links each; the busiest
PIECES_NEXT_MAX = 2_000  # beyond, what the next best would cost is not worked out


def table_lines(layout: Layout, found: Found) -> list[str]:
    """Write where everything runs and what is used up."""
    names = [node.id for node in layout.problem.nodes]
    evaluation = found.evaluation
    lines = [
        *_columns(["task", "broker", "cost", "next best", "more flow"], _pieces(layout, found))
    ]
    rows = []
    out: dict[int, float] = {}
    for (a, _), load in evaluation.loads.items():
        out[a] = out.get(a, 0) + load
    for number, node in enumerate(layout.problem.nodes):
        work = evaluation.work[number]
        if work or out.get(number):
            sent = _of(out.get(number, 0), node.egress)
            rows.append([node.id, _of(work, node.capacity), sent])
    lines += ["", *_columns(["broker", "work", "sends"], rows[:ROWS_MAX])]
    limits = {}
    for link in layout.problem.links:
        limits[link.a, link.b] = limits[link.b, link.a] = link.capacity
    busiest = sorted(evaluation.loads.items(), key=lambda item: (-item[1], item[0]))
    rows = [
        [f"{names[a]} -> {names[b]}", _of(load, limits[names[a], names[b]])]
        for (a, b), load in busiest[:ROWS_MAX]
    ]
    lines += ["", *_columns(["link", "carries"], rows)]
    verdict = "all limits are kept" if evaluation.feasible else "limits are broken"
    lines += ["", f"total flow {evaluation.flow:,}; {verdict}"]
    if found.bound is not None:
        lines.append(f"no plan is below {found.bound:,.6g}")
    return lines


def _of(load: float, limit: float | None) -> str:
    return f"{load:g}" if limit is None else f"{load:g} of {limit:g}"


def _pieces(layout: Layout, found: Found) -> list[list[str]]:
    """Each piece, with the broker that would be second best for it alone and what that costs."""
    names = [node.id for node in layout.problem.nodes]
    nexts = _next_best(layout, found.plan) if len(layout.pieces) <= PIECES_NEXT_MAX else []
    rows = []
    for number, piece in enumerate(layout.pieces):
        second = nexts[number] if nexts else None
        rows.append(
            [
                str(piece),
                names[found.plan.hosts[number]],
                f"{piece.cost:g}",
                "" if second is None else names[second[0]],
                "" if second is None else f"{second[1]:+g}",
            ]
        )
    return rows


def _next_best(layout: Layout, plan: Plan) -> list[tuple[int, float] | None]:
    """For each piece, the cheapest other allowed broker with room, all else staying."""
    from planner.search.evaluator import Evaluator
    from planner.search.instance import Instance

    instance = Instance(layout)
    evaluator = Evaluator(instance, plan.hosts)
    found: list[tuple[int, float] | None] = []
    for piece, here in enumerate(plan.hosts):
        cost = instance.costs[piece]
        others = [
            host
            for host in instance.hosts[piece]
            if host != here and evaluator.loads.fits(host, cost)
        ]
        if not others:
            found.append(None)
            continue
        now, *row = evaluator.row((piece,), [here, *others])
        flow, host = min(zip(row, others, strict=True))
        found.append((host, round(flow - now, 6)))
    return found


def _columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]

    def line(cells: Sequence[str]) -> str:
        return "  ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip()

    return [line(heads), *map(line, rows)]
