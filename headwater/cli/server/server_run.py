"""`headwater server run`: the jobs of a file on Spark, until it is told to stop.

Owns the command's options. Must not know what jobs do: `server.process` does. Invariant: a file
that is refused starts nothing.
"""

import argparse
from pathlib import Path

from headwater.cli.frame import entry
from headwater.cli.server.refusals import refused_as_command

EXAMPLE = "  headwater server run jobs.toml --once"


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("jobs", metavar="JOBS.toml", help="sources, jobs and sinks")
    parser.add_argument(
        "--once", action="store_true", help="read what the brokers have now, and end"
    )
    parser.add_argument("--check", action="store_true", help="check the file, and run nothing")


def run(arguments: argparse.Namespace) -> int:
    """0 when it was told to stop, or all is read; 1 where a stream failed; 2 where none starts."""
    path = Path(arguments.jobs)
    with refused_as_command():
        if arguments.check:
            entry("server.process", "check")(path)
            return 0
        status: int = entry("server.process", "run")(path, once=arguments.once)
    return status
