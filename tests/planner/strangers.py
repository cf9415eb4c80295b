"""Strange placement problems made up by a seed, each with a plan that keeps its limits.

Written from the format alone and not from what else draws problems here: what they have in common
would not be seen. A plan is drawn first, streams going by random trees of few hops; what it takes,
and `room` besides, is what brokers and links bear. `tests/oracles/placement.py` judges it.
"""

from fractions import Fraction
from math import ceil, log2
from random import Random
from typing import NamedTuple

from tests.oracles.placement import judge, reach, runs_of, streams_of

ROOMS = (0.0, 0.02, 0.1, 0.5)
LIMITS = ("all", "all", "brokers", "links")  # what is limited


class Strange(NamedTuple):
    """A problem, the plan that was planted in it, and what that plan's flow is."""

    name: str
    document: dict
    planted: dict
    flow: Fraction


# --- networks: pairs of brokers, by their numbers -------------------------------------------------


def star(count, random):
    """All at one hub, and two of its neighbours linked now and then."""
    links = [(0, i) for i in range(1, count)]
    return links + [(i, i + 1) for i in range(1, count - 1) if random.random() < 0.1]


def ring(count, _):
    return [(i, (i + 1) % count) for i in range(count)]


def complete(count, _):
    return [(a, b) for b in range(count) for a in range(b)]


def _thick(first, last, random):
    """Brokers from first up to last, each linked to some before it."""
    found = []
    for node in range(first + 1, last):
        wide = min(node - first, random.choice((1, 2, 3)))
        found += [(other, node) for other in random.sample(range(first, node), wide)]
    return found


def clusters(count, random):
    """Two that one link joins, or two links."""
    half = count // 2
    between = [(0, half), (half - 1, count - 1)][: random.choice((1, 2))]
    return _thick(0, half, random) + _thick(half, count, random) + between


def barbell(count, _):
    """Two complete ends and a line between them."""
    end = count // 3
    ends = [(a, b) for b in range(end) for a in range(b)]
    line = [(i - 1, i) for i in range(end, count - end + 1)]
    return ends + line + [(count - 1 - a, count - 1 - b) for a, b in ends]


