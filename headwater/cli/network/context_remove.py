"""`headwater context remove`: forget the name of a network.

Owns the command's options. Must not know what is asked there. Invariant: only the name is
forgotten; nothing changes at the brokers.
"""

import argparse

from headwater.cli.network.contexts import load, save
from headwater.cli.output import print_json

EXAMPLE = "  headwater context remove home"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("name", metavar="NAME", help="the network's name")


def run(arguments: argparse.Namespace) -> int:
    """Remove a context; 2 where there is none of that name."""
    contexts = load()
    del contexts.by_name[contexts.get(arguments.name).name]
    if contexts.selected == arguments.name:
        contexts.selected = ""
    save(contexts)
    if arguments.json:
        print_json({"ok": True, "removed": arguments.name})
    else:
        print(f"{arguments.name} is no context any more")
    return 0
