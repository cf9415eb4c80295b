"""What has to hold between settings that are each right by themselves.

Owns these checks and their sentences. Must not know where a value came from. Invariant: a
configuration that passes never lets a stranger in from outside the machine.
"""

import ipaddress
from collections.abc import Iterator

from broker.config.table import Config

OPEN_DOOR = (
    '"{host}" can be reached from other machines, and no user is configured; add one '
    "(`headwater user add NAME` prints the line for [mqtt.users]) "
    'or listen on "127.0.0.1"'
)


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine can reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def contradictions(config: Config) -> Iterator[tuple[str, str]]:
    """The dotted key that is to change, and why and how."""
    mqtt, http = config.mqtt, config.http
    listening = {"mqtt.host": mqtt.host}
    if http.enabled:
        listening["http.host"] = http.host
    for key, host in listening.items():
        if not is_loopback(host) and not mqtt.users:
            yield key, OPEN_DOOR.format(host=host)
    if mqtt.tls_cert and not mqtt.tls_key:
        yield "mqtt.tls_cert", "a certificate needs its key; set `tls_key`"
    if mqtt.tls_key and not mqtt.tls_cert:
        yield "mqtt.tls_key", "a key needs its certificate; set `tls_cert`"
    if not mqtt.plain and not mqtt.tls_cert:
        yield "mqtt.plain", "without TLS nobody could connect; set `tls_cert` and `tls_key`"
