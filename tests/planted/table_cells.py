"""Faults in what brokers tell each other of what is suspended, of what they want, and of cells.

Owns the tables for `broker/core/suspension`, `broker/network/routing` and cells that are parted,
fail or are saved. Must not know how faults are run. Invariant: as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

ROUTING = ("tests/broker/network/routing",)
PLACED = ("tests/broker/core/network/test_cells_placed.py",)
PARTED = ("tests/broker/core/network/test_cell_parts.py",)
SAVED = ("tests/broker/core/network/test_cells.py",)
PLACEMENT = ("tests/broker/network/placement",)
SUSPENDED = ("tests/broker/core/suspension",)

FOLLOWING = part(
    "broker/core/suspension/agreement.py",
    r"""
standing-not-followed: a wish to begin anew does not reach the tasks
- matcher.resume((*sub.definitions, sub.task), now)
+ ()

standing-again: a host that begins anew does the work again
- if row.exceeded:
+ if row.exceeded and row.resumed:
""",
    tests=SUSPENDED,
)

STANDING = part(
    "broker/network/placement/suspension.py",
    r"""
standing-of-before: what a host says from before a new beginning counts behind it
- and sub.resumed == row.resumed
+ and sub.resumed >= row.resumed

standing-unsaid: a host says nothing of what it has suspended
- if sub is not None and (sub.suspended or sub.resumed):
+ if sub is not None and sub.resumed:

standing-twice: a home tells its subscriber again of what it knows
- and not sub.suspended
+ and sub.task

standing-for-ever: home and host tell each other for ever of what the host has no more
- rows = [row for row in heard if row.key not in subscriptions]
+ rows = list(heard[:0])
""",
    tests=SUSPENDED,
)

WANTS = part(
    "broker/network/routing/wants.py",
    r"""
wants-overtaken: a word that was overtaken by a later one counts
- return word.number > before.number and word.types != before.types
+ return word.types != before.types

wants-again: the same word costs a record each time
- return word.number > before.number and word.types != before.types
+ return word.number > before.number

wants-kept: who wants nothing any more is kept for
- self._by_host.pop(word.host, None)
+ self._by_host.get(word.host)
""",
    tests=ROUTING,
)

PROBES = part(
    "broker/network/routing/probes.py",
    r"""
probe-wants-lost: beyond the first broker nobody hears what is wanted
- yield peer, Probe(broker, wave.number, wave.wants)
+ yield peer, Probe(broker, wave.number)

probe-wants-nothing: a probe for a first event says that its broker wants nothing
- if wants is not None:
+ if wants is not None or self._own.wants:

probe-hasty: a broker echoes before those beyond it have
- echoed = min((wave.echoed.get(name, 0) for name in others), default=wave.number)
+ echoed = max((wave.echoed.get(name, 0) for name in others), default=wave.number)

probe-old-session: what was echoed in a session that ended counts
- for by_peer in (wave.asked, wave.echoed, wave.asked_at):
+ for by_peer in (wave.asked, wave.asked_at):
""",
    tests=ROUTING,
)

FAILED = part(
    "broker/network/placement/homes.py",
    r"""
failed-for-ever: a cell that is placed where it failed is nowhere
- if _resumes(book, name, self._failed) or before.get(name) != one:
+ if before.get(name) != one:

failed-left-to: a cell that cannot begin elsewhere goes back to where it failed
- lost = cell.serving.broker == broker or self._is_lost(cell)
+ lost = cell.serving.broker == broker or self.is_away(cell.serving.broker)
""",
    tests=PLACED,
)

LOST = part(
    "broker/network/placement/homes.py",
    r"""
lost-at-once: a host that is out of reach for a moment has the cell no more
- if self._clock() - since >= HOST_LOST_MS:
+ if self._clock() > since:

lost-named: a host that names origins is not answered where they are known already
- self._mail.tell(host, cell_messages.Noted(one.which, one.life, one.origins))
+ ()

moved-for-ever: a move that comes to nothing is never given up
- if self._clock() - since >= MOVING_MS_MAX:
+ if self._clock() - since > MOVING_MS_MAX:
""",
    tests=PLACEMENT,
)

HOSTS = part(
    "broker/network/placement/hosts.py",
    r"""
hosted-of-another-life: what a home says to a life that has ended counts in the next
- cell = self._of(home, one.which, one.life)
+ cell = self._of(home, one.which)

hosted-failed: a cell whose core failed goes on with what may be wrong
- self._cell_failed(cell.which, fault)
+ self._tell_failed(cell.me, fault)

hosted-unreachable: what a cell says is lost while there is no way to its home
- if home == self._lent.me or home in self._lent.via:
+ if home:
""",
    tests=PLACEMENT,
)

SAVING = part(
    "broker/network/placement/snapshot_pace.py",
    r"""
saved-too-early: an origin keeps for ever what came ahead of what was kept back
- if is_same and not self._is_owed(last, positions):
+ if is_same:

saved-in-vain: promises alone cost snapshots
- last.positions[origin][1] < min(position, self._event_at.get(origin, 0))
+ last.positions[origin][1] < max(position, self._event_at.get(origin, 0))
""",
    tests=SAVED,
)

GRAIN = part(
    "broker/core/network/cell_parts.py",
    r"""
grain-by-inputs: what needs the same inputs is at one broker
- for bonds in (_definitions, _inputs) if message.alone else (_inputs,):
+ for bonds in (_inputs,):

grain-of-before: records of an earlier version come to other cells than it had
- for bonds in (_definitions, _inputs) if message.alone else (_inputs,):
+ for bonds in (_definitions, _inputs):

grain-too-many: what needs the same inputs is not even together where there are too many
- if len(parted) <= most:
+ if len(parted) <= most or bonds is _definitions:

grain-twice: a definition that several need runs for each
- return subscription.definitions
+ return subscription.definitions[:0]
""",
    tests=PARTED,
)

TABLE = [*FOLLOWING, *STANDING, *WANTS, *PROBES, *FAILED, *LOST, *HOSTS, *SAVING, *GRAIN]
