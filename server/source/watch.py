"""What is known at the moment of each broker's log.

Owns one thread a broker, which waits for its log to go on. Must not know what is read. Invariant:
asking what is known never waits for a broker that was asked once.
"""

import threading
import time
from collections.abc import Iterable
from typing import Final, NamedTuple

from server.source.log import AwayError, Log, LogError, LogStanding
from server.source.options import SourceOptions

FIRST_S_MAX: Final = 30.0  # for the first word of a broker; after that it is away
AGAIN_S: Final = 1.0  # between two attempts to reach a broker that is away


class KnownBroker(NamedTuple):
    """A log as last seen; `away` says why it cannot be seen now, and since when (monotonic s).

    Of a log that is seen, `since_s` is since when it has ended where it ends, and `settled_since_s`
    since when it has promised what it promises.
    """

    standing: LogStanding | None
    away: LogError | None = None
    since_s: float = 0.0
    settled_since_s: float = 0.0


class Watch:
    """Threads that follow the ends of the logs."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._known: dict[str, KnownBroker] = {}
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._names = [name for name, _ in options.brokers]
        silent = AwayError("it has not answered yet")
        self._unasked = KnownBroker(None, silent, since_s=time.monotonic())
        for name, address in options.brokers:
            log = Log(name, address, options.login)
            thread = threading.Thread(
                target=self._follow, args=(log,), name=f"headwater {name}", daemon=True
            )
            thread.start()

    def look(self) -> dict[str, KnownBroker]:
        """Return each broker's state; waits until each was asked once."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._known) == len(self._names), FIRST_S_MAX)
            return {name: self._known.get(name, self._unasked) for name in self._names}

    def until(self, names: Iterable[str], timeout_s: float) -> None:
        """Wait until these are all there, or so long."""
        wanted = list(names)
        with self._changed:
            self._changed.wait_for(
                lambda: all(self._known.get(name, self._unasked).away is None for name in wanted),
                timeout_s,
            )

    def stop(self) -> None:
        """Stop looking; the threads end with their next answer."""
        self._stopping.set()

    def _follow(self, log: Log) -> None:
        after: int | None = None
        settled_ms = 0 if self._options.by_promises else None
        names = self._options.subscriptions
        while not self._stopping.is_set():
            try:
                wait_s = 0.0 if after is None else self._options.poll_s
                standing = log.offsets(after, wait_s, settled_ms, names)
            except LogError as error:
                after = None
                self._tell(log.broker, None, error)
                self._stopping.wait(AGAIN_S)
                continue
            except Exception as error:  # noqa: BLE001 - a thread that ends would look like silence
                self._tell(log.broker, None, AwayError(f"broker {log.broker}: {error!r}"))
                self._stopping.wait(AGAIN_S)
                continue
            after, settled_ms = standing.end, standing.settled_ms or settled_ms
            self._tell(log.broker, standing, None)
        log.close()

    def _tell(self, name: str, standing: LogStanding | None, away: LogError | None) -> None:
        since_s = settled_since_s = time.monotonic()
        with self._changed:
            before = self._known.get(name)
            if before is not None:
                standing = standing or before.standing
                same = (before.away is None) == (away is None)
                if same and (away is not None or _place(before.standing) == _place(standing)):
                    since_s = before.since_s
                if same and _promise(before.standing) == _promise(standing):
                    settled_since_s = before.settled_since_s
            self._known[name] = KnownBroker(standing, away, since_s, settled_since_s)
            self._changed.notify_all()


def _place(one: LogStanding | None) -> object:
    return None if one is None else (*one[:4], one.inherited)


def _promise(one: LogStanding | None) -> object:
    return None if one is None else (one.subscriptions, one.settled_ms)
