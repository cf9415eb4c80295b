"""`headwater ls`: the subscriptions of a running broker.

Owns the command's options and output. Must not know how a broker keeps them. Invariant: what is
printed is what the broker said, in its order.
"""

import argparse
from collections.abc import Mapping
from typing import Any

from headwater.cli import http_client
from headwater.cli.output import print_json, print_table
from headwater.cli.reach import add_options, broker_of
from headwater.cli.results import time_of

EXAMPLE = "  headwater ls --json"
COLUMNS = ("subscription", "subscriber", "actor", "seq", "state", "results")


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Lists; 1 where the broker refuses to."""
    broker = broker_of(arguments)
    if broker.is_mqtt:
        from headwater.cli import mqtt_client

        answer = mqtt_client.run(mqtt_client.ask(broker, "list", ""))
        good = answer.get("ok") is True
    else:
        status, answer = http_client.ask(broker, "GET", "/v1/subscriptions")
        good = status == 200
    if not good:
        raise http_client.refused(answer)
    listed = answer.get("subscriptions", [])
    if arguments.json:
        print_json(listed)
    elif listed:
        # One that is over stays listed until it is cancelled; so ends are told where there are any.
        further = [name for name in ("ends", "waits_for") if any(name in one for one in listed)]
        columns = (*COLUMNS, *further)
        rows = [[_cell(entry, column) for column in columns] for entry in listed]
        print_table([column.upper().replace("_", " ") for column in columns], rows)
    else:
        print("no subscriptions; `headwater submit SPEC.hw` installs one")
    return 0


def _cell(entry: Mapping[str, Any], column: str) -> object:
    if column == "waits_for":
        return ", ".join(map(str, entry.get(column, []))) or "-"
    if column != "ends":
        return entry.get(column)
    return time_of(entry["ends"]) if "ends" in entry else "-"
