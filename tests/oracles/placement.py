"""What a plan costs and whether it may be used, said a second time and slowly.

Works on documents as people write them and shares nothing with the planner. Flow is charged by
listing, for each stream, the set of (stream, from, to); limits are then sums over that list.
"""

from fractions import Fraction


def exact(value):
    return Fraction(str(value)) if isinstance(value, float) else Fraction(value)


def hops(problem, start):
    linked = {frozenset((link["a"], link["b"])) for link in problem["links"]}
    ids = [node["id"] for node in problem["nodes"]]
    ring, found, distance = {start}, {start: 0}, 0
    while ring:
        distance += 1
        ring = {b for b in ids if b not in found and any(frozenset((a, b)) in linked for a in ring)}
        found.update(dict.fromkeys(ring, distance))
    return found, linked


def canonical_links(problem, source, targets):
    """Walk from each target back: always to the first broker listed that is one hop nearer."""
    distance, linked = hops(problem, source)
    used, lost = set(), set()
    for target in targets:
        if target not in distance:
            lost.add(target)
            continue
        node = target
        while node != source:
            nearer = [
                other["id"]
                for other in problem["nodes"]
                if frozenset((other["id"], node)) in linked
                and distance.get(other["id"]) == distance[node] - 1
            ]
            used.add((nearer[0], node))
            node = nearer[0]
    return used, lost


def reach(source, links):
    met = {source}
    while True:
        more = {b for a, b in links if a in met} - met
        if not more:
            return met
        met |= more


def keys_of(problem, name):
    """The keys of a content's or task's output, or None where it is one stream."""
    for content in problem["contents"]:
        if content["id"] == name:
            return set(content["rates"])
    task = next(task for task in problem["tasks"] if task["id"] == name)
    return task_keys(problem, task) if task.get("mode", "single") == "sharded" else None


def task_keys(problem, task):
    found = set()
    for name in task["inputs"]:
        found |= keys_of(problem, name) or set()
    return found


def at(value, key):
    return value[key] if isinstance(value, dict) else value


def streams_of(problem, placement):
    """Yields (stream, rate, source, targets)."""
    rates, sources, targets = {}, {}, {}

    def add(name, rate, source, ends):
        rates[name], sources[name] = rate, source
        targets.setdefault(name, set()).update(ends)

    for content in problem["contents"]:
        for origin, rate in content["rates"].items():
            add(f"{content['id']}@{origin}", rate, origin, ())
    for task in problem["tasks"]:
        mode, here = task.get("mode", "single"), placement[task["id"]]
        if mode == "single":
            runs = {None: here}
            add(task["id"], task["rate"], here, task.get("destinations", []))
        elif mode == "sharded":
            runs = {key: here[key] for key in task_keys(problem, task)}
            for key, host in runs.items():
                ends = task.get("destinations", [])
                ends = ends.get(key, []) if isinstance(ends, dict) else ends
                add(f"{task['id']}@{key}", at(task["rate"], key), host, ends)
        else:
            runs = {key: here["partial"][key] for key in task_keys(problem, task)}
            for host in set(runs.values()):
                name = f"{task['id']}/partial@{host}"
                add(name, task["partial_rate"], host, [here["header"]])
            add(task["id"], task["rate"], here["header"], task.get("destinations", []))
        for name in task["inputs"]:
            of = keys_of(problem, name)
            for key, host in runs.items():
                if of is None:
                    targets.setdefault(name, set()).add(host)
                else:
                    for one in of:
                        if key is None or key == one:
                            targets.setdefault(f"{name}@{one}", set()).add(host)
    for name, rate in rates.items():
        yield name, rate, sources[name], targets[name] - {sources[name]}


def judge(problem, plan):
    """(flow, whether it is feasible): exact fractions."""
    good = True
    charged = []
    for name, rate, source, targets in streams_of(problem, plan["placement"]):
        given = plan.get("routes", {}).get(name)
        if not targets and given is None:
            continue
        if given is None:
            links, lost = canonical_links(problem, source, targets)
        else:
            links = {tuple(link) for link in given}
            lost = targets - reach(source, links)
        good = good and not lost
        charged += [(exact(rate), a, b) for a, b in links]
    flow = sum((rate for rate, _, _ in charged), Fraction(0))
    work = dict.fromkeys((node["id"] for node in problem["nodes"]), Fraction(0))
    for task, host, cost in runs_of(problem, plan["placement"]):
        work[host] += exact(cost)
        if task.get("hosts") is not None and host not in task["hosts"]:
            good = False
    for node in problem["nodes"]:
        sent = sum((rate for rate, a, _ in charged if a == node["id"]), Fraction(0))
        good = good and within(work[node["id"]], node.get("capacity"))
        good = good and within(sent, node.get("egress"))
    for link in problem["links"]:
        for ends in ((link["a"], link["b"]), (link["b"], link["a"])):
            load = sum((rate for rate, a, b in charged if (a, b) == ends), Fraction(0))
            good = good and within(load, link.get("capacity"))
    return flow, good


def runs_of(problem, placement):
    """Yields (task, host, cost) of everything that runs."""
    for task in problem["tasks"]:
        mode, here = task.get("mode", "single"), placement[task["id"]]
        if mode == "single":
            yield task, here, task.get("cost", 0)
            continue
        of_keys = here if mode == "sharded" else here["partial"]
        for key in task_keys(problem, task):
            yield task, of_keys[key], at(task.get("cost", 0), key)
        if mode == "aggregate":
            yield task, here["header"], task.get("merge_cost", 0)


def within(load, limit):
    return limit is None or load <= exact(limit) * (1 + Fraction(1, 10**9))
