"""The form in which a broker announces itself on a segment, and what of an announcement is of use.

Owns the service's type, label and TXT record, the tags of a network, and which announced addresses
are worth asking. Must not know sockets, nor any library. Invariant: an announcement says a label,
addresses, a port and tags of 16 bits, and nothing else.

A tag tells networks on one segment apart, so that their brokers do not try each other for ever. It
is the beginning of an HMAC under the link secret, or, where certificates alone secure links, under
the authority's certificate. It is short on purpose: whoever guesses at a weak secret could check
each guess with a long tag, unseen and without a connection. Of a list of guesses 16 bits leave
every 65,536th, each of which still has to be tried in a handshake; against a random secret they are
of no use. Two networks with one tag cost each other a failed handshake now and then.
"""

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from broker.links.securing import Security

Address = tuple[str, int]
Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface

SERVICE = "_headwater._tcp.local."
LABEL_BYTES_MAX = 63  # of DNS
LABEL_DIGITS = 8  # of the digest in the label of a longer name
TAG_DIGITS = 4  # 16 bits, see above
TAGS_MAX = 4  # two secrets while a network changes its own, or as many authorities
ADDRESSES_MAX = 8  # of one broker, as a stranger may announce any number
CONTEXT = b"headwater discovery 1"
FORMAT = b"1"
_TAG = re.compile(rf"[0-9a-f]{{{TAG_DIGITS}}}")


class Announcement(Struct, frozen=True):
    """One broker as it announces itself: its label, addresses, link port and networks' tags."""

    label: str
    addresses: tuple[str, ...]
    port: int
    tags: tuple[str, ...]


def network_tags(security: Security) -> tuple[str, ...]:
    """Return the tags of the network: of each valid secret, else of each authority."""
    keys = [secret for secret in security.secrets if secret]
    if not keys and security.dialling is not None:
        keys = security.dialling.get_ca_certs(binary_form=True)
    digests = (hmac.new(key, CONTEXT, hashlib.sha256) for key in keys or [b""])
    return tuple(dict.fromkeys(digest.hexdigest()[:TAG_DIGITS] for digest in digests))[:TAGS_MAX]


def label_of(name: str) -> str:
    """Return what a broker is announced as: its name as one label of DNS, whatever its length."""
    label = name.replace(".", "-")
    if len(label.encode()) <= LABEL_BYTES_MAX:
        return label
    digest = hashlib.sha256(name.encode()).hexdigest()[:LABEL_DIGITS]
    kept = label.encode()[: LABEL_BYTES_MAX - LABEL_DIGITS - 1].decode(errors="ignore")
    return f"{kept}-{digest}"


def properties_of(tags: Sequence[str]) -> dict[str | bytes, str | bytes | None]:
    """Return the TXT record."""
    return {b"txtvers": FORMAT, b"net": ",".join(tags).encode()}


def tags_of(properties: Mapping[bytes, bytes | None]) -> tuple[str, ...]:
    """Return the tags in a TXT record; none where it is of another format."""
    if properties.get(b"txtvers") != FORMAT:
        return ()
    texts = (properties.get(b"net") or b"").decode(errors="replace").split(",")
    return tuple(tag for tag in texts[:TAGS_MAX] if _TAG.fullmatch(tag))


def own_addresses(bound: Iterable[str], interfaces: Iterable[Interface]) -> tuple[str, ...]:
    """Return where others on a segment reach a listener that is bound to these addresses."""
    listeners = [ipaddress.ip_address(host) for host in bound]
    return tuple(
        str(interface.ip)
        for interface in interfaces
        if any(
            listener == interface.ip
            or (listener.is_unspecified and listener.version == interface.version)
            for listener in listeners
        )
    )[:ADDRESSES_MAX]


def reachable(
    announcement: Announcement, interfaces: Sequence[Interface], own_port: int
) -> list[Address]:
    """Return the announced addresses worth asking: on a segment of this machine, not its own.

    Machines may share an address that leads nowhere, such as that of a container engine's bridge.
    So an address of this machine counts only in the announcement of a broker on this machine, all
    of whose addresses are this machine's.
    """
    mine = {str(interface.ip) for interface in interfaces}
    foreign = [host for host in announcement.addresses if host not in mine]
    if not foreign and announcement.port == own_port:
        return []
    hosts = [
        host
        for host in foreign or announcement.addresses
        if any(ipaddress.ip_address(host) in interface.network for interface in interfaces)
    ]
    return [(host, announcement.port) for host in hosts]
