"""Entries for what can be read but not be meant: options, windows, clauses."""

from __future__ import annotations

from language.messages.entry import MessageEntry, bad, defining, detecting
from language.messages.semantics import COUNTED

ENTRIES: tuple[MessageEntry, ...] = (
    MessageEntry(
        "HW419",
        "option of a window",
        "a window takes no {part}",
        "a window groups its events and chooses nothing among them",
        (
            defining("define D(n) aggr every 5 s\n  detect A and[‸..5 s] B\n  assign n = Count(A)"),
            bad(COUNTED + "  detect[‸recent] A\n  assign n = Count(A)"),
            bad(COUNTED + "  detect A\n  assign n = Count(A)\n  ‸consuming A"),
        ),
    ),
    MessageEntry(
        "HW420",
        "pre without post",
        "`{word}` needs `{other}`",
        "`pre` makes partial results and `post` combines them: write both or neither",
        (
            bad(
                "event A(x: int)\ndefine D(n) aggr every 5 s\n‸pre\n  detect A\n"
                "  assign n = Count(A)"
            ),
            bad(
                "event A(x: int)\ndefine D(n) aggr every 5 s\n  detect A\n"
                "  assign n = Count(A)\n‸post\n  where n = Sum(n)"
            ),
        ),
    ),
    MessageEntry(
        "HW421",
        "option of detect",
        "`{option}` is an option of `detect`, not of an operator",
        "write it in brackets after the word `detect`",
        (detecting("detect A and[‸one] B"), detecting("detect A then[‸maybe drop] B")),
    ),
    MessageEntry(
        "HW422",
        "alias of no event",
        "`{name}` would name neither an event nor a list of events",
        "give aliases to the events inside the parentheses",
        (
            detecting("detect (A and B) as ‸both"),
            detecting("detect (A then B within 5 s) as ‸ab"),
            detecting("detect (A or B){2} as ‸r"),
        ),
    ),
    MessageEntry(
        "HW423",
        "two aliases",
        "`{name}` would be the second alias of what is `{other}` already",
        "leave one of them out",
        (detecting("detect (A as x) as ‸y"), detecting("detect (A+ as x) as ‸y then B")),
    ),
    MessageEntry(
        "HW424",
        "options that exclude each other",
        "`{first}` and `{second}` exclude each other",
        "leave one of them out",
        (
            detecting("detect[one, ‸collect] A and B"),
            detecting("detect[collect] A and B\n‸consuming A"),
        ),
    ),
    MessageEntry(
        "HW425",
        "option of operators",
        "`detect` takes no {option}",
        "write it after the operator that it belongs to, as in then[next]",
        (detecting("detect[‸next] A then B"), detecting("detect[‸..5 s] A then B")),
    ),
    MessageEntry(
        "HW426",
        "zone without whole days",
        "only whole days are aligned to a time zone",
        'write for example every 1 day in "Europe/Zurich"',
        (
            bad(
                'event A(x: int)\ndefine D(n) aggr every ‸5 mins in "UTC"\n'
                "  detect A\n  assign n = Count(A)"
            ),
            bad(
                'event A(x: int)\ndefine D(n) aggr every ‸36 h in "UTC"\n'
                "  detect A\n  assign n = Count(A)"
            ),
            bad(
                'event A(x: int)\ndefine D(n) aggr every 1 day in "UTC" ‸range 36 h\n'
                "  detect A\n  assign n = Count(A)"
            ),
        ),
    ),
    MessageEntry(
        "HW427",
        "two windows",
        "this makes a second window of the header",
        "a definition has one window: every, every with range, range, or session",
        (
            bad(
                "event A()\ndefine D(n) aggr every 5 s ‸every 6 s\n  detect A\n"
                "  assign n = Count(A)"
            ),
            bad(
                "event A()\ndefine D(n) aggr every 5 s ‸session 6 s\n  detect A\n"
                "  assign n = Count(A)"
            ),
        ),
    ),
    MessageEntry(
        "HW428",
        "incomplete window",
        "`{part}` needs `{other}`",
        "write for example `aggr range 5 mins` or `aggr session 5 s max 1 min`",
        (
            bad("event A()\ndefine D() ‸range 5 s\n  detect A"),
            bad("event A()\ndefine D() ‸session 5 s\n  detect A"),
            bad(
                "event A()\ndefine D(n) aggr every 5 s ‸max 6 s\n  detect A\n  assign n = Count(A)"
            ),
        ),
    ),
    MessageEntry(
        "HW429",
        "aggr without a window",
        "`aggr` needs a window",
        "let every, range or session follow, each with a duration",
        (
            bad("event A()\ndefine D(n) ‸aggr\n  detect A\n  assign n = Count(A)"),
            bad(
                "event A()\ndefine D(n) ‸aggr\npre\n  detect A\n  assign n = Count(A)\n"
                "post\n  where n = Sum(n)"
            ),
        ),
    ),
    MessageEntry(
        "HW430",
        "aggregate over no operand or several",
        "`{name}` takes the values of the events of one operand",
        "name attributes of exactly one alias or type",
        (
            defining("define D(n) aggr every 5 s\n  detect A and B\n  assign n = Sum(‸A.x + B.x)"),
            bad(COUNTED + "  detect A\n  assign n = Sum(‸1)"),
        ),
    ),
    MessageEntry(
        "HW431",
        "distinct without an end",
        "`distinct` needs a `within` or a window around it",
        "without one every value ever seen would have to be remembered",
        (detecting("detect ‸distinct(x) A"), detecting("detect ‸distinct(x) A then B")),
    ),
    MessageEntry(
        "HW432",
        "no key",
        "`{name}` is no key to group by",
        "group by location, source or a declared attribute",
        (detecting("detect A and B\ngroup by ‸position"), detecting("detect A\ngroup by ‸start")),
    ),
    MessageEntry(
        "HW433",
        "a point and an interval",
        "`timestamp` makes the event a point, `start` and `end` an interval",
        "assign `timestamp`, or `start` and `end`",
        (
            defining("define D()\n  detect A\n  assign ‸timestamp = A.end, start = A.start"),
            defining("define D()\n  detect A and B\n  assign end = B.end, ‸timestamp = A.end"),
        ),
    ),
    MessageEntry(
        "HW434",
        "name that binds no event",
        "`{name}` stands beneath `without` or `absent`, where no event is bound",
        "name an event that every occurrence has",
        (
            detecting("detect A without[5 s] B\nassign x = ‸B.x"),
            detecting("detect A without[5 s] B\nconsuming ‸B"),
        ),
    ),
    MessageEntry(
        "HW435",
        "window too long",
        "what follows `{part}` is longer than {limit} days",
        "windows reach to a leap year; sum up shorter ones where more is wanted",
        (
            bad(
                "event A()\ndefine D(n) aggr every 1 day ‸range 367 days\n  detect A\n"
                "  assign n = Count(A)"
            ),
            bad("event A()\ndefine D(n) aggr ‸every 53 weeks\n  detect A\n  assign n = Count(A)"),
        ),
    ),
    MessageEntry(
        "HW436",
        "too many windows at once",
        "each event would lie in {count} windows, {limit} are allowed",
        "make `every` longer or `range` shorter: there are range by every of them",
        (
            bad(
                "event A()\ndefine D(n) aggr every 1 ms ‸range 1 day\n  detect A\n"
                "  assign n = Count(A)"
            ),
            bad(
                "event A()\ndefine D(n) aggr every 1 s ‸range 10001 s\n  detect A\n"
                "  assign n = Count(A)"
            ),
        ),
    ),
    MessageEntry(
        "HW437",
        "no time zone",
        "the time zone database has no zone called `{name}`",
        "write a name of the tz database, such as Europe/Zurich",
        (
            bad(
                'event A()\ndefine D(n) aggr every 1 day in ‸"nowhere land"\n  detect A\n'
                "  assign n = Count(A)"
            ),
            bad(
                'event A()\ndefine D(n) aggr every 1 day in ‸"../Zurich"\n  detect A\n'
                "  assign n = Count(A)"
            ),
            bad(
                'event A()\ndefine D(n) aggr every 1 day in ‸"Europe/Zuerich"\n  detect A\n'
                "  assign n = Count(A)"
            ),
        ),
    ),
    MessageEntry(
        "HW438",
        "list as an anchor",
        "`{name}` is a list, and `within … from` counts from the end of one event",
        "name an alias or type that binds a single event, or write `within` alone",
        (
            detecting("detect A then B+ as bs within 5 s from ‸bs"),
            detecting("detect A+ then B within 5 s from ‸A"),
        ),
    ),
    MessageEntry(
        "HW439",
        "lists alone",
        "nothing but lists stands here",
        "join them by `then` with an event that is no list, or count the events in a window",
        (
            detecting("detect ‸A+ within 5 s"),
            detecting("detect ‸A+ then B+ within 5 s"),
            detecting("detect A then (‸B+ within 5 s)"),
        ),
    ),
    MessageEntry(
        "HW440",
        "names that are never bound together",
        "`{name}` and `{other}` are never bound together, so that no condition can name both",
        "beside what one `without` excludes name only what stands beside that `without`",
        (
            detecting("detect A as a without B without A as b where B.x = ‸b.x"),
            detecting("detect A as a without (A as b without B) where ‸a.x = B.x"),
        ),
    ),
    MessageEntry(
        "HW441",
        "list of several events each",
        "what `{name}` lists is several events each, so that it can be counted and no more",
        "give the events inside the parentheses aliases of their own, and name those",
        (
            detecting("detect (A then B)+[..1 s] as r\nassign n = Count(r), at = Max(‸r.end)"),
            detecting("detect (A then B){2} as r where ‸r.start > 0"),
            detecting("detect (A and B){2} as r\nconsuming ‸r"),
        ),
    ),
    MessageEntry(
        "HW442",
        "interval of a session",
        "the event of a session has `interval` of its own: the gap that ends a session",
        "leave it out, or give the attribute another name",
        (
            bad(
                "event A(x: int)\ndefine D(interval) aggr session 5 s\n  detect A\n"
                "  assign ‸interval = Max(A.x)"
            ),
            bad(
                "event A(x: int)\ndefine D(n, ‸interval) aggr session 5 s\n  detect A\n"
                "  assign n = Count(A)"
            ),
        ),
    ),
    MessageEntry(
        "HW443",
        "time outside the window",
        "`{name}` lies outside of the window, whatever events come",
        "a window ends before window.end: its last instant is window.end - 1 ms",
        (
            bad(COUNTED + "  detect A\n  assign n = Count(A), timestamp = ‸window.end"),
            bad(COUNTED + "  detect A\n  assign n = Count(A), end = ‸Max(A.end) + 5 s"),
            bad(COUNTED + "  detect A\n  assign n = Count(A), start = ‸window.start - 1 ms"),
        ),
    ),
)
