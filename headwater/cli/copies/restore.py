"""`headwater restore`: a backup in the place of a stopped broker's data directory.

Owns the command's options and output. Must not know what is in a backup: `broker.backup` does.
Invariant: status 0 means that the broker's next start goes on from the backup.
"""

import argparse
from pathlib import Path

from headwater.cli.output import CommandError, print_json
from headwater.cli.settings import add_options, loaded

EXAMPLE = "  headwater restore site-1.backup --set broker.name=site-1"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="what `headwater backup` made")
    parser.add_argument(
        "--replace", action="store_true", help="move aside what the data directory holds"
    )
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Restore; 2 where that is refused."""
    from broker.backup.manifest import BackupError
    from broker.backup.target import restore
    from broker.errors import StartError

    config = loaded(arguments).config
    try:
        aside = restore(
            arguments.folder,
            config.broker.data_dir,
            config.broker.name,
            database=not config.data.database,
            replace=arguments.replace,
        )
    except (BackupError, StartError) as error:
        raise CommandError(2, str(error)) from None
    if arguments.json:
        about = {"data_dir": config.broker.data_dir, "aside": aside or None}
        print_json({"ok": True, "broker": config.broker.name, **about})
        return 0
    print(f"{config.broker.data_dir} is as the backup has it; start the broker")
    if aside:
        print(f"what was there before is in {aside}")
    return 0
