"""A history as the beginning of brokers' logs: one log of both, under the same offsets.

Owns what is asked of history and broker as of one log. Must not know how a batch is shared, nor
Spark. Invariant: an offset means the same result wherever it is read, so that a stream which goes
on from the history to the broker, or begins again in the middle, has each result once.

    offsets   first ······ history ······ end
                        earliest ······ broker ······ end       what both have, the history gives
"""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from server.source.alignment import EventTimes
from server.source.history import History, LogHistory, read_history
from server.source.log import EpochError, Log, LogStanding
from server.source.options import OptionError, SourceOptions
from server.source.places import LogPlace
from server.source.watch import KnownBroker

ROWS_MAX: Final = 10_000  # of a page


class HistoryStretch(NamedTuple):
    """A half-open range of a log, and whether the history is where it is read."""

    begin: int
    end: int
    kept: bool


class JoinedLog:
    """The event times of a broker's log with its history before it; `live` None: history alone."""

    def __init__(self, history: LogHistory, live: Log | None) -> None:
        self._history = history
        self._live = live

    def ts_at(self, epoch: str, offset: int) -> int | None:
        """Return the latest end of all results up to and with an offset, as `Log` does."""
        kept = self._history
        if epoch != kept.epoch and self._live is not None:
            return self._live.ts_at(epoch, offset)
        latest_ms = kept.latest_end(offset)
        if self._live is None or offset < kept.end:
            return latest_ms
        times = [latest_ms, self._live.ts_at(epoch, offset)]
        return max([ts_ms for ts_ms in times if ts_ms is not None], default=None)

    def first_offset_after(self, epoch: str, ts_ms: int) -> int:
        """Return the first offset whose result ends after a time, as `Log` does."""
        kept = self._history
        if epoch == kept.epoch:
            offset = kept.first_offset_after(ts_ms)
            if offset < kept.end or self._live is None:
                return offset
        assert self._live is not None
        offset = self._live.first_offset_after(epoch, ts_ms)
        return max(offset, kept.end) if epoch == kept.epoch else offset

    def earliest_end(self, epoch: str, offset: int, after_ms: int) -> int | None:
        """Return the earliest end after a time from an offset on, as `Log` does."""
        kept = self._history
        if epoch != kept.epoch and self._live is not None:
            return self._live.earliest_end(epoch, offset, after_ms)
        times = [kept.earliest_end(offset, kept.end, after_ms)]
        if self._live is not None:
            times.append(self._live.earliest_end(epoch, max(offset, kept.end), after_ms))
        return min([ts_ms for ts_ms in times if ts_ms is not None], default=None)

    def ack(self, epoch: str, consumer: str, offset: int) -> None:
        """Acknowledge an offset: what the history has from there on, the broker need not keep."""
        if self._live is not None:
            kept = self._history
            needed = kept.contiguous_end(offset) if epoch == kept.epoch else offset
            self._live.ack(epoch, consumer, max(offset, needed))

    def close(self) -> None:
        """Close the connection to the broker."""
        if self._live is not None:
            self._live.close()


