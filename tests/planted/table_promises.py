"""Faults in what origins promise of times, and in what is held while a promise grows.

Owns the table for promises of times. Must not know how faults are run. Invariant: as for
fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

PROMISES = ("tests/broker/network/replication/test_time_promises.py",)
FIRST = ("tests/simulation/rehearsal/test_first_waits.py",)

TABLE = [
    *part(
        "broker/network/replication/time_promises.py",
        r"""
vague-points: of certain events nobody looks if they last
- outside = {id(event): event for event in (*vague, *lasting(events))}
+ outside = {id(event): event for event in vague}

vague-unseen: of points nobody looks how certain they are
- outside = {id(event): event for event in (*vague, *lasting(events))}
+ outside = {id(event): event for event in lasting(events)}

last-of-a-batch: of several events of a batch that break a promise only the last counts
- learnt[name] = learnt.get(name, bound).wider(wider)
+ learnt[name] = wider

broken-though-kept: an event that is more certain than was promised counts as one that breaks it
- wider = bound.wider(self._bound(event, bound))
+ wider = self._bound(event, bound)

growth-unsaid: a promise that has grown is said to nobody
- self._by_type[name] = bound
-                 self.version += 1
+ self._by_type[name] = bound

step-below: what is promised is less than an event that is between two steps
- if digit * power >= uncertainty_ms:
+ if digit * power * 2 > uncertainty_ms:

each-growth-said: a promise goes up with each event instead of in steps
- return min(step_ms(uncertainty_ms), max(self._most_ms, uncertainty_ms))
+ return uncertainty_ms

stated-and-broken: an event that lasts no longer than its source has said breaks a promise
- lasts_ms = None if _greatest(lasted_ms, bound.lasts_ms) != bound.lasts_ms else 0
+ lasts_ms = None if lasted_ms else 0

longer-than-stated: an event that lasts longer than its source has said is taken for the longest
- lasts_ms = None if _greatest(lasted_ms, bound.lasts_ms) != bound.lasts_ms else 0
+ lasts_ms = max(lasted_ms, bound.lasts_ms or 0) if bound.lasts_ms else None if lasted_ms else 0

statement-unread: nobody reads how long a source says that its events last
- stated = TimeBound(self._step(said.uncertainty or 0), said.lasts_ms_max or 0)
+ stated = TimeBound(self._step(said.uncertainty or 0), 0)

older-disk-forgets: a disk of an earlier version does not say what its events were like
- self.observe(kept)
-         self.version += 1
+ self.version += 1

heard-for-less: what an origin says last counts, also where it had said more before
- widest[name] = wider = bound if again else before.wider(bound)
+ widest[name] = wider = bound

later-version-unheard: a broker that promises nothing is not believed when it does later
- again = bounds is not None and before == UNBOUNDED
+ again = False

older-version-promises: a broker that promises nothing is taken to promise points
- others = POINTS if bounds is not None else UNBOUNDED
+ others = POINTS

odd-words-promise: what does not fit its types is taken to promise points
- bounds is not None and len(bounds) == len(types) else None
+ bounds is not None and len(bounds) == len(types) else ()

growth-unheard: nobody plans anew when a promise of another has grown
- self.version += wider != before
+ self.version += wider == before

one-for-all: of several origins the one that was heard last is taken for all
- widest = widest.wider(bound)
+ widest = bound

own-alone: what others have promised of a type that is sent here, too, is not minded
- return self._heard.of(name).wider(own)
+ return own
""",
        tests=PROMISES,
    ),
    *part(
        "broker/network/replication/growth_hold.py",
        r"""
earlier-probe: what is held leaves when the first of several probes is answered
- self._number = number  # a later probe
+ self._number = self._number or number  # a later probe

wait-begins-anew: each growth has what is held wait once more for the whole time
- if self.due is None:
-             self.due = now + self._wait_ms_max
+ self.due = now + self._wait_ms_max

never-over: what is held waits for who never answers
- if now < self.due:
+ if now:

over-at-once: what is held leaves although nobody has heard of the promise
- if answered < self._number:
+ if answered < self._number - 9:

