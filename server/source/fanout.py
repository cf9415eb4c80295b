"""Questions to many brokers at the same time.

Owns the threads. Must not know what is asked. Invariant: each broker is asked by one thread at a
time, and answers come back under the names of those who gave them, in the order of the names.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

Answer = TypeVar("Answer")
THREADS_MAX: Final = 32  # they wait for answers most of the time


class Fanout:
    """Threads that are made when they are first needed, and end with `close`."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None

    def ask(self, question: Callable[[str], Answer], names: Iterable[str]) -> dict[str, Answer]:
        """Return what each name gives. Raises what the first of them raises."""
        asked = list(names)
        if len(asked) < 2:
            return {name: question(name) for name in asked}
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="headwater plan")
        return dict(zip(asked, self._threads.map(question, asked), strict=True))

    def close(self) -> None:
        """Wait for nobody any more."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None
