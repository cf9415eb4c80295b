"""A running broker as a program talks to it: submit, cancel, list, follow results, publish events.

Owns the requests and the errors that a program sees. Must not know how a broker answers: the
commands' own requests are used. Invariant: whatever goes wrong is a ClientError.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from headwater.cli import http_client
from headwater.cli.output import CommandError
from headwater.cli.reach import DEFAULT_BROKER, EXIT_UNREACHABLE, BrokerAddress, broker_at
from headwater.events import Event
from headwater.remote import ClientError

if TYPE_CHECKING:
    from headwater.publisher import Publisher

BATCH_EVENTS = 500  # of one payload
ROWS = 1_000  # of the log at a time
LOOK_EVERY_S = 0.1


class Client:
    """A broker at an `address`: http://, https://, mqtt:// or mqtts://, as for the commands.

    `user` and `password` where the broker has users, or over HTTP a `token` (HEADWATER_TOKEN where
    neither is given); else `name` is the client's, by which it may
    replace and cancel what it has submitted. Every call waits for its answer, `timeout_s` at most;
    in a program with asyncio, call it in a thread. All raise ClientError.
    """

    def __init__(
        self,
        address: str = DEFAULT_BROKER,
        *,
        user: str | None = None,
        password: str | None = None,
        token: str | None = None,
        name: str | None = None,
        timeout_s: float = 10.0,
    ) -> None:
        broker = broker_for(address, user, password, name, timeout_s)
        if token is not None and (user is not None or broker.is_mqtt):
            raise ClientError("a token stands for a user and is for http:// and https:// alone")
        if token is None and user is None:
            token = os.environ.get("HEADWATER_TOKEN")
        self._broker = replace(broker, token=token)

    def submit(self, text: str, *, wait: bool = True) -> dict[str, Any]:
        """Install a specification: all of it, or nothing. The same text again changes nothing.

        With `wait`, until every subscription is active everywhere. The answer names `subscriptions`
        and `definitions`.
        """
        if not isinstance(text, str):
            raise TypeError(f"found a text of type {type(text).__name__}, expected str")
        with _told():
            if self._broker.is_mqtt:
                return _good(self._asked("submit", text, last=wait))
            path = "/v1/subscriptions"
            _, reply = http_client.ask(self._broker, "POST", path, text, client=self._broker.client)
        reply = _good(reply)
        if wait:
            self._wait(reply["subscriptions"])
            reply["state"] = "active"
        return reply

    def cancel(self, name: str) -> None:
        """End a subscription of this client."""
        with _told():
            if self._broker.is_mqtt:
                reply = self._asked("cancel", name)
            else:
                path = http_client.path_of("v1", "subscriptions", name)
                _, reply = http_client.ask(self._broker, "DELETE", path, client=self._broker.client)
        _good(reply)

    def subscriptions(self) -> list[dict[str, Any]]:
        """Return the installed subscriptions, in the order of their installation."""
        with _told():
            if self._broker.is_mqtt:
                reply = _good(self._asked("list", ""))
            else:
                status, reply = http_client.ask(self._broker, "GET", "/v1/subscriptions")
                _good({"ok": status == 200, **reply})
        listed: list[dict[str, Any]] = reply["subscriptions"]
        return listed

    def results(self, subscription: str | None = None) -> Iterator[dict[str, Any]]:
        """Results as they come, from now on; of one subscription, or all. HTTP only.

        Ends with a ClientError when the broker does.
        """
        self._needs_http("results are followed")
        params = {} if subscription is None else {"subscription": subscription}
        with _told(), closing(http_client.stream(self._broker, "/v1/results", **params)) as lines:
            for line in lines:
                yield json.loads(line)
        raise ClientError(f"{self._broker.url} ended the stream", reached=False)

    def log(self, offset: int = 0, to: int | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
        """Offset and result of what the broker's log holds from `offset` on, before `to` or to its
        end at this moment. HTTP only.
        """
        self._needs_http("the log is read")
        offsets = self._got("/v1/log/offsets")
        epoch = str(offsets["epoch"])
        end = int(offsets["end"]) if to is None else to
        while offset < end:
            upto = min(end, offset + ROWS)
            body = self._got("/v1/log", epoch=epoch, **{"from": str(offset), "to": str(upto)})
            for row in body["rows"]:
                yield row["offset"], row["result"]
            offset = int(body["to"])

    def publish(self, events: Iterable[Event | Mapping[str, Any]]) -> int:
        """Publish events until the broker has acknowledged them; how many messages it refused.

        Each needs a type and a source. MQTT only; `headwater/rejected` says why one was refused.
        """
        if isinstance(events, Mapping | Event | str | bytes):
            raise TypeError("publish takes a batch; put the event into a list")
        name = f"headwater-{secrets.token_hex(8)}"
        publisher = publisher_for(self._broker, name, self._broker.timeout_s)
        try:
            publish(publisher, events)
            publisher.wait(self._broker.timeout_s)
        finally:
            publisher.close()
        return publisher.refused

    def _asked(self, verb: str, body: str, *, last: bool = False) -> dict[str, Any]:
        from headwater.cli import mqtt_client

        return mqtt_client.run(mqtt_client.ask(self._broker, verb, body, last=last))

    def _got(self, path: str, **params: str) -> dict[str, Any]:
        with _told():
            status, reply = http_client.ask(self._broker, "GET", path, **params)
        if status == 413 and "fits" in reply:
            return self._got(path, **(params | {"to": str(reply["fits"])}))
        return _good({"ok": status == 200, **reply})

    def _wait(self, names: list[str]) -> None:
        deadline = time.monotonic() + self._broker.timeout_s
        while True:
            # Of a name that several subscribers use, until all are: the answer gives names alone.
            listed = self.subscriptions()
            waiting = set(names) - {subscription["subscription"] for subscription in listed}
            waiting |= {
                subscription["subscription"]
                for subscription in listed
                if subscription["subscription"] in names
                and subscription["state"] not in {"active", "ended"}
            }
            if not waiting:
                return
            if time.monotonic() > deadline:
                raise ClientError(f"accepted, but not active in time: {', '.join(sorted(waiting))}")
            time.sleep(LOOK_EVERY_S)

    def _needs_http(self, what: str) -> None:
        if self._broker.is_mqtt:
            raise ClientError(f"{what} by HTTP; {self._broker.url} is no http://")


def broker_for(
    address: str, user: str | None, password: str | None, name: str | None, timeout_s: float
) -> BrokerAddress:
    """Return a broker's address together with who calls. Raises ClientError."""
    if not isinstance(address, str):
        raise TypeError(f"found an address of type {type(address).__name__}, expected str")
    if not timeout_s > 0:
        raise ValueError(f"found timeout_s {timeout_s}, expected more than 0")
    with _told():
        broker = broker_at(address, user, name, timeout_s)
        return replace(broker, password=password, remedy="is it running?")


