"""Subscriptions that come and go in runs with crashes: what holds state in ways of its own.

Owns the texts. Must not know who submits them. Invariant: each is a specification without errors,
for the declarations of `simulation.texts`; nothing is said of what they find, only that it is the
same with crashes as without.
"""

from __future__ import annotations

from simulation.texts import DECLARATIONS

WINDOWS = {
    "Quiet": "aggr session 2 s\ndetect Wind\nassign top = Max(Wind.val), n = Count(Wind)",
    "Moving": "aggr every 2 s range 6 s\ndetect Temp\n"
    "assign top = Median(Temp.val), n = Count(Temp)",
    "Bursts": "aggr session 1500 ms max 4 s\ndetect Temp\n"
    "assign top = Avg(Temp.val), n = Count(Temp)\ngroup by source",
    "Ticking": "every 3 s\ndetect Humidity as h and Temp as t within 2 s\n"
    "assign top = h.val, n = 1",
    "Pairs": "aggr every 5 s\ndetect Wind and outer Temp\n"
    "assign top = Sum(Wind.val), n = Count(Temp)",
}

DETECTS = {
    "Silent": "detect absent Temp for 4 s",
    "SilentEach": "detect absent Wind for 3 s\ngroup by source",
    "Undisturbed": "detect (Temp as a then[..8 s] Temp as b) without Wind(val > 4)",
    "Calm": "detect Temp(val > 3) as t without[3 s] Humidity",
    "Three": "detect Humidity{3} as h within 20 s",
    "Runs": "detect Wind+[100 ms..2 s] as w where Count(w) > 1",
    "Some": "detect Temp as a then Humidity+ as h then Wind as w within 9 s",
    "Second": "detect Temp as a then nth 2 Wind as w within 12 s",
    "Latest": "detect last Temp as t and Humidity as h within 4 s",
    "Apart": "detect Temp as a then distinct(source) Wind as w within 5 s",
    "Oldest": "detect[chronicle] Temp as a then[..9 s] Wind as b then[..9 s] Humidity as c",
    "First": "detect[first] Temp as a then Wind as b then Humidity as c within 10 s",
    "Newest": "detect[latest] Temp as a then Wind as b then Humidity as c within 10 s",
    "One": "detect[one] Temp as a and Humidity as b within 5 s",
    "All": "detect[collect] Temp as a and Humidity as b within 5 s",
    "Next": "detect Temp as a then[next] Wind as b",
    "Raining": "detect Rain as r contains Temp as t",
    "Eaten": "detect[recent] Temp as a then Rain as b within 9 s\nconsuming a, b\ngroup by source",
    "Few": "detect Temp as t\ngroup by source\nat most 2 per 5 s",
}

NAMES = (*DETECTS, *WINDOWS)


def text_of(name: str, subscriber: str, seq: int = 1) -> str:
    """A specification with the subscription of this name."""
    definition, detect = "", DETECTS.get(name)
    if detect is None:
        definition = f"define {name}Made(top, n) {WINDOWS[name]}\n"
        detect = f"detect {name}Made as x then[..20 s] {name}Made as y"
    head = f"subscription {name} seq {seq} from {subscriber} to alerts"
    return f"{DECLARATIONS}{definition}{head}\n{detect}\n"
