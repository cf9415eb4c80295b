"""Tiny problems made up by a seed, with limits so tight that about one in four bears no plan."""

from random import Random


def tight(seed, nodes_max=4, tasks_max=3):
    random = Random(seed)
    count = random.randint(2, nodes_max)
    names = [f"n{i}" for i in range(count)]
    random.shuffle(names)
    scale = random.choice((1, 1, 10, 0.1))
    document = {
        "server": names[0],
        "nodes": _nodes(names, scale, random),
        "links": _links(names, scale, random),
        "contents": [
            {
                "id": f"C{i}",
                "rates": {
                    name: _rate(scale, random)
                    for name in random.sample(names, random.randint(1, min(3, count)))
                },
            }
            for i in range(random.randint(1, 2))
        ],
        "tasks": [],
    }
    feeders = [content["id"] for content in document["contents"]]
    keyed = list(feeders)
    for i in range(random.randint(1, tasks_max)):
        task = {"id": f"T{i}"} | _task(names, feeders, keyed, scale, random)
        document["tasks"].append(task)
        feeders.append(task["id"])
        if task["mode"] == "sharded":
            keyed.append(task["id"])
    random.shuffle(document["tasks"])
    return document


def _rate(scale, random):
    return round(random.randint(0, 12) * scale, 3)


def _nodes(names, scale, random):
    capped, narrow = random.choice((0, 0.6, 1)), random.choice((0, 0, 0.5))
    return [
        {
            "id": name,
            "capacity": random.randint(0, 8) if random.random() < capped else None,
            "egress": random.randint(0, 30) * scale if random.random() < narrow else None,
        }
        for name in names
    ]


def _links(names, scale, random):
    """A tree, now and then less a link, and some more links."""
    narrow = random.choice((0, 0.3, 0.8))
    ends = [(random.randrange(i), i) for i in range(1, len(names))]
    if random.random() < 0.15:
        ends.pop()
    ends += [
        tuple(sorted(random.sample(range(len(names)), 2))) for _ in range(random.randint(0, 4))
    ]
    return [
        {
            "a": names[a],
            "b": names[b],
            "capacity": random.randint(0, 20) * scale if random.random() < narrow else None,
        }
        for a, b in sorted(set(ends), key=lambda _: random.random())
    ]


def _task(names, feeders, keyed, scale, random):
    mode = random.choice(("single", "single", "sharded", "aggregate"))
    inputs = random.sample(feeders, min(len(feeders), random.choice((1, 1, 2))))
    if mode != "single" and not set(inputs) & set(keyed):
        inputs = [*inputs[:1], random.choice(keyed)]
    task = {"inputs": inputs, "mode": mode, "cost": random.randint(0, 4)}
    task |= {"rate": _rate(scale, random)}
    task["destinations"] = random.sample(names, random.choice((0, 1, 1, 2)))
    by_key = random.random() < 0.5
    if mode != "single" and by_key:
        task["cost"] = {name: random.randint(0, 4) for name in names}
    if mode == "aggregate":
        task |= {"merge_cost": random.randint(0, 3), "partial_rate": _rate(scale, random)}
    elif mode == "sharded" and by_key:
        task["rate"] = {name: _rate(scale, random) for name in names}
        task["destinations"] = {
            name: random.sample(names, random.choice((0, 1))) for name in names[1:]
        }
    if random.random() < 0.2:
        task["hosts"] = random.sample(names, random.randint(1, len(names)))
    return task
