"""The subscriptions that scenarios draw from: each construct that the engine runs, in small.

Owns the texts. Must not know who submits them. Invariant: any choice of them, behind the
declarations and the definitions that they use, is a specification without errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from language import Checked, check_text

TYPES = ("Temp", "Humidity", "Wind", "Rain")
LASTING = "Rain"  # the type whose readings last
DECLARATIONS = "".join(f"event {name}(val: float)\n" for name in TYPES)

DEFINITIONS = {
    "Warm": """
define Warm(val)
detect Temp(val > 5)
assign val = Temp.val
""",
    "Shower": """
define Shower(val, top, location)
detect Rain(val > 1) as a overlaps Rain as b
assign val = a.val, top = b.val, location = a.location
""",
    "Mean": """
define Mean(source, val, n) aggr every 10 s
detect Temp
assign source = group.source, val = Avg(Temp.val), n = Count(Temp)
group by source
""",
    "Recent": """
define Recent(top) aggr range 8 s
detect Wind
assign top = Max(Wind.val)
""",
    "Storm": """
define Storm(top)
case 0:
  detect Wind(val > 7) as w
  assign top = w.val
case 1:
  detect Recent(top > 8) as r
  assign top = r.top
""",
}

# Those of which each result depends on its own events alone, whatever else there was.
ALONE = (
    *("After", "Damp", "Drying", "Either", "Gaps", "Hot", "Rise", "Showers", "Soaked", "Valley"),
    "Warmth",
)

# By name: the definitions that it uses, each before its users, and what it detects.
SUBSCRIPTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "Hot": ((), "detect Temp(val > 7)"),
    "Damp": (
        (),
        (
            "detect Temp(val <= 3) as t and Humidity(val > 4) as h within 5 s spread 2 km\n"
            "assign t = t.val, h = h.val"
        ),
    ),
    "Valley": (
        (),
        (
            "detect Temp(val < 6) as t and Humidity(val > 3) as h and Wind(val < 6) as w"
            " within 6 s spread 4 km in circle(46, 7, 3 km)"
        ),
    ),
    "Rise": (
        (),
        (
            "detect Temp(val < 4) as a then[1 s..6 s] Temp(val > 6) as b where b.val > a.val + 2\n"
            "group by source"
        ),
    ),
    "Latest": ((), "detect[recent] Humidity(val > 3) as h and Wind(val > 3) as w within 10 s"),
    "Spent": (
        (),
        "detect Wind(val > 4) as w and Humidity(val < 5) as h within 8 s\nconsuming h",
    ),
    "Either": (
        (),
        "detect (Temp(val = 9) as t or Wind(val = 9) as w) where t.val > 0 or w.val > 0",
    ),
    "After": (
        (),
        "detect Wind as w and Humidity(val > 6) as h within 4 s from w",
    ),
    "Warmth": (("Warm",), "detect Warm(val > 6) as x then[..5 s] Warm as y"),
    "Means": (("Mean",), "detect Mean(n > 1) as m"),
    "Falling": (("Mean",), "detect Mean as m then[..30 s] Mean(val < 5) as n\ngroup by source"),
    "Soaked": (
        (),
        "detect Rain(val > 3) as r contains Wind(val > 5) as w",
    ),
    "Showers": (
        (),
        "detect Rain(val > 2) as a parallel Rain(val < 7) as b within 6 s where a.val >= b.val",
    ),
    "Drying": (("Shower",), "detect Shower as s then[..10 s] Humidity(val < 5) as h"),
    "Gaps": ((), "detect Rain as a and[1 s..3 s] Rain as b within 8 s\ngroup by location"),
    "Storms": (("Recent", "Storm"), "detect Storm(top > 8) as s and Temp(val < 2) as t within 9 s"),
}


def text_of(names: Sequence[str], subscriber: str, seq: int = 1) -> str:
    """A specification with these subscriptions."""
    used = dict.fromkeys(need for name in names for need in SUBSCRIPTIONS[name][0])
    parts = [DECLARATIONS, *(DEFINITIONS[need] for need in used)]
    for name in names:
        head = f"subscription {name} seq {seq} from {subscriber} to alerts"
        parts.append(f"{head}\n{SUBSCRIPTIONS[name][1]}\n")
    return "\n".join(parts)


@lru_cache(maxsize=1_024)
def checked(text: str) -> Checked:
    """Check a text as `check_text` does; texts come again in every scenario."""
    return check_text(text)
