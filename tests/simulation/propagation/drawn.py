"""Scenarios drawn from a seed: all kinds, small enough for exhaustion."""

import csv
import json
from random import Random

ATTRIBUTES = ("heat", "rain", "wind", "dust")


def draw_tree(random, nodes):
    kind = random.choice(["tree", "chain", "star"])
    if kind == "chain":
        return [[node - 1, node] for node in range(1, nodes)]
    if kind == "star":
        return [[0, node] for node in range(1, nodes)]
    return [[random.randrange(node), node] for node in range(1, nodes)]


def draw(seed, *, script=False, abstract=None, crowded=False):
    """(scenario, rows); `abstract` None: mixed; `crowded`: subscriptions that cover each other."""
    random = Random(seed)
    if crowded:
        return draw_crowded(random, script)
    nodes = random.randint(2, 7)
    attributes = ATTRIBUTES[: random.randint(2, 4)]
    places = [[random.randint(0, 9), random.randint(0, 9)] for _ in range(random.randint(1, 4))]
    sensors = [
        {
            "id": f"d{number}",
            "node": random.randrange(nodes),
            "attr": random.choice(attributes),
            "loc": random.choice(places),
        }
        for number in range(random.randint(2, 7))
    ]
    period = random.choice([1, 2, 3])
    rows = []
    for t in range(random.randint(6, 12)):
        for sensor in sensors:
            if random.random() < 0.6 and len(rows) < 45:
                rows.append([str(len(rows)), sensor["id"], t * period, float(random.randint(0, 9))])
    delta_t = random.choice([1, 2, 3, 5, 2.5])
    subscriptions = [
        draw_subscription(random, f"s{number}", nodes, sensors, (attributes, delta_t, abstract))
        for number in range(random.randint(1, 9))
    ]
    scenario = {
        "nodes": nodes,
        "edges": draw_tree(random, nodes),
        "sensors": sensors,
        "subscriptions": subscriptions,
        "center": random.randrange(nodes),
    }
    if script:
        scenario["script"] = draw_script(random, scenario, rows[-1][2] if rows else 1)
    return scenario, rows


def draw_crowded(random, script):
    """Many subscriptions of few users to the same two or three attributes, wide and narrow."""
    nodes = random.randint(3, 5)
    attributes = ATTRIBUTES[: random.randint(2, 3)]
    sensors = [
        {
            "id": f"d{number}",
            "node": random.randrange(nodes),
            "attr": attributes[number % len(attributes)],
            "loc": [random.randint(0, 9), random.randint(0, 9)],
        }
        for number in range(random.randint(len(attributes), 5))
    ]
    rows = []
    for t in range(8):
        for sensor in sensors:
            if random.random() < 0.8:
                rows.append([str(len(rows)), sensor["id"], t, float(random.randint(0, 9))])
    homes = random.sample(range(nodes), 2)
    abstract = random.random() < 0.6
    asked = random.sample(attributes, 2) if abstract else random.sample(sensors, 2)
    names = asked if abstract else [sensor["id"] for sensor in asked]
    delta_l = random.choice([None, None, 6])
    subscriptions = []
    for number in range(random.randint(6, 12)):
        one = {
            "id": f"s{number}",
            "node": random.choice(homes),
            "type": "abstract" if abstract else "identified",
            "delta_t": random.choice([2, 2, 2, 1, 4]),
            "filters": {name: draw_wide(random) for name in names},
        }
        if abstract:
            x = random.choice([-1, -1, 4])
            right = random.choice([5, 10, 10])
            one["region"] = [x, random.choice([-1, -1, 3]), right, random.choice([6, 10, 10])]
            one["delta_l"] = delta_l
        subscriptions.append(one)
    scenario = {
        "nodes": nodes,
        "edges": draw_tree(random, nodes),
        "sensors": sensors,
        "subscriptions": subscriptions,
        "center": 0,
    }
    if script:
        scenario["script"] = draw_partings(random, scenario)
    return scenario, rows


def draw_partings(random, scenario):
    """Half of the subscriptions, earlier ones sooner, go while those that they cover stay."""
    steps = []
    for number, subscription in enumerate(scenario["subscriptions"]):
        if random.random() < 0.3:
            steps.append({"t": random.randint(0, 2), "op": "subscribe", "id": subscription["id"]})
        if random.random() < (0.8 if number < 4 else 0.2):
            steps.append({"t": random.randint(2, 4), "op": "unsubscribe", "id": subscription["id"]})
    if random.random() < 0.3:
        sensor = random.choice(scenario["sensors"])["id"]
        steps.append({"t": random.randint(1, 4), "op": "advertise", "id": sensor})
    return sorted(steps, key=lambda step: step["t"])


def draw_wide(random):
    low = random.choice([0, 0, 1, 3, 5])
    return [low, random.choice([9, 9, 8, 6, 5])]


def draw_range(random):
    low = random.randint(0, 7)
    return [low, low + random.randint(0, 9 - low)]


def draw_subscription(random, name, nodes, sensors, shared):
    attributes, delta_t, abstract = shared
    if random.random() < 0.15:
        delta_t = random.choice([1, 2, 4])
    if abstract is None:
        abstract = random.random() < 0.5
    one = {"id": name, "node": random.randrange(nodes), "delta_t": delta_t}
    if not abstract:
        some = random.sample(sensors, random.randint(1, min(3, len(sensors))))
        filters = {each["id"]: draw_range(random) for each in some}
        return {**one, "type": "identified", "filters": filters}
    some = random.sample(attributes, random.randint(1, min(3, len(attributes))))
    x, y = random.randint(-1, 4), random.randint(-1, 4)
    whole = random.random() < 0.5
    return {
        **one,
        "type": "abstract",
        "filters": {each: draw_range(random) for each in some},
        "region": [0, 0, 9, 9] if whole else [x, y, x + random.randint(2, 8), y + 6],
        "delta_l": random.choice([None, None, 3, 6, 0, 5]),
    }


def draw_script(random, scenario, last):
    steps = []
    for sensor in scenario["sensors"]:
        if random.random() < 0.4:
            t = random.randint(0, last)
            steps.append({"t": t, "op": "advertise", "id": sensor["id"]})
            if random.random() < 0.4:
                t += random.randint(1, 5)
                steps.append({"t": t, "op": "withdraw", "id": sensor["id"]})
                if random.random() < 0.4:
                    t += random.randint(0, 5)
                    steps.append({"t": t, "op": "advertise", "id": sensor["id"]})
    for subscription in scenario["subscriptions"]:
        if random.random() < 0.6:
            t = random.randint(0, last)
            steps.append({"t": t, "op": "subscribe", "id": subscription["id"]})
            if random.random() < 0.7:
                t += random.randint(1, 8)
                steps.append({"t": t, "op": "unsubscribe", "id": subscription["id"]})
                if random.random() < 0.3:
                    t += random.randint(0, 4)
                    steps.append({"t": t, "op": "subscribe", "id": subscription["id"]})
    random.shuffle(steps)
    return sorted(steps, key=lambda step: step["t"])


def write(folder, scenario, rows):
    """The scenario's path, written as the files say."""
    with (folder / "events.csv").open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "sensor", "t", "v"])
        lines.writerows(rows)
    path = folder / "scenario.json"
    path.write_text(json.dumps({**scenario, "events_file": "events.csv"}), encoding="utf-8")
    return path
