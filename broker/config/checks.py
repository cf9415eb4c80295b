"""What has to hold between settings that are each right by themselves.

Owns these checks and their sentences. Must not know where a value came from. Invariant: a
configuration that passes never lets a stranger in from outside the machine.
"""

import ipaddress
from collections.abc import Iterator

from broker.config.links import LinksSection, address_of, seeds_of
from broker.config.mappings import faults, heard_by, may_meet, settled
from broker.config.table import Config

OPEN_DOOR = (
    '"{host}" can be reached from other machines, and no user is configured; add one '
    "(`headwater user add NAME --role administrate --file rights.toml`, with "
    '`rights = "rights.toml"` under [broker]) or listen on "127.0.0.1"'
)
LEASE_MS_MIN = 1_000  # a third of it is time enough for a question and its answer
LINKS_SECURED = "set `secret_file`, or `tls_cert`, `tls_key` and `tls_ca`,"


def is_loopback(host: str) -> bool:
    """Tell whether only programs of this machine can reach the address."""
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
        if not (
            is_loopback(host) or config.broker.rights or (key == "mqtt.host" and _certified(config))
        ):
            yield key, OPEN_DOOR.format(host=host)
    if mqtt.tls_cert and not mqtt.tls_key:
        yield "mqtt.tls_cert", "a certificate needs its key; set `tls_key`"
    if mqtt.tls_key and not mqtt.tls_cert:
        yield "mqtt.tls_key", "a key needs its certificate; set `tls_cert`"
    if mqtt.tls_client_ca and not mqtt.tls_cert:
        why = "client certificates come by TLS alone; set `tls_cert` and `tls_key`"
        yield "mqtt.tls_client_ca", why
    if not mqtt.plain and not mqtt.tls_cert:
        yield "mqtt.plain", "without TLS nobody could connect; set `tls_cert` and `tls_key`"
    yield from _joins(config)
    yield from _links(config)
    yield from _mappings(config)


def _links(config: Config) -> Iterator[tuple[str, str]]:
    """Find what is wrong within the links to other brokers."""
    links = config.links
    if config.coordinator.enabled and not links.linked:
        ways = "set `host`, `seeds`, `discover` or `peers` under [links]"
        yield "coordinator.enabled", f"there are no links to other brokers; {ways}"
    if config.coordinator.split_windows and not config.coordinator.enabled:
        why = "windows are split where tasks run at any broker; set `enabled = true` as well"
        yield "coordinator.split_windows", why
    if links.tls_cert and not links.tls_key:
        yield "links.tls_cert", "a certificate needs its key; set `tls_key`"
    if links.tls_key and not links.tls_cert:
        yield "links.tls_key", "a key needs its certificate; set `tls_cert`"
    if links.tls_ca_key and not links.tls_ca:
        yield "links.tls_ca_key", "a key needs its certificate; set `tls_ca`"
    if links.tls_ca and not links.tls_cert and links.host:
        yield "links.tls_ca", "who listens with TLS needs a certificate; set `tls_cert`, `tls_key`"
    if links.tls_cert and not links.tls_ca and links.seeks:
        yield "links.tls_cert", "the peers' certificates could not be checked; set `tls_ca`"
    if config.broker.name in links.peers:
        yield "links.peers", f"`{config.broker.name}` is this broker's own name; leave it out"
    demands = links.tls_ca and links.tls_client_certificates == "required"
    if links.host and not (is_loopback(links.host) or links.secret_file or demands):
        why = "can be reached from other machines, and any broker there could link to this one"
        yield "links.host", f'"{links.host}" {why}; {LINKS_SECURED} or listen on "127.0.0.1"'
    if not (links.secret_file or links.tls_ca):
        for host in (host for host, _ in _seeds(links.seeds) if not is_loopback(host)):
            why = f'"{host}" may be another machine, and whoever answers there would be believed'
            yield "links.seeds", f"{why}; {LINKS_SECURED}"
    yield from _discovery(links)
    yield from _lease(links)
    for name, address in links.peers.items():
        host, port = address_of(address)
        if not (is_loopback(host) or links.secret_file or links.tls_ca):
            why = f"`{name}` is on another machine, and whoever answers there would be believed"
            yield "links.peers", f"{why}; {LINKS_SECURED}"
        if links.host and is_loopback(host) and port == links.port:
            yield "links.peers", f"`{name}` at {address} would be this broker itself"


