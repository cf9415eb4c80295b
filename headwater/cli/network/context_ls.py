"""`headwater context ls`: the networks that have a name.

Owns the command's output. Must not know what is asked there. Invariant: no secret is printed.
"""

import argparse

from headwater.cli.network.contexts import load
from headwater.cli.output import print_json, print_table

EXAMPLE = "  headwater context ls --json"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add no options."""


def run(arguments: argparse.Namespace) -> int:
    """List the contexts."""
    contexts = load()
    if arguments.json:
        print_json(
            [
                {
                    "context": context.name,
                    "brokers": list(context.brokers),
                    "user": context.user,
                    "selected": context.name == contexts.selected,
                }
                for context in contexts.by_name.values()
            ]
        )
    elif contexts.by_name:
        rows = [
            (
                "*" if context.name == contexts.selected else "",
                context.name,
                context.user or "-",
                " ".join(context.brokers),
            )
            for context in contexts.by_name.values()
        ]
        print_table(("", "CONTEXT", "USER", "BROKERS"), rows)
    else:
        print("no contexts; `headwater context add NAME URL …` makes one")
    return 0
