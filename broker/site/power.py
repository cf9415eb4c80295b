"""What the processors do for this broker, told to its core now and then.

Owns the moments. Must not know what follows from it. Invariant: the core reads no clock of
processors and no control group itself.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from time import process_time

from broker.network.frames.messages import CpuUsed
from broker.site.usage import CGROUP, PROC, usage

EVERY_S = 5.0


def granted_ms_per_s(proc: Path = PROC, cgroup: Path = CGROUP) -> int:
    """Return how much CPU one thread of this process may use in a second.

    The control group limits it. What detects is one thread, so that more than one processor is of
    no use to it, and to whichever processors the process is bound, they are one at least.
    """
    cpus = min(1.0, usage(proc, cgroup).get("cpus", 1.0))
    return max(1, round(1_000 * cpus))


class CpuReports:
    """Tell `put` every `EVERY_S` what was used."""

    def __init__(self, put: Callable[[CpuUsed], None]) -> None:
        self._put = put
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to tell."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="cpu")

    def stop(self) -> None:
        """Tell no more."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            self._put(CpuUsed(round(process_time() * 1_000), granted_ms_per_s()))
            await asyncio.sleep(EVERY_S)
