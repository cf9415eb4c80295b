"""Faults in the turns of brokers that plan together, and in whom a home asks to run its tasks.

Owns the table for what moves tasks in a running network. Must not know how faults are run.
Invariant: as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

ROUNDS = ("tests/planner/rounds",)
SEEN = ("tests/broker/core/coordinator/test_seen.py",)
SCOPE = ("tests/broker/core/coordinator/test_scope.py",)
COORDINATOR = ("tests/broker/core/coordinator",)
SHARED = ("tests/broker/core/coordinator/test_shared_parts.py",)
FILTERS = ("tests/broker/network/operators/test_filters.py",)

TABLE = [
    *part(
        "planner/rounds/machine.py",
        """
rounds-a-look-is-missed: the time to look again passes in a turn of one's own, and is gone
-             self._turn.missed = True
+             self._turn.missed = False

rounds-others-have-no-say: a turn goes by what was known of a broker that is another by now
-         if version != self.version:
+         if version > self.version:

rounds-held-for-ever: those that were asked are not told that a turn is over
-         for broker in turn.proposal.tables:
-             self._post.send(broker, m.Cancel(turn.number))
-         if not refuse.stale:
+         if not refuse.stale:

rounds-unclear-planned: a look is taken with brokers whose last word is not understood
-         if any(broker in self.unclear for broker in self._tree.within(self.me, self.radius)):
+         if any(broker in self.unclear for broker in ()):

rounds-no-farther: who finds no room looks no farther than before
-         self.radius += 1
+         self.radius += 0
""",
        tests=ROUNDS,
    ),
    *part(
        "planner/rounds/vicinity.py",
        """
vicinity-merges-unseen: partials that all on the way to a header out of view count are merged
-             while len({placed[piece] for piece in pieces}) < len(pieces):
+             while not placed:

vicinity-moves-for-nothing: a move that saves less than its price is proposed
-         least = int(gain * before[1]) + price
+         least = int(gain * before[1])
""",
        tests=("tests/planner/rounds/test_vicinity.py",),
    ),
    *part(
        "planner/rounds/view.py",
        """
vicinity-old-terms: a piece that moves keeps its term, so that its home may go by its old host
- Hosted(item.piece, item.term + 1, item.cost)
+ Hosted(item.piece, item.term, item.cost)

view-of-contradictions: tables that tell other things of one link are one picture
-     return view if _streams(view) and _joints(view) and _agree(view) else None
+     return view if _streams(view) and _joints(view) else None
""",
        tests=("tests/planner/rounds/test_vicinity.py",),
    ),
    *part(
        "broker/core/coordinator/laying.py",
        """
laid-one-way: of a link one direction has no limit
-     both = [*links, *[(b, a) for a, b in links]]
+     both = list(links)

laid-by-receiver: what a broker may send bounds what it is sent
-         arc: scaled(known.brokers[names[arc[0]]].link)
-         for arc in both
-         if known.brokers[names[arc[0]]].link
+         arc: scaled(known.brokers[names[arc[1]]].link)
+         for arc in both
+         if known.brokers[names[arc[1]]].link
""",
        tests=SEEN,
    ),
    *part(
        "broker/core/coordinator/laying.py",
        """
shared-all-nested: what is disjoint counts once, as if the smaller part lay within the larger
-                 is_free = part.filter in covered[own] and all(part is not each for each in within)
+                 is_free = all(part is not each for each in within)

shared-without-room: who covers two that overlap takes more than it does
-                 if is_free and part.rate <= room:
+                 if is_free:
""",
        tests=SHARED,
    ),
    *part(
        "broker/network/operators/filters.py",
        """
filter-written-twice: a home writes whole ends of ranges otherwise than who has read them
-     return tuple(sorted(_decoded(written), key=_encoded))
+     return tuple(sorted([key for key in keys if key.type_name not in whole], key=_encoded))

filter-inexact-covers: a key of which the fields do not say all covers what the fields say
-         and outer.exact
+         and bool(outer)

