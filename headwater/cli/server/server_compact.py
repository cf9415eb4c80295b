"""`headwater server compact`: small files of a job's folder merged, and old days taken out.

Owns the command's options. Must not know files: `server.upkeep` does. Invariant: without `--keep`
no row goes.
"""

import argparse
from pathlib import Path

from headwater.cli.frame import entry
from headwater.cli.server.refusals import refused_as_command

EXAMPLE = '  headwater server compact history jobs.toml --file-size 128 --keep "90 days"'


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("job", metavar="JOB", help="a job with a sink of kind parquet")
    parser.add_argument("jobs", metavar="JOBS.toml", help="sources, jobs and sinks")
    parser.add_argument(
        "--file-size", type=int, default=128, metavar="MIB",
        help="what files are merged up to (default 128)",
    )  # fmt: skip
    parser.add_argument("--keep", metavar="TIME", help="drop days that ended longer ago")
    parser.add_argument(
        "--grace", metavar="TIME", default="1 day",
        help="how long files that were replaced stay for who reads them (default 1 day)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Return 0; 2 where it is refused."""
    with refused_as_command():
        done = entry("server.upkeep.compaction", "compact_now")(
            Path(arguments.jobs),
            arguments.job,
            file_mib=arguments.file_size,
            keep=arguments.keep,
            grace=arguments.grace,
        )
    print(
        f"{done.merged} files merged into {done.made}, {done.dropped} dropped with their days,"
        f" {done.removed} removed that were replaced before"
    )
    return 0
