"""Options that several commands share: a broker's configuration, and functions of a file.

Owns these options. Must not know any setting, nor read the file of functions: `headwater.given`
does. Invariant: all commands read them in the same way.
"""

import argparse
import os
from typing import TYPE_CHECKING, Any, Protocol

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


class OptionTaker(Protocol):
    """A parser, or a group of its options."""

    def add_argument(self, *names: str, **options: Any) -> object:
        """Add an option."""


def functions_option(parser: OptionTaker) -> None:
    """`--functions FILE.py`, in `arguments.functions`; empty where it is not given."""
    parser.add_argument(
        "--functions",
        metavar="FILE.py",
        default="",
        help="a Python file of functions of one's own that the specification may call; it is run",
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
