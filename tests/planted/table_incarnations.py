"""Faults in which life a disk counts, who goes on of two, and what is revived by an older disk.

Owns the table for incarnations. Must not know how faults are run. Invariant: as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

UNITS = (
    "tests/broker/network/replication/test_incarnation.py",
    "tests/broker/network/replication/test_descent.py",
    "tests/broker/network/replication/test_disk_claim.py",
    "tests/broker/network/overlay/test_clones.py",
    "tests/broker/network/overlay/test_namesakes.py",
    "tests/broker/core/network/test_announcing.py",
)

TABLE = [
    *part(
        "broker/network/replication/disk_claim.py",
        r"""
clone-goes-on: of two copies of a disk the one announced later goes on
- if first < (self.run, self._me)
+ if first > (self.run, self._me)

clone-back-with-a-restart: a copy goes on as soon as its original restarts
- return other is not None and other.disk == self.disk and not other.forgotten
+ return other is not None and other.disk == self.disk and other.run < self.run

clone-never-back: a copy admits nothing although its original was forgotten
- and not other.forgotten
+ and other.run >= 0

clone-told-on: a copy tells of the disk, and its original yields after a restart
- return 0 if self.yielded_to else self.disk
+ return self.disk

old-name-is-a-rival: a broker that was renamed waits for its old name to be forgotten
- if name != self._me and name in reachable and self._is_rival(other)
+ if name != self._me and self._is_rival(other)
""",
        tests=UNITS,
    ),
    *part(
        "broker/network/replication/descent.py",
        r"""
times-name-disks: two disks whose first life was a time of day count as copies
- if life >= DRAWN_MIN), 0)
+ if life), 0)

first-life-let-go: a disk with many lives has another identity than its copies
- del self._ends[next(life for life in self._ends if life != self.first)]
+ del self._ends[next(iter(self._ends))]

twice-back-shares-more: a disk that went back twice shares with its first life what it lost
- self._ends = {name: min(end, position) for name, end in self._ends.items()}
+ self._ends = dict(self._ends)
""",
        tests=UNITS,
    ),
    *part(
        "broker/network/replication/incarnation.py",
        r"""
admits-while-displaced: a broker admits events beside another of its name
- return self.phase == "settled"
+ return self.phase != "asking"

admits-unasked: the wait for answers is over before it began
- is_over = self.due_ms is not None and now >= self.due_ms
+ is_over = self.due_ms is not None

life-goes-on-in-doubt: a disk goes on in its life although not all could be asked
- is_new = not life or not expected or bool(unheard) or gap is not None
+ is_new = not life or gap is not None

gap-by-the-first-word: of what a host has seen the first word counts, and not the last
- if before is None or before.last < position
+ if before is None

same-life-without-end: a life that a copy went on in is begun again, and at once again
- self._identity += 1
+ break

readmitted-unasked: who was displaced goes on without asking how far others are
- self.phase, self.why, self.due_ms = "asking", "", None
+ self.phase, self.why, self.due_ms = "settled", "", None
""",
        tests=UNITS,
    ),
    *part(
        "broker/network/overlay/topology.py",
        r"""
clone-in-the-tree: others wait for a broker that admits nothing
- links = () if claim.yielded_to else tuple(sorted(self._links.items()))
+ links = tuple(sorted(self._links.items()))

disk-named-in-silence: a disk that is named only now is told to nobody
- if not self._claim.run or disk == self._claim.disk:
+ if disk:

namesake-later-goes-on: of two of one name the one announced later goes on
- and state.run < run
+ and state.run > run
""",
        tests=UNITS,
    ),
    *part(
        "broker/core/exchange/announcing.py",
        r"""
unasked-behind-an-advertisement: first events that waited are taken before others are asked
- self.look(sources.unanswered, now)
+ self.look((), now)

taken-while-displaced: first events are held again, behind what came after them
- return None  # it would be held behind what came after it
+ pass
""",
        tests=UNITS,
    ),
]
