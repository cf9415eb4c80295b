"""Faults in what a home and its stand-in say to each other, and in who took over whom.

Owns the tables for `broker/network/delivery`, `broker/core/standby` and what brokers ask each other
of copies. Must not know how faults are run. Invariant: as for fault.Fault.
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
- if now - self._away_at >= WAIT_MS and not
+ if now - self._away_at >= 10 * WAIT_MS and not

feed-impatient: a home goes on alone as soon as its stand-in restarts
- if now - self._away_at >= WAIT_MS and not
+ if now - self._away_at >= 0 and not

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

LEASE = part(
    "broker/network/delivery/lease.py",
    r"""
lease-whole: a home counts on all of a lease, however its clock runs
- until = asked + usable_ms(self.lease_ms)
+ until = asked + self.lease_ms

lease-kept: a home counts on the lease of one that stands in no longer
- self._until, self._asked, self._asks_at = None, {}, 0
+ self._asks_at = 0

lease-begun: a stand-in that begins forgets that it may have granted a lease
- self._granted.get(home, (now, 0))[0], lease_ms)
+ self._granted.get(home, (0, 0))[0], lease_ms)

lease-hasty: a stand-in takes over while the home may count on its lease
- if now - since >= lease_ms
+ if now - since >= lease_ms - lease_ms // 50
""",
    tests=DELIVERY,
)

FENCE = part(
    "broker/network/delivery/fence.py",
    r"""
fence-open: a result leaves before the stand-in has it
- if kept is not None and kept < number and not is_due:
+ if kept is not None and kept + 1 < number and not is_due:

fence-leased: a home whose lease has lapsed gives out results after a second
- is_due = not is_leased and now - since >= GIVE_OUT_MS
+ is_due = now - since >= GIVE_OUT_MS

fence-shut: a result waits for a stand-in that does not answer
- is_due = not is_leased and now - since >= GIVE_OUT_MS
+ is_due = False
""",
    tests=DELIVERY,
)

HOMES = ("tests/broker/core/standby",)

HOME = part(
    "broker/core/standby/guarded_home.py",
    r"""
home-unleased: a home gives out results although its lease has lapsed
- if not self._lease.lease_ms or not self._lease.holds(now):
+ if not self._lease.lease_ms:

home-forgetful: a process chooses a stand-in although an earlier one had another
- self.feed.remember(chosen.broker)
+ ()

home-unwritten: nobody writes down which stand-in was chosen
- self._tell(StandInChosen(feed.stand_in, lease_ms))
+ ()
""",
    tests=HOMES,
)

ADOPTION = part(
    "broker/core/standby/adoption.py",
    r"""
chosen-unsaved: a snapshot lacks which stand-in was chosen
- chosen = [self.chosen.broker, self.chosen.lease_ms]
+ chosen = ["", 0]

adopted-whole: what was cancelled at a home is there again at its heir
- if key in wanted:
+ if key:
""",
    tests=HOMES,
)

ASKED = ("tests/broker/remote/test_home_copies.py", "tests/broker/remote/test_states.py")

REMOTE = part(
    "broker/remote/home_copies.py",
    r"""
copies-last: the copy of whoever was asked last counts, however old it is
- best[home] = max((copies[home], broker), best.get(home, ((-1, -1), "")))
+ best[home] = copies[home], broker

copies-own: a stand-in that is asked passes over the copy that it has itself
- asked = [self._me, *[name
+ asked = [*[name
""",
    tests=ASKED,
)

ENDED = part(
    "broker/remote/subscriptions.py",
    r"""
listed-twice: what was taken over is listed once more from a copy of before
- if _generation(row) not in listed]
+ if row]

end-outrun: a cancellation that a take-over outruns is refused
- if heirs:
+ if heirs[:0]:

end-garbled: a reply that confirms nothing confirms a cancellation
- if isinstance(reply.get("ok"), bool):
+ if reply is not None:
""",
    tests=ASKED,
)

TABLE = (*FEED, *SUCCESSIONS, *LEASE, *FENCE, *HOME, *ADOPTION, *REMOTE, *ENDED)
