"""`headwater broker`: one broker, until it is told to stop.

Owns the command's options. Must not know what a broker does: `broker.process` does. Invariant: a
configuration that is refused starts nothing.
"""

import argparse

from headwater.cli.frame import entry
from headwater.cli.output import CommandError
from headwater.cli.settings import add_options, loaded

EXAMPLE = "  headwater broker --set mqtt.port=1884 --set log.level=debug"


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Runs until Ctrl-C or SIGTERM; 2 where it cannot start. With --json its log is JSON."""
    from broker.wiring.errors import StartError

    if arguments.json:
        arguments.overrides.insert(0, "log.format=json")
    settings = loaded(arguments)
    try:
        entry("broker.process", "run")(settings.config)
    except StartError as error:
        raise CommandError(2, str(error)) from None
    return 0
