"""The settings of links to other brokers.

Owns their meaning, as `table` does that of all others, and the form of a peer's address. Must not
know how a link works. Invariant: as for every section, each field carries its meaning.
"""

import re
from typing import Annotated, Literal

import msgspec

from broker.config.about import About

PEERS_MAX = 1_000  # as many as links may be
_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.%A-Za-z]+)\]|([^\s:\[\],]+)):(\d{1,5})")
_SEED = _ADDRESS.pattern
ADDRESS_SAYS = 'an address with a port in quotes, such as "10.0.0.2:1889" or "[fd00::2]:1889"'


class LinksSection(msgspec.Struct, frozen=True, kw_only=True):
    """Links to other brokers, see docs/links.md.

    Of two brokers it is enough that one has the other among its peers.
    """

    host: Annotated[
        str,
        About(
            "address to listen on for other brokers; empty: none can link to this one. Beyond "
            "loopback `secret_file` or client certificates are required"
        ),
    ] = ""
    port: Annotated[
        int,
        About("port for other brokers; 0 takes any free one and logs it", "", 0, 65535),
    ] = 1889
    peers: Annotated[
        dict[str, str],
        About(
            "brokers to link to: a table of broker name = address with port; from the environment "
            "`roof=10.0.0.2:1889,cellar=10.0.0.3:1889`",
            entries="peer",
        ),
    ] = msgspec.field(default_factory=dict)
    seeds: Annotated[
        str,
        About(
            "addresses with `,` between, at which other brokers of the network are, such as "
            "`broker:1889`, the same at all brokers; a host name stands for all addresses that it "
            "has. The broker asks there who they are, and links itself to two, see docs/links.md",
            pattern=rf"(?:\s*{_SEED}\s*(?:,\s*{_SEED}\s*)*)?",
            pattern_says="addresses with ports and with `,` between, such as `broker:1889`",
        ),
    ] = ""
    discover: Annotated[
        bool,
        About(
            "brokers of the network on the same network segment find each other by multicast DNS, "
            "and link as at `seeds`: this broker announces where it listens, if it does, and looks "
            "for others; needs `pip install 'headwater[discovery]'`, see docs/links.md"
        ),
    ] = False
    secret_file: Annotated[
        str,
        About(
            "file whose first line is the secret that all brokers of the network share, 16 "
            "characters or more; it is never sent. A second line is a secret that is valid, too, "
            "while brokers get another one. Without a file: one that all brokers of this user on "
            "this machine share, see docs/links.md",
            path=True,
        ),
    ] = ""
    tls_cert: Annotated[
        str,
        About(
            "certificate chain in PEM that this broker shows to others, made out (common name) to "
            "its name; turns TLS on where it listens",
            path=True,
        ),
    ] = ""
    tls_key: Annotated[str, About("private key of `tls_cert` in PEM", path=True)] = ""
    tls_ca: Annotated[
        str,
        About(
            "authority in PEM of the other brokers' certificates; turns TLS on towards peers",
            path=True,
        ),
    ] = ""
    tls_ca_key: Annotated[
        str,
        About(
            "private key of `tls_ca` in PEM: with it this broker signs certificates of those that "
            "it invites, see docs/members.md. Whoever has it can link to any broker",
            path=True,
        ),
    ] = ""
    tls_client_certificates: Annotated[
        Literal["required", "optional"],
        About("whether a broker that links to this one has to show one; used with `tls_ca`"),
    ] = "required"
    correlate: Annotated[
        bool,
        About(
            "an event that a pattern joins with others waits on its way until its partners come, "
            "and travels no further if none does; see docs/network.md. The same at all brokers"
        ),
    ] = True
    back_within_ms: Annotated[
        int,
        About(
            "when it is told to end, this broker promises the others to be back within so long: "
            "until then they report that it is away without raising an alarm; 0: no promise",
            unit="ms",
            at_least=0,
            at_most=604_800_000,
        ),
    ] = 0
    stand_in: Annotated[
        str,
        About(
            "broker that has a copy of the subscriptions of this one and can take them over with "
            "`headwater take-over`; `*`: a neighbour; empty: none. Subscriptions then run as "
            "cells, see docs/network.md"
        ),
    ] = ""
    stand_in_lease_ms: Annotated[
        int,
        About(
            "the stand-in takes over by itself once it has heard nothing of this broker for so "
            "long; this broker then gives out results only while the stand-in can be heard. "
            "0: by a person's word alone; else 1000 or more, see docs/network.md",
            unit="ms",
            at_least=0,
            at_most=86_400_000,
        ),
    ] = 0
    reconnect_ms_max: Annotated[
        int,
        About(
            "a peer that cannot be reached is tried again after 200 ms, then after twice as long "
            "each time, up to this; each wait is drawn from its upper half",
            unit="ms",
            at_least=200,
            at_most=3_600_000,
        ),
    ] = 10_000

    @property
    def seeks(self) -> bool:
        """True if this broker links itself to others, and not only they to it."""
        return bool(self.peers or self.seeds or self.discover)

    @property
    def linked(self) -> bool:
        """True if there are to be links to other brokers."""
        return bool(self.host or self.seeks)


def address_of(text: str) -> tuple[str, int]:
    """Host and port of a peer's address. Raises ValueError."""
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match[3]) <= 65535:
        raise ValueError(f'found "{text[:100]}", expected {ADDRESS_SAYS}')
    return match[1] or match[2], int(match[3])


def seeds_of(text: str) -> list[tuple[str, int]]:
    """Host and port of each seed. Raises ValueError."""
    return [address_of(part.strip()) for part in text.split(",") if part.strip()]


def peers_of_text(text: str) -> dict[str, str]:
    """The table that `name=address,name=address` stands for; ValueError where it is none."""
    peers: dict[str, str] = {}
    for part in filter(None, (entry.strip() for entry in text.split(","))):
        name, equals, address = part.partition("=")
        if not equals or name.strip() in peers:
            raise ValueError(f'found "{part[:100]}", expected each peer once as name=address:port')
        peers[name.strip()] = address.strip()
    return peers
