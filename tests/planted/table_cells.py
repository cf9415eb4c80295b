"""Faults in what brokers tell each other of what is suspended, and of what they want.

Owns the tables for `broker/core/suspension` and `broker/network/routing`. Must not
know how faults are run. Invariant: as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

ROUTING = ("tests/broker/network/routing",)
SUSPENDED = ("tests/broker/core/suspension",)

STANDING = part(
    "broker/core/suspension/agreement.py",
    r"""
standing-of-before: what a host says from before a new beginning counts behind it
- and sub.resumed == row.resumed
+ and sub.resumed >= row.resumed

standing-not-followed: a wish to begin anew does not reach the tasks
- matcher.resume((*sub.definitions, sub.task), now)
+ ()

standing-again: a host that begins anew does the work again
- if row.exceeded:
+ if row.exceeded and row.resumed:

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

TABLE = [*STANDING, *WANTS, *PROBES]
