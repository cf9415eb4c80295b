"""Small problems as documents, drawn by hypothesis, and the example that the documents show."""

from hypothesis import strategies as st

EXAMPLE = {
    "name": "example",
    "server": "b3",
    "nodes": [
        {"id": "b1", "capacity": 10},
        {"id": "b2", "capacity": 5, "egress": 50000},
        {"id": "b3"},
    ],
    "links": [{"a": "b1", "b": "b2", "capacity": 40000}, {"a": "b2", "b": "b3"}],
    "contents": [
        {"id": "Video", "rates": {"b1": 9000}},
        {"id": "Env", "rates": {"b1": 25, "b2": 25}},
    ],
    "tasks": [
        {"id": "Face", "inputs": ["Video"], "cost": 4, "rate": 600, "destinations": ["b3"]},
        {"id": "Label", "inputs": ["Face"], "cost": 2, "rate": 20, "destinations": ["b2", "b3"]},
        {
            "id": "Clean",
            "inputs": ["Env"],
            "mode": "sharded",
            "cost": 1,
            "rate": {"b1": 9, "b2": 9},
            "destinations": [],
        },
        {
            "id": "Avg",
            "inputs": ["Clean"],
            "mode": "aggregate",
            "cost": 1,
            "merge_cost": 2,
            "partial_rate": 12,
            "rate": 1,
            "destinations": ["b2"],
            "hosts": ["b1", "b2"],
        },
    ],
}

MODES = ("single", "single", "sharded", "aggregate")


@st.composite
def documents(draw, nodes_max=5, tasks_max=4, *, connected=True, limited=True):
    """A problem with every mode, with and without limits."""
    count = draw(st.integers(2, nodes_max))
    names = [f"b{i}" for i in range(count)]
    numbers = st.integers(0, 12)
    limits = st.one_of(st.none(), st.integers(0, 30)) if limited else st.none()
    nodes = [
        {"id": name, "capacity": draw(limits), "egress": draw(st.one_of(st.none(), limits))}
        for name in names
    ]
    ends = {(draw(st.integers(0, i - 1)), i) for i in range(1, count)} if connected else set()
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    ends |= {(min(p), max(p)) for p in draw(st.lists(pairs, max_size=count)) if p[0] != p[1]}
    drawn = draw(st.permutations(sorted(ends)))
    links = [
        {"a": names[a], "b": names[b], "capacity": draw(st.one_of(st.none(), limits))}
        for a, b in drawn
    ]
    some = st.lists(st.sampled_from(names), max_size=2, unique=True)
    contents = [
        {"id": f"C{i}", "rates": draw(st.dictionaries(st.sampled_from(names), numbers, max_size=3))}
        for i in range(draw(st.integers(1, 2)))
    ]
    tasks, keyed, all_feeders = [], [c["id"] for c in contents], [c["id"] for c in contents]
    for i in range(draw(st.integers(1, tasks_max))):
        mode = draw(st.sampled_from(MODES))
        inputs = draw(st.lists(st.sampled_from(all_feeders), min_size=1, max_size=2, unique=True))
        if mode != "single" and not set(inputs) & set(keyed):
            inputs = [draw(st.sampled_from(keyed))]
        task = {"id": f"T{i}", "inputs": inputs, "mode": mode, "cost": draw(st.integers(0, 4))}
        task |= {"rate": draw(numbers), "destinations": draw(some)}
        if mode == "aggregate":
            task |= {"merge_cost": draw(st.integers(0, 3)), "partial_rate": draw(numbers)}
        if mode == "sharded" and draw(st.booleans()):
            for name, values in (("cost", numbers), ("rate", numbers), ("destinations", some)):
                task[name] = {key: draw(values) for key in names}
        if draw(st.integers(0, 3)) == 0:
            hosts = st.lists(st.sampled_from(names), min_size=1, unique=True)
            task["hosts"] = draw(hosts)
        tasks.append(task)
        all_feeders.append(task["id"])
        if mode == "sharded":
            keyed.append(task["id"])
    return {"nodes": nodes, "links": links, "contents": contents, "tasks": tasks}
