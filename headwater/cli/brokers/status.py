"""`headwater status`: how the brokers of a network are, asked of one of them.

Owns the command's options and output. Must not know how brokers ask each other. Invariant: status
0 means that every broker of the network was reached and takes events.
"""

import argparse
from typing import Any

from headwater.cli import http_client
from headwater.cli.brokers.take_over import remark_of
from headwater.cli.output import CommandError, complain, print_json, print_table
from headwater.cli.reach import add_options, broker_of

EXAMPLE = "  headwater status   # --alone: all that the broker asked says of itself, with --json"
HEADS = ("BROKER", "STATE", "UP", "SUBSCRIPTIONS", "SUSPENDED", "HELD", "EVENTS", "MB", "VERSION")
UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--alone", action="store_true", help="only the broker that is asked")
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Ask a broker; 1 where one of the network takes no events or cannot be reached."""
    broker = broker_of(arguments)
    if broker.is_mqtt:
        raise CommandError(2, "status asks over HTTP; name the broker's http:// address")
    if arguments.alone and arguments.json:
        status, answer = http_client.ask(broker, "GET", "/v1/status")
        if status != 200:
            raise http_client.refused(answer)
        print_json(answer)
        return 0 if answer.get("state") == "ready" else 1
    status, answer = http_client.ask(broker, "GET", "/v1/status", network="1")
    if status != 200:
        raise http_client.refused(answer)
    states = answer["brokers"][:1] if arguments.alone else answer["brokers"]
    unreached = [] if arguments.alone else answer["unreached"]
    if arguments.json:
        print_json(answer)
    else:
        rows = [_row(state) for state in states]
        if any(state.get("stand_in") for state in states):
            rows = [[*row, _stand_in(state)] for row, state in zip(rows, states, strict=True)]
            print_table((*HEADS, "STAND-IN"), rows)
        else:
            print_table(HEADS, rows)
        for state in states:
            for reason in state["missing"]:
                print(f"{state['broker']} takes no events: {reason}")
        for row in unreached:
            complain(f"headwater: {row['broker']} cannot be asked: {row['reason']}")
            if remark := remark_of(row):
                complain(f"headwater: {remark}")
    return 1 if unreached or any(state["missing"] for state in states) else 0


def _row(state: dict[str, Any]) -> list[object]:
    memory = state["memory_bytes"]
    return [
        state["broker"],
        "no events" if state["missing"] else "ready",
        _lasting((state["now"] - state["since"]) // 1_000),
        state["subscriptions"],
        state["suspended"],
        state["held"],
        state["received"],
        "-" if memory is None else round(memory / 1_000_000),
        state["version"],
    ]


def _stand_in(state: dict[str, Any]) -> str:
    """Return the stand-in of a home, how far it follows, and the lease."""
    row = state.get("stand_in")
    if not row:
        return "-"
    words = [f"{row['broker']} {row['state']}"]
    if row["behind"]:
        words.append(f"{row['behind']} behind")
    if row["lease_ms"]:
        held = "" if row["leased"] else " not held"
        words.append(f"lease {row['lease_ms'] / 1_000:g} s{held}")
    return ", ".join(words)


def _lasting(seconds: int) -> str:
    """Return a time in its two greatest units, as `3 d 4 h`."""
    words = []
    for unit_s, name in UNITS:
        if count := seconds // unit_s:
            words.append(f"{count} {name}")
        seconds %= unit_s
    return " ".join(words[:2]) or "0 s"
