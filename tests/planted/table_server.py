"""Faults in the server tier: a version that is shown too early, or a consumer that goes too early.

Owns the table for `server`. Must not know how faults are run. Invariant: as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

MIGRATION = ("tests/server/test_migration.py",)

TABLE = [
    *part(
        "server/upkeep/versions.py",
        r"""
half-filled-is-shown: a version that was begun beside another counts as the one that is shown
- begun = [stream for stream in begun_of(jobs, job) if not stream.apart]
+ begun = list(begun_of(jobs, job))
""",
        tests=MIGRATION,
    ),
    *part(
        "server/upkeep/migration.py",
        r"""
shown-unread: a version is shown that has not read everything
- if not complete:
+ if complete is None:
""",
        tests=MIGRATION,
    ),
    *part(
        "server/upkeep/consumers.py",
        r"""
running-is-forgotten: brokers forget a consumer that is still read by
- free = [stream for stream, file in held if stream.version not in busy]
+ free = [stream for stream, file in held]

away-is-done: a broker that was away is never asked again
- if complete and free:
+ if free:
""",
        tests=MIGRATION,
    ),
    *part(
        "server/sinks/alert_marks.py",
        r"""
alert-left-out: an alert is left out that the former version has not sent
- row["offset"] < self.offsets
+ row["offset"] <= self.offsets
""",
        tests=MIGRATION,
    ),
    *part(
        "server/sinks/shown.py",
        r"""
former-takes-back: the former version makes the views show itself again
- return table.stored if table.suffix else None
+ return table.stored
""",
        tests=MIGRATION,
    ),
]