def caterpillar(count, random):
    """A line with legs."""
    spine = max(2, count // 2)
    line = [(i - 1, i) for i in range(1, spine)]
    return line + [(random.randrange(spine), leg) for leg in range(spine, count)]


def cube(count, _):
    """A hypercube, of which the corners beyond the count are missing."""
    bits = ceil(log2(count))
    return [(a, a | 1 << bit) for bit in range(bits) for a in range(count) if _up(a, bit) < count]


def _up(node, bit):
    return node | 1 << bit if not node >> bit & 1 else 1 << 60


def scalefree(count, random):
    """Those that have many links get more."""
    found, ends = [(0, 1)], [0, 1]
    for node in range(2, count):
        others = {random.choice(ends) for _ in range(2)}
        found += [(other, node) for other in sorted(others)]
        ends += [*sorted(others), node, node]
    return found


def regular(count, random):
    """Three or four links each, about, and a ring among them."""
    order = list(range(count))
    found = {tuple(sorted(pair)) for pair in ring(count, random)}
    for _ in range(random.choice((1, 2))):
        random.shuffle(order)
        found |= {tuple(sorted(p)) for p in zip(order[::2], order[1::2], strict=False)}
    return sorted(found)


def fattree(count, _):
    """Two roots, some in the middle at both, and the rest at two of the middle each."""
    middle = max(2, count // 4)
    found = [(root, 2 + m) for root in range(2) for m in range(middle)]
    for leaf in range(2 + middle, count):
        found += [(2 + leaf % middle, leaf), (2 + (leaf + 1) % middle, leaf)]
    return found


_SHAPES = (star, ring, complete, clusters, barbell, caterpillar, cube, scalefree, regular, fattree)
NETWORKS = {shape.__name__: shape for shape in _SHAPES}


# --- tasks ----------------------------------------------------------------------------------------


class _Draw:
    """What a family changes of usual tasks."""

    sources = 3  # a content enters at so many brokers, at most
    wide = 2  # destinations, at most
    modes = ("single",)
    joins = 2  # inputs, at most
    near = 6  # inputs are among the last so many
    bound = 0.15  # so many have hosts

    def __init__(self, random, names):
        self.random, self.names = random, names

    def contents(self):
        return max(2, len(self.names) // 3)

    def tasks(self):
        return max(5, self.random.randint(len(self.names) // 2, len(self.names)))

    def rate(self):
        return self.random.randint(1, 100)

    def cost(self):
        return self.random.randint(1, 10)

    def hosts(self, task):
        wide = self.random.randint(1, 4)
        return self.random.sample(self.names, wide) if self.random.random() < self.bound else None

    def some(self, most, least=1):
        wide = min(len(self.names), self.random.randint(least, most))
        return self.random.sample(self.names, wide)


class Equal(_Draw):
    rate = cost = lambda _: 1


class Orders(_Draw):
    def rate(self):
        return round(10 ** self.random.uniform(-2, 4), 4)


class Pack(_Draw):
    def cost(self):
        return self.random.choice((7, 11, 13, 17, 19, 23, 29))


class Chain(_Draw):
    joins = near = sources = 1

    def tasks(self):
        return len(self.names)


class Fanout(_Draw):
    @property
    def wide(self):
        return max(3, len(self.names) // 2)


class Aggregates(_Draw):
    modes = ("aggregate", "aggregate", "single")
    joins = 1

    @property
    def sources(self):
        return max(3, len(self.names) // 2)

    def contents(self):
        return 3

    def tasks(self):
        return max(4, len(self.names) // 4)


class Shards(_Draw):
    modes = ("sharded", "sharded", "single", "aggregate")

    def tasks(self):
        return max(5, len(self.names) // 2)


class Bound(_Draw):
    bound = 0.9


class Shared(_Draw):
    joins = 4

    def contents(self):
        return 3


class Zeros(_Draw):
    modes = ("single", "single", "sharded", "aggregate")

    def tasks(self):
        return max(5, len(self.names) // 2)

    def rate(self):
        return self.random.choice((0, 0, 1, 50))

    def cost(self):
        return self.random.choice((0, 0, 3, 8))


class Mixed(Shards, Fanout, Orders):
    joins = 3


_KINDS = (Equal, Orders, Pack, Chain, Fanout, Aggregates, Shards, Bound, Shared, Zeros, Mixed)
TASKS = {kind.__name__.lower(): kind for kind in _KINDS}


def _drawn(draw):
    """Contents and tasks, some tasks' outputs inputs of others."""
    random = draw.random
    contents = [
        {"id": f"C{i}", "rates": {name: draw.rate() for name in draw.some(draw.sources)}}
        for i in range(draw.contents())
    ]
    feeders, keyed, tasks = [c["id"] for c in contents], [c["id"] for c in contents], []
    for number in range(draw.tasks()):
        mode = random.choice(draw.modes)
        among = feeders[-draw.near :] + feeders[: draw.joins - 1]
        inputs = sorted({random.choice(among) for _ in range(random.randint(1, draw.joins))})
        if mode != "single" and not set(inputs) & set(keyed):
            inputs = [random.choice(keyed)]
        task = {"id": f"T{number}", "inputs": inputs, "mode": mode, "cost": draw.cost()}
        task |= {"rate": draw.rate(), "destinations": draw.some(draw.wide, 0)}
        if mode == "aggregate":
            task |= {"merge_cost": draw.cost(), "partial_rate": draw.rate()}
        if (hosts := draw.hosts(task)) is not None:
            task["hosts"] = hosts
        tasks.append(task)
        feeders.append(task["id"])
        if mode == "sharded":
            keyed.append(task["id"])
    read = {name for task in tasks for name in task["inputs"]}
    for task in tasks:
        if task["id"] not in read and not task["destinations"]:
            task["destinations"] = draw.some(1)
    return contents, tasks


# --- the plan and its limits ----------------------------------------------------------------------


def _keys(problem, name):
    for content in problem["contents"]:
        if content["id"] == name:
            return list(content["rates"])
    task = next(task for task in problem["tasks"] if task["id"] == name)
    return _keys_in(problem, task) if task["mode"] == "sharded" else []


def _keys_in(problem, task):
    return sorted({key for name in task["inputs"] for key in _keys(problem, name)})


def _planted(problem, random, favoured):
    """A placement: mostly at favoured brokers, so that several are at one."""
    names = [node["id"] for node in problem["nodes"]]

    def one(task):
        among = task.get("hosts") or (favoured if random.random() < 0.8 else names)
        return random.choice(among)

    found = {}
    for task in problem["tasks"]:
        keys = _keys_in(problem, task)
        if task["mode"] == "single":
            found[task["id"]] = one(task)
        elif task["mode"] == "sharded":
            found[task["id"]] = {key: one(task) for key in keys}
        else:
            few = [one(task) for _ in range(max(1, len(keys) // 2))]
            partial = {key: random.choice(few) for key in keys}
            found[task["id"]] = {"partial": partial, "header": one(task)}
    return found


def _route(problem, source, targets, random):
    """The links to the targets in a random tree of few hops."""
    others = {node["id"]: [] for node in problem["nodes"]}
    for link in problem["links"]:
        others[link["a"]].append(link["b"])
        others[link["b"]].append(link["a"])
    parent, ring_now = {source: None}, [source]
    while ring_now:
        random.shuffle(ring_now)
        following = []
        for node in ring_now:
            for other in sorted(others[node], key=lambda _: random.random()):
                if other not in parent:
                    parent[other] = node
                    following.append(other)
        ring_now = following
    used = set()
    for target in sorted(targets):
        node = target
        while parent[node] is not None:
            used.add((parent[node], node))
            node = parent[node]
    return [list(link) for link in sorted(used)]


def _first(stream):
    """Its name, to go by in whatever order streams are told."""
    return stream[0]


def _bear(load, room, least):
    """A limit that bears a load with room besides, in four places."""
    limit = max(Fraction(load) * (1 + Fraction(str(room))), least)
    return ceil(limit * 10_000) / 10_000 if limit.denominator > 1 else int(limit)


def _limit(problem, plan, room, kind, random):
    """Limits of what the plan takes; a few that bear nothing, a few that bear everything."""
    work = dict.fromkeys((node["id"] for node in problem["nodes"]), Fraction(0))
    for _, host, cost in runs_of(problem, plan["placement"]):
        work[host] += Fraction(str(cost))
    load, sent = {}, {}
    for name, rate, _, _ in streams_of(problem, plan["placement"]):
        for a, b in plan["routes"].get(name, []):
            load[a, b] = load.get((a, b), 0) + Fraction(str(rate))
            sent[a] = sent.get(a, 0) + Fraction(str(rate))
    mean = Fraction(round(sum(load.values()) / max(1, len(load))))
    bare = random.choice((Fraction(0), Fraction(1, 2)))  # what is not used bears that of the mean
    for node in problem["nodes"]:
        if kind != "links" and random.random() < 0.95:
            node["capacity"] = _bear(work[node["id"]], room, 0)
        if kind != "brokers" and random.random() < 0.8:
            node["egress"] = _bear(sent.get(node["id"], 0), room, mean * bare)
    for link in problem["links"]:
        a, b = link["a"], link["b"]
        if kind != "brokers" and random.random() < 0.9:
            most = max(load.get((a, b), 0), load.get((b, a), 0))
            link["capacity"] = _bear(most, room, mean * bare)


def strange(network, tasks, room, seed, nodes=(10, 30)):
    """The problem of two families with so much room over what its planted plan takes."""
    random = Random(f"{network} {tasks} {room:.2f} {seed}")
    names = [f"b{i}" for i in range(random.randint(*nodes))]
    pairs = NETWORKS[network](len(names), random)
    listed = random.sample(names, len(names))
    links = [{"a": names[a], "b": names[b]} for a, b in pairs]
    contents, asked = _drawn(TASKS[tasks](random, names))
    problem = {"nodes": [{"id": name} for name in listed], "links": links}
    problem |= {"contents": contents, "tasks": asked}
    ends = {x for link in links for x in link.values()}
    assert reach(names[0], [(x[a], x[b]) for x in links for a, b in ("ab", "ba")]) >= ends
    favoured = random.sample(names, max(2, len(names) // random.choice((1, 2, 3))))
    plan = {"placement": _planted(problem, random, favoured)}
    plan["routes"] = {
        name: _route(problem, source, targets, random)
        for name, _, source, targets in sorted(streams_of(problem, plan["placement"]), key=_first)
        if targets
    }
    kind = random.choice(LIMITS)
    _limit(problem, plan, room, kind, random)
    flow, good = judge(problem, plan)
    assert good
    name = f"{network}/{tasks}, {len(names)} brokers, {kind} + {room:.0%}, {seed}"
    return Strange(name, problem, plan, flow)


def strangers(count, first=0, nodes=(10, 30), rooms=ROOMS):
    """Some of all families: a network and tasks meet again after all others."""
    networks, families = sorted(NETWORKS), sorted(TASKS)
    for seed in range(first, first + count):
        network, tasks = networks[seed % len(networks)], families[seed % len(families)]
        yield strange(network, tasks, rooms[seed * 7 // 3 % len(rooms)], seed, nodes)