filter-lacking: an event that lacks the attribute is taken to be in a range
-         if ends is None or ends[0] < low or high < ends[1]:
+         if ends is not None and (ends[0] < low or high < ends[1]):
""",
        tests=FILTERS,
    ),
    *part(
        "broker/core/coordinator/laying.py",
        """
laid-digest-blind: a broker that believes a task elsewhere has the same digest
-                 digests[name] += _digest(base + geography.onward(name, host).encode())
+                 digests[name] += _digest(base)
""",
        tests=SCOPE,
    ),
    *part(
        "broker/core/coordinator/dissemination.py",
        """
words-everywhere: a word on a submission goes to all brokers
- any(span.hops_of(peer) <= scope for span, scope in reached)
+ any(span.hops_of(peer) >= 0 for span, _ in reached)

words-of-before: who is out of scope of a word is not told that it is
-         states = [state for state in (word, before) if isinstance(state, Submission)]
+         states = [state for state in (word,) if isinstance(state, Submission)]
""",
        tests=SCOPE,
    ),
    *part(
        "broker/core/coordinator/claims.py",
        """
claims-first-host: a home goes by the host with the lowest term that it heard of
-         if before is None or before.term >= claim.term:
+         if before is None or before.term <= claim.term:
""",
        tests=SCOPE,
    ),
    *part(
        "broker/core/coordinator/known.py",
        """
known-moves-undone: a word that crossed a move on its way takes it back
-         if moved is not None and moved[0] > word.term:
+         if moved is not None and moved[0] < word.term:
""",
        tests=("tests/broker/core/coordinator/test_words.py",),
    ),
    *part(
        "broker/core/coordinator/seen.py",
        """
seen-links-unbroken: nobody is told that a link carries too much
-     return _broken(_brokers(view, laid, known), _links(view, laid, known))
+     return _broken(_brokers(view, laid, known), [])

seen-links-of-receiver: a link is held against the limit of who is sent to
-             "at_most_bytes_per_s": known.brokers[whence].link or None,
+             "at_most_bytes_per_s": known.brokers[whither].link or None,
""",
        tests=SEEN,
    ),
    *part(
        "broker/core/coordinator/works.py",
        """
works-asked-for-ever: a host that refuses is asked again at once
-                 self._refused.setdefault(key, {})[broker] = now
-                 self._back[key] = None
+                 self._back[key] = None

works-left-for-good: a host that refused once is never asked again
-         for broker in [b for b, at in refused.items() if now - at >= bounds.REFUSALS_MS]:
+         for broker in [b for b, at in refused.items() if now - at < 0]:

works-lost-is-unwilling: a broker that was lost while it was asked counts as one that refused
-         elif broker != self.me and broker not in known:
+         elif broker == self.me and broker not in known:

works-lost-at-once: a host of which nothing is known for a moment loses its tasks
-             if 0 <= missed_ms < bounds.LOST_MS:
+             if 0 <= missed_ms < 0:

works-no-stay: a task goes back to where it was as soon as that seems better
-             stay.for_ms = min(2 * stay.for_ms, bounds.STAY_MAX * self.stay_ms)
+             stay.for_ms = min(stay.for_ms, bounds.STAY_MAX * self.stay_ms)
""",
        tests=COORDINATOR,
    ),
    *part(
        "broker/core/coordinator/violations.py",
        r"""
each-moment-broken: a limit that is broken while a task is on its way gets a line in the log
- if (row["broker"], row["limit"]) in before]
+ if before is not None]

broken-for-ever: nobody hears that limits are kept again
- if keys == self._reported or (rows and not lasting):
+ if keys == self._reported or not lasting:
""",
        tests=("tests/broker/core/coordinator/test_violations.py",),
    ),
    *part(
        "broker/core/coordinator/seen.py",
        r"""
limit-of-nobody: a limit of 0, which is none, is broken by all
- if allowed is not None and load > allowed
+ if load > (allowed or 0)

limit-the-wrong-way: a broker that has room left breaks its limit
- if allowed is not None and load > allowed
+ if allowed is not None and load < allowed
""",
        tests=("tests/broker/core/coordinator/test_violations.py",),
    ),
]
