"""Generated networks for planning in rounds, and the search of all placements of tiny ones."""

from itertools import product
from random import Random

from planner.flow import evaluate
from planner.layout import Layout, lay_out
from planner.network import Network
from planner.plan import Plan
from planner.problem import Content, Link, Mode, Node, Problem, Task


def generated(
    random: Random,
    brokers: int,
    tasks: int,
    capacities: tuple[int | None, ...] = (None,),
    links: tuple[int | None, ...] = (None,),
    *,
    ring: bool = False,
) -> Problem:
    """A tree (or a ring with chords) with shared contents, chains, shards and aggregates."""
    names = [f"b{n}" for n in range(brokers)]
    nodes = tuple(Node(name, random.choice(capacities)) for name in names)
    edges = tuple(
        Link(names[random.randrange(n)], names[n], random.choice(links)) for n in range(1, brokers)
    )
    if ring:
        pairs = {(n, (n + 1) % brokers) for n in range(brokers)}
        pairs.add((0, brokers // 2))
        edges = tuple(Link(names[a], names[b], random.choice(links)) for a, b in sorted(pairs))
    contents = []
    for number in range(max(2, tasks // 2)):
        origins = sorted(random.sample(range(brokers), random.randrange(1, min(4, brokers) + 1)))
        rates = {names[origin]: random.randrange(1, 2000) for origin in origins}
        contents.append(Content(f"c{number}", rates))
    inputs = [content.id for content in contents]
    made = []
    for number in range(tasks):
        mode = random.choice([Mode.SINGLE] * 3 + [Mode.SHARDED, Mode.AGGREGATE])
        if mode is Mode.SINGLE:
            taken = random.sample(inputs, min(len(inputs), random.randrange(1, 3)))
        else:
            taken = [random.choice([content.id for content in contents])]
        wanted = sorted({random.choice(names) for _ in range(random.randrange(3))})
        made.append(
            Task(
                f"t{number}",
                tuple(taken),
                random.randrange(1, 500),
                mode,
                cost=random.randrange(3),
                destinations=tuple(wanted),
                merge_cost=random.randrange(2),
                partial_rate=random.randrange(1, 100),
            )
        )
        if mode is Mode.SINGLE:
            inputs.append(f"t{number}")
    return Problem(nodes, edges, tuple(contents), tuple(made))


def value(layout: Layout, hosts: list[int]) -> tuple[float, float]:
    """By how much limits are broken, and the flow, as the planner's own account has it."""
    found = evaluate(layout, Plan(tuple(hosts)), Network.of(layout.problem))
    return found.excess, found.flow


def best_of_all(problem: Problem) -> tuple[float, float]:
    """The least value of all placements; only for tiny problems."""
    layout = lay_out(problem)
    every = product(*(piece.hosts for piece in layout.pieces))
    return min(value(layout, list(hosts)) for hosts in every)


def placements(problem: Problem) -> int:
    found = 1
    for piece in lay_out(problem).pieces:
        found *= len(piece.hosts)
    return found
