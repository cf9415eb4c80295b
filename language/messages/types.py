"""Entries for types and values."""

from __future__ import annotations

from language.messages.entry import MessageEntry, bad, defining, detecting

ENTRIES: tuple[MessageEntry, ...] = (
    MessageEntry(
        "HW301",
        "values that do not compare",
        "{left} is compared with {right}",
        "compare numbers with numbers and texts with texts",
        (
            detecting('detect A(x > ‸"high")'),
            detecting("detect A and B where A.t = ‸B.x"),
            detecting('detect A(‸x in {"a", "b"})'),
            detecting("detect A(0 < x < ‸t)"),
        ),
    ),
    MessageEntry(
        "HW302",
        "no number",
        "{kind} stands where a number should stand",
        "only numbers have a sign and can be calculated with",
        (
            detecting("detect A(‸t + 1 > 2)"),
            bad('set Names = {‸-"a"}'),
            detecting("detect A and B where A.x > -‸B.t"),
        ),
    ),
    MessageEntry(
        "HW303",
        "no condition",
        "{kind} stands where a condition should stand",
        "compare it with something",
        (
            detecting("detect A(‸x)"),
            detecting("detect A(not ‸x + 1)"),
            detecting("detect A and B where ‸A.t"),
            detecting("detect A(x > 1 or ‸t)"),
        ),
    ),
    MessageEntry(
        "HW304",
        "no such comparison",
        "{kind} cannot be compared by `{operator}`",
        "numbers and texts have an order; truth values and bytes are equal or not; positions are"
        " only asked for in regions",
        (
            bad("event A(on: bool)\nsubscription S from u to a\ndetect A(on < ‸true)"),
            detecting("detect A and B where A.position = ‸B.position"),
        ),
    ),
    MessageEntry(
        "HW305",
        "mixed set",
        "{kind} in a set that begins with {common}",
        "all members of a set are of one kind",
        (bad('set S = {1, ‸"a"}'), detecting('detect A(t in {"a", ‸2})')),
    ),
    MessageEntry(
        "HW306",
        "wrong kind of argument",
        "{form} cannot take {kind} here",
        "the guide lists the functions with what they take",
        (
            detecting("detect A(sqrt(‸t) > 2)"),
            detecting("detect A(length(‸x) > 2)"),
            defining("define D(n) aggr every 5 s\n  detect A\n  assign n = Sum(‸A.t)"),
        ),
    ),
    MessageEntry(
        "HW307",
        "wrong number of arguments",
        "wrong number of arguments for {form}: {count}",
        "the guide lists the functions with what they take",
        (
            detecting("detect A(‸abs(x, 2) > 1)"),
            detecting("detect A(‸max(x) > 1)"),
            defining("define D(n) aggr every 5 s\n  detect A\n  assign n = ‸Count()"),
        ),
    ),
    MessageEntry(
        "HW308",
        "no quantile",
        "the second argument of Quantile should be a number from 0 to 1",
        "0.5 asks for the median, 0.95 for what 95 of 100 values do not exceed",
        (
            defining("define D(q) aggr every 5 s\n  detect A\n  assign q = Quantile(A.x, ‸95)"),
            defining("define D(q) aggr every 5 s\n  detect A\n  assign q = Quantile(A.x, ‸-0.1)"),
        ),
    ),
    MessageEntry(
        "HW309",
        "not of a region",
        "no {shape} holds {kind}",
        "positions lie in circles, boxes and polygons, locations in paths",
        (
            detecting("detect A(‸location in circle(45.5, 7.1, 3 km))"),
            bad(
                'region Hall = path("a/b")\nevent A()\nsubscription S from u to a\n'
                "detect A(‸position in Hall)"
            ),
        ),
    ),
    MessageEntry(
        "HW310",
        "aggregate of whole events",
        "`{name}` needs an attribute of the events",
        "only Count takes events as such",
        (
            defining("define D(n) aggr every 5 s\n  detect A\n  assign n = Sum(‸A)"),
            defining("define D(n) aggr every 5 s\n  detect A as a\n  assign n = Last(‸a)"),
        ),
    ),
    MessageEntry(
        "HW311",
        "keys of two kinds",
        "`{name}` is {left} in one event type and {right} in another",
        "keys of different kinds are never equal",
        (
            bad(
                "event A(k: int)\nevent B(k: text)\nsubscription S from u to a\n"
                "detect A and B\ngroup by ‸k"
            ),
            bad(
                "event A(k: bool)\nevent B(k: float)\ndefine D(n) aggr every 5 s\n"
                "  detect A and B\n  assign n = Count(A)\n  group by ‸k"
            ),
        ),
    ),
    MessageEntry(
        "HW312",
        "wrong arguments of a shape",
        "this is not of the form {form}",
        "give the arguments of that form",
        (
            bad("region R = ‸circle(45.5, 3 km)"),
            bad("region R = ‸polygon(1, 1, 2, 2)"),
            bad("region R = ‸path(5)"),
        ),
    ),
    MessageEntry(
        "HW313",
        "duration not above zero",
        "the duration should be above zero",
        "zero may be the time of `within` and an end of a bound, and nothing may be below it",
        (
            detecting("detect A and B within ‸-5 s"),
            detecting("detect A then[‸-1 s..5 s] B"),
            defining("define D(n) aggr every ‸0 s\n  detect A\n  assign n = Count(A)"),
        ),
    ),
    MessageEntry(
        "HW314",
        "distance not above zero",
        "the distance should be above zero",
        "write for example `50 m`; `spread 0 m` is one place",
        (
            detecting("detect A and B spread ‸-1 m"),
            bad("region R = circle(45.5, 7.1, ‸0 m)"),
            bad("region R = circle(45.5, 7.1, ‸-3 km)"),
        ),
    ),
    MessageEntry(
        "HW315",
        "bound upside down",
        "the bound begins above its end",
        "write the lower end first",
        (
            detecting("detect A then[‸10 s..5 s] B"),
            detecting("detect A and[‸1 min..1 s] B"),
        ),
    ),
    MessageEntry(
        "HW316",
        "box upside down",
        "the first corner of the box lies beyond the second",
        "give the lower left corner first, then the upper right one; across the date line there are"
        " two boxes",
        (bad("region R = box(‸2, 1, 1, 2)"), bad("region R = box(‸5 m, 9 m, 6 m, 8 m)")),
    ),
    MessageEntry(
        "HW317",
        "no path",
        "`{path}` is no path of a location",
        "a path is segments joined by single slashes, such as building-a/floor-1",
        (bad('region R = path(‸"")'), bad('region R = path(‸"a//b")')),
    ),
    MessageEntry(
        "HW318",
        "mixed coordinates",
        "this coordinate is not of the kind of the others",
        "all are plain numbers (degrees), or all are distances (metres)",
        (
            bad("region R = box(1, 1, ‸2 m, 2)"),
            bad("region R = circle(10 m, ‸20, 5 m)"),
            bad('region R = circle(45.5, ‸"7.1", 5 m)'),
        ),
    ),
    MessageEntry(
        "HW319",
        "coordinate out of range",
        "a {side} lies between -{limit} and {limit} degrees",
        "the latitude comes first; coordinates in metres carry their unit",
        (bad("region R = circle(‸145.5, 7.1, 3 km)"), bad("region R = box(1, 1, 2, ‸200)")),
    ),
    MessageEntry(
        "HW320",
        "wrong kind for a given attribute",
        "`{name}` should be {wanted}, and this is {kind}",
        "assign a value of its kind",
        (
            defining("define D(location)\n  detect A\n  assign location = ‸A.x"),
            defining("define D(position)\n  detect A\n  assign position = ‸A.location"),
        ),
    ),
    MessageEntry(
        "HW321",
        "no value of an attribute",
        "`{name}` cannot hold {kind}",
        "attributes hold numbers, texts, truth values and bytes",
        (
            defining("define D(place)\n  detect A\n  assign place = ‸A.position"),
            defining("define D(e)\n  detect A\n  assign e = ‸A"),
        ),
    ),
    MessageEntry(
        "HW322",
        "attribute of two kinds",
        "`{name}` is {left} in one case and {right} in another",
        "all cases assign values of one kind",
        (
            defining(
                "define D(v)\ncase 0:\n  detect A\n  assign v = A.x\n"
                "case 1:\n  detect B\n  assign v = ‸B.t"
            ),
            defining(
                "define D(v)\ncase 0:\n  detect A\n  assign v = true\n"
                "case 1:\n  detect B\n  assign v = ‸B.x / 2"
            ),
        ),
    ),
)
