"""`headwater reload`: have a running broker take up users, rights, certificates and secrets.

Owns the command's options and output. Must not know what is read: the broker does. Invariant:
status 0 means that all of it is in force, and any other that nothing was changed.
"""

import argparse

from headwater.cli import http_client
from headwater.cli.output import CommandError, print_json
from headwater.cli.reach import add_options, broker_of

EXAMPLE = "  headwater reload"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Reload; 2 where a file is faulty."""
    broker = broker_of(arguments)
    if broker.is_mqtt:
        raise CommandError(2, "reload asks over HTTP; name the broker's http:// address")
    status, answer = http_client.ask(broker, "POST", "/v1/reload")
    if status != 200:
        raise http_client.refused(answer, 2)
    if arguments.json:
        print_json(answer)
    else:
        print(f"{answer['users']} users and {answer['tokens']} tokens are in force")
        if answer["clients_closed"]:
            print(f"{answer['clients_closed']} clients were disconnected: they may no longer")
        for name in answer["stopped"]:
            print(f"the subscription {name} was stopped: who submitted it may no longer")
    return 0
