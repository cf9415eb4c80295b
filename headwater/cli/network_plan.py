"""`headwater plan` against a running network: which task runs where, why, and what travels.

Owns what is printed. Must not plan: the brokers have. Invariant: what is printed is what the broker
said.
"""

import argparse
from typing import Any

from headwater.cli import http_client
from headwater.cli.output import CommandError, harmless, print_json, print_table
from headwater.cli.reach import broker_of

HEADS = ("SUBSCRIPTION", "HOME", "RUNS AT", "TAKES", "SENDS", "WHY")


def run(arguments: argparse.Namespace) -> int:
    """Asks and shows; 1 where limits are broken, at whichever broker."""
    if arguments.problem or arguments.spec or arguments.network:
        raise CommandError(2, "tell either a problem, or the --broker of a running network")
    broker = broker_of(arguments)
    if broker.is_mqtt:
        raise CommandError(2, "plan asks over HTTP; name the broker's http:// address")
    status, reply = http_client.ask(broker, "GET", "/v1/plan")
    if status != 200:
        raise http_client.refused(reply)
    if arguments.json:
        print_json(reply)
    else:
        show(reply)
    return 1 if reply["infeasible"] else 0


def show(told: dict[str, Any]) -> None:
    """Print what `/v1/plan` says."""
    rows = [
        (
            task["subscriptions"] or task["key"],
            task["home"],
            _host(task),
            _rate(task["takes_bytes_per_s"]),
            _rate(task["sends_bytes_per_s"]),
            task["why"],
        )
        for task in told["tasks"]
    ]
    if rows:
        print_table(HEADS, rows)
    else:
        print("no submission is known")
    if told["tasks_left_out"]:
        print(f"and {told['tasks_left_out']} more")
    print()
    print_table(
        ("BROKER", "RUNS", "TAKES", "OF", "SENDS", "OF", ""),
        [
            (
                broker["broker"],
                broker["tasks"],
                _rate(broker["takes_bytes_per_s"]),
                _rate(broker["capacity_bytes_per_s"]),
                _rate(broker["sends_bytes_per_s"]),
                _rate(broker["egress_bytes_per_s"]),
                "drained" if broker["drained"] else "",
            )
            for broker in told["brokers"]
        ],
    )
    print()
    flow = told["flow_bytes_per_s"]
    state = "at rest" if told["quiet"] else "being looked at"
    if flow is None:
        print(harmless(f"{told['broker']} does not know yet what runs where"))
    else:
        print(f"{_rate(flow)} travel over all links together; the plan is {state}")
    for row in told.get("limits_broken", []):
        load, limit = _rate(row["bytes_per_s"]), _rate(row["at_most_bytes_per_s"])
        print(harmless(f"{row['limit']} of {row['broker']} is broken: {load} of {limit}"))
    if told["infeasible"]:
        print("no plan is known that keeps the limits")


def _host(task: dict[str, Any]) -> str:
    """Name the host of a task, and the hosts at which what it merges is folded."""
    parts = task.get("parts", [])
    host: str = task["host"]
    return f"{host} (of {', '.join(parts)})" if parts else host


def _rate(bytes_per_s: int | None) -> str:
    return "-" if bytes_per_s is None else f"{bytes_per_s:,} B/s"
