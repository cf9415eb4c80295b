"""The core without its compiled passes, for tests that hold both to each other.

Owns the switch. Must not know what is tested.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from broker.core import compiled


@contextmanager
def python_alone() -> Iterator[None]:
    """What begins here asks no compiled pass."""
    passes, compiled.passes = compiled.passes, None
    try:
        yield
    finally:
        compiled.passes = passes
