"""Passes over batches of events that are compiled, where a compiler was at hand.

Owns which are used. Must not know what for. Invariant: whatever a pass gives, the function written
in Python beside which it is asked would give too; where a pass gives None, or there are no passes,
that function does the work.

There are none where nothing was compiled for this Python, and where HEADWATER_PURE_PYTHON is set.
"""

from __future__ import annotations

from types import ModuleType

passes: ModuleType | None
try:
    from broker.core.compiled import _passes as passes
except ImportError:
    passes = None
