"""The best plan of a tiny placement problem, by trying every placement with every choice of routes.

Works on documents as people write them and shares nothing with the planner. A stream may take any
set of links that leads from its source to all its targets and of which none could be left out.
"""

from fractions import Fraction
from functools import cache
from itertools import combinations, product

from tests.oracles.placement import exact, reach, runs_of, streams_of, task_keys

MISSED = 1000  # what a target that cannot be reached counts, in limits
SLACK = Fraction(1, 10**9)


def placements(problem):
    """Every placement at allowed brokers."""
    everywhere = [node["id"] for node in problem["nodes"]]
    slots = []
    for task in problem["tasks"]:
        allowed = everywhere if task.get("hosts") is None else sorted(set(task["hosts"]))
        mode = task.get("mode", "single")
        keys = [] if mode == "single" else sorted(task_keys(problem, task))
        if mode == "aggregate":
            slots += [(task["id"], "partial", key, allowed) for key in keys]
        slots += [(task["id"], "shard", key, allowed) for key in keys if mode == "sharded"]
        if mode != "sharded":
            slots.append((task["id"], mode, None, allowed))
    for hosts in product(*(allowed for *_, allowed in slots)):
        found = {task["id"]: {} for task in problem["tasks"]}
        for (name, what, key, _), host in zip(slots, hosts, strict=True):
            if what == "single":
                found[name] = host
            elif what == "shard":
                found[name][key] = host
            elif what == "partial":
                found[name].setdefault("partial", {})[key] = host
            else:
                found[name].setdefault("partial", {})
                found[name]["header"] = host
        yield found


def count(problem):
    """How many placements there are."""
    total = 1
    for task in problem["tasks"]:
        mode, wide = task.get("mode", "single"), len(problem["nodes"])
        wide = wide if task.get("hosts") is None else len(set(task["hosts"]))
        keys = 0 if mode == "single" else len(task_keys(problem, task))
        total *= wide ** (keys + (mode != "sharded"))
    return total


def ways_in(problem):
    """From a source and its targets to every set of links that joins them, and who is not met."""
    arcs = [(x["a"], x["b"]) for x in problem["links"]]
    arcs += [(b, a) for a, b in arcs]
    most = len(problem["nodes"]) - 1

    @cache
    def ways(source, targets):
        wanted = targets & reach(source, arcs)

        def needed(some, one):
            return not wanted <= reach(source, [arc for arc in some if arc != one])

        found = [
            some
            for size in range(most + 1)
            for some in combinations(arcs, size)
            if wanted <= reach(source, some) and all(needed(some, one) for one in some)
        ]
        return found, len(targets) - len(wanted)

    return ways


def part(load, limit):
    """By how much a load is over a limit, as a part of it; what a limit of nothing bears, once."""
    if limit is None or load <= exact(limit) * (1 + SLACK):
        return Fraction(0)
    return (load - exact(limit)) / exact(limit) if limit else 1 + load


def best(problem):
    """(by how much limits must be broken, the least flow of a plan that breaks them so little)."""
    limits = {}
    for link in problem["links"]:
        for ends in ((link["a"], link["b"]), (link["b"], link["a"])):
            limits[ends] = link.get("capacity")
    egress = {node["id"]: node.get("egress") for node in problem["nodes"]}
    ways, found = ways_in(problem), None
    for placement in placements(problem):
        work = dict.fromkeys(egress, Fraction(0))
        for _, host, cost in runs_of(problem, placement):
            work[host] += exact(cost)
        broken = sum(part(work[n["id"]], n.get("capacity")) for n in problem["nodes"])
        streams = []
        for _, rate, source, targets in streams_of(problem, placement):
            if targets:
                some, lost = ways(source, frozenset(targets))
                broken += MISSED * lost
                streams.append((exact(rate), some))
        if found is not None and broken > found[0]:
            continue
        streams.sort(key=lambda pair: -pair[0])
        found = _routed(streams, broken, limits, egress, found)
    return found


def _routed(streams, broken, limits, egress, found):
    """The best so far, or what the best choice of routes comes to where that is better."""
    bounded = any(x is not None for x in (*limits.values(), *egress.values()))
    least = [Fraction(0)]  # of the streams from each on, were there no limits
    for rate, some in reversed(streams):
        least.append(least[-1] + rate * len(some[0]))
    least.reverse()
    if not bounded:
        return min(filter(None, (found, (broken, least[0]))))
    load = dict.fromkeys(limits, Fraction(0))
    sent = dict.fromkeys(egress, Fraction(0))

    def over():
        links = sum(part(load[arc], limit) for arc, limit in limits.items())
        return broken + links + sum(part(sent[node], limit) for node, limit in egress.items())

    def descend(place, flow):
        nonlocal found
        now = (over(), flow + least[place])  # neither becomes less with what is still to be laid
        if found is not None and now >= found:
            return
        if place == len(streams):
            found = now
            return
        rate, some = streams[place]
        for arcs in some:
            for a, b in arcs:
                load[a, b] += rate
                sent[a] += rate
            descend(place + 1, flow + rate * len(arcs))
            for a, b in arcs:
                load[a, b] -= rate
                sent[a] -= rate

    descend(0, Fraction(0))
    return found
