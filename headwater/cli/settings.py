"""The options with which a broker's configuration is named, for every command that reads one.

Owns these options. Must not know any setting. Invariant: all commands read it in the same way.
"""

import argparse
import os
from typing import TYPE_CHECKING

from headwater.cli.output import CommandError

if TYPE_CHECKING:
    from broker.config import Loaded


def add_options(parser: argparse.ArgumentParser) -> None:
    """`--config` and `--set`."""
    parser.add_argument("--config", metavar="FILE.toml", help="the broker's configuration")
    parser.add_argument(
        "--set",
        dest="overrides",
        metavar="SECTION.KEY=VALUE",
        action="append",
        default=[],
        help="override one setting; may be given again",
    )


def loaded(arguments: argparse.Namespace) -> "Loaded":
    """The configuration that the options and the environment make. Raises CommandError."""
    from broker.config import ConfigError, load

    flags = {}
    for text in arguments.overrides:
        key, equals, value = text.partition("=")
        if not equals:
            raise CommandError(2, f"--set {text}: expected SECTION.KEY=VALUE")
        flags[key.strip()] = value.strip()
    try:
        return load(arguments.config, os.environ, flags)
    except ConfigError as error:
        raise CommandError(2, *error.problems) from None
