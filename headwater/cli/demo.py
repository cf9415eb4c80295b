"""`headwater demo`: the main job on real measurements, offline.

Owns the command's options. Must not know the demonstration itself. Invariant: it leaves nothing
behind, neither a process nor a file.
"""

import argparse

from headwater.cli.frame import entry

EXAMPLE = "  headwater demo"


def configure(parser: argparse.ArgumentParser) -> None:
    """The command has no options of its own."""


def run(arguments: argparse.Namespace) -> int:
    """Runs the demonstration; Ctrl-C ends it cleanly."""
    status: int = entry("headwater.demo", "run")(as_json=arguments.json)
    return status