last-said-alone: of what is held only what came last is said
- self._said += said
+ self._said = said

questions-ahead: a host that asks while something is held has no answer
- self._questions.append((peer, session, question))
+ self._questions = []

said-again: what was held is said once more with what is held later
- sayable, self._said = self._said, []
+ sayable = list(self._said)

asked-again: a question is answered once more with those that come later
- questions, self._questions = self._questions, []
+ questions = list(self._questions)

held-for-ever: nothing is said any more after something was held
- self.due = None
-         # Whoever says it
+ # Whoever says it

unanswered-uncounted: nobody sees that a wait was over before the answers came
- self.unanswered += 1
+ self.unanswered += 0
""",
        tests=PROMISES,
    ),
    *part(
        "broker/network/neighbours/partner_certainty.py",
        r"""
operator-unminded: answers to what was asked before an operator came make it sure
- certainty.changed(peer, since=since)
-             self.doubt()
+ self.doubt()

kept-from-cells: events of a cell's tasks are kept back within the process
- if not self._correlates or toward == LOCAL or toward in self._tools.inside:
+ if not self._correlates or toward == LOCAL:

gone-unminded: an origin that has gone is not missed by whoever waits for its events
- self._certainty.gone(origin, types, hosts)
+ self._certainty.gone(origin, (), ())

asked-each-second: hosts are asked every second as long as nothing is sure
- self._ask_ms = min(2 * self._ask_ms, ASK_MS_MAX)
+ self._ask_ms = ASK_MS

asked-in-vain: hosts are asked while an earlier question of theirs is open
- if self._certainty.may_ask(peer, [tools.me, *tools.ways.via]):
+ if tools.ways.via:

bounds-remembered: what was sure before something changed is sure behind it
- self._bounds.clear()
-         self._tools.withheld().send_unsure()
+ self._tools.withheld().send_unsure()

silent-unheard: events of a type that was silent so far find nobody who waits for them
- came.watermarks.setdefault(name, time)
+ pass

silence-goes-back: an answer takes back how far a type had come before
- came.watermarks.setdefault(name, time)
+ came.watermarks[name] = time

answer-from-there: an answer that comes from where the host is counts as one
- if answer.host != self._tools.me and via is not None and via != came_from:
+ if answer.host != self._tools.me and via is not None:
""",
        tests=("tests/broker/network/neighbours/test_partner_certainty.py",),
    ),
    *part(
        "broker/core/networked/networked.py",
        r"""
first-without-time: no time is told of a type with its first event, which hosts may pass by
- if begins or self.origin.is_due(self.now):
+ if self.origin.is_due(self.now):
""",
        tests=FIRST,
    ),
    *part(
        "broker/network/neighbours/kept_back.py",
        r"""
first-travels: the first event of a source that was passed over waits for no partner
- return claim.watermarks.get(name) is not None
+ return False
""",
        tests=FIRST,
    ),
    *part(
        "broker/network/neighbours/kept_back.py",
        r"""
waits-for-nobody: what only an operator that is gone asked for is kept for ever
- gone = self.take([place for place, each in self.items() if id(each.held) not in still])
+ gone = self.take([])

waits-of-before: what waits is looked for where the partners of before are
- self._order_anew()
-         return gone
+ return gone

waits-on: what waits for partners that nobody asks for any more waits for ever
- self._forget_unasked(toward, now)
+ ()
""",
        tests=("tests/broker/network/neighbours/test_kept_back.py",),
    ),
    *part(
        "broker/network/neighbours/partner_certainty.py",
        r"""
known-of-itself: what a neighbour asks for already makes known whatever else it asks for
- if other != peer and any(_asks(each, operator) for each, _ in tools.operators(other))
+ if any(_asks(each, operator) for each, _ in tools.operators(other))

known-of-the-unsure: what another has just begun to ask for counts as known
- return since if fresh is None else _later(since, self._fresh_after(other, fresh))
+ return since

known-with-others: an operator that has other keys counts as one that asks for the same
- return as_other == other and set(operator.keys) <= set(other.keys)
+ return as_other == other

