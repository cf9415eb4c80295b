"""Faults in what is over, and in silences that are weighed.

Owns the table for both. Must not know how faults are run. Invariant: as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

ENDED = ("tests/broker/core/test_ended.py", "tests/simulation/network/test_ended.py")
WEIGHED = (
    "tests/broker/core/test_silence_weighed.py",
    "tests/test_oracle_certainty.py",
    "tests/test_engine.py",
    "tests/test_time_alone.py",
)

ENDINGS = part(
    "broker/engine/runtime/seats.py",
    r"""
end-undecided: a subscription stops while something before its end is open
- and seat.agent.watermark_out(watermark) >= at - 1
+ and watermark >= at - 1

end-once-only: an end that is not decided when it passes is forgotten
- heappush(ends, (at, index))
+ found += []

end-never: nothing is ever over
- if at <= foreseen(domain)
+ if at < foreseen(domain) - 2**61
""",
    tests=ENDED,
)

OVER = part(
    "broker/core/frontiers.py",
    r"""
end-before-active: what is not active yet comes to its end
- if installed.state == "active" and self.reached.get(key) != TIME_MAX_MS:
+ if installed.state != "ended":

definitions-run-on: the definitions of what is over go on
- for key in (installed.task, *self._catalogue.end(installed)):
+ for key in (installed.task, *self._catalogue.end(installed)[:0]):

end-holds-the-log: readers of the log wait for what is over
- self.reached[installed.key] = TIME_MAX_MS
+ self.reached[installed.key] = 0

cell-ends-by-itself: a cell lets go of what it needs before its home knows
- if self.keeps_on:
+ if False:
""",
    tests=ENDED,
)

CATALOGUED = part(
    "broker/core/catalogue.py",
    r"""
end-counted-again: a definition of what is over is counted after a restart
- if one.state != "ended":
-             for name in one.uses:
+ if one.state:
+             for name in one.uses:

end-dropped-twice: cancelling what is over takes its definitions from others
- if one.state == "ended":
-             return []
+ if one.state == "":
+             return []
""",
    tests=ENDED,
)

SILENCES = part(
    "broker/engine/pattern/operators/silence_weighed.py",
    r"""
weighed-not-awaited: what may fall into a silence by its uncertain time is not waited for
- return self._for_ms + self._doubt.slack_ms(self._for_ms)
+ return self._for_ms

weighed-certain: the weight of a silence's own P does not count
- certain = self._certainty_of(p)
+ certain = YES

weighed-recent-lost: what seems to have come before is not weighed
- self._recent.append(p)
+ self._recent = []

weighed-twice: of two from one instant the last is told
- told[u] = max(mine, told.get(u, mine))
+ told[u] = mine

weighed-exact: beside others a silence's time is certain
- absence = Absence(u, end, self._place, -less_ms)
+ absence = Absence(u, end, self._place)

weighed-beginning-lost: what comes early is not weighed against the beginning
- self._early.append(p)
+ self._early = self._early[:0]
""",
    tests=WEIGHED,
    only="silen or absent or disturbs or drift or comes or taken or held",
)

DISTURBING = part(
    "broker/engine/pattern/uncertainty/verdicts.py",
    r"""
disturbing-shared: what is in both may be at two times
- others = [event for event in q if identity(event) not in own]
+ others = list(q)

disturbing-no-drift: a silence is as long for a clock that drifts
- if first > latest + doubt.longer(for_ms)
+ if first > latest + for_ms

disturbing-surely: what may end before counts as certain
- surely = max([event.end - event.uncertainty for event in others]) > latest
+ surely = max([event.end for event in others]) > latest
""",
    tests=WEIGHED,
    only="silen or absent or disturbs or drift or comes or taken or held",
)

TABLE = [*ENDINGS, *OVER, *CATALOGUED, *SILENCES, *DISTURBING]
