"""Every request of a broker, by MQTT and by HTTP, and the right that it needs.

Owns that table and the names of rights. Must not know how a request is carried out. Invariant:
each route of the HTTP face and each request topic of the MQTT face stands in it exactly once; the
doors look here and nowhere else.
"""

from typing import Final, Literal, get_args

from msgspec import Struct

Right = Literal[
    "look",
    "cancel_any",
    "consumers",
    "drain",
    "forget",
    "reload",
    "backup",
    "invite",
    "functions",
]
"""Rights that a role names under `may`; the others follow from its names and topics."""

Need = Literal[
    "nothing",
    "login",
    "look",
    "list",
    "submit",
    "cancel",
    "publish",
    "results",
    "log",
    "consumers",
    "drain",
    "forget",
    "reload",
    "backup",
    "invite",
    "functions",
]
"""What a request needs. Beyond the rights above:

- `nothing`: answered to anybody, of joining to who has a code; `login`: to whoever is let in.
- `list`: `look`, or some name to submit as; the answer holds what the asker may know of.
- `submit`: some name to submit as; then its names, types and actors are judged one by one.
- `cancel`: as `submit`, or `cancel_any`; then whose subscription it is. Resuming needs the same.
- `publish`: some topic of readings to publish to; then each reading by type and source.
- `results`: some topic of results to subscribe to; the answer holds those results alone.
- `log`: the topic filter `results/#` to subscribe to, as the output log holds all results.
"""

RIGHTS: Final[tuple[Right, ...]] = get_args(Right)
NEEDS: Final[tuple[Need, ...]] = get_args(Need)


class RequestEntry(Struct, frozen=True):
    """One request: its need, its HTTP routes (`METHOD path`), its MQTT topic's first level."""

    name: str
    need: Need
    routes: tuple[str, ...] = ()
    topic: str = ""


REQUESTS: Final[tuple[RequestEntry, ...]] = (
    RequestEntry("health", "nothing", ("GET /healthz", "GET /readyz")),
    RequestEntry("interface", "login", ("GET /", "GET /openapi.json")),
    RequestEntry("metrics", "look", ("GET /metrics",)),
    RequestEntry("status", "look", ("GET /v1/status",)),
    RequestEntry("network", "look", ("GET /v1/network",)),
    RequestEntry("plan", "look", ("GET /v1/plan",)),
    RequestEntry("publish", "publish", ("POST /v1/events",)),
    RequestEntry("list", "list", ("GET /v1/subscriptions",), "list"),
    RequestEntry("submit", "submit", ("POST /v1/subscriptions",), "submit"),
    RequestEntry("preview", "submit", ("POST /v1/preview",), "preview"),
    RequestEntry("cancel", "cancel", ("DELETE /v1/subscriptions/{name}",), "cancel"),
    RequestEntry("resume", "cancel", ("POST /v1/subscriptions/{name}/resume",), "resume"),
    RequestEntry("results", "results", ("GET /v1/results",)),
    RequestEntry("drain", "drain", ("POST /v1/drain", "DELETE /v1/drain")),
    RequestEntry("forget", "forget", ("DELETE /v1/brokers/{name}",)),
    RequestEntry("take_over", "forget", ("POST /v1/brokers/{name}/take-over",)),
    RequestEntry("reload", "reload", ("POST /v1/reload",)),
    RequestEntry("backup", "backup", ("GET /v1/backup",)),
    RequestEntry("invite", "invite", ("POST /v1/invites",)),
    RequestEntry(
        "functions", "functions", ("POST /v1/functions/{name}", "DELETE /v1/functions/{name}")
    ),
    RequestEntry("functions_list", "look", ("GET /v1/functions",)),
    RequestEntry("join", "nothing", ("POST /v1/joins",)),
    RequestEntry("consumers", "consumers", ("POST /v1/log/ack", "DELETE /v1/log/consumers/{name}")),
    RequestEntry("consumers_list", "look", ("GET /v1/log/consumers",)),
    RequestEntry(
        "log",
        "log",
        (
            "GET /v1/log",
            "GET /v1/log/offsets",
            "GET /v1/log/ts_at",
            "GET /v1/log/earliest_end",
            "GET /v1/log/first_offset_after",
        ),
    ),
)

BY_ROUTE: Final[dict[str, RequestEntry]] = {
    route: entry for entry in REQUESTS for route in entry.routes
}
BY_TOPIC: Final[dict[str, RequestEntry]] = {entry.topic: entry for entry in REQUESTS if entry.topic}
