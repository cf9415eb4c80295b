"""`headwater context select`: use a network where none is named.

Owns the command's options. Must not know what is asked there. Invariant: only a context that is
there can be selected.
"""

import argparse

from headwater.cli.network.contexts import load, save
from headwater.cli.output import print_json

EXAMPLE = "  headwater context select home"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("name", metavar="NAME", help="the network's name; '' selects none")


def run(arguments: argparse.Namespace) -> int:
    """Select a context; 2 where there is none of that name."""
    contexts = load()
    contexts.selected = contexts.get(arguments.name).name if arguments.name else ""
    save(contexts)
    if arguments.json:
        print_json({"ok": True, "selected": contexts.selected})
    elif contexts.selected:
        print(f"{contexts.selected} is asked where no broker is named")
    else:
        print("no context is selected")
    return 0
