"""Passes over batches of events that are compiled, where a compiler was at hand.

Owns which are used. Must not know what for. Invariant: whatever a pass gives, the function written
in Python beside which it is asked would give too; where a pass gives None, or there are no passes,
that function does the work.

There are none where nothing was compiled for this Python, where HEADWATER_PURE_PYTHON is set, and
where what was compiled is of other sources than those beside it.
"""

from __future__ import annotations

from hashlib import sha256
from types import ModuleType

passes: ModuleType | None
try:
    from broker.engine.native import _passes as passes
except ImportError:
    passes = None


def of_sources(module: ModuleType, folder: str) -> bool:
    """Tell whether a module was compiled of exactly the sources in a folder, if there are any.

    A checkout's sources change with the rest of it, and a module that is left from before might
    give what was right then. Where the package was installed there are none: the module came along.
    """
    read = __spec__.loader.get_data  # type: ignore[union-attr]
    found, missing = sha256(), 0
    names = getattr(module, "FILES", "").split()
    for name in names:
        try:
            found.update(read(f"{folder}/{name}"))
        except OSError:
            missing += 1
    if names and missing == len(names):
        return True
    return not missing and found.hexdigest() == getattr(module, "SOURCES", "")


if passes is not None and not of_sources(passes, __path__[0]):
    passes = None
