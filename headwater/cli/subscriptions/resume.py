"""`headwater resume`: a new beginning of a subscription that was suspended.

Owns the command's example. Must not know why it was suspended. Invariant: options and output are
those of `headwater cancel`, and status 0 means that the subscription runs again.
"""

import argparse

from headwater.cli.subscriptions import cancel
from headwater.cli.subscriptions.cancel import run

__all__ = ["EXAMPLE", "configure", "run"]

EXAMPLE = "  headwater resume ColdStation"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    cancel.configure(parser)
    parser.set_defaults(resumes=True)
