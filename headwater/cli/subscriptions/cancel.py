"""`headwater cancel`: the end of a subscription; `resume` asks for a new beginning likewise.

Owns the commands' options and output. Must not decide who may cancel: the broker does. Invariant:
status 0 means that the subscription was there and has ended, or was suspended and runs again.
"""

import argparse
import json
from typing import Any

from headwater.cli import http_client
from headwater.cli.output import CommandError, print_json
from headwater.cli.reach import BrokerAddress, add_options, broker_of

EXAMPLE = "  headwater cancel ColdStation"


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("name", metavar="NAME", help="the subscription")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--home",
        metavar="BROKER",
        default="",
        help="the broker that is its home, where several have one of this name",
    )
    where.add_argument(
        "--alone", action="store_true", help="only if its home is the broker that is asked"
    )
    parser.set_defaults(resumes=False)
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Cancels or resumes; 1 where there is nothing of that name for that."""
    resumes: bool = arguments.resumes
    if not arguments.name.strip():
        raise CommandError(2, "an empty text names no subscription")
    words: dict[str, Any] = {"home": arguments.home} if arguments.home else {}
    if not arguments.alone:
        words["network"] = True
    reply = _asked(broker_of(arguments), arguments.name, words, resumes=resumes)
    if reply.get("ok") is not True:
        raise http_client.refused(reply)
    if arguments.json:
        print_json(reply)
    else:
        at_home = f" at {reply['home']}" if "home" in reply else ""
        print(f"{'resumed' if resumes else 'cancelled'}: {arguments.name}{at_home}")
    return 0


def _asked(
    broker: BrokerAddress, name: str, words: dict[str, Any], *, resumes: bool
) -> dict[str, Any]:
    """Return the broker's answer. Raises CommandError where there is none."""
    if broker.is_mqtt:
        from headwater.cli import mqtt_client

        topic = "resume" if resumes else "cancel"
        body = json.dumps({"name": name.strip(), **words}) if words else name
        return mqtt_client.run(mqtt_client.ask(broker, topic, body))
    further = ("resume",) if resumes else ()
    path = "/v1" + http_client.path_of("subscriptions", name, *further)
    params = {key: "1" if value is True else value for key, value in words.items()}
    method = "POST" if resumes else "DELETE"
    _status, reply = http_client.ask(broker, method, path, client=broker.client, **params)
    return reply
