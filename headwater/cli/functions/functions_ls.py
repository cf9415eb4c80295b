"""`headwater functions ls`: the user functions of a network, and what each broker makes of them.

Owns the command's options and output. Must not know how that is found out. Invariant: status 0
means that every broker of the network can use every file.
"""

import argparse
from datetime import UTC, datetime
from typing import Any

from headwater.cli import http_client
from headwater.cli.output import CommandError, print_json
from headwater.cli.reach import add_options, broker_of

EXAMPLE = "  headwater functions ls"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """List the files; 1 where a broker cannot use some of them."""
    broker = broker_of(arguments)
    if broker.is_mqtt:
        raise CommandError(2, "functions are listed over HTTP; name the broker's http:// address")
    status, answer = http_client.ask(broker, "GET", "/v1/functions")
    if status != 200:
        raise http_client.refused(answer)
    remarks = [line for row in answer["brokers"] for line in _remarks(row, answer["functions"])]
    remarks += [f"{row['broker']} gave no answer: {row['reason']}" for row in answer["unreached"]]
    if arguments.json:
        print_json(answer)
    else:
        for file in answer["functions"]:
            _print(file)
        print("\n".join(remarks or ["every broker can use all of them"]))
    return 1 if remarks else 0


def _print(file: dict[str, Any]) -> None:
    given = datetime.fromtimestamp(file["since"] / 1000, UTC).isoformat(timespec="seconds")
    giver = f" by {file['giver']}" if file["giver"] else ""
    print(f"{file['file']} ({file['digest'][:12]}), given at {file['broker']}{giver}, {given}")
    print(f"  functions: {', '.join(file['functions']) or 'not run at the broker that was asked'}")
    if file["callers"]:
        print(f"  called by: {', '.join(file['callers'])}")


def _remarks(row: dict[str, Any], files: list[dict[str, Any]]) -> list[str]:
    """Return what one broker cannot use, and why."""
    if files and not row["runs"]:
        return [f"{row['broker']} runs none of them (broker.run_given_functions is false there)"]
    lines = [f"{row['broker']} does not have {name} yet" for name in row["lacks"]]
    return [*lines, *(f"{row['broker']}: {name}: {why}" for name, why in row["faults"].items())]
