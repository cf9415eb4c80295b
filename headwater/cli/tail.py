"""`headwater tail`: results of a running broker as they come.

Owns the command's options and output. Must not know what results mean. Invariant: every result that
arrives is printed before the next is read.
"""

import argparse
import difflib
import json
import re
from contextlib import closing

from headwater.cli import http_client
from headwater.cli.output import CommandError, complain
from headwater.cli.reach import Broker, add_options, broker_of
from headwater.cli.results import as_line

EXAMPLE = "  headwater tail ColdStation --count 3"


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "subscription", metavar="SUBSCRIPTION", nargs="?", help="only this one's results"
    )
    parser.add_argument("-n", "--count", type=_count, metavar="N", help="end after so many results")
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Follows until Ctrl-C or the count; 3 where the broker goes away before."""
    broker = broker_of(arguments)
    printer = Printer(arguments.subscription, arguments.count, as_json=arguments.json)
    try:
        if broker.is_mqtt:
            from headwater.cli import mqtt_client

            mqtt_client.run(mqtt_client.follow(broker, printer.take))
        else:
            _over_http(broker, arguments.subscription, printer)
    except KeyboardInterrupt:
        return 0
    return 0


class Printer:
    """Prints the results of one subscription, or of all, until there have been enough."""

    def __init__(self, subscription: str | None, count: int | None, *, as_json: bool) -> None:
        self._subscription = subscription
        self._left = count
        self._as_json = as_json

    def take(self, line: bytes) -> bool:
        """Takes one result as JSON; whether more are wanted. Raises CommandError."""
        try:
            result = json.loads(line)
        except ValueError:
            result = None
        if not isinstance(result, dict):
            raise CommandError(1, "the broker sent a result that is no JSON object")
        if "errors" in result:
            raise CommandError(1, *http_client.messages(result))
        if self._subscription in {None, result.get("subscription")}:
            print(line.decode() if self._as_json else as_line(result), flush=True)
            if self._left is not None:
                self._left -= 1
        return self._left != 0


def _over_http(broker: Broker, subscription: str | None, printer: Printer) -> None:
    if subscription:
        _warn_of_unknown(broker, subscription)
    params = {"subscription": subscription} if subscription else {}
    with closing(http_client.stream(broker, "/v1/results", **params)) as lines:
        for line in lines:
            if not printer.take(line):
                return
    raise broker.unreachable("the broker ended the stream")


def _warn_of_unknown(broker: Broker, subscription: str) -> None:
    """It may come yet, or never: a misspelt name would be waited for in silence."""
    _status, answer = http_client.ask(broker, "GET", "/v1/subscriptions")
    names = [str(one.get("subscription")) for one in answer.get("subscriptions", [])]
    if subscription not in names:
        near = difflib.get_close_matches(subscription, names, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        complain(f"no subscription {subscription} is there yet, waiting for it{hint}")


def _count(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,17}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"found {text[:40]}, expected 1 or more")
    return int(text)
