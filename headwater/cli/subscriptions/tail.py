"""`headwater tail`: results of a running broker as they come, or from an offset of its log on.

Owns the command's options and output. Must not know what results mean. Invariant: every result that
arrives is printed before the next is read.
"""

import argparse
import json
import re
from contextlib import closing
from typing import Any

from headwater.cli import http_client
from headwater.cli.output import CommandError, complain, leave_with_reader
from headwater.cli.reach import BrokerAddress, add_options, broker_of
from headwater.cli.subscriptions.results import as_line

EXAMPLE = "  headwater tail ColdStation --count 3"
ROWS_AT_A_TIME = 500
WAIT_S = 20.0  # for the next result, before it is asked for again


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "subscription", metavar="SUBSCRIPTION", nargs="?", help="only this one's results"
    )
    parser.add_argument(
        "--from",
        dest="offset",
        type=_offset,
        metavar="OFFSET",
        help="results of the broker's log from this offset on, each told with its own (HTTP only)",
    )
    parser.add_argument("-n", "--count", type=_count, metavar="N", help="end after so many results")
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Follows until Ctrl-C, the count or nobody reads; 3 where the broker goes away before."""
    broker = broker_of(arguments)
    leave_with_reader()
    printer = Printer(arguments.subscription, arguments.count, as_json=arguments.json)
    try:
        if arguments.offset is not None:
            _from_log(broker, arguments.subscription, arguments.offset, printer)
        elif broker.is_mqtt:
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
            raise http_client.refused(result)
        return self._print(result, line.decode())

    def take_row(self, offset: int, result: dict[str, Any]) -> bool:
        """Takes one result of the log, which is told with its offset; whether more are wanted."""
        return self._print(result, json.dumps({"offset": offset} | result), f"{offset} ")

    def _print(self, result: dict[str, Any], as_json: str, before: str = "") -> bool:
        if self._subscription in {None, result.get("subscription")}:
            print(as_json if self._as_json else before + as_line(result), flush=True)
            if self._left is not None:
                self._left -= 1
        return self._left != 0


def _over_http(broker: BrokerAddress, subscription: str | None, printer: Printer) -> None:
    if subscription:
        _warn_of_unknown(broker, subscription)
    params = {"subscription": subscription} if subscription else {}
    with closing(http_client.stream(broker, "/v1/results", **params)) as lines:
        for line in lines:
            if not printer.take(line):
                return
    raise broker.unreachable("the broker ended the stream")


def _from_log(
    broker: BrokerAddress, subscription: str | None, offset: int, printer: Printer
) -> None:
    """Follows the log, range by range, and waits where it ends."""
    if broker.is_mqtt:
        raise CommandError(2, "--from needs a broker's http:// address: the log is kept there")
    if subscription:
        _warn_of_unknown(broker, subscription)
    log = _asked(broker, "/v1/log/offsets")
    epoch, end = str(log["epoch"]), int(log["end"])
    wait_s = min(WAIT_S, broker.timeout_s / 2)
    if offset > end:
        raise CommandError(1, f"the log ends at offset {end}: there is no {offset} yet")
    while True:
        while offset < end:
            to = min(end, offset + ROWS_AT_A_TIME)
            body = _asked(broker, "/v1/log", epoch=epoch, **{"from": str(offset), "to": str(to)})
            for row in body["rows"]:
                if not printer.take_row(row["offset"], row["result"]):
                    return
            offset = int(body["to"])
        offsets = _asked(
            broker, "/v1/log/offsets", epoch=epoch, after=str(offset), wait=f"{wait_s:.3f}"
        )
        end = int(offsets["end"])


def _asked(broker: BrokerAddress, path: str, **params: str) -> dict[str, Any]:
    """A good answer; a range that is too large is asked for in a smaller one."""
    status, answer = http_client.ask(broker, "GET", path, **params)
    if status == 413 and "fits" in answer:
        return _asked(broker, path, **(params | {"to": str(answer["fits"])}))
    if status == 410:
        raise http_client.refused(answer, hint=f"begin with --from {answer.get('earliest')}")
    if status != 200:
        raise http_client.refused(answer)
    return answer


def _warn_of_unknown(broker: BrokerAddress, subscription: str) -> None:
    """It may come yet, or never: a misspelt name would be waited for in silence."""
    _status, answer = http_client.ask(broker, "GET", "/v1/subscriptions")
    names = [str(listed.get("subscription")) for listed in answer.get("subscriptions", [])]
    if subscription not in names:
        from language.suggest import nearest

        near = nearest(subscription, names)
        hint = f"; did you mean {near}?" if near else ""
        complain(f"no subscription {subscription} is there yet, waiting for it{hint}")


def _offset(text: str) -> int:
    if not re.fullmatch(r"\d{1,18}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"found {text[:40]}, expected an offset: 0 or more")
    return int(text)


def _count(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,17}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"found {text[:40]}, expected 1 or more")
    return int(text)
