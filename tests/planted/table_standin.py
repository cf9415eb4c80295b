"""Faults in what a home and its stand-in say to each other, and in who took over whom.

Owns the tables for `broker/network/delivery`. Must not know how faults are run. Invariant: as for
fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

DELIVERY = ("tests/broker/network/delivery",)

FEED = part(
    "broker/network/delivery/feed.py",
    r"""
feed-hasty: a promise leaves before the stand-in has what it rests on
- if not self._withheld and self.kept >= self.number:
+ if self.kept >= 0:

feed-unheard: a promise waits for ever, as an answer lets go of nothing
- self._release(self.kept)
+ ()

feed-early: an answer lets go of what is behind it as well
- if behind <= number]
+ if behind <= number + 1]

feed-copying: promises leave while the stand-in has nothing yet
- self.kept, self._is_due, self._said_at = -1, True, None
+ self.kept, self._is_due, self._said_at = 0, True, None

feed-for-ever: a home whose stand-in stays away lets go of nothing
- if now - self._away_at >= WAIT_MS and not self._is_alone:
+ if now - self._away_at >= 10 * WAIT_MS and not self._is_alone:

feed-impatient: a home goes on alone as soon as its stand-in restarts
- if now - self._away_at >= WAIT_MS and not self._is_alone:
+ if not self._is_alone:

feed-lost: what a link lost is not said again
- self._is_lost = True  # what was under way may be
+ self._is_lost = False  # what was under way may be

feed-gap: a stand-in that lacks a change never gets it
- self._is_lost = self._is_lost or kept.lacks
+ self._is_lost = self._is_lost

feed-two: a stand-in that is none any more keeps its copy
- self._tell(self.stand_in, HomeEntrusted(self.me, self.run, self.number, b""))
+ ()

feed-forgotten: promises wait for a stand-in that was forgotten
- if broker == self.stand_in:
+ if broker == self.me:

feed-unbounded: changes pile up for a stand-in that does not answer
- if len(self._changes) > CHANGES_MAX or
+ if len(self._changes) > 2 * CHANGES_MAX or
""",
    tests=DELIVERY,
)

SUCCESSIONS = part(
    "broker/network/delivery/succession.py",
    r"""
succession-first: the first word counts, whatever comes later
- self._homes[cell] = max(
+ self._homes[cell] = min(

succession-again: a word goes round for ever
- if not self._log.has(succession):
+ if succession:

succession-old: a neighbour is told what it does not understand
- if understands:
+ if peer:

succession-unsaid: a neighbour of a new session does not hear who was taken over
- for succession in self._log.stated():
+ for succession in self._log.stated()[:0]:
""",
    tests=DELIVERY,
)

TABLE = (*FEED, *SUCCESSIONS)