def publisher_for(
    broker: BrokerAddress, client_id: str, patience_s: float | None = None
) -> Publisher:
    """One that is connected; see Publisher. Raises ClientError."""
    from headwater.publisher import Publisher

    if not broker.is_mqtt:
        raise ClientError(f"events are published by MQTT; {broker.url} is no mqtt://")
    publisher = Publisher(broker, client_id, patience_s)
    publisher.open()
    return publisher


def publish(
    publisher: Publisher,
    events: Iterable[Event | Mapping[str, Any]],
    defaults: Mapping[str, Any] | None = None,
) -> None:
    """Hand events to a publisher, those of one type and source in a row together."""
    completed = (_completed(_plain(event), defaults or {}) for event in events)
    for (event_type, source), several in groupby(completed, _topic):
        while batch := list(islice(several, BATCH_EVENTS)):
            publisher.send(event_type, source, batch)


def _completed(said: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {**said, **{key: value for key, value in defaults.items() if said.get(key) is None}}


def _plain(event: Event | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(event, Event):
        return event.to_dict()
    if not isinstance(event, Mapping):
        raise TypeError(f"found an event of type {type(event).__name__}, expected a mapping")
    return event


def _topic(event: Mapping[str, Any]) -> tuple[str, str]:
    return _of(event, "type"), _of(event, "source")


def _of(event: Mapping[str, Any], key: str) -> str:
    value = event.get(key) or ""
    if not isinstance(value, str):
        raise ClientError(f"found {key} {value!r} of an event, expected a text")
    return value


def _good(reply: dict[str, Any]) -> dict[str, Any]:
    """The answer. Raises ClientError where it is a refusal."""
    if reply.get("ok") is True:
        return reply
    error = http_client.refused(reply)
    raise ClientError("\n".join(error.messages), error.errors)


@contextmanager
def _told() -> Generator[None]:
    try:
        yield
    except CommandError as error:
        reached = error.status != EXIT_UNREACHABLE
        raise ClientError("\n".join(error.messages), error.errors, reached=reached) from None
