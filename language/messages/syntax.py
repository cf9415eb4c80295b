"""Entries for texts that cannot be read."""

from __future__ import annotations

from language.limits import (
    ITEMS_MAX,
    LIST_LENGTH_MAX,
    NAME_LENGTH_MAX,
    NESTING_MAX,
    SET_MEMBERS_MAX,
    STRING_LENGTH_MAX,
    TEXT_LENGTH_MAX,
)
from language.messages.entry import MessageEntry, bad, detecting
from language.relations import CONTEXTS


def _attributes(count: int) -> str:
    return ", ".join(f"x{number}: int" for number in range(count))


def _assigned(count: int) -> str:
    return ", ".join(f"x{number} = A.x" for number in range(count))


ENTRIES: tuple[MessageEntry, ...] = (
    MessageEntry(
        "HW101",
        "unexpected text",
        "found {found} where {expected} should stand",
        "write there what is expected; the guide of the language has an example of each form",
        (
            bad("event A(x ‸int)"),
            detecting("detect A(x > 1) ‸B"),
            bad("subscription S ‸to a from u\ndetect A"),
            bad("‸Define D(x)\ndetect A\nassign x = A.x"),
            detecting("detect A then and ‸B"),
        ),
    ),
    MessageEntry(
        "HW102",
        "text ends too early",
        "the text ends here, but {expected} should follow",
        "complete what was begun",
        (bad("event A(x: int‸"), detecting("detect A and‸\n# no more\n"), bad("set S =‸")),
    ),
    MessageEntry(
        "HW103",
        "character without meaning",
        "{found} has no meaning here",
        "leave it out, or put it into a text in double quotes or a comment",
        (
            detecting("detect A(x ‸== 1)"),
            detecting("detect A(x > 1 ‸&& x < 3)"),
            detecting("detect A(t = ‸'abc')"),
            bad("event A(x: int)‸;"),
        ),
    ),
    MessageEntry(
        "HW104",
        "text without end",
        "this text has no closing double quote on its line",
        "close it on the line on which it begins; a line break inside is written \\n",
        (detecting('detect A(t = ‸"abc)'), bad('set S = {"a", ‸"b}\n')),
    ),
    MessageEntry(
        "HW105",
        "name in backticks without end",
        "this name has no closing backtick on its line",
        "close it with a backtick",
        (bad("event ‸`A(x: int)"), detecting("detect A(‸`x > 1)")),
    ),
    MessageEntry(
        "HW106",
        "impossible name",
        "`{name}` cannot be a name",
        "in backticks a name has letters, digits, underscores and single blanks or hyphens between",
        (bad("event ‸`a/b`(x: int)"), bad("event A(‸``: int)")),
    ),
    MessageEntry(
        "HW107",
        "name too long",
        "the name `{name}` is longer than {limit} characters",
        "shorten it",
        (
            bad(f"event ‸{'a' * (NAME_LENGTH_MAX + 1)}(x: int)"),
            bad(f"event A(‸{'x' * (NAME_LENGTH_MAX + 1)}: int)"),
        ),
    ),
    MessageEntry(
        "HW108",
        "no detect",
        "`{name}` has no `detect`, so nothing says when it happens",
        "add a `detect` with a pattern before the other clauses",
        (
            bad("subscription ‸S from u to a"),
            bad("define ‸D(x)\n  assign x = 1"),
            bad("event A(x: int)\ndefine D(x)\n‸case 0:\n  assign x = 1"),
        ),
    ),
    MessageEntry(
        "HW109",
        "clause twice",
        "there is a second `{clause}`",
        "join the two in one clause, or make two cases",
        (
            detecting("detect A\n‸detect B"),
            detecting("detect A\ngroup by source\n‸group by location"),
        ),
    ),
    MessageEntry(
        "HW110",
        "clauses out of order",
        "`{clause}` comes too late",
        "the order is detect, assign, consuming, group by, at most, wait",
        (
            detecting("detect A\nconsuming A\n‸assign x = A.x"),
            bad("event A(x: int)\ndefine D(y)\n  detect A\n  group by x\n  ‸assign y = A.x"),
        ),
    ),
    MessageEntry(
        "HW112",
        "number too large",
        "{number} is beyond what 64 bits can hold",
        "integers reach to 9223372036854775807 on either side of zero, floats to about 1.8e308",
        (detecting("detect A(x > ‸9223372036854775808)"), detecting("detect A(x > ‸1e999)")),
    ),
    MessageEntry(
        "HW113",
        "no duration",
        "a duration with its unit should stand here",
        "write for example `5 mins`; the units are ms, s, min, h, day, week, singular or plural",
        (
            detecting("detect A and B within ‸5"),
            detecting("detect A then[1 s..‸2 km] B"),
            bad("event A(x: int)\ndefine D(n) aggr every ‸2.5\n  detect A\n  assign n = Count(A)"),
        ),
    ),
    MessageEntry(
        "HW114",
        "no distance",
        "a distance with its unit should stand here",
        "write for example `10 km`; the units are m and km",
        (
            detecting("detect A and B spread ‸10"),
            bad("region R = circle(45.5, 7.1, ‸3)"),
        ),
    ),
    MessageEntry(
        "HW115",
        "unknown unit",
        "`{unit}` is no unit",
        "durations take ms, s, min, h, day, week, singular or plural; distances take m and km",
        (
            detecting("detect A and B within 5 ‸minits"),
            detecting("detect A and B within 2 ‸fortnights"),
            detecting("detect A and B spread 3 ‸miles"),
        ),
    ),
    MessageEntry(
        "HW116",
        "text too long",
        "this text is longer than {limit} characters",
        "shorten it",
        (
            detecting(f'detect A(t = ‸"{"a" * (STRING_LENGTH_MAX + 1)}")'),
            bad(f'set S = {{‸"{"é" * (STRING_LENGTH_MAX + 1)}"}}'),
        ),
    ),
    MessageEntry(
        "HW117",
        "unknown escape",
        "{escape} is no escape of a text",
        'escapes are \\", \\\\, \\n, \\t and \\u with four hexadecimal digits',
        (detecting('detect A(t = ‸"a\\q")'), bad('set S = {"a", ‸"\\u12"}')),
    ),
    MessageEntry(
        "HW118",
        "finer than a millisecond",
        "{duration} is no whole number of milliseconds",
        "time is counted in whole milliseconds",
        (detecting("detect A and B within ‸0.5 ms"), detecting("detect A then[‸1.0001 s..] B")),
    ),
    MessageEntry(
        "HW119",
        "quantity too large",
        "{quantity} is beyond the limit",
        "durations reach to a hundred years, distances to a million kilometres",
        (
            detecting("detect A and B within ‸40000 days"),
            detecting("detect A and B spread ‸1000001 km"),
        ),
    ),
    MessageEntry(
        "HW120",
        "set too large",
        "the set has {count} members, {limit} are allowed",
        "keep such data in a table",
        (
            bad(lambda: "set S = ‸{" + "1, " * SET_MEMBERS_MAX + "1}"),
            bad(lambda: "set T = {1}\nset S = ‸{" + '"a", ' * SET_MEMBERS_MAX + '"a"}'),
        ),
    ),
    MessageEntry(
        "HW121",
        "option twice",
        "a second {option} in these brackets",
        "leave one out",
        (
            detecting("detect A and[recent, ‸unrestricted] B"),
            detecting("detect A then[1 s..2 s, ‸..5 s] B"),
        ),
    ),
    MessageEntry(
        "HW122",
        "unknown option",
        "`{name}` is no option",
        f"options are a bound such as `1 s..5 s`, `next`, or a context: {', '.join(CONTEXTS)};"
        " after `detect` also `one`, `collect`, `maybe drop`",
        (detecting("detect A and[‸recnt] B"), detecting("detect[‸all] A and B")),
    ),
    MessageEntry(
        "HW123",
        "clause outside the cases",
        "`{clause}` stands before the first `case`",
        "where there are cases, each clause belongs to one",
        (
            bad("event A(x: int)\ndefine D()\n  ‸detect A\ncase 1:\n  detect A"),
            bad("event A(x: int)\ndefine D()\n  ‸group by x\ncase 1:\n  detect A"),
        ),
    ),
    MessageEntry(
        "HW124",
        "no instant",
        "an instant with its offset from UTC should stand here",
        'write it as in "2026-12-31T00:00Z" or "2026-12-31T01:00+01:00"',
        (
            bad('event A(x: int)\nsubscription S from u to a until ‸"soon"\ndetect A'),
            bad('event A(x: int)\nsubscription S from u to a until ‸"2026-12-31T00:00"\ndetect A'),
        ),
    ),
    MessageEntry(
        "HW125",
        "clause of a subscription in a definition",
        "`{clause}` concerns the results of a subscription, and this is a definition",
        "put it into the subscription",
        (
            bad("event A(x: int)\ndefine D()\n  detect A\n  ‸at most 1 per 5 s"),
            bad("event A(x: int)\ndefine D()\ncase 0:\n  detect A\n  ‸at most 1 per 5 s"),
            bad("event A(x: int)\ndefine D()\n  detect A\n  ‸wait 5 mins"),
        ),
    ),
    MessageEntry(
        "HW126",
        "text too large",
        "the text has {length} characters, {limit} are allowed",
        "submit it in parts",
        (bad(lambda: "‸" + " " * (TEXT_LENGTH_MAX + 1)), bad(lambda: "‸#" + "é" * TEXT_LENGTH_MAX)),
    ),
    MessageEntry(
        "HW127",
        "too many items",
        "more than {limit} items in one text",
        "submit it in parts",
        (
            bad(lambda: "event A()\n" * ITEMS_MAX + "‸event B()"),
            bad(lambda: "set S = {}\n" * ITEMS_MAX + "‸set T = {}\nset U = {}"),
        ),
    ),
    MessageEntry(
        "HW128",
        "nested too deeply",
        "this is nested deeper than {limit} levels",
        "define parts of it on their own; a chain counts a level for each operator",
        (
            detecting("detect " + "(" * NESTING_MAX + "‸(A" + ")" * (NESTING_MAX + 1)),
            detecting("detect A(‸x" + " + x" * (NESTING_MAX + 1) + " > 1)"),
        ),
    ),
    MessageEntry(
        "HW129",
        "list too long",
        "{count} stand in this list, {limit} are allowed",
        "make several events, definitions or subscriptions of it",
        (
            bad(lambda: f"event A({_attributes(LIST_LENGTH_MAX)}, ‸y: int)"),
            detecting(f"detect A\nassign {_assigned(LIST_LENGTH_MAX)}, ‸y = A.x"),
        ),
    ),
)
