"""What the brokers of a network answer, asked side by side.

Owns the asking of several brokers at once. Must not know what is done with answers. Invariant: each
broker that was asked has one answer or one reason why not, in the order of the context.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from headwater.cli import http_client
from headwater.cli.output import CommandError
from headwater.cli.reach import BrokerAddress

AT_ONCE_MAX = 16
ABSENT = (404, 409)  # an older broker, or one without links


@dataclass(slots=True)
class BrokerAnswers:
    """One broker's answers by path; `error` where it gave none."""

    broker: BrokerAddress
    by_path: dict[str, dict[str, Any]] = field(default_factory=dict)
    error: CommandError | None = None

    @property
    def name(self) -> str:
        """Return the broker's own name, or its address where it did not say."""
        for answer in self.by_path.values():
            if "broker" in answer:
                return str(answer["broker"])
        return self.broker.url


def ask_all(brokers: Sequence[BrokerAddress], paths: Sequence[str]) -> list[BrokerAnswers]:
    """Ask each of `brokers` for all `paths`; a path that a broker does not have is left out.

    Raises CommandError: that of the first where none of them answers, or an address is no HTTP.
    """
    need_http(brokers)
    with ThreadPoolExecutor(min(len(brokers), AT_ONCE_MAX)) as pool:
        answers = list(pool.map(lambda broker: ask_one(broker, paths), brokers))
    if all(answer.error is not None for answer in answers):
        raise next(answer.error for answer in answers if answer.error is not None)
    return answers


def need_http(brokers: Sequence[BrokerAddress]) -> None:
    """Refuse addresses of another scheme. Raises CommandError."""
    for broker in brokers:
        if broker.is_mqtt:
            raise CommandError(2, f"{broker.url}: this is asked over HTTP; name http:// addresses")


def ask_one(broker: BrokerAddress, paths: Sequence[str]) -> BrokerAnswers:
    """Ask one broker for all `paths`; where it does not answer, that is its answer."""
    answers = BrokerAnswers(broker)
    try:
        for path in paths:
            status, answer = http_client.ask(broker, "GET", path)
            if status in {200, 503}:  # not ready is an answer, too
                answers.by_path[path] = answer
            elif status not in ABSENT:
                raise http_client.refused(answer)
    except CommandError as error:
        answers.error = error
    return answers
