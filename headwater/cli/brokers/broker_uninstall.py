"""`headwater broker uninstall`: the service is taken away; data stay unless they are to go, too.

Owns the command's options. Must not know what the steps are. Invariant: without --purge a broker
that is installed again goes on where this one ended.
"""

import argparse

from headwater.cli.brokers.broker_install import add_options, carry_out, machine_of
from headwater.installing.steps import CONFIG_DIR, DATA, removal

EXAMPLE = "  headwater broker uninstall --dry-run   # with --purge its data go, too"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "--purge", action="store_true", help=f"remove {CONFIG_DIR}, {DATA} and the user, too"
    )
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Uninstall; 1 where a step fails, 2 where it may not be done."""
    carry_out(arguments, removal(machine_of(arguments), purge=arguments.purge))
    return 0
