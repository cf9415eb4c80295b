"""A broker's MQTT face as the commands use it.

Owns the topics of a request, its answer and the results, through aiomqtt. Must not know what the
commands do with them. Invariant: every failure is a CommandError, and the connection is closed.
"""

import asyncio
import json
import re
import secrets
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import aiomqtt
from aiomqtt.exceptions import MqttConnectError
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from headwater.cli.output import CommandError
from headwater.cli.reach import NOT_IN_TIME, BrokerAddress, tls_reason

DEFAULT_PREFIX = "headwater"
ACCEPTED = "accepted"  # the state in an answer that another follows

REFUSED_FROM = 0x80  # reason codes from here on are failures

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs to the end in a loop of its own."""
    return asyncio.run(coroutine)


async def ask(broker: BrokerAddress, verb: str, body: str, *, last: bool = False) -> dict[str, Any]:
    """Sends one request and returns the reply, or the `last` where one more follows.

    Raises CommandError.
    """
    prefix = broker.path or DEFAULT_PREFIX
    request = secrets.token_hex(8)
    reply_topic = f"{prefix}/reply/{broker.client}/{request}"
    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    properties.ResponseTopic = reply_topic
    accepted: dict[str, Any] = {}
    async with _connected(broker) as client:
        try:
            async with asyncio.timeout(broker.timeout_s):
                await _subscribe(client, reply_topic)
                await client.publish(
                    f"{prefix}/{verb}/{broker.client}/{request}", body, qos=1, properties=properties
                )
                async for message in client.messages:
                    accepted = _decoded(message.payload)
                    if not last or accepted.get("state") != ACCEPTED:
                        return accepted
        except TimeoutError:
            if accepted:
                names = ", ".join(map(str, accepted.get("subscriptions", [])))
                raise CommandError(1, f"{NOT_IN_TIME}: {names}") from None
            raise broker.unreachable("no reply in time") from None
    raise broker.unreachable("the connection ended")


async def follow(broker: BrokerAddress, take: Callable[[bytes], bool]) -> None:
    """Hands over the results of every subscription as JSON until `take` wants no more."""
    async with _connected(broker) as client:
        await _subscribe(client, f"{broker.path or DEFAULT_PREFIX}/results/#")
        async for message in client.messages:
            if not take(message.payload):
                return
    raise broker.unreachable("the connection ended")


async def _subscribe(client: aiomqtt.Client, topic: str) -> None:
    (granted,) = await client.subscribe(topic, qos=1)
    code = granted if isinstance(granted, int) else granted.value
    if code >= REFUSED_FROM:
        raise CommandError(2, f"the broker does not let this client subscribe to {topic}")


@asynccontextmanager
async def _connected(broker: BrokerAddress) -> AsyncIterator[aiomqtt.Client]:
    client = aiomqtt.Client(
        broker.host,
        broker.port,
        username=broker.user,
        password=broker.password,
        identifier=f"headwater-{secrets.token_hex(8)}",
        protocol=aiomqtt.ProtocolVersion.V5,
        timeout=broker.timeout_s,
        tls_context=ssl.create_default_context() if broker.encrypted else None,
    )
    try:
        async with client:
            yield client
    except (aiomqtt.MqttError, UnicodeError) as error:
        raise why(broker, error) from None


def why(broker: BrokerAddress, error: Exception) -> CommandError:
    """Return the message for an error on connecting, or for the end of a connection."""
    if isinstance(error, UnicodeError):  # of a name that cannot be one
        return broker.unreachable("no such host")
    reason = re.sub(r"^\[(Errno|code).*?\] ", "", str(error)).lower()
    if isinstance(error, MqttConnectError):
        return CommandError(2, f"{broker.url} refused the connection: {reason}")
    return broker.unreachable(tls_reason(error) or reason or "the connection ended")


def _decoded(payload: bytes) -> dict[str, Any]:
    try:
        value = json.loads(payload)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise CommandError(1, "the broker's reply is no JSON object")
    return value
