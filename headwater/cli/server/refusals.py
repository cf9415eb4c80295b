"""Errors of the server tier, as the command line tells them.

Owns which packages the tier needs. Must not know what a command does. Invariant: a package that
another part of the program lacks is no refusal, and is raised as it is.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from headwater.cli.output import CommandError

NEEDED = frozenset({"pyspark", "pyarrow", "pandas", "google", "sqlalchemy"})  # google.protobuf


@contextmanager
def refused_as_command() -> Iterator[None]:
    """Raise CommandError where the tier refuses, or a package that it needs is missing."""
    from server.errors import ServerError

    try:
        yield
    except ServerError as error:
        raise CommandError(2, *str(error).splitlines()) from None
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] not in NEEDED:
            raise
        raise CommandError(
            2, f"{missing.name} is missing: pip install 'headwater[server]' brings it"
        ) from None
