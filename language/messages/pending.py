"""Entries for what is understood but not run yet; gone when the engine can do it."""

from __future__ import annotations

from language.messages.entry import Entry, Marked, bad, detecting

HELP = "a later version runs it; nothing of a text is installed while one of its parts cannot run"


def _pending(code: str, what: str, *marked: Marked) -> Entry:
    return Entry(
        code, f"{what} (not run yet)", f"{what}: understood, but not run yet", HELP, marked
    )


ENTRIES: tuple[Entry, ...] = (
    _pending(
        "HW902",
        "`without`",
        detecting("detect A ‸without[5 s] B"),
        detecting("detect (A as a then A as b within 5 s) ‸without B"),
    ),
    _pending(
        "HW903",
        "`absent`",
        detecting("detect ‸absent A for 5 mins"),
        detecting("detect ‸absent (A or B) for 1 h"),
    ),
    _pending(
        "HW904",
        "lists",
        detecting("detect A then ‸B+ within 5 s"),
        detecting("detect ‸A{3} within 5 s"),
        detecting("detect ‸A+[900 ms..1100 ms] as beats"),
    ),
    _pending(
        "HW905",
        "`nth`",
        detecting("detect A then ‸nth 2 B"),
        detecting("detect ‸nth 5 A"),
    ),
    _pending(
        "HW906",
        "`first` before an operand",
        detecting("detect A then ‸first B"),
        detecting("detect ‸first A and B within 5 s"),
    ),
    _pending(
        "HW907",
        "`distinct`",
        detecting("detect ‸distinct(x) A then B within 5 s"),
        detecting("detect A and ‸distinct B within 5 s"),
    ),
    _pending(
        "HW908",
        "`next`",
        detecting("detect A then[‸next] B"),
        detecting("detect A then[..5 s, ‸next] B"),
    ),
    _pending(
        "HW909",
        "contexts other than unrestricted and recent",
        detecting("detect A then[‸chronicle] B"),
        detecting("detect[‸first] A then B"),
        detecting("detect[‸latest] A then B"),
    ),
    _pending(
        "HW910",
        "`one` and `collect`",
        detecting("detect[‸one] A and B"),
        detecting("detect[recent, ‸collect] A and B"),
    ),
    _pending(
        "HW911",
        "`maybe drop`",
        detecting("detect[‸maybe drop] A and B"),
        detecting("detect[recent, ‸maybe drop] A then B"),
    ),
    _pending(
        "HW915",
        "tables",
        bad(
            'table Tags from "tags.csv" key tag\nevent A(tag: text)\n'
            'subscription S from u to a\ndetect A(‸Tags[tag].kind = "box")'
        ),
        bad(
            'table Tags from "tags.csv" key tag\nevent A(tag: text)\n'
            "subscription S from u to a\ndetect A\nassign kind = ‸Tags[A.tag].kind"
        ),
    ),
    _pending(
        "HW916",
        "subscriptions that end",
        bad("event A(x: int)\nsubscription S from u to a ‸for 7 days\ndetect A"),
        bad('event A(x: int)\nsubscription S from u to a ‸until "2026-12-31T00:00Z"\ndetect A'),
    ),
    _pending(
        "HW917",
        "`at most`",
        detecting("detect A\n‸at most 3 per 1 h"),
        detecting("detect A\ngroup by source\n‸at most 1 per 10 s"),
    ),
    _pending(
        "HW918",
        "the nearest actor",
        bad("event A(x: int)\nsubscription S from u to ‸nearest NurseTablet\ndetect A"),
        bad("event A(x: int)\nsubscription S seq 2 from u to ‸nearest b\ndetect A"),
    ),
    _pending(
        "HW919",
        "functions of your own",
        bad(
            "event Video(size: int)\nsubscription S from u to a\ndetect Video(‸Score(size) > 1)",
            ("Score",),
        ),
        bad(
            "event Video()\nsubscription S from u to a\ndetect Video\n"
            "assign face = ‸FaceDetect(Video)",
            ("FaceDetect",),
        ),
    ),
)