known-further: one for other distances counts as one that asks for the same
- return as_other == other and set(operator.keys) <= set(other.keys)
+ return set(operator.keys) <= set(other.keys)

known-of-all: of what a neighbour asks for first, all is known where the last of it is
- if self.joined(peer).types:  # with what it asked for before
+ if False:

known-afresh: of what it asks for besides, all is known where the last of it is
- since = _later(certainty.since(peer, settled=True), since)
+ pass

known-and-kept: what waits for longer than partners have come here goes on waiting
- return since is None or waiting.held.end - apart_ms < since
+ return since is None

known-and-sent: what waits travels though partners have come here all the time
- return since is None or waiting.held.end - apart_ms < since
+ return True

known-whoever-comes: an origin that comes is taken for one of which all has come here
- if not is_cell(origin):  # a cell sends nothing
+ if False:

taken-back-unseen: operators that are taken back leave waiting what they asked for
- self._tools.withheld().ask_less(peer)
+ ()

taken-back-unlooked: where nothing more comes, nobody looks at what waits
- tools.withheld().let_go(now)
+ ()
""",
        tests=("tests/broker/network/neighbours/test_partner_certainty.py",),
    ),
    *part(
        "broker/network/neighbours/certainty.py",
        r"""
waited-for-ever: whom a host waits for is told here also where nothing for it passes
- if needed:
+ if needed is not None:

needs-for-ever: a host that needs nothing more of an origin counts as one that does
- needed.pop(one.origin, None)
+ pass

needs-nothing: whom a host waits for is told nowhere but on the way to what it asks
- needed = self._needed.setdefault(neighbour, {}).setdefault(one.host, {})
+ needed = self._needed.setdefault(neighbour, {})[one.host] = {}

needs-who-is-gone: who is forgotten counts as one of whom a host needs something
- for known in (*self.absent.values(), *self._needed.values()):
+ for known in self.absent.values():
""",
        tests=("tests/broker/core/network/test_waiting.py",),
    ),
    *part(
        "broker/network/neighbours/certainty.py",
        r"""
known-whatever-is-lost: what did not come here is taken for known
- self.distrust()
-         self._unanswer(origin)
+ self._unanswer(origin)

known-whoever-goes: of an origin that has gone all is taken to have come here
- self._missing[origin] = types
-             self.distrust()
+ self._missing[origin] = types

known-for-nothing: partners that came here anyhow are looked for behind the answers alone
- before = min(newest, self._since.get(neighbour, newest))
+ before = newest

known-for-little: those of what is asked for besides are looked for behind the answers alone
- before = min(newest, self._fresh_since.get(neighbour, newest))
+ before = newest
""",
        tests=("tests/broker/network/neighbours/test_partner_certainty.py",),
    ),
    *part(
        "broker/network/neighbours/sessions.py",
        r"""
carried-in-another-life: an answer names an event of a life before, at the same position
- if carried is None or (life and life != carried.life):
+ if carried is None or (life and not carried.life):

carried-for-ever: what a link has carried is remembered for ever
- while self.size > CARRIED_BYTES_MAX:
+ while False:

carried-in-another-session: an answer names what an earlier session has carried
- if side is None or side.seal != seal:
+ if side is None:

carried-unseen: what an answer carries is not remembered where it comes
- side.take(body)
-         places = [body.what.upto - back for back in body.named]
+ places = [body.what.upto - back for back in body.named]

carried-by-nobody: an answer stands for what it carries itself
- return (_whole(body, [(place, rows[place]) for place in places]),)
+ return (_whole(body, []),)

carried-twice: what an answer names it carries as well
- left = [row for row in rows if row[0] not in carried]
+ left = list(rows)

carried-and-counted: an event that is named counts as one that travels
- events = len(body.what.positions)
+ pass

carried-out-of-order: what is named stands behind all that is carried
- rows.sort(key=lambda row: row[0])
+ ()

carried-if-refused: an answer that names what a link has refused breaks off the frame
- if any(place not in rows for place in places):
+ if False:
""",
        tests=("tests/broker/network/neighbours/test_carriage.py",),
    ),
]
