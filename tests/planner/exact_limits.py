"""Problems whose limits are just what a good plan takes: what the search finds without limits."""

from random import Random

from experiments.generate import problem
from headwater.placement.plan_document import as_document, read_plan
from planner.document import read_problem
from planner.layout import lay_out
from planner.plan import Plan
from planner.search.instance import Instance
from planner.search.search import Search, as_plan
from planner.search.stops import after_steps
from tests.oracles import placement as oracle


def planned(document, stop, seed=1):
    """What a search comes to, as a document."""
    layout = lay_out(read_problem(document))
    instance = Instance(layout)
    best = Search(instance, seed).run(stop)
    return as_document(layout, as_plan(instance, best))


def loads(document, plan):
    """What a plan puts on brokers, what they send, and what links carry in each direction."""
    work = {node["id"]: 0 for node in document["nodes"]}
    sent, on = dict(work), {}
    for _, host, cost in oracle.runs_of(document, plan["placement"]):
        work[host] += cost
    for name, rate, source, targets in oracle.streams_of(document, plan["placement"]):
        told = plan.get("routes", {}).get(name)
        usual, lost = oracle.canonical_links(document, source, targets)
        assert told is not None or not lost
        for a, b in usual if told is None else {tuple(arc) for arc in told}:
            on[a, b] = on.get((a, b), 0) + rate
            sent[a] += rate
    return work, sent, on


def elsewhere(document, plan, part, random):
    """A plan with some of its pieces at any broker, all streams by their default ways."""
    layout = lay_out(read_problem(document))
    hosts = read_plan({"placement": plan["placement"]}, layout).hosts
    hosts = [
        random.choice(piece.hosts) if random.random() < part else host
        for piece, host in zip(layout.pieces, hosts, strict=True)
    ]
    return as_document(layout, Plan(tuple(hosts)))


def exactly(shape, nodes, tasks, seed, steps=300, *, slack=0.0, moved=0.0):
    """A problem with a plan that keeps its limits, and many of its limits met just so.

    With `slack`, limits are more by that part; with `moved`, that part of the pieces is anywhere,
    so that the plan is a poor one.
    """
    random = Random(seed)
    document = problem(shape, nodes, tasks, seed)
    for entry in (*document["nodes"], *document["links"]):
        entry.pop("capacity", None)
        entry.pop("egress", None)
    plan = planned(document, after_steps(steps), seed)
    if moved:
        plan = elsewhere(document, plan, moved, random)
    work, sent, on = loads(document, plan)
    for node in document["nodes"]:
        if random.random() < 0.8:
            node["capacity"] = round(work[node["id"]] * (1 + slack), 6)
        if random.random() < 0.4:
            node["egress"] = round(sent[node["id"]] * (1 + slack), 6)
    for link in document["links"]:
        if random.random() < 0.6:
            a, b = link["a"], link["b"]
            most = max(on.get((a, b), 0), on.get((b, a), 0))
            link["capacity"] = round(most * (1 + slack), 6)
    flow, feasible = oracle.judge(document, plan)
    assert feasible
    return document, flow
