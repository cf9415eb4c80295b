"""The command line `headwater`.

Owns what a person types and reads. Must not know how a command's work is done: each command is a
module that calls the part that does it. Invariant: a command's module, and what it needs, is
imported only when that command runs.
"""

from headwater.cli.frame import main

__all__ = ["main"]
