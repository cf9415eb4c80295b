"""Entries for what can be read but not be meant: patterns, contexts, lists."""

from __future__ import annotations

from language.messages.entry import MessageEntry, bad, defining, detecting

COUNTED = "event A(x: int)\ndefine D(n) aggr every 5 s\n"
"""The head of a windowed definition over A."""

ENTRIES: tuple[MessageEntry, ...] = (
    MessageEntry(
        "HW401",
        "circular definition",
        "`{name}` is defined by itself: {circle}",
        "break the circle: a definition can only use those that do not need it",
        (
            bad("define ‸D()\n  detect D"),
            bad("event A()\ndefine ‸D()\n  detect A then E\ndefine E()\n  detect A then D"),
        ),
    ),
    MessageEntry(
        "HW402",
        "nothing to aggregate",
        "`{name}` has nothing to aggregate here",
        "aggregates stand in the `assign` of a definition with `aggr`, in `post`, or over a list",
        (
            detecting("detect A and B where ‸Avg(A.x) > 2"),
            detecting("detect A(‸Max(x) > 2)"),
            bad(COUNTED + "  detect A\n  assign n = Sum(‸Max(A.x))"),
        ),
    ),
    MessageEntry(
        "HW403",
        "operand of a window",
        "the operands of a window are single events joined by `and`",
        "detect the pattern in a definition of its own, and aggregate the events that it makes",
        (
            defining("define D(n) aggr every 5 s\n  detect A ‸then B\n  assign n = Count(A)"),
            defining("define D(n) aggr every 5 s\n  detect A ‸or B\n  assign n = Count(A)"),
            bad(COUNTED + "  detect A ‸within 5 s\n  assign n = Count(A)"),
            bad(COUNTED + "  detect outer (A as a ‸and A as b)\n  assign n = Count(a)"),
        ),
    ),
    MessageEntry(
        "HW404",
        "list without an end",
        "nothing ends the list `{form}`",
        "close it by `within`, by a bound with an upper end, or by something that follows",
        (
            detecting("detect A then ‸B+"),
            detecting("detect A then[1 s..] ‸B*"),
            detecting("detect ‸A+[1 s..]"),
        ),
    ),
    MessageEntry(
        "HW405",
        "last without an end",
        "nothing ends the search for the last one",
        "close it by `within`, by a bound with an upper end, or by something that follows",
        (
            detecting("detect A then ‸last B"),
            detecting("detect ‸last A and B"),
            detecting("detect A then[1 s..] ‸last B"),
        ),
    ),
    MessageEntry(
        "HW406",
        "last of nothing",
        "`last` chooses among occurrences that agree in every other place, and there is none here",
        "join it with another event by `and` or `then`, or leave `last` out",
        (
            detecting("detect ‸last A"),
            detecting("detect ‸last A within 5 s"),
            detecting("detect ‸last A or B"),
        ),
    ),
    MessageEntry(
        "HW407",
        "bound not allowed",
        "`{operator}` takes no bound",
        "bounds go with `then`, `before` and `and`",
        (
            detecting("detect A or[‸..5 s] B"),
            detecting("detect A overlaps[‸..5 s] B"),
            detecting("detect A as x then A+ as y then[‸..1 s] B+ within 5 s"),
        ),
    ),
    MessageEntry(
        "HW408",
        "option not allowed",
        "`{operator}` takes no `{option}`",
        "contexts go with operators that choose a partner, `next` with `then`, `before` and `and`",
        (
            detecting("detect A or[‸recent] B"),
            detecting("detect A overlaps[‸next] B"),
            detecting("detect A without[‸recent] B"),
            detecting("detect A+[..5 s, ‸recent]"),
            detecting("detect A as x then A* as v then[‸recent] B+ as w then B as y"),
        ),
    ),
    MessageEntry(
        "HW409",
        "bound without dots",
        "a bound has two ends, joined by two dots",
        "write [..5 s] for at most and [5 s..] for at least",
        (detecting("detect A then[‸5 s] B"), detecting("detect A and[‸1 min, recent] B")),
    ),
    MessageEntry(
        "HW410",
        "run without a bound",
        "the brackets after `+` should hold the bound of the gaps",
        "write for example A+[900 ms..1100 ms]",
        (detecting("detect A+[‸5 s]"), detecting("detect A then B+[‸1 min]")),
    ),
    MessageEntry(
        "HW411",
        "number not above zero",
        "the number should be above zero",
        "counting begins with 1",
        (
            detecting("detect A then nth ‸0 B"),
            detecting("detect A{‸0} within 5 s"),
            detecting("detect A\nat most ‸0 per 5 s"),
        ),
    ),
    MessageEntry(
        "HW412",
        "bound on without",
        "`without` takes a single duration",
        "write for example without[5 s]",
        (detecting("detect A without[‸1 s..5 s] B"), detecting("detect A without[‸..5 s] B")),
    ),
    MessageEntry(
        "HW413",
        "latest beside a chain",
        "`{context}` is a context of {relations} alone, not of `{operator}`",
        "choose another context",
        (detecting("detect A and[‸latest] B"), detecting("detect[latest] A ‸and B")),
    ),
    MessageEntry(
        "HW414",
        "time outside the occurrence",
        "`{name}` does not provably lie within the occurrence",
        "take timestamp, start or end of a bound event or of the span, or Min, Max, First or Last"
        " of those; to `end` a duration may be added. In a window also window.start and window.end",
        (
            defining("define D(x)\n  detect A\n  assign x = A.x, timestamp = ‸A.x"),
            defining("define D()\n  detect A\n  assign timestamp = ‸A.timestamp + 5 mins"),
            defining("define D()\n  detect A\n  assign end = ‸A.timestamp - 5 s"),
        ),
    ),
    MessageEntry(
        "HW415",
        "outer outside a window",
        "`outer` has a meaning in windows only",
        "use `or`, or a definition with `aggr`",
        (detecting("detect ‸outer A and B"), defining("define D()\n  detect A and ‸outer B")),
    ),
    MessageEntry(
        "HW416",
        "pre or post without a window",
        "`{word}` belongs to a definition with `aggr`",
        "add a window such as `aggr every 5 mins`, or leave it out",
        (
            defining("define D(x)\n‸pre\n  detect A\n  assign x = A.x"),
            defining("define D()\n  detect A\n‸post\n  where location = Last(location)"),
        ),
    ),
    MessageEntry(
        "HW417",
        "list outside a chain",
        "a list is an element of a `then` chain",
        "use `then`, or count the events in a window",
        (
            detecting("detect (A and ‸B+) within 5 s"),
            detecting("detect (A or ‸B*) within 5 s"),
            detecting("detect A then last ‸B+ within 5 s"),
            detecting("detect A as x then distinct(x) ‸B+ then A as y within 5 s"),
        ),
    ),
    MessageEntry(
        "HW418",
        "value outside an aggregate",
        "`{name}` has many values here",
        "say which by an aggregate, or group by it and take it from `group`",
        (
            bad(COUNTED + "  detect A\n  assign n = ‸A.x"),
            bad(
                "event A(x: int)\ndefine D(n) aggr every 5 s\npre\n  detect A\n"
                "  assign n = Count(A)\npost\n  where n = ‸n"
            ),
        ),
    ),
)
