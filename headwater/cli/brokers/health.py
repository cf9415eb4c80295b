"""`headwater health`: whether a broker takes events.

Owns the command's options and output. Must not know what a broker needs for it: that it says
itself. Invariant: status 0 means that it takes events, and 1 that it does not or that nobody
answers: those are the two that health checks of containers know.
"""

import argparse

from headwater.cli import http_client
from headwater.cli.output import CommandError, print_json
from headwater.cli.reach import add_options, broker_of

EXAMPLE = "  headwater health   # --broker http://127.0.0.1:8080 asks another"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Ask a broker; 1 where it is not ready, or does not answer."""
    broker = broker_of(arguments)
    if broker.is_mqtt:
        raise CommandError(2, "health asks over HTTP; name the broker's http:// address")
    try:
        status, answer = http_client.ask(broker, "GET", "/readyz")
    except CommandError as error:
        raise CommandError(1, *error.messages) from None
    missing = [str(reason) for reason in answer.get("missing", [])]
    ready = status == 200 and not missing
    if arguments.json:
        print_json({"ok": ready, "missing": missing})
    elif ready:
        print("it takes events")
    else:
        print("it takes no events: " + ("; ".join(missing) or f"it answers {status}"))
    return 0 if ready else 1
