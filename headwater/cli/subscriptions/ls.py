"""`headwater ls`: the subscriptions of a network, asked of one broker.

Owns the command's options and output. Must not know how a broker keeps them. Invariant: what is
printed is what the broker said, in its order; a broker that is missing from it is named.
"""

import argparse
from collections.abc import Mapping
from typing import Any

from headwater.cli import http_client
from headwater.cli.brokers.take_over import remark_of
from headwater.cli.output import complain, print_json, print_table
from headwater.cli.reach import BrokerAddress, add_options, broker_of
from headwater.cli.subscriptions.results import time_of

EXAMPLE = "  headwater ls --json"
COLUMNS = ("subscription", "subscriber", "actor", "seq", "state", "results")
FURTHER = ("home", "ends", "shares_with", "waits_for", "stand_in")  # shown where a row has them


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "--alone", action="store_true", help="only those at home at the broker that is asked"
    )
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Lists; 1 where the broker refuses to. Others that gave it no list are named."""
    answer = _asked(broker_of(arguments), alone=arguments.alone)
    listed = answer.get("subscriptions", [])
    if arguments.json:
        print_json(listed)
    elif listed:
        # One that is over stays listed until it is cancelled; so ends are told where there are any.
        columns = (*COLUMNS, *[name for name in FURTHER if any(name in row for row in listed)])
        rows = [[_cell(entry, column) for column in columns] for entry in listed]
        print_table([column.upper().replace("_", " ") for column in columns], rows)
    else:
        print("no subscriptions; `headwater submit SPEC.hw` installs one")
    for row in answer.get("unreached", []):
        outcome = "what is listed is a copy" if "stand_in" in row else "is left out"
        complain(f"headwater: {row['broker']} cannot be asked, and {outcome}: {row['reason']}")
        if remark := remark_of(row):
            complain(f"headwater: {remark}")
    return 0


def _asked(broker: BrokerAddress, *, alone: bool) -> dict[str, Any]:
    """Return the broker's answer. Raises CommandError where it refuses."""
    if broker.is_mqtt:
        from headwater.cli import mqtt_client

        body = "" if alone else '{"network":true}'
        answer = mqtt_client.run(mqtt_client.ask(broker, "list", body))
        good = answer.get("ok") is True
    else:
        params = {} if alone else {"network": "1"}
        status, answer = http_client.ask(broker, "GET", "/v1/subscriptions", **params)
        good = status == 200
    if not good:
        raise http_client.refused(answer)
    return answer


def _cell(entry: Mapping[str, Any], column: str) -> object:
    if column == "waits_for":
        return ", ".join(map(str, entry.get(column, []))) or "-"
    if column == "home":
        away = " (away)" if entry.get("away") else ""
        return f"{entry.get(column)}{away}"
    if column == "stand_in":
        state = entry.get("stand_in_state", "following")
        return entry.get(column, "-") if state == "following" else f"{entry[column]} ({state})"
    if column != "ends":
        return entry.get(column, "-" if column in FURTHER else None)
    return time_of(entry["ends"]) if "ends" in entry else "-"
