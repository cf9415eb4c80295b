"""The feed of a home to its stand-in, and what the home withholds until that follows.

Owns the numbers of changes, what is not acknowledged yet, and the promises that wait for it. Must
not know what a change says, links or clocks. Invariant: a promise that rests on a change leaves
behind the stand-in's acknowledgement of it, in the order in which promises were made, unless the
stand-in is none or has been away for `WAIT_MS`; then the home goes on alone, as it did before.

It takes events whether or not its stand-in follows; results wait as `fence` says. One bound by a
lease never goes on alone. What waits here lets *others* forget: origins events, hosts results.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal, TypeAlias

from broker.network.delivery.messages import HomeChanged, HomeEntrusted, HomeKept

NEIGHBOUR = "*"  # in the place of a name: whichever neighbour there is
WAIT_MS = 60_000  # a stand-in that restarts is back by then; origins keep what it has not got
SAY_AGAIN_MS = 5_000  # what is not acknowledged for so long may be lost with a link
LAZY_MS = 60_000  # what nobody waits for is said so late by itself
CHANGES_MAX = 1_000  # not acknowledged: past either all is copied again, which may be less
CHANGES_BYTES_MAX = 8 * 1024 * 1024
PART_BYTES = 256 * 1024  # of changes in one message

FeedState: TypeAlias = Literal["none", "copying", "following", "alone"]


class HomeFeed:
    """The feed of broker `me` in its process `run`; `setting` is a name, `NEIGHBOUR` or "".

    `tell` brings a message to a broker, behind the record that it rests on; `bring` a promise that
    was withheld; `whole` returns the state as of now.
    """

    def __init__(
        self,
        me: str,
        run: int,
        tell: Callable[[str, Any], None],
        bring: Callable[[str, bytes], None],
        whole: Callable[[], bytes],
    ) -> None:
        self.me = me
        self.run = run
        self.setting = ""
        self.stand_in = ""
        self.is_bound = False  # by a lease: to the stand-in that there is, however long it is away
        self.number = 0  # of the last change
        self.kept = -1  # of the last that the stand-in has; below 0: it has no state to change
        self._tell = tell
        self._bring = bring
        self._whole = whole
        self._changes: deque[bytes] = deque()  # the last ones, up to `number`
        self._size_bytes = 0
        self._sent = 0
        self._is_due = True  # a whole state
        self._is_alone = False
        self._away_at: int | None = None
        self._said_at: int | None = None  # when something was said that is not acknowledged
        self._is_lost = False
        self._lazy_at: int | None = None
        self._withheld: dict[tuple[str, bytes], int] = {}  # behind which change
        self._lines: dict[tuple[str, str], list[bytes]] = {}  # of these, by broker and line

    def __len__(self) -> int:
        """Count the promises that are withheld."""
        return len(self._withheld)

    @property
    def state(self) -> FeedState:
        """Return how far the stand-in follows."""
        if not self.stand_in:
            return "none"
        if self._is_alone:
            return "alone"
        return "copying" if self.kept < 0 else "following"

    @property
    def is_reachable(self) -> bool:
        """Tell if there is a stand-in, to which there is a way."""
        return bool(self.stand_in) and self._away_at is None and not self._is_alone

    @property
    def _patience_ms(self) -> int:
        # A whole state may be long under way on a slow link.
        return WAIT_MS if self.kept < 0 else SAY_AGAIN_MS

    @property
    def behind(self) -> int:
        """Return how many changes the stand-in is not known to have."""
        return self.number - max(self.kept, 0)

    def change(self, changes: Sequence[bytes], now: int, *, lazy_ms: int = 0) -> None:
        """Take in what has changed, which is to be said after `lazy_ms` at the latest."""
        if not changes or not self.stand_in:
            return
        due = now + lazy_ms
        self._lazy_at = due if self._lazy_at is None else min(due, self._lazy_at)
        self.number += len(changes)
        if self._is_due:
            return  # all of it is said anew, this change with it
        self._changes += changes
        self._size_bytes += sum(map(len, changes))
        if len(self._changes) > CHANGES_MAX or self._size_bytes > CHANGES_BYTES_MAX:
            self._begin_anew()

    def withholds(self, to: str, promise: bytes, line: str = "") -> bool:
        """Withhold a promise to a broker if the stand-in lacks what it rests on.

        Of a `line`, other than "", each promise to a broker says all that those before it say.
        """
        if not self.stand_in or self._is_alone:
            return False
        if not self._withheld and self.kept >= self.number:
            return False
        self._withheld.setdefault((to, promise), self.number)
        if line:
            self._shorten(to, promise, line)
        if self._lazy_at is not None:
            # Somebody waits now: what could wait is said with the next look.
            self._lazy_at = 0
        return True

    def _shorten(self, to: str, promise: bytes, name: str) -> None:
        """Keep the first promise of a line and the last: with the last alone none might ever leave.

        For there may be a later one each time before the stand-in has answered.
        """
        line = self._lines.get((to, name), ())
        waiting = [each for each in line if (to, each) in self._withheld and each != promise]
        for each in waiting[1:]:
            del self._withheld[to, each]
        self._lines[to, name] = [*waiting[:1], promise]

    # --- the stand-in ----------------------------------------------------------------------

    def look(self, now: int, reachable: Collection[str], neighbours: Sequence[str]) -> None:
        """Choose a stand-in where there is none, and say what is due."""
        self.choose(reachable, neighbours)
        if not self.stand_in:
            return
        if self.stand_in not in reachable:
            self._away_at = now if self._away_at is None else self._away_at
            if now - self._away_at >= WAIT_MS and not (self._is_alone or self.is_bound):
                self._is_alone = True
                self._begin_anew()
                self._release(self.number)
            return
        if self._away_at is not None:
            self._away_at = None
            self._is_lost = True  # what was under way may be
            self._is_alone = False
        self._say(now)

    def choose(self, reachable: Collection[str], neighbours: Sequence[str]) -> None:
        """Stay with a stand-in as long as it can be: another one needs all of the state."""
        chosen = self.stand_in
        if self.is_bound and chosen:
            return
        if self.setting != NEIGHBOUR:
            chosen = "" if self.setting == self.me else self.setting
        elif neighbours and (not chosen or (self._is_alone and chosen not in reachable)):
            chosen = min(neighbours)
        if chosen == self.stand_in:
            return
        if self.stand_in:
            # Two copies would be two brokers that could take over: one of them from of old.
            self._tell(self.stand_in, HomeEntrusted(self.me, self.run, self.number, b""))
        self.stand_in, self._is_alone, self._away_at = chosen, False, None
        self._begin_anew()
        if not chosen:
            self._release(self.number)

    def remember(self, broker: str) -> None:
        """Have the stand-in that an earlier process had, which may still have a copy."""
        if broker and broker != self.me:
            self.stand_in = broker

    def forget(self, broker: str) -> None:
        """Have another stand-in, or none, where this one will not come back."""
        if broker == self.stand_in:
            self.setting = "" if self.setting == broker else self.setting
            self.stand_in, self._is_alone = "", False
            self._begin_anew()
            self._release(self.number)

    def begin_again(self) -> None:
        """Say all anew: something of it has changed that no change tells."""
        if self.stand_in:
            self._begin_anew()

    def _begin_anew(self) -> None:
        self._changes.clear()
        self._size_bytes = 0
        self.kept, self._is_due, self._said_at = -1, True, None

    def _say(self, now: int) -> None:
        is_late = self._said_at is not None and now - self._said_at >= self._patience_ms
        is_lost, self._is_lost = is_late or self._is_lost, False
        if self._is_due or (is_lost and self.kept < 0):
            self._is_due = False
            self._changes.clear()
            self._size_bytes, self._sent, self._lazy_at = 0, self.number, None
            self._said_at = now
            state = HomeEntrusted(self.me, self.run, self.number, self._whole())
            self._tell(self.stand_in, state)
        elif is_lost or (self._lazy_at is not None and self._lazy_at <= now):
            first = self.number - len(self._changes) + 1
            behind = first if is_lost else max(first, self._sent + 1)
            self._lazy_at, self._sent = None, self.number
            unsaid = list(self._changes)[behind - first :]
            self._said_at = now if self._changes else None
            self._say_changes(behind, unsaid)

    def _say_changes(self, first: int, changes: Sequence[bytes]) -> None:
        part: list[bytes] = []
        size_bytes = 0
        for change in changes:
            if part and size_bytes + len(change) > PART_BYTES:
                self._tell(self.stand_in, HomeChanged(self.me, self.run, first, tuple(part)))
                first, part, size_bytes = first + len(part), [], 0
            part.append(change)
            size_bytes += len(change)
        if part:
            self._tell(self.stand_in, HomeChanged(self.me, self.run, first, tuple(part)))

    def heard(self, sender: str, kept: HomeKept) -> None:
        """Take in how far the stand-in is; let go of what waited for that."""
        if sender != self.stand_in or self._is_due:
            return
        if kept.run != self.run or kept.number < self.number - len(self._changes):
            if kept.lacks:
                self._begin_anew()  # its disk went back, or it has lost its copy
            return
        self._is_lost = self._is_lost or kept.lacks  # a change was lost with a link
        # An acknowledgement beyond the last change is of nothing that was said.
        self.kept = max(self.kept, min(kept.number, self.number))
        while self._changes and self.number - len(self._changes) < self.kept:
            self._size_bytes -= len(self._changes.popleft())
        if self.kept >= self._sent:
            self._said_at = None
        self._release(self.kept)

    def _release(self, number: int) -> None:
        # A dict keeps the order in which promises were made.
        ready = [promise for promise, behind in self._withheld.items() if behind <= number]
        for promise in ready:
            del self._withheld[promise]
            self._bring(*promise)
        if not self._withheld:
            self._lines.clear()

    def next_wake(self) -> int | None:
        """Return when something is due."""
        if not self.stand_in:
            return None
        wakes = [self._lazy_at]
        if self._away_at is not None:
            waits = not (self._is_alone or self.is_bound)
            return self._away_at + WAIT_MS if waits else None
        if self._said_at is not None:
            wakes.append(self._said_at + self._patience_ms)
        return min([wake for wake in wakes if wake is not None], default=None)

    def status(self) -> dict[str, Any]:
        """Return it for people."""
        return {
            "setting": self.setting,
            "stand_in": self.stand_in,
            "state": self.state,
            "behind": self.behind if self.stand_in else 0,
            "withheld": len(self._withheld),
        }