class Backfill:
    """The history that a stream begins with."""

    def __init__(self, options: SourceOptions, history: History) -> None:
        self._options = options
        self._history = history

    @property
    def brokers(self) -> tuple[tuple[str, str], ...]:
        """The brokers of the options, else those of the history, which have no address."""
        return self._options.brokers or tuple((name, "") for name in self._history.logs)

    def joined(self, name: str, live: Log | None) -> Log | JoinedLog:
        """Return the log of a broker with the history before it."""
        kept = self._kept(name)
        if kept is None:
            assert live is not None  # of a history alone all brokers are in it
            return live
        return JoinedLog(kept, live)

    def standing(self, name: str, live: LogStanding) -> LogStanding:
        """Return where both begin and end. Raises EpochError."""
        kept = self._kept(name)
        if kept is None:
            return live
        if kept.epoch != live.epoch:
            if self._options.fail_on_loss:
                raise EpochError(
                    f"the history {self._history.folder} holds another log (epoch {kept.epoch}) of"
                    f" broker {name} than it has now (epoch {live.epoch}): its disk was replaced;"
                    f' with lost = "skip" (failOnDataLoss=false) the new log alone is read'
                )
            return live
        return live._replace(earliest=min(kept.first, live.earliest))

    def begin(self, name: str, log: EventTimes, standing: LogStanding) -> int:
        """Return the offset at which a broker is begun. Raises OptionError."""
        since, kept = self._options.since, self._kept(name)
        if isinstance(since, int):
            return log.first_offset_after(standing.epoch, since - 1)
        if isinstance(since, Mapping) and name in since:
            if since[name] > standing.end:
                raise OptionError(
                    f"since: the log of broker {name} ends at offset {standing.end}, before"
                    f" {since[name]}"
                )
            return since[name]
        if kept is not None and kept.epoch == standing.epoch:
            return standing.earliest
        return standing.end if self._options.starting == "latest" else standing.earliest

    def missing(
        self, name: str, place: LogPlace, live: LogStanding | None
    ) -> list[tuple[int, int]]:
        """Return the ranges behind a place that neither has; `live` is the broker's standing."""
        kept = self._kept(name)
        if kept is None or kept.epoch != place.epoch:
            return []
        earliest = kept.end if live is None else live.earliest
        behind = [
            (max(begin, place.next), end) for begin, end in (*kept.gaps, (kept.end, earliest))
        ]
        ranges = [(begin, min(end, earliest)) for begin, end in behind]
        return [(begin, end) for begin, end in ranges if begin < end]

    def passages(self, name: str, epoch: str, begin: int, end: int) -> list[HistoryStretch]:
        """Cut a range where the history has it and where it has not."""
        kept = self._kept(name)
        if kept is None or kept.epoch != epoch:
            return [HistoryStretch(begin, end, kept=False)]
        cuts = [0, kept.first, *(edge for gap in kept.gaps for edge in gap), kept.end, end]
        edges = sorted({begin, end, *(edge for edge in cuts if begin < edge < end)})
        passages = []
        for first, last in pairwise(edges):
            inside = kept.first <= first < kept.end
            gone = any(low <= first < high for low, high in kept.gaps)
            passages.append(HistoryStretch(first, last, kept=inside and not gone))
        return passages

    def paths(self, name: str, begin: int, end: int) -> tuple[str, ...]:
        """Return the files with the rows of a range that the history has."""
        kept = self._kept(name)
        return () if kept is None else self._history.paths(kept, begin, end)

    def known(self) -> dict[str, KnownBroker]:
        """Return the logs of a history alone, which owe nothing."""
        seen = {}
        for name, _ in self.brokers:
            kept = self._kept(name)
            if kept is not None:
                standing = LogStanding(kept.epoch, kept.first, kept.end, ROWS_MAX, 0, None)
                seen[name] = KnownBroker(standing)
        return seen

    def _kept(self, name: str) -> LogHistory | None:
        """Return the last log of a broker in the history. Raises EpochError where it has more."""
        logs = self._history.logs.get(name, {})
        if len(logs) > 1 and self._options.fail_on_loss:
            raise EpochError(
                f"the history {self._history.folder} holds {len(logs)} logs of broker {name}"
                f" (epochs {', '.join(logs)}): its disk was replaced; with lost ="
                f' "skip" (failOnDataLoss=false) the last one alone is read'
            )
        return next(reversed(logs.values()), None)


class HistoryLookout:
    """The lookout of a stream that reads a history alone, as it was when the stream began."""

    def __init__(self, backfill: Backfill) -> None:
        self._backfill = backfill

    def look(self) -> dict[str, KnownBroker]:
        """Return the logs of the history."""
        return self._backfill.known()

    def until(self, names: object, timeout_s: float) -> None:
        """Return at once: there is nothing to wait for."""

    def stop(self) -> None:
        """Do nothing: nobody is asked."""


def backfill_of(options: SourceOptions) -> Backfill | None:
    """Return what a stream begins with; None where it begins with the brokers."""
    if options.history is None:
        return None if options.since is None else Backfill(options, History(Path(), {}, []))
    return Backfill(options, read_history(Path(options.history)))
