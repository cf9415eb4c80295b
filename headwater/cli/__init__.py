"""The command line `headwater`.

Owns what a person types and reads. Must not know how a command's work is done: each command is a
module that calls the part that does it. Invariant: a command's module, and what it needs, is
imported only when that command runs.
"""

from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit status."""
    try:  # importing takes long enough for somebody to think better of it
        from headwater.cli.frame import main as run
    except KeyboardInterrupt:
        return 128 + 2
    return run(argv)
