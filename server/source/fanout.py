"""Questions to many brokers at the same time, and to one ahead of who takes the answers.

Owns the threads. Must not know what is asked. Invariant: each broker is asked by one thread at a
time, and answers come back under the names of those who gave them, in the order of the names; of
what is made ahead, in the order in which it was made.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
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


def ahead(made: Generator[Answer, None, None], ended: Event) -> Iterator[Answer]:
    """Yield what is made, the next while this one is being used. Raises what the making raises.

    A broker then makes a page while Spark takes the one before it, and neither waits in turn. Who
    stops early leaves the thread to end by itself, behind the question that it is at: `ended` is
    set, so that it makes no other attempt.
    """
    thread = ThreadPoolExecutor(1, thread_name_prefix="headwater ahead")
    try:
        coming = thread.submit(_next_of, made)
        while answers := coming.result():
            coming = thread.submit(_next_of, made)
            yield from answers
    finally:
        ended.set()
        thread.submit(made.close)  # by the thread that may be in the middle of it
        thread.shutdown(wait=False)


def at_once(makers: Sequence[Callable[[], Iterable[Answer]]], ended: Event) -> Iterator[Answer]:
    """Yield what each of them makes, in their order, as all are at it from now on.

    It is for what is small, as all of it may be there before the first is used. Raises what the
    first of them raises, and has the others end: `ended` is set.
    """
    if len(makers) < 2:
        yield from (answer for maker in makers for answer in maker())
        return
    count = min(len(makers), THREADS_MAX)
    threads = ThreadPoolExecutor(count, thread_name_prefix="headwater range")
    try:
        coming = [threads.submit(_all_of, maker) for maker in makers]
        for made in coming:
            yield from made.result()
    finally:
        ended.set()
        threads.shutdown(wait=False, cancel_futures=True)


def _all_of(maker: Callable[[], Iterable[Answer]]) -> list[Answer]:
    return list(maker())


def _next_of(made: Iterator[Answer]) -> list[Answer]:
    """Return the next one; nothing behind the last."""
    for answer in made:
        return [answer]
    return []
