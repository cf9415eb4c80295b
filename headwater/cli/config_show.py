"""`headwater config show`: what a broker would run with, and why.

Owns the command's options and output. Must not read configurations itself: `broker.config` does, as
for a broker. Invariant: no secret is printed.
"""

import argparse

from headwater.cli.output import print_json
from headwater.cli.settings import add_options, loaded

EXAMPLE = "  headwater config show --set mqtt.port=1884 --origin"


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add_options(parser)
    parser.add_argument("--origin", action="store_true", help="say where each value comes from")


def run(arguments: argparse.Namespace) -> int:
    """Prints; 2 where the configuration is refused."""
    from broker.config.show import as_toml, shown

    rows = shown(loaded(arguments))
    if arguments.json:
        keys = ("key", "value", "unit", "origin") if arguments.origin else ("key", "value", "unit")
        print_json([{key: getattr(row, key) for key in keys} for row in rows])
    else:
        print(as_toml(rows, origins=arguments.origin), end="")
    return 0
