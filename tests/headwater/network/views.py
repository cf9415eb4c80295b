"""Views of described networks, as brokers would give them, for tests."""


def view(name, links=(), *, now=1_000, known=(), neighbours=None, own=()):
    """`links`: (a, b) or (a, b, in_tree); `neighbours`: what is told of own links, by name."""
    rows = [(*row, True)[:3] for row in links]
    names = sorted({name, *known, *(end for a, b, _ in rows for end in (a, b))})
    return {
        "broker": name,
        "now": now,
        "brokers": [{"name": one, "reachable": True} for one in names],
        "links": [{"a": a, "b": b, "cost": 1, "tree": tree} for a, b, tree in rows],
        "neighbours": neighbours or {},
        "own": list(own),
        "kept_back": {"kept_back": 0, "kept_back_sent": 0, "kept_back_let_go": 0},
    }


def neighbour(sent=None, received=None, **more):
    return {
        "state": "up",
        "sent": sent or {},
        "received": received or {},
        "waits_for_partners": [],
        "hosts": [],
        "wants": [],
        "asked": [],
        **more,
    }


def operator(name, wants, covered_by=(), **more):
    return {"id": name, "wants": wants, "covered_by": list(covered_by), **more}
