"""A broker's HTTP face as the commands use it.

Owns the requests and the reading of answers, with the standard library alone, as a command should
start at once. Must not know what the commands do with them. Invariant: an answer is bounded, and
every failure to get one is a CommandError.
"""

import base64
import http.client
import json
import os
import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO
from urllib.parse import quote, urlencode

from headwater.cli.output import CommandError
from headwater.cli.reach import BrokerAddress, tls_reason

ANSWER_BYTES_MAX = 2**24
SILENCE_S_MAX = 60.0  # a live stream gives a sign of life far more often


def ask(
    broker: BrokerAddress, method: str, path: str, body: str | None = None, **params: str
) -> tuple[int, dict[str, Any]]:
    """One request and its JSON answer. Raises CommandError where there is none to be had."""
    connection = _connection(broker, broker.timeout_s)
    try:
        _send(connection, broker, method, _target(broker, path, params), body)
        answer = connection.getresponse()
        data = answer.read(ANSWER_BYTES_MAX + 1)
        _refuse_strangers(broker, answer.status, data)
        return answer.status, _decoded(broker, data)
    except (OSError, UnicodeError, http.client.HTTPException) as error:
        raise broker.unreachable(_reason(error)) from None
    finally:
        connection.close()


def stream(broker: BrokerAddress, path: str, **params: str) -> Generator[bytes, None, None]:
    """The lines of an endless answer; signs of life are left out. Raises CommandError."""
    connection = _connection(broker, max(broker.timeout_s, SILENCE_S_MAX))
    try:
        _send(connection, broker, "GET", _target(broker, path, params), None)
        answer = connection.getresponse()
        if answer.status != 200:
            data = answer.read(ANSWER_BYTES_MAX)
            _refuse_strangers(broker, answer.status, data)
            raise refused(_decoded(broker, data))
        while line := answer.readline(ANSWER_BYTES_MAX):
            if line.strip():
                yield line.strip()
    except (OSError, UnicodeError, http.client.HTTPException) as error:
        raise broker.unreachable(_reason(error)) from None
    finally:
        connection.close()


@contextmanager
def download(broker: BrokerAddress, path: str) -> Iterator[BinaryIO]:
    """An answer of any length, to read; CommandError where there is none, or not all of it."""
    connection = _connection(broker, max(broker.timeout_s, SILENCE_S_MAX))
    try:
        _send(connection, broker, "GET", _target(broker, path, {}), None)
        answer = connection.getresponse()
        if answer.status != 200:
            data = answer.read(ANSWER_BYTES_MAX)
            _refuse_strangers(broker, answer.status, data)
            raise refused(_decoded(broker, data))
    except (OSError, UnicodeError, http.client.HTTPException) as error:
        connection.close()
        raise broker.unreachable(_reason(error)) from None
    except CommandError:
        connection.close()
        raise
    try:
        yield answer
    except (ConnectionError, TimeoutError, http.client.HTTPException):
        sentence = "the answer ended before it was whole; nothing was kept of it: try again"
        raise CommandError(1, sentence) from None
    finally:
        connection.close()


def path_of(*parts: str) -> str:
    """A path whose parts may hold any character."""
    return "".join("/" + quote(part, safe="") for part in parts)


def refused(reply: dict[str, Any], status: int = 1, *, hint: str = "") -> CommandError:
    """The error for a refusal: its sentences, with the broker's hints or this one."""
    value = reply.get("errors")
    listed = value if isinstance(value, list) else []
    errors = [error for error in listed if isinstance(error, dict) and "message" in error]
    errors = errors or [{"message": "the broker refused without a reason"}]
    sentences = []
    for error in errors:
        sentences.append(str(error["message"]))
        if error.get("hint"):
            sentences[-1] += f"; {error['hint']}"
    if hint:
        sentences.append(hint)
        errors.append({"message": hint})
    return CommandError(status, *sentences, errors=errors)


def _connection(broker: BrokerAddress, timeout_s: float) -> http.client.HTTPConnection:
    kind = http.client.HTTPSConnection if broker.encrypted else http.client.HTTPConnection
    return kind(broker.host, broker.port, timeout=timeout_s)


def _target(broker: BrokerAddress, path: str, params: dict[str, str]) -> str:
    before = f"/{broker.path}" if broker.path else ""
    return before + path + ("?" + urlencode(params) if params else "")


def _send(
    connection: http.client.HTTPConnection,
    broker: BrokerAddress,
    method: str,
    target: str,
    body: str | None,
) -> None:
    headers = {"Accept": "application/json"}
    if body is not None:
        headers["Content-Type"] = "text/plain; charset=utf-8"
    if broker.user is not None:
        login = f"{broker.user}:{broker.password}".encode()
        headers["Authorization"] = "Basic " + base64.b64encode(login).decode()
    elif broker.token is not None:
        headers["Authorization"] = f"Bearer {broker.token}"
    data = None if body is None else body.encode("utf-8", "surrogatepass")
    connection.request(method, target, data, headers)


def _refuse_strangers(broker: BrokerAddress, status: int, data: bytes) -> None:
    if status == 401 and broker.user is None and broker.token is not None:
        raise CommandError(2, f"{broker.url} does not take this token (HEADWATER_TOKEN)")
    if status == 401:
        wrong = "does not know this user and password" if broker.user else "has users"
        raise CommandError(2, f"{broker.url} {wrong}; name one with --user")
    if status == 403:
        raise refused(_decoded(broker, data), 2)


def _decoded(broker: BrokerAddress, data: bytes) -> dict[str, Any]:
    if len(data) > ANSWER_BYTES_MAX:
        raise CommandError(1, f"the answer is longer than {ANSWER_BYTES_MAX} bytes")
    try:
        value = json.loads(data)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise broker.unreachable("what answers there is no Headwater broker")
    return value


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if (reason := tls_reason(error)) is not None:
        return reason
    if isinstance(error, socket.gaierror | UnicodeError):  # a name that cannot be one
        return "no such host"
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()
    return "what answers there does not speak HTTP"
