"""Entries for names."""

from __future__ import annotations

from language.messages.entry import MessageEntry, bad, defining, detecting

ENTRIES: tuple[MessageEntry, ...] = (
    MessageEntry(
        "HW201",
        "unknown event type",
        "`{name}` is no event type here",
        "declare it by `event` or `define`; what other files declare is not seen",
        (
            detecting("detect ‸C"),
            bad("event Temperature(x: int)\nsubscription S from u to a\ndetect ‸Temprature"),
            defining("define D(n) aggr every 5 s\n  detect A and ‸AA\n  assign n = Count(A)"),
        ),
    ),
    MessageEntry(
        "HW202",
        "unknown name",
        "`{name}` names nothing here",
        "name an attribute of an event of the pattern by its alias or type, as in `Temp.val`",
        (
            detecting("detect A and B where A.x > ‸C.x"),
            detecting("detect A as first_a\nassign x = ‸A.x"),
            detecting("detect A\nassign y = ‸x"),
            bad(
                "event A(x: int)\ndefine D(n) aggr every 5 s\npre\n  detect A\n"
                "  assign n = Count(A)\npost\n  where n = Sum(‸m)"
            ),
        ),
    ),
    MessageEntry(
        "HW203",
        "unknown attribute",
        "`{type}` has no attribute `{name}`",
        "besides what is declared every event has location, source, position, timestamp, start, end"
        " and duration",
        (
            detecting("detect A(‸y > 1)"),
            bad(
                "event Temp(value: float)\nsubscription S from u to a\n"
                "detect Temp as t where ‸t.valeu > 1"
            ),
            detecting("detect A\nassign y = ‸A.y"),
        ),
    ),
    MessageEntry(
        "HW204",
        "unknown set or region",
        "`{name}` is no set or region here",
        "declare it by `set` or `region`, or write its members in place",
        (
            bad(
                'set Dock = {"a"}\nevent A(x: int)\nsubscription S from u to a\n'
                "detect A(source in ‸Dok)"
            ),
            detecting("detect A and B within 5 s in ‸Pass"),
        ),
    ),
    MessageEntry(
        "HW205",
        "unknown table",
        "`{name}` is no table here",
        "declare it by `table`",
        (
            bad(
                'table Tags from "tags.csv" key tag\nevent A(tag: text)\n'
                'subscription S from u to a\ndetect A(‸Tag[tag].kind = "box")'
            ),
            detecting("detect A\nassign kind = ‸Kinds[A.t].kind"),
        ),
    ),
    MessageEntry(
        "HW206",
        "unknown function",
        "`{name}` is no function here",
        "aggregates begin with a capital letter, functions of single values with a small one",
        (
            bad("event A(x: int)\ndefine D(n) aggr every 5 s\n  detect A\n  assign n = ‸count(A)"),
            detecting("detect A(‸absolute(x) > 3)"),
        ),
    ),
    MessageEntry(
        "HW207",
        "name declared twice",
        "`{name}` is the name of {what} already",
        "rename one of the two",
        (
            bad("event A(x: int)\nevent ‸A(y: int)"),
            bad("event A(x: int)\ndefine ‸A()\n  detect A"),
            bad("set S = {1}\nregion ‸S = box(1, 1, 2, 2)"),
            detecting("detect A\nsubscription ‸S seq 2 from u to b\ndetect B"),
        ),
    ),
    MessageEntry(
        "HW208",
        "alias twice",
        "`{name}` names another event of this pattern already",
        "choose another alias",
        (detecting("detect A as x and B as ‸x"), detecting("detect A and B as ‸A")),
    ),
    MessageEntry(
        "HW209",
        "type twice without an alias",
        "`{name}` stands more than once in this pattern, so each needs an alias",
        "write `as` and a name after each of them",
        (
            detecting("detect A as a then ‸A"),
            detecting("detect A as a then ‸A(x > 1) then A as b where a.x < b.x"),
        ),
    ),
    MessageEntry(
        "HW210",
        "reserved word as a name",
        "`{name}` is a reserved word",
        "write it in backticks",
        (bad("event A(‸last: int)"), bad("event ‸first(x: int)"), detecting("detect A as ‸not")),
    ),
    MessageEntry(
        "HW211",
        "attribute that is given",
        "`{name}` is given with every event and cannot be declared",
        "leave it out, or choose another name",
        (
            bad("event A(x: int, ‸location: text)"),
            bad("event A(x: int)\ndefine D(‸duration)\n  detect A\n  assign duration = 1"),
        ),
    ),
    MessageEntry(
        "HW212",
        "consuming an unknown name",
        "`{name}` names no event of this case",
        "name an alias of the pattern, or a type that has none",
        (
            detecting("detect A and B\nconsuming ‸C"),
            detecting("detect A as a and B\nconsuming ‸A"),
        ),
    ),
    MessageEntry(
        "HW213",
        "unknown anchor",
        "`{name}` names no event of the pattern before `within`",
        "name an alias of that pattern, or a type that has none",
        (
            detecting("detect A and B within 5 s from ‸C"),
            detecting("detect A then B as later within 5 s from ‸latter"),
        ),
    ),
    MessageEntry(
        "HW214",
        "unknown key",
        "`{name}` is no attribute of `group by` here",
        "`group.x` is the value of x by which the case is grouped",
        (
            detecting("detect A and B\nassign x = ‸group.x"),
            detecting("detect A and B\nassign x = ‸group.loction\ngroup by location"),
            bad("event A(x: int)\nsubscription S from u to b of group.‸y\ndetect A\ngroup by x"),
        ),
    ),
    MessageEntry(
        "HW215",
        "name twice",
        "`{name}` stands twice in {what}",
        "leave one out",
        (
            bad("event A(x: int, ‸x: float)"),
            detecting("detect A\nassign y = A.x, ‸y = A.t"),
            detecting("detect A and B\ngroup by x, ‸x"),
            bad("event A(x: int)\ndefine D()\ncase 1:\n  detect A\ncase ‸1:\n  detect A"),
        ),
    ),
    MessageEntry(
        "HW216",
        "unknown attribute type",
        "`{name}` is no type of attributes",
        "the types are int, float, text, bool and bytes",
        (bad("event A(x: ‸integer)"), bad("event A(x: int, y: ‸txt)")),
    ),
    MessageEntry(
        "HW217",
        "unknown shape",
        "`{name}` is no shape of regions",
        "the shapes are circle, box, polygon and path",
        (
            bad("region R = ‸cirle(45.5, 7.1, 3 km)"),
            detecting("detect A and B within 5 s in ‸rectangle(1, 1, 2, 2)"),
        ),
    ),
    MessageEntry(
        "HW218",
        "name taken by the language",
        "`group` is the key of `group by` and cannot name an event",
        "choose another name",
        (bad("event ‸`group`(x: int)"), detecting("detect A as ‸`group` and B")),
    ),
    MessageEntry(
        "HW219",
        "name bound elsewhere",
        "`{name}` is not bound in the pattern to the left of this `where`",
        "a `where` sees what stands before it, up to the enclosing parenthesis",
        (
            detecting("detect (A where A.x > ‸B.x) and B"),
            detecting("detect A then (B where B.t = ‸A.t)"),
        ),
    ),
    MessageEntry(
        "HW220",
        "another event in a condition",
        "the conditions of an event cannot name `{name}`",
        "write the event's own attributes without a prefix; compare events in a `where`",
        (
            detecting("detect A and B(x > ‸A.x)"),
            detecting("detect A(‸A.x > 1)"),
            detecting("detect A(x = ‸group.x)\ngroup by x"),
        ),
    ),
    MessageEntry(
        "HW221",
        "set in place of a region",
        "`{name}` is a set, and a region should stand here",
        "name a region; membership in a set is a condition, as in `A(source in Dock)`",
        (
            bad(
                'set Dock = {"a", "b"}\nevent A(x: int)\nsubscription S from u to a\n'
                "detect A in ‸Dock"
            ),
            bad(
                "set One = {1}\nevent A(x: int)\nevent B()\nsubscription S from u to a\n"
                "detect A then B within 5 s in ‸One"
            ),
        ),
    ),
    MessageEntry(
        "HW222",
        "no such attribute to group by",
        "`{type}` has no attribute `{name}` to group by",
        "every event type of the case needs the attribute; all have location and source",
        (
            detecting("detect A and B\ngroup by ‸y"),
            bad(
                "event A(x: int)\nevent B(y: int)\nsubscription S from u to a\n"
                "detect A and B\ngroup by ‸y"
            ),
            bad(
                "event A(x: int)\ndefine D(n) aggr every 5 s\npre\n  detect A\n"
                "  assign n = Count(A)\npost\n  where n = Sum(n)\n  group by ‸x"
            ),
        ),
    ),
    MessageEntry(
        "HW225",
        "assigned but not in the header",
        "`{name}` is assigned, but it is no attribute of `{type}`",
        "add it to the header",
        (
            bad("event A(x: int)\ndefine D(y)\n  detect A\n  assign y = A.x, ‸z = A.x"),
            bad(
                "event A(x: int)\ndefine D(mean) aggr every 5 s\n  detect A\n"
                "  assign mean = Avg(A.x), ‸maen = Avg(A.x)"
            ),
        ),
    ),
    MessageEntry(
        "HW226",
        "never assigned",
        "`{name}` stands in the header, but is never assigned",
        "assign it, or take it out of the header",
        (
            bad("event A(x: int)\ndefine D(y, ‸z)\n  detect A\n  assign y = A.x"),
            bad("event A(x: int)\ndefine D(‸location)\n  detect A"),
        ),
    ),
    MessageEntry(
        "HW227",
        "table that cannot be read",
        "the table {name} cannot be read: {why}",
        "a table is comma-separated text with a header line, and each key once",
        (
            bad(
                'table Tags from ‸"tags.csv" key tag\nevent A(tag: text)\n'
                'subscription S from u to a\ndetect A(Tags[tag].kind = "box")',
                tables={"tags.csv": "tag,kind\nt1,box\nt1,bag\n"},
            ),
            bad(
                'table Tags from ‸"tags.csv" key tag\nevent A(tag: text)\n'
                "subscription S from u to a\ndetect A\nassign kind = Tags[A.tag].kind",
                tables={"tags.csv": "id,kind\nt1,box\n"},
            ),
        ),
    ),
)
