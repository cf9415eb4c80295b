"""The shapes of what is told of a plan.

Owns these schemas; `routes` has the routes. Must not know how a plan is found. Invariant: a key
that is told stands here.
"""

from broker.http.route import COUNT, NAMES, TEXT, Schema, shape_of

_WHETHER: Schema = {"type": "boolean"}
_NUMBER: Schema = {"type": "integer"}


def _maybe(shape: Schema) -> Schema:
    return {"anyOf": [shape, {"type": "null"}]}


def _many(name: str) -> Schema:
    return {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}}


PLAN_SCHEMAS: dict[str, Schema] = {
    "PlannedInput": shape_of("origin type bytes_per_s", origin=TEXT, type=TEXT, bytes_per_s=COUNT),
    "PlannedNext": shape_of(
        "broker more_bytes_per_s breaks_limits",
        broker=TEXT,
        more_bytes_per_s=_NUMBER,
        breaks_limits=_WHETHER,
    ),
    "PlannedTask": shape_of(
        "key subscriptions home host parts inputs takes_bytes_per_s sends_bytes_per_s not_at"
        " next why",
        key=TEXT,
        subscriptions=TEXT,
        home=TEXT,
        host=TEXT,
        parts=NAMES,
        inputs=_many("PlannedInput"),
        takes_bytes_per_s=COUNT,
        sends_bytes_per_s=COUNT,
        not_at=NAMES,
        next=_maybe({"$ref": "#/components/schemas/PlannedNext"}),
        why=TEXT,
    ),
    "PlannedBroker": shape_of(
        "broker tasks takes_bytes_per_s capacity_bytes_per_s sends_bytes_per_s"
        " egress_bytes_per_s drained",
        broker=TEXT,
        tasks=COUNT,
        takes_bytes_per_s=COUNT,
        capacity_bytes_per_s=_maybe(COUNT),
        sends_bytes_per_s=COUNT,
        egress_bytes_per_s=_maybe(COUNT),
        drained=_WHETHER,
    ),
    "PlannedLink": shape_of(
        "from to bytes_per_s at_most_bytes_per_s",
        **{"from": TEXT},
        to=TEXT,
        bytes_per_s=COUNT,
        at_most_bytes_per_s=_maybe(COUNT),
    ),
    "BrokenLimit": shape_of(
        "broker limit bytes_per_s at_most_bytes_per_s",
        broker=TEXT,
        limit=TEXT,
        bytes_per_s=COUNT,
        at_most_bytes_per_s=COUNT,
    ),
    "Plan": shape_of(
        "broker epoch quiet drained infeasible limits_broken flow_bytes_per_s brokers links tasks"
        " tasks_left_out",
        broker=TEXT,
        epoch=_maybe(TEXT),
        quiet=_WHETHER,
        drained=_WHETHER,
        infeasible=_WHETHER,
        limits_broken=_many("BrokenLimit"),
        flow_bytes_per_s=_maybe(COUNT),
        brokers=_many("PlannedBroker"),
        links=_many("PlannedLink"),
        tasks=_many("PlannedTask"),
        tasks_left_out=COUNT,
    ),
}
