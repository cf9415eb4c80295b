"""`headwater context add`: give a network a name.

Owns the command's options. Must not know what is asked there. Invariant: a context that is refused
changes nothing.
"""

import argparse
from pathlib import Path

from headwater.cli.network.contexts import NAME, NamedNetwork, load, save
from headwater.cli.output import CommandError, print_json
from headwater.cli.reach import broker_at

EXAMPLE = "  headwater context add home http://127.0.0.1:8080 http://127.0.0.1:8081"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("name", metavar="NAME", help="its name; one that is there is changed")
    parser.add_argument(
        "brokers", metavar="URL", nargs="+", help="its brokers, the one first that is asked alone"
    )
    parser.add_argument("--user", metavar="NAME", help="the user, where the brokers have users")
    parser.add_argument("--token-file", metavar="FILE", help="a file that holds a program's token")


def run(arguments: argparse.Namespace) -> int:
    """Keep the context, and select it where it is the first one."""
    if not NAME.fullmatch(arguments.name):
        sentence = "expected 1 to 64 letters, digits, `.`, `_` and `-`, the first no sign"
        raise CommandError(2, f"name {arguments.name[:64]}: {sentence}")
    for address in arguments.brokers:
        broker_at(address, arguments.user, None, 1.0, ("URL", "--user", "--user"))
    contexts = load()
    token_file = arguments.token_file and str(Path(arguments.token_file).absolute())
    context = NamedNetwork(arguments.name, tuple(arguments.brokers), arguments.user, token_file)
    contexts.by_name[arguments.name] = context
    contexts.selected = contexts.selected or arguments.name
    path = save(contexts)
    if arguments.json:
        selected = contexts.selected == arguments.name
        print_json({"ok": True, "context": arguments.name, "selected": selected, "file": str(path)})
    else:
        how = "selected" if contexts.selected == arguments.name else "not selected"
        print(f"{arguments.name} has {len(arguments.brokers)} brokers; it is {how}")
    return 0
