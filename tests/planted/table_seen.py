"""Faults in what people see of a network, and in what is measured.

Owns the table for the rooms of metrics and of the commands that show a network. Must not know how
faults are run. Invariant: as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

PICTURE = ("tests/headwater/network/test_picture.py",)
FINDINGS = ("tests/headwater/network/test_findings.py",)

TABLE = [
    *part(
        "broker/metrics/histogram.py",
        r"""
bound-left-out: a value that is as great as a bound is counted behind it
- from bisect import bisect_left
+ from bisect import bisect_right as bisect_left

sum-goes-back: a clock that is ahead takes from the sum
-         value = max(value, 0.0)  # clocks differ, and a sum that falls is no counter
+         value = min(value, 1e9)
""",
        tests=("tests/broker/metrics/test_histogram.py",),
    ),
    *part(
        "broker/network/neighbours/sessions.py",
        r"""
types-without-end: a neighbour that invents types fills the memory
- full = len(counts) >= TYPES_MAX and name not in counts
+ full = len(counts) < 0 and name not in counts
""",
        tests=("tests/broker/network/neighbours/test_traffic.py",),
    ),
    *part(
        "headwater/cli/network/picture.py",
        r"""
receivers-count: what is under way over a link is not told
- events = near["sent"] if near is not None else
+ events = near["received"] if near is not None else

restart-unseen: what a broker counted since its start is taken for less than nothing
- more = count - (0 if restarted else
+ more = count - (0 if span_ms < 0 else
""",
        tests=PICTURE,
    ),
    *part(
        "headwater/cli/network/findings.py",
        r"""
clock-behind-unseen: a clock that is behind is no finding
- elif abs(skew_ms) > SKEW_MS_MAX:
+ elif skew_ms > SKEW_MS_MAX:

promise-unheard: who has promised to be back is told to be forgotten
- if waiting and absence.get("overdue"):
+ if waiting:
""",
        tests=FINDINGS,
    ),
    *part(
        "headwater/cli/reach.py",
        r"""
context-before-address: the selected context wins over the environment
- if arguments.broker or (not arguments.context and os.environ.get("HEADWATER_BROKER")):
+ if arguments.broker:
""",
        tests=("tests/headwater/network/test_contexts.py",),
    ),
]
