"""`headwater backup`: a copy of what a running broker keeps.

Owns the command's options and output. Must not know what is in it: `broker.backup` does. Invariant:
status 0 means that the whole copy is on the disk and as the broker made it.
"""

import argparse
from pathlib import Path

from headwater.cli import http_client
from headwater.cli.output import CommandError, print_json
from headwater.cli.reach import add_options, broker_of

EXAMPLE = "  headwater backup site-1.backup"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="where to; new, or empty")
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Copy; 1 where the broker has nothing to copy, or the copy is torn."""
    from broker.backup.manifest import BackupError
    from broker.backup.target import receive, refuse_full

    broker = broker_of(arguments)
    if broker.is_mqtt:
        raise CommandError(2, "backup asks over HTTP; name the broker's http:// address")
    folder: Path = arguments.folder
    try:
        refuse_full(folder)
    except BackupError as error:
        raise CommandError(2, str(error)) from None
    try:
        with http_client.download(broker, "/v1/backup") as stream:
            manifest = receive(stream, folder)
    except BackupError as error:
        raise CommandError(1, str(error)) from None
    size_bytes = sum(file.size_bytes for file in manifest.files)
    about = {"broker": manifest.broker, "time": manifest.time, "database": manifest.database}
    if arguments.json:
        counts = {"files": len(manifest.files), "bytes": size_bytes}
        print_json({"ok": True, "backup": str(folder), **about, **counts})
        return 0
    print(f"{folder}: {manifest.broker} as of {manifest.time}, {size_bytes} bytes")
    if not manifest.database:
        print("its database (data.database) is not in it; copy it with the database's own tools")
    return 0
