"""How much memory a process holds, and a measurement in a process of its own.

Owns how resident memory is read. Must not know what is measured. Invariant: what an earlier
measurement has left behind is not charged to the next.
"""

import gc
import multiprocessing
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def resident_mb() -> float:
    """Megabytes resident now, after what is garbage has gone; where the kernel tells, else most."""
    gc.collect()
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def alone(measure: Callable[..., T], *arguments: Any) -> T:
    """What it measures in a fresh process; both must be importable from there."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, arguments)
