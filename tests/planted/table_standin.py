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
- self.homes.get(home, (now, 0))[0], lease_ms)
+ self.homes.get(home, (0, 0))[0], lease_ms)

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

GRANTED = part(
    "broker/core/standby/stand_ins.py",
    r"""
granted-never: a stand-in does not answer for the lease, so its home gives out nothing
- self._mail.tell(home, LeaseGranted(question.run, question.number))
+ ()

lapsed-alone: a home with a lease is taken over by a person's word alone
- if copy.rows or copy.given.end > inherited.upto(copy.epoch):
+ if not copy.home:
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
- proven=text.proven, checked=checked, only=tuple(wanted)
+ proven=text.proven, checked=checked

adopted-first-text: what an earlier text has brought is in the way of the text that names it too
- for subscriber, name in wanted:
+ for subscriber, name in checked.specification.subscriptions:
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

GUARDED = part(
    "broker/core/standby/guarded_home.py",
    r"""
home-silenced: a home whose stand-in was forgotten gives out nothing any more
- return self._upto(now)
-         delivered
+ return None
+         delivered

home-waits-for-nobody: a home that nobody stands in for waits for a lease
- bool(feed.stand_in) and (feed.is_bound or bool(self._lease.lease_ms))
+ feed.is_bound or bool(self._lease.lease_ms)

home-sleepless: a home that never reached its stand-in looks all the time
- not (self.feed.is_bound or self._lease.lease_ms):
+ not self.feed.is_bound:
""",
    tests=HOMES,
)

VOID = (
    *part(
        "broker/core/standby/home_changes.py",
        r"""
void-copied: results that the home has disowned are in its stand-in's copy
- for result in results if result.payload]
+ for result in results]
""",
        tests=HOMES,
    ),
    *part(
        "broker/core/standby/adoption.py",
        r"""
void-adopted: a take-over stops at a result that the home has disowned
- if row.offset >= upto and row.result[3]]:
+ if row.offset >= upto]:
""",
        tests=HOMES,
    ),
)

JOINED = part(
    "broker/bridge/supply.py",
    r"""
joined-twice: a joined server gets what another broker has given out
- if result.payload and not result.is_silent:
+ if result.payload:

joined-void: a joined server gets results without a payload
- if result.payload and not result.is_silent:
+ if not result.is_silent:
""",
    tests=("tests/broker/bridge/test_supply.py",),
    only="another_broker",
)

LINES = (
    *part(
        "broker/network/delivery/feed.py",
        r"""
lines-unbounded: promises pile up as long as a stand-in is away
- for each in waiting[1:]:
+ for each in ():

lines-starved: a promise gives way to each later one, and none ever leaves
- for each in waiting[1:]:
+ for each in waiting:
""",
        tests=DELIVERY,
    ),
    *part(
        "broker/network/placement/cell_messages.py",
        r"""
lines-mixed: what one life of a cell was promised gives way to what another was
- {said.which.since} {said.life}"
+ {said.which.since}"

lines-of-all: a promise gives way to one that does not say the same
- if not isinstance(said, Taken | Stored):
+ if not isinstance(said, Taken | Stored | Noted):
""",
        tests=("tests/broker/network/placement/test_cell_lines.py",),
    ),
)

GATE = (
    *part(
        "broker/core/effects.py",
        r"""
fence-uncounted: what has left the fence counts as waiting for ever
- self.fenced_bytes -= _size_bytes(ready[-1])
+ ()

fence-disowned: what was taken over counts as it did before
- self.fenced_bytes = sum(map(_size_bytes, self._fenced))
+ ()
""",
        tests=("tests/broker/core/test_commit_gate.py",),
    ),
    *part(
        "broker/driver/promises.py",
        r"""
fence-endless: results pile up in memory while the stand-in does not answer
- if self.commits.fenced_bytes > self.waiting_bytes_max:
+ if self.commits.fenced_bytes > 2 * self.waiting_bytes_max:

fence-stuck: intake stays shut although the stand-in has answered
- if self.commits.fenced_bytes <= self.waiting_bytes_max // 2:
+ if self.commits.fenced_bytes < 0:
""",
        tests=("tests/broker/test_promises.py",),
    ),
)

WANTED = part(
    "broker/core/standby/stand_ins.py",
    r"""
wanted-early: a person has a home taken over that may count on its lease
- if (left_ms := self._lease_left_ms(home, now)) and not is_forced:
+ if (left_ms := self._lease_left_ms(home, now)) and False:

wanted-begun: a stand-in that begins takes over a home to which it has just granted a lease
- lease_ms if left_ms is None else left_ms)
+ 0 if left_ms is None else left_ms)
""",
    tests=HOMES,
)

SITE = (
    *part(
        "broker/site/networking.py",
        r"""
site-unforgettable: a home cannot be freed of a stand-in that this process never met
- if not (is_stand_in or knows(
+ if not (knows(

site-unseen: where nobody stands in no series says so
- wanted = name or feed.setting
+ wanted = name
""",
        tests=("tests/broker/site/test_networking_stand_in.py",),
    ),
    *part(
        "broker/site/unread.py",
        r"""
site-unbounded: all that nobody has read is in memory at a start
- while size_bytes > GIVEN_BYTES_MAX:
+ while size_bytes > 2 * GIVEN_BYTES_MAX:

site-gap: a stand-in is told that it has what retention took
- first = begin = min(end, max(begin, gone.standing.earliest))
+ begin = min(end, max(begin, gone.standing.earliest))

site-dropped: a stand-in is told that it has what found no room
- first = row.offset + 1
+ ()
""",
        tests=("tests/broker/site/test_unread.py",),
    ),
)

TABLE = (
    *FEED,
    *SUCCESSIONS,
    *LEASE,
    *FENCE,
    *HOME,
    *GRANTED,
    *ADOPTION,
    *REMOTE,
    *ENDED,
    *GUARDED,
    *VOID,
    *JOINED,
    *LINES,
    *GATE,
    *WANTED,
    *SITE,
)
