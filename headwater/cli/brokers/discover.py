"""`headwater discover`: list the brokers that announce themselves on this network segment.

Owns the command's options and output. Must not know how a segment works: `broker.links` does.
Invariant: it announces nothing and asks no broker anything; status 0 means that one or more
announce themselves, and 1 that none does.
"""

import argparse
import asyncio
import os
from typing import TYPE_CHECKING

from headwater.cli.output import CommandError, complain, print_json, print_table
from headwater.cli.plan import seconds

if TYPE_CHECKING:
    from broker.config.links import LinksSection
    from broker.links.announcement import Announcement

EXAMPLE = "  headwater discover --config roof.toml   # --secret-file FILE where there is no broker"
HEADS = ("BROKER", "ADDRESS", "PORT", "NETWORK")
UNSECURED = "it names no secret, nor links.tls_ca, by which to know its network; set one of them"
NETWORKS = {True: "this", False: "another", None: "-"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    network = parser.add_mutually_exclusive_group()
    network.add_argument(
        "--config",
        metavar="FILE.toml",
        help="a broker's configuration: tell which brokers are of its network",
    )
    network.add_argument(
        "--secret-file",
        metavar="FILE",
        help="the secret of links: tell which brokers are of its network",
    )
    parser.add_argument(
        "--wait",
        type=seconds,
        default=3.0,
        metavar="SECONDS",
        help="listen so long for announcements (default 3)",
    )


def run(arguments: argparse.Namespace) -> int:
    """List announcements; 1 where there is none, 2 where the package or a file is missing."""
    from broker.links.announcement import network_tags
    from broker.links.discovery import SegmentError, segment
    from broker.links.securing import LinkConfigError, load_security

    settings = _settings(arguments)
    try:
        tags = None if settings is None else set(network_tags(load_security(settings)))
        segment()  # so that a missing package is no fault of the segment
        announcements = asyncio.run(_announcements(arguments.wait))
    except LinkConfigError as error:
        raise CommandError(2, str(error)) from None
    except SegmentError as error:
        raise CommandError(1, f"brokers on this segment cannot be discovered: {error}") from None
    rows = [(row, None if tags is None else not tags.isdisjoint(row.tags)) for row in announcements]
    if arguments.json:
        print_json({"brokers": [_as_data(row, ours=ours) for row, ours in rows]})
    elif rows:
        cells = [(row.label, " ".join(row.addresses), row.port, NETWORKS[o]) for row, o in rows]
        print_table(HEADS, cells)
    else:
        complain(f"headwater: no broker has announced itself within {arguments.wait:g} s")
    return 0 if rows else 1


def _settings(arguments: argparse.Namespace) -> "LinksSection | None":
    """Return the settings of the network that is asked for, if any. Raises CommandError."""
    from broker.config import ConfigError, LinksSection, load

    if arguments.secret_file is not None:
        return LinksSection(secret_file=arguments.secret_file)
    if arguments.config is None:
        return None
    try:
        settings = load(arguments.config, os.environ, {}).config.links
    except ConfigError as error:
        raise CommandError(2, *error.problems) from None
    if not (settings.secret_file or settings.tls_ca):
        raise CommandError(2, f"{arguments.config}: links.secret_file: {UNSECURED}")
    return settings


async def _announcements(wait_s: float) -> "list[Announcement]":
    """Return what is announced within so long, by label. Raises SegmentError."""
    from broker.links.discovery import Announcements, segment

    received = Announcements()
    multicast = segment()
    try:
        await multicast.open(multicast.interfaces(), None, received.take)
        await asyncio.sleep(wait_s)
    finally:
        await multicast.close()
    return sorted(received.rows(), key=lambda row: row.label)


def _as_data(row: "Announcement", *, ours: bool | None) -> dict[str, object]:
    return {
        "name": row.label,
        "addresses": list(row.addresses),
        "port": row.port,
        "ours": ours,
    }