def _discovery(links: LinksSection) -> Iterator[tuple[str, str]]:
    """Check what discovery on a segment needs; see also `links.host`."""
    if not links.discover:
        return
    if links.host and is_loopback(links.host):
        why = f'"{links.host}" can be reached on this machine alone, so no broker could link to it'
        yield "links.discover", f'{why}; set host = "0.0.0.0", or leave `discover` out'
    elif not (links.host or links.secret_file or links.tls_ca):
        yield "links.discover", f"whoever announces himself would be believed; {LINKS_SECURED}"


def _lease(links: LinksSection) -> Iterator[tuple[str, str]]:
    """Check that a lease is one, and of a stand-in."""
    lease_ms = links.stand_in_lease_ms
    if 0 < lease_ms < LEASE_MS_MIN:
        why = f"{lease_ms} ms lapse before a stand-in can answer, so no result would be given out"
        yield "links.stand_in_lease_ms", f"{why}; set {LEASE_MS_MIN} or more, or 0 for none"
    if lease_ms and not links.stand_in:
        why = "nobody stands in who could take over; set `stand_in`, or leave the lease out"
        yield "links.stand_in_lease_ms", why


def _seeds(text: str) -> list[tuple[str, int]]:
    """Each seed's host and port; none where the text is faulty, which is told of by itself."""
    try:
        return seeds_of(text)
    except ValueError:
        return []


def _certified(config: Config) -> bool:
    """Tell whether nobody can connect by MQTT but with a certificate."""
    mqtt = config.mqtt
    required = mqtt.tls_client_certificates == "required"
    return bool(not mqtt.plain and mqtt.tls_cert and mqtt.tls_client_ca and required)


def _joins(config: Config) -> Iterator[tuple[str, str]]:
    """Find what is wrong within and between the servers that are joined."""
    seen: dict[tuple[str, int, str], str] = {}
    for name, join in config.joins.items():
        key = f"joins.{name}"
        if join.tls_cert and not join.tls_key:
            yield f"{key}.tls_cert", "a certificate needs its key; set `tls_key`"
        if join.tls_key and not join.tls_cert:
            yield f"{key}.tls_key", "a key needs its certificate; set `tls_cert`"
        for part in ("tls_ca", "tls_cert"):
            if getattr(join, part) and not join.tls:
                yield f"{key}.{part}", "certificates are of no use without TLS; set `tls = true`"
        if join.password and join.password_file:
            yield f"{key}.password", "the password is set twice; leave out `password_file`"
        for part in ("password", "password_file"):
            if getattr(join, part) and not join.user:
                yield f"{key}.{part}", "a password needs its user; set `user`"
        if is_loopback(join.host) and join.port in _own_ports(config):
            why = "this is the broker's own MQTT face, unless that gets another port"
            yield f"{key}.port", f"{why}: set this one or that under [mqtt]"
        where = (join.host, join.port, join.client_id)
        if where in seen:
            why = f"[joins.{seen[where]}] is at the same place under the same client identifier"
            yield f"{key}.client_id", f"{why}; each would throw out the other: name another"
        seen.setdefault(where, name)


def _mappings(config: Config) -> Iterator[tuple[str, str]]:
    """Find what is wrong within mappings, and which take what is Headwater's own."""
    prefixes = {"mqtt.prefix": config.mqtt.prefix}
    prefixes |= {f"joins.{name}.prefix": join.prefix for name, join in config.joins.items()}
    for name, section in config.mappings.items():
        key = f"mappings.{name}"
        wrong = list(faults(section))
        yield from ((f"{key}.{part}", why) for part, why in wrong)
        topic = settled(section).topic
        taken = "" if wrong else heard_by(settled(section))
        met = next((k for k, v in prefixes.items() if taken and may_meet(taken, v)), "")
        if met:
            why = f"`{topic}` would take topics below `{prefixes[met]}` ({met})"
            setting = "topic" if section.topic else "preset"
            yield f"{key}.{setting}", f"{why}, which are Headwater's own; name others"


def _own_ports(config: Config) -> list[int]:
    """Give the ports of the broker's own MQTT face; joined to itself it would talk for ever."""
    mqtt = config.mqtt
    return [*([mqtt.port] if mqtt.plain else []), *([mqtt.tls_port] if mqtt.tls_cert else [])]
