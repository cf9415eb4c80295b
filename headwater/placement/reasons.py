"""Why limits are broken: the key of the limit, by how much it is exceeded, and what would help.

Owns the sentences. Must not know how a plan was found. Invariant: what is said of a limit comes
from the evaluation of the plan, and a broker that is proposed has the room that is told.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from planner.flow import Evaluation, Violation, over, total
from planner.layout import Layout, Piece, Role, carried
from planner.plan import Plan
from planner.problem import Number

STREAMS_NAMED_MAX = 2
"""Streams that are named as what most of a load comes from: with more, nobody reads the line."""


@dataclass(frozen=True, slots=True)
class LimitReason:
    """A broken limit: its key in the problem, by how much it is exceeded, and what would help.

    `beyond` is in the limit's unit (work, or bytes a second); None where the limit has no parts.
    """

    sentence: str
    key: str
    beyond: Number | None
    remedy: str

    def __str__(self) -> str:
        return f"{self.sentence} ({self.key}); {self.remedy}"


# --- before any search ----------------------------------------------------------------------------


def hopeless(layout: Layout) -> list[str]:
    """Return a sentence for each capacity that no plan of `layout` can keep, with its key."""
    return [*_too_large(layout), *_too_much_alone(layout), *_too_much(layout)]


def _too_large(layout: Layout) -> Iterator[str]:
    """Yield the pieces that cost more than any broker bears that they may run at."""
    nodes = layout.problem.nodes
    places = {task.id: place for place, task in enumerate(layout.problem.tasks)}
    for piece in layout.pieces:
        limits = [(nodes[host].capacity, host) for host in piece.hosts]
        bounded = [(limit, -host) for limit, host in limits if limit is not None]
        if not bounded or len(bounded) < len(limits):
            continue  # an unlimited broker bears anything
        capacity, host = max(bounded)
        if over(piece.cost, capacity):
            key = _cost_key(layout, places[piece.task], piece)
            yield (
                f"{key}: {piece} costs {piece.cost:g}, which is"
                f" {piece.cost - capacity:g} more than {nodes[-host].id} bears, the roomiest broker"
                f" that it may run at: raise nodes[{-host}].capacity to {piece.cost:g}"
            )


def _cost_key(layout: Layout, place: int, piece: Piece) -> str:
    """Return the key that gives what `piece`, of the task at `place`, costs."""
    if piece.role is Role.HEADER:
        return f"tasks[{place}].merge_cost"
    by_key = isinstance(layout.problem.tasks[place].cost, Mapping)
    return f"tasks[{place}].cost.{piece.key}" if by_key else f"tasks[{place}].cost"


def _too_much_alone(layout: Layout) -> Iterator[str]:
    """Yield the brokers that bear less than what may run at no other broker."""
    nodes = layout.problem.nodes
    for number, node in enumerate(nodes if len(nodes) > 1 else ()):
        bound = [piece for piece in layout.pieces if piece.hosts == (number,)]
        # What is too much by itself has a sentence already.
        if node.capacity is None or any(over(piece.cost, node.capacity) for piece in bound):
            continue
        wanted = total(piece.cost for piece in bound)
        if over(wanted, node.capacity):
            yield (
                f"nodes[{number}].capacity: what may run at {node.id} alone costs {wanted:g}"
                f" together, which is {wanted - node.capacity:g} more than {node.id} bears: raise"
                f" it to {wanted:g}, or allow other hosts"
            )


def _too_much(layout: Layout) -> Iterator[str]:
    """Yield the sum of all costs, where all brokers together bear less."""
    limits = [node.capacity for node in layout.problem.nodes]
    bounded = [limit for limit in limits if limit is not None]
    wanted, borne = total(piece.cost for piece in layout.pieces), total(bounded)
    # Less than the sum may be too little as well, where pieces do not fit: that is for the search.
    if len(bounded) == len(limits) and over(wanted, borne):
        yield (
            f"nodes: all tasks cost {wanted:g} together, which is {wanted - borne:g} more than the"
            f" {borne:g} that all brokers bear"
        )


# --- of a plan ------------------------------------------------------------------------------------


def reasons(layout: Layout, plan: Plan, evaluation: Evaluation) -> list[LimitReason]:
    """Return why each limit is broken by `plan`, in the order of the evaluation's violations."""
    names = [node.id for node in layout.problem.nodes]
    return [_reason(layout, plan, evaluation, each, names) for each in evaluation.violations]


