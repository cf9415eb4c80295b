"""`headwater submit`: a specification into a running broker.

Owns the command's options and output. Must not judge the text: the broker does. Invariant: status 0
means that the broker has accepted every subscription of the file, and with --wait that all of them
are active; with --dry-run that it would, and that nothing has changed.
"""

import argparse
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from headwater.cli import http_client
from headwater.cli.output import CommandError, complain, print_json, read_text
from headwater.cli.reach import NOT_IN_TIME, BrokerAddress, add_options, broker_of
from headwater.cli.specifications.diagnostics import rendered

EXAMPLE = "  headwater submit examples/weather.hw --wait"
CHANGES = {
    "new": "new",
    "same": "there already, goes on with its state",
    "changed": "changed, goes on with its state",
}
ANEW = "changed, begins anew"
LOOK_EVERY_S = 0.2
ACTIVE, ENDED = "active", "ended"  # what has ended was active


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("spec", metavar="SPEC.hw", help="the specification; - is standard input")
    parser.add_argument(
        "--wait",
        action="store_true",
        help="until every subscription is active everywhere, for as long as --timeout says",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="change nothing; say what would begin, keep its state and end, how much what begins"
        " can hold, and what would travel",
    )
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Submits; 2 where the specification is faulty, 1 where it is not active in time."""
    if arguments.dry_run and arguments.wait:
        raise CommandError(2, "--wait: with --dry-run there is nothing to wait for")
    text = read_text(arguments.spec)
    broker = broker_of(arguments)
    if arguments.dry_run:
        reply = _asked(broker, "preview", "/v1/preview", text)
    else:
        reply = _submitted(broker, text, wait=arguments.wait)
    if arguments.json:
        print_json(reply)
    if reply.get("ok") is not True:
        if not arguments.json:
            complain(rendered(arguments.spec, text, reply.get("errors") or [{}]))
        return 2
    if arguments.dry_run and not arguments.json:
        print("\n".join(_previewed(reply)))
    elif not arguments.json:
        names = ", ".join(map(str, reply.get("subscriptions", []))) or "nothing to run"
        print(f"{ACTIVE if arguments.wait else 'installed'}: {names}")
        for line in _changed(reply.get("changes", [])):
            print(line)
    return 0


def _submitted(broker: BrokerAddress, text: str, *, wait: bool) -> dict[str, Any]:
    """The broker's answer; with `wait` the one that all is active, or a refusal."""
    reply = _asked(broker, "submit", "/v1/subscriptions", text, last=wait)
    if wait and not broker.is_mqtt and reply.get("ok") is True:
        _wait(broker, [str(name) for name in reply.get("subscriptions", [])])
        reply["state"] = ACTIVE
    return reply


def _asked(
    broker: BrokerAddress, verb: str, path: str, text: str, *, last: bool = False
) -> dict[str, Any]:
    """Return what the broker answers to a text."""
    if broker.is_mqtt:
        from headwater.cli import mqtt_client

        return mqtt_client.run(mqtt_client.ask(broker, verb, text, last=last))
    _status, reply = http_client.ask(broker, "POST", path, text, client=broker.client)
    return reply


def _previewed(reply: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a preview."""
    yield from _changed(reply.get("subscriptions", []))
    for name in reply.get("ends", []):
        yield f"{name}: ends, as nobody needs it then"
    for key, title in (("bounds", "Holds"), ("travels", "Travels")):
        for task in reply.get(key, []):
            for line in task["lines"]:
                yield f"{title}: {task['task']}: {line}"


def _changed(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines on what becomes of subscriptions and of the definitions under them."""
    for row in rows:
        begins = row["change"] == "changed" and not row.get("goes_on")
        change = ANEW if begins else CHANGES[row["change"]]
        yield f"{row['subscription']} of {row['subscriber']}: {change}"
        for key, words in (("keeps", "goes on with its state"), ("begins", "begins with nothing")):
            for name in row[key]:
                yield f"  {name}: {words}"
        for task in row.get("parts", []):
            for line in task["lines"]:
                yield f"  {task['task']}: what is held of {line} goes on"


def _wait(broker: BrokerAddress, names: list[str]) -> None:
    """Asks until all are active, at most for the time that the options allow.

    Of a name that several subscribers use, until all of them are: the answer gives names alone.
    """
    deadline = time.monotonic() + broker.timeout_s
    while True:
        _status, listed = http_client.ask(broker, "GET", "/v1/subscriptions")
        states: dict[str, list[str]] = {name: [] for name in names}
        away: dict[str, None] = {}
        for subscription in listed.get("subscriptions", []):
            states.get(subscription.get("subscription"), []).append(str(subscription.get("state")))
            if subscription.get("subscription") in states:
                away |= dict.fromkeys(map(str, subscription.get("waits_for", [])))
        waiting = {name: reported for name, reported in states.items() if not _all_active(reported)}
        if not waiting:
            return
        if time.monotonic() > deadline:
            unready = [
                f"{name} ({', '.join(reported) or 'not listed'})"
                for name, reported in waiting.items()
            ]
            waits = f"; it waits for {', '.join(away)}, away" if away else ""
            raise CommandError(1, f"{NOT_IN_TIME}: {', '.join(unready)}{waits}")
        time.sleep(LOOK_EVERY_S)


def _all_active(states: list[str]) -> bool:
    return bool(states) and all(state in {ACTIVE, ENDED} for state in states)
