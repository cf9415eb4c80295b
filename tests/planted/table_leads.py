"""Faults in what leads, who waits for it and who is told.

Owns the table for the room of leads. Must not know how faults are run. Invariant: as for
fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

LEADS = (
    "tests/broker/network/routing/test_leads.py",
    "tests/broker/network/routing/test_leads_generated.py",
)

TABLE = [
    *part(
        "broker/network/routing/leads/rates.py",
        r"""
rare-leads-too-soon: what is hardly rarer than the others leads
- RARER = 8
+ RARER = 7

leads-for-good: what became frequent still leads
- STILL = 4
+ STILL = 0

optional-leads: all waits for what need not come
- return () if any(key.optional for key in leads) else names
+ return names

rare-as-soon-as-known: a source that has just come counts as rare
- upper += COUNT_MIN * DAY_MS / max(1, age_ms)
+ upper += COUNT_MIN

rates-for-all: who joins nothing of a source with others is told of its rates
- return any(served) and (operator.part or (operator.correlated and not all(served)))
+ return any(served)

rates-kept: who asks later is never told of rates
- news += [Send(neighbour, Advertise(advertisement))] if advertisement else []
+ news += []

silence-is-no-rate: a source that fell silent is said to be as frequent as ever
- is_other = upper <= last - LEVELS
+ is_other = power < -99
""",
        tests=LEADS,
    ),
    *part(
        "broker/network/routing/leads/probes.py",
        r"""
told-what-came-there: who sent a lead is told of it, and others that it needs are not
- matcher = Matcher("", self._bits[name], self._compile, each=False)
+ matcher = Matcher(name, self._bits[name] << 1, self._compile, each=False)

told-for-ever: who needs nothing more is still looked at for each event
- if not len(matcher):
+ if len(matcher) < 0:

forgotten-unseen: who asks after events were forgotten early is not told what may match with them
- if self._shed is not None:
+ if False:

spots-mixed-up: an index takes a probe for an event from elsewhere
- self.heard = Store(self._events.numbers)
+ self.heard = Store()

told-back: a probe goes back to where it came from
- held.sent |= bit | bit << 1
+ held.sent |= bit
""",
        tests=LEADS,
    ),
    *part(
        "broker/network/routing/leads/releases.py",
        r"""
probes-not-passed-on: those further away wait in vain
- _gather(released, came_from, self.matchers[came_from].offer(held))
-             self.probing.tell(held, probes)
+ _gather(released, came_from, self.matchers[came_from].offer(held))

own-leads-not-told: what enters here is told to nobody
- bit, asked = self.bits[came_from], self.probing.asked
+ bit, asked = self.bits[came_from], False
""",
        tests=LEADS,
    ),
    *part(
        "broker/network/routing/router.py",
        r"""
led-as-before: an operator in the place of another has the leads of that one
- entry.operator, entry.leads = operator, ()
+ entry.operator = operator
""",
        tests=LEADS,
    ),
    *part(
        "broker/network/routing/asking.py",
        r"""
last-asker-counts: of equal operators from two directions the one that came last is asked for
- if is_alone or self._covers.get(name) == operator:
+ if True:
""",
        tests=("tests/broker/network/routing/test_asking.py",),
    ),
    *part(
        "broker/network/routing/growing.py",
        r"""
silent-for-all: a neighbour of an earlier version waits for words that it does not understand
- asked_of_all(without_silent(entry.operator), others, self._directory, ())
+ asked_of_all(entry.operator, others, self._directory, entry.leads)
""",
        tests=LEADS,
    ),
    *part(
        "broker/network/neighbours/leads.py",
        r"""
told-before-asked: a word is said of what passed before anybody was asked to tell of it
- telling.began_ms, telling.last = self._passed_ms, None
+ telling.last = None

old-word: what was said before the last operator came is taken to be said of it, too
- if led.wants >= heard.wants:
+ if True:

sure-of-itself: it is as sure of what others tell it as of what it hears
- word.since = max(word.since, since)
+ word.since = min(word.since, since)

further-than-told: of what it is told itself it tells more than it knows
- reached = min(reached, heard.word.times.get(name, WATERMARK_NONE))
+ reached = min(reached, inf)
""",
        tests=("tests/broker/network/neighbours/test_leads_told.py",),
    ),
    *part(
        "broker/network/neighbours/kept_back.py",
        r"""
waits-for-the-untold: an event waits for partners that were never told
- bound = max(bound, lead_bound)
+ bound = max(bound, 0)

gone-before-told: it is let go though a partner may still be told
- return min(promised_ms, tools.leads.reached(toward, silent))
+ return promised_ms
""",
        tests=("tests/broker/network/neighbours/test_kept_back.py",),
    ),
    *part(
        "broker/network/routing/advertisement/sources.py",
        r"""
leads-wait-as-well: two that lead wait for each other
- waits = [pair for pair in pairs if pair[0].name not in leads]
+ waits = [pair for pair in pairs if pair[0].name not in leads[1:]]

optional-lost: what has sources elsewhere is waited for as if it had none
- _asked(key, optional=operator.correlated and (key.optional or len(where) > 1))
+ _asked(key, optional=operator.correlated and key.optional)
""",
        tests=LEADS,
    ),
]
