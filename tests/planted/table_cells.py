"""Faults in what homes and hosts tell each other of suspended subscriptions.

Owns the table for `broker/core/suspension`. Must not know how faults are run. Invariant: as for
fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

SUSPENDED = ("tests/broker/core/suspension",)

TABLE = part(
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