def _reason(
    layout: Layout, plan: Plan, evaluation: Evaluation, violation: Violation, names: list[str]
) -> LimitReason:
    sentence = violation.sentence
    if violation.kind == "unreached":
        # A stream is lost where routes do not lead on or the network falls apart.
        remedy = f"link {violation.where} with the part of the network that it has no way to"
        return LimitReason(sentence, "links", None, remedy)
    if violation.kind == "host":
        remedy = f"name {violation.where} there, or plan anew"
        return LimitReason(sentence, "tasks[].hosts", None, remedy)
    if violation.kind == "link":
        return _of_link(layout, plan, evaluation, violation, names)
    # What is left is a limit of a broker: on what it sends, or on what it runs.
    node = names.index(violation.where)
    if violation.kind == "egress":
        load = total(load for (a, _), load in evaluation.loads.items() if a == node)
        limit = layout.problem.nodes[node].egress or 0
        arcs = {arc for arc in evaluation.loads if arc[0] == node}
        sources = _most_of(layout, plan, evaluation, arcs)
        key = f"nodes[{node}].egress"
        return LimitReason(sentence, key, load - limit, f"raise it to {load:g}{sources}")
    return _of_capacity(layout, plan, evaluation, sentence, node)


def _of_capacity(
    layout: Layout, plan: Plan, evaluation: Evaluation, sentence: str, node: int
) -> LimitReason:
    load, limit = evaluation.work[node], layout.problem.nodes[node].capacity or 0
    remedy = f"raise it to {load:g}"
    hosted = [p for p, host in zip(layout.pieces, plan.hosts, strict=True) if host == node]
    # The least piece that is enough alone comes first, else the largest of those that are not.
    hosted.sort(key=lambda piece: (piece.cost < load - limit, abs(piece.cost - (load - limit))))
    for piece in hosted:
        if piece.cost > 0 and (spare := _roomiest(layout, evaluation, piece, node)) is not None:
            remedy += f", or see whether {spare} can do with {piece}, which costs {piece.cost:g}"
            break
    return LimitReason(sentence, f"nodes[{node}].capacity", load - limit, remedy)


def _roomiest(layout: Layout, evaluation: Evaluation, piece: Piece, node: int) -> str | None:
    """Return the broker that has most room for `piece` elsewhere, with what it lacks to take it."""
    nodes, best, name = layout.problem.nodes, -1.0, None
    for host, other in enumerate(nodes):
        room = float("inf") if other.capacity is None else other.capacity - evaluation.work[host]
        # Links on the way are not looked at: without a search, "see whether" is all one can say.
        if host == node or room < piece.cost or room <= best:
            continue
        best, name = room, other.id
        if host not in piece.hosts:
            name = f"{other.id} (not among the hosts of its task)"
    return name


def _of_link(
    layout: Layout, plan: Plan, evaluation: Evaluation, violation: Violation, names: list[str]
) -> LimitReason:
    arc = next((a, b) for a, b in evaluation.loads if f"{names[a]}->{names[b]}" == violation.where)
    ends = {names[arc[0]], names[arc[1]]}
    links = layout.problem.links
    place = next(i for i, link in enumerate(links) if {link.a, link.b} == ends)
    load = evaluation.loads[arc]
    sources = _most_of(layout, plan, evaluation, {arc})
    beyond = load - (links[place].capacity or 0)
    remedy = f"raise it to {load:g}{sources}"
    return LimitReason(violation.sentence, f"links[{place}].capacity", beyond, remedy)


def _most_of(layout: Layout, plan: Plan, evaluation: Evaluation, arcs: set[tuple[int, int]]) -> str:
    """Return the streams that put most on `arcs`, as the end of a sentence."""
    loads = []
    for stream in carried(layout, plan.hosts, plan.routes):
        count = len(arcs.intersection(evaluation.streams.get(stream.name, ())))
        if count and stream.rate:
            loads.append((stream.rate * count, stream.name))
    # The names decide among equals, so that the same plan gives the same sentence.
    loads.sort(key=lambda pair: (-pair[0], pair[1]))
    if not loads:
        return ""
    named = " and ".join(f"{name} ({load:g})" for load, name in loads[:STREAMS_NAMED_MAX])
    return f"; most of it is {named}"
