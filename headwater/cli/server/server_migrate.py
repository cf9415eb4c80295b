"""`headwater server migrate`: a job that means something else, filled anew and then shown.

Owns the command's options. Must not know what a migration does: `server.upkeep` does. Invariant:
with `--check` nothing changes.
"""

import argparse
from pathlib import Path

from headwater.cli.frame import entry
from headwater.cli.server.refusals import refused_as_command

EXAMPLE = "  headwater server migrate days jobs.toml --check"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("job", metavar="JOB", help="the job, with another `version` in the file")
    parser.add_argument("jobs", metavar="JOBS.toml", help="sources, jobs and sinks")
    parser.add_argument("--check", action="store_true", help="print what it would do, and do none")


def run(arguments: argparse.Namespace) -> int:
    """Return 0; 2 where it is refused or was cut off: then it goes on when it is run again."""
    path = Path(arguments.jobs)
    with refused_as_command():
        if arguments.check:
            for sentence in entry("server.upkeep.migration", "foresee")(path, arguments.job):
                print(sentence)
            return 0
        status: int = entry("server.upkeep.migration", "migrate")(path, arguments.job)
    return status
