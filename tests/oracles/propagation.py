"""Propagation scenarios by definition: complex events by exhaustion, loads by counting per link.

Knows nothing of brokers, routers or the simulator: it reads the same JSON and CSV as they do, as
plain dictionaries. Slow on purpose; scenarios of a few dozen events.
"""

from itertools import combinations, product
from math import sqrt


def lives(scenario, begin, end):
    """Name -> [(from, until)], where None has no end; what no step begins is there at first."""
    script = sorted(scenario.get("script") or [], key=lambda step: step["t"])
    names = [
        str(each["id"]) for each in scenario["sensors" if begin == "advertise" else "subscriptions"]
    ]
    begun = {str(step["id"]) for step in script if step["op"] == begin}
    found = {name: ([] if name in begun else [[None, None]]) for name in names}
    for step in script:
        name = str(step["id"])
        if step["op"] == begin and not (found[name] and found[name][-1][1] is None):
            found[name].append([step["t"], None])
        elif step["op"] == end and found[name] and found[name][-1][1] is None:
            found[name][-1][1] = step["t"]
    return found


def alive(t, life):
    return (life[0] is None or life[0] <= t) and (life[1] is None or t < life[1])


def published(scenario, rows):
    """The rows (id, sensor, t, v) whose sensor was advertised."""
    there = lives(scenario, "advertise", "withdraw")
    return [row for row in rows if any(alive(row[2], life) for life in there[row[1]])]


def candidates(scenario, subscription, rows):
    """Key -> the rows that pass its filter and, for abstract ones, its region."""
    sensors = {str(each["id"]): each for each in scenario["sensors"]}
    found = {}
    for key, (low, high) in subscription["filters"].items():
        some = []
        for row in rows:
            sensor = sensors[row[1]]
            if subscription["type"] == "identified":
                fits = row[1] == key
            else:
                x0, y0, x1, y1 = subscription["region"]
                x, y = sensor["loc"]
                fits = str(sensor["attr"]) == key and x0 <= x <= x1 and y0 <= y <= y1
            if fits and low <= row[3] <= high:
                some.append(row)
        found[key] = some
    return found


