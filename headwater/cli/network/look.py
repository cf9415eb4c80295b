"""One look at a network, or two with a time between them, for the commands that show it.

Owns the options for that. Must not know how a network is shown. Invariant: a broker that does not
answer is told on standard error, and the status is 1 then.
"""

import argparse
import time
from collections.abc import Sequence

from headwater.cli.network.answers import BrokerAnswers, ask_all
from headwater.cli.network.picture import LinkFlow, NetworkPicture, with_rates
from headwater.cli.output import CommandError, complain
from headwater.cli.reach import BrokerAddress

PATH = "/v1/network"
NO_LINKS = "no broker that answered has links: there is no network to show"


def add_interval(parser: argparse.ArgumentParser) -> None:
    """Add the option for the time between two looks."""
    parser.add_argument(
        "--interval",
        type=_interval,
        default=1.0,
        metavar="SECONDS",
        help="look twice, so far apart, to see rates (default 1; 0: look once, totals alone)",
    )


def _interval(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"found {text[:40]}, expected 0 to 3600 seconds")
    return value


def seen(
    brokers: Sequence[BrokerAddress], interval_s: float
) -> tuple[NetworkPicture, list[LinkFlow], int]:
    """Return the network, its flows, and the status: 1 where a broker did not answer.

    Raises CommandError where nobody answers, or nobody has links.
    """
    first = _picture(ask_all(brokers, [PATH]))
    if not interval_s:
        return *first[:1], first[0].flows(), _told(first[1])
    time.sleep(interval_s)
    picture, silent = _picture(ask_all(brokers, [PATH]))
    return picture, with_rates(first[0], picture), _told(silent)


def _picture(answers: Sequence[BrokerAnswers]) -> tuple[NetworkPicture, list[CommandError]]:
    views = [answer.by_path[PATH] for answer in answers if PATH in answer.by_path]
    if not views:
        raise CommandError(1, NO_LINKS)
    return NetworkPicture(views), [answer.error for answer in answers if answer.error is not None]


def _told(silent: Sequence[CommandError]) -> int:
    for error in silent:
        for text in error.messages:
            complain(f"headwater: {text}")
    return 1 if silent else 0
