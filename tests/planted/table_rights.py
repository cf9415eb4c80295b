"""Faults in rights, in reading them again, and in quotas.

Owns the table for rights. Must not know how faults are run. Invariant: as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

CONTENTS = ("tests/broker/rights/test_contents.py",)
QUOTAS = ("tests/broker/mqtt/test_quotas.py",)

TABLE = [
    *part(
        "broker/rights/contents.py",
        r"""
contents-of-anybody: what others have installed counts against a user
- if content.client == asker.user}
+ if content.client}

installed-again-counts: a text that is installed already is one more
- count = len(mine.union(coming.values()))
+ count = len(mine) + len(coming)

quota-unheard: a quota that forbids what holds without limit is passed over
- if quota.unbounded if asker.user is not None else limits.unbounded_allowed:
+ if quota.unbounded or limits.unbounded_allowed:
""",
        tests=CONTENTS,
    ),
    *part(
        "broker/mqtt/sessions/subscriptions.py",
        r"""
subscription-not-given-back: what a reload takes away counts for ever
-     hub.quotas.give("subscriptions", session.holder)
+     hub.quotas.give("subscriptions", session.holder, 0)
""",
        tests=QUOTAS,
        only="reload_takes_away",
    ),
    *part(
        "broker/mqtt/sessions/rights.py",
        r"""
lost-and-stays: who loses a subscription by a reload is not told
- if lost or not welcome(
+ if not welcome(
""",
        tests=("tests/broker/mqtt/test_rights.py",),
    ),
    *part(
        "broker/rights/quotas.py",
        r"""
door-never-gives-back: connections by HTTP count after their end
- holder = self._holders.pop(connection, None)
+ holder = None
""",
        tests=("tests/broker/http/test_connections.py",),
        only="connections_of",
    ),
    *part(
        "broker/credentials.py",
        r"""
old-password-known: a login stays known though its password was changed
- if hashes.get(name) == self._hashes[name]]
+ if name in hashes]
""",
        tests=("tests/broker/http/test_face.py",),
        only="known_before_a_reload",
    ),
    *part(
        "broker/http/events/parts.py",
        r"""
another-name-wins: an event that names its source is judged by another
- origin = header.source or header.srcid or source
+ origin = source or header.source or header.srcid
""",
        tests=("tests/broker/http/test_events.py",),
        only="own_win",
    ),
    *part(
        "broker/rights/work.py",
        r"""
share-each: each connection of a user has a share of its own
- share = self._shares.get(user)
+ share = None

owed-for-ever: who owes waits also where nobody else wants any
- if self._quiet > QUIET_TURNS:
+ if self._quiet < 0:

own-work-pays: a user's own work counts as that of others
- self._ledger.total_s += took_s
-         self.seen_s = self._ledger.total_s
+ self._ledger.total_s += took_s
""",
        tests=("tests/broker/rights/test_work.py",),
    ),
    *part(
        "broker/mqtt/driver.py",
        r"""
share-of-nobody: a flood beyond its user's share is read on
- if self._wait is not None and self in
+ if self._wait is None and self in
""",
        tests=("tests/broker/mqtt/test_turns.py",),
        only="share_of_its_user",
    ),
]
