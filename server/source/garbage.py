"""When Python looks for garbage, in processes that Spark keeps for many tasks.

Owns how often, and among what. Must not know tasks. Invariant: what a task leaves behind is found;
what a process had loaded by its first task stays, and is not gone through again.

Events of a batch are no garbage, and with Python's 700 as much time went into looking as into
detecting. Spark has each process look through all that it has behind each task: with everything
that is imported here that takes as long as to detect in some thousand events, and longer than to
read a small batch, while the next one waits for a core.
"""

import gc
from typing import Final

from pyspark import TaskContext

YOUNG_MAX: Final = 200_000  # objects made between two looks


def look_seldom() -> None:
    """Have this process look so from now on; called by each task that may be its first."""
    if TaskContext.get() is None:
        return  # the driver's process, or somebody's own
    gc.set_threshold(YOUNG_MAX)
    if gc.get_freeze_count() == 0:
        gc.freeze()
