"""`headwater cancel`: the end of a subscription; `resume` asks for a new beginning likewise.

Owns the commands' options and output. Must not decide who may cancel: the broker does. Invariant:
status 0 means that the subscription was there and has ended, or was suspended and runs again.
"""

import argparse

from headwater.cli import http_client
from headwater.cli.output import CommandError, print_json
from headwater.cli.reach import add_options, broker_of

EXAMPLE = "  headwater cancel ColdStation"


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("name", metavar="NAME", help="the subscription")
    parser.set_defaults(resumes=False)
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Cancels or resumes; 1 where there is nothing of that name for that."""
    resumes: bool = arguments.resumes
    broker = broker_of(arguments)
    if not arguments.name.strip():
        raise CommandError(2, "an empty text names no subscription")
    if broker.is_mqtt:
        from headwater.cli import mqtt_client

        topic = "resume" if resumes else "cancel"
        reply = mqtt_client.run(mqtt_client.ask(broker, topic, arguments.name))
    else:
        further = ("resume",) if resumes else ()
        path = "/v1" + http_client.path_of("subscriptions", arguments.name, *further)
        method = "POST" if resumes else "DELETE"
        _status, reply = http_client.ask(broker, method, path, client=broker.client)
    if reply.get("ok") is not True:
        raise http_client.refused(reply)
    if arguments.json:
        print_json(reply)
    else:
        print(f"{'resumed' if resumes else 'cancelled'}: {arguments.name}")
    return 0