def matches(scenario, subscription, rows):
    """Every complex event, as a tuple of rows."""
    sensors = {str(each["id"]): each for each in scenario["sensors"]}
    delta_l = subscription.get("delta_l") if subscription["type"] == "abstract" else None
    for choice in product(*candidates(scenario, subscription, rows).values()):
        times = [row[2] for row in choice]
        if not max(times) - min(times) < subscription["delta_t"]:
            continue
        places = [sensors[row[1]]["loc"] for row in choice]
        if delta_l is not None and not all(
            sqrt((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2) < delta_l
            for p, q in combinations(places, 2)
        ):
            continue
        yield choice


def delivered(scenario, rows):
    """Subscription -> the ids of the events in its complex events."""
    sent = published(scenario, rows)
    found = {}
    for subscription in scenario["subscriptions"]:
        name = str(subscription["id"])
        found[name] = set()
        for life in lives(scenario, "subscribe", "unsubscribe")[name]:
            seen = [row for row in sent if alive(row[2], life)]
            for choice in matches(scenario, subscription, seen):
                found[name].update(row[0] for row in choice)
    return found


def sides(scenario):
    """(a, b) -> the brokers that lie on a's side of the link, for both directions of each."""
    found = {}
    for a, b in scenario["edges"]:
        for here, there in ((a, b), (b, a)):
            side = {here}
            grown = True
            while grown:
                grown = False
                for edge in scenario["edges"]:
                    if set(edge) == {a, b}:
                        continue
                    if len(side & set(edge)) == 1:
                        side |= set(edge)
                        grown = True
            found[here, there] = side
    return found


def projected(scenario, subscription, side):
    """(the part of a subscription that a side of a link can give, its mandatory keys)."""
    where = {}
    for key in subscription["filters"]:
        where[key] = [
            sensor["node"] in side
            for sensor in scenario["sensors"]
            if fits(subscription, key, sensor)
        ]
    if not all(where.values()):
        return {}, []
    part = {key: ends for key, ends in subscription["filters"].items() if any(where[key])}
    return part, [key for key in part if all(where[key])]


def fits(subscription, key, sensor):
    if subscription["type"] == "identified":
        return str(sensor["id"]) == key
    x0, y0, x1, y1 = subscription["region"]
    x, y = sensor["loc"]
    return str(sensor["attr"]) == key and x0 <= x <= x1 and y0 <= y <= y1


def result_set(scenario, subscription, rows, side):
    """The ids of the events of one side that a subscription's part there wants (no script)."""
    nodes = {str(each["id"]): each["node"] for each in scenario["sensors"]}
    near = [row for row in rows if nodes[row[1]] in side]
    part, mandatory = projected(scenario, subscription, side)
    found = set()
    bodies = [mandatory] if mandatory else []
    bodies += [[*mandatory, key] for key in part if key not in mandatory]
    for body in bodies:
        smaller = {**subscription, "filters": {key: part[key] for key in body}}
        for choice in matches(scenario, smaller, near):
            found.update(row[0] for row in choice)
    return found


def loads(scenario, rows):
    """(naive operators, naive events, filter-split-forward events) of a scenario without script."""
    operators = events = shared = 0
    for side in sides(scenario).values():
        wanted = set()
        for subscription in scenario["subscriptions"]:
            if subscription["node"] in side:
                continue
            if projected(scenario, subscription, side)[0]:
                operators += 1
            found = result_set(scenario, subscription, rows, side)
            events += len(found)
            wanted |= found
        shared += len(wanted)
    return operators, events, shared


def path(scenario, start, goal):
    """The links from one broker to another."""
    ways = {start: []}
    todo = [start]
    for node in todo:
        for a, b in scenario["edges"]:
            for here, there in ((a, b), (b, a)):
                if here == node and there not in ways:
                    ways[there] = [*ways[node], (here, there)]
                    todo.append(there)
    return ways[goal]


def bound(scenario, rows):
    """The least load of events: each needed one once over each link toward those who need it."""
    nodes = {str(each["id"]): each["node"] for each in scenario["sensors"]}
    origins = {row[0]: nodes[row[1]] for row in rows}
    used = set()
    for subscription in scenario["subscriptions"]:
        for event in delivered(scenario, rows)[str(subscription["id"])]:
            for link in path(scenario, origins[event], subscription["node"]):
                used.add((event, link))
    return len(used)


def centralised(scenario, rows):
    """(operators, events) when everything goes to the centre and results come from there."""
    nodes = {str(each["id"]): each["node"] for each in scenario["sensors"]}
    center = scenario["center"]
    operators = sum(len(path(scenario, each["node"], center)) for each in scenario["subscriptions"])
    found = delivered(scenario, rows)
    events = sum(len(path(scenario, nodes[row[1]], center)) for row in rows)
    events += sum(
        len(found[str(each["id"])]) * len(path(scenario, center, each["node"]))
        for each in scenario["subscriptions"]
    )
    return operators, events


def placed(scenario, rows):
    """(operators, events) of operator placement: registered one after the other, an operator that
    an earlier one with the same keys covers stops where it arrives; all have their result sets.
    """
    side_of = sides(scenario)
    uncovered = {}
    total = [0, 0]

    def arrive(node, came_from, subscription, operator):
        known = uncovered.setdefault((node, came_from), [])
        if any(includes(other, operator) for other in known):
            return
        known.append(operator)
        for (near, there), side in side_of.items():
            if there != node or near == came_from:
                continue
            part, mandatory = projected(scenario, subscription, side)
            if part:
                total[0] += 1
                total[1] += len(result_set(scenario, subscription, rows, side))
                arrive(near, node, subscription, least(subscription, part, mandatory))

    for subscription in scenario["subscriptions"]:
        filters = subscription["filters"]
        arrive(
            subscription["node"], None, subscription, least(subscription, filters, list(filters))
        )
    return tuple(total)


def least(subscription, part, mandatory):
    """What tells two operators apart; distances do not matter where nothing has to be found."""
    joined = mandatory and len(part) > 1
    abstract = subscription["type"] == "abstract"
    return {
        "kind": (
            subscription["type"],
            sorted(part),
            sorted(mandatory) if joined else [],
            subscription["delta_t"] if joined else None,
            subscription.get("delta_l") if joined and abstract else None,
        ),
        "filters": part,
        "region": subscription["region"] if abstract else [0, 0, 0, 0],
    }


def includes(wide, narrow):
    """Whether one operator asks for all that another asks for."""
    if wide["kind"] != narrow["kind"]:
        return False
    a, b = wide["region"], narrow["region"]
    return (
        a[0] <= b[0] and a[1] <= b[1] and a[2] >= b[2] and a[3] >= b[3]
        and all(
            low <= narrow["filters"][key][0] and high >= narrow["filters"][key][1]
            for key, (low, high) in wide["filters"].items()
        )
    )  # fmt: skip
