"""Problems whose limits are just what a good plan takes: what the search finds without limits."""

from random import Random

from planner.flow import as_document
from planner.generate import problem
from planner.layout import lay_out
from planner.reading import read_problem
from planner.search.model import Model
from planner.search.run import Search, as_plan
from planner.search.stops import Steps
from tests.oracles import placement as oracle


def planned(document, stop, seed=1):
    """What a search comes to, as a document."""
    layout = lay_out(read_problem(document))
    model = Model(layout)
    best = Search(model, seed).run(stop)
    return as_document(layout, as_plan(model, best))


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


def exactly(shape, nodes, tasks, seed, steps=300):
    """A problem with a plan that keeps its limits, and many of its limits met just so."""
    random = Random(seed)
    document = problem(shape, nodes, tasks, seed)
    for entry in (*document["nodes"], *document["links"]):
        entry.pop("capacity", None)
        entry.pop("egress", None)
    plan = planned(document, Steps(steps), seed)
    work, sent, on = loads(document, plan)
    for node in document["nodes"]:
        if random.random() < 0.8:
            node["capacity"] = work[node["id"]]
        if random.random() < 0.4:
            node["egress"] = sent[node["id"]]
    for link in document["links"]:
        if random.random() < 0.6:
            a, b = link["a"], link["b"]
            link["capacity"] = max(on.get((a, b), 0), on.get((b, a), 0))
    flow, feasible = oracle.judge(document, plan)
    assert feasible
    return document, flow
