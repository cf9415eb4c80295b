"""The core without its compiled passes, for tests that hold both to each other.

Owns the switch. Must not know what is tested.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from broker.engine import native


@contextmanager
def python_alone() -> Iterator[None]:
    """What begins here asks no compiled pass."""
    passes, native.passes = native.passes, None
    try:
        yield
    finally:
        native.passes = passes
