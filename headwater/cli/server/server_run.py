"""`headwater server run`: the jobs of a file on Spark, until it is told to stop.

Owns the command's options. Must not know what jobs do: `server.process` does. Invariant: a file
that is refused starts nothing.
"""

import argparse
from pathlib import Path

from headwater.cli.frame import entry
from headwater.cli.output import CommandError

NEEDED = frozenset({"pyspark", "pyarrow", "pandas", "google"})  # google.protobuf
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
    from server.errors import ServerError

    path = Path(arguments.jobs)
    try:
        if arguments.check:
            entry("server.process", "check")(path)
            return 0
        status: int = entry("server.process", "run")(path, once=arguments.once)
    except ServerError as error:
        raise CommandError(2, *str(error).splitlines()) from None
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] not in NEEDED:
            raise
        raise CommandError(
            2, f"{missing.name} is missing: pip install 'headwater[server]' brings Spark"
        ) from None
    return status
