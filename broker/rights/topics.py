"""Topic filters as sets of topics: which one holds another, and which two meet.

Owns that comparison and the names that stand in for whoever asks. Must not know who that is.
Invariant: a filter is compared as the set of its topics, so no wildcard reaches around a right.
"""

from collections.abc import Sequence

USER, CLIENT = "{user}", "{client}"  # levels that stand for who asks
LEVELS_MAX = 64


def fault_of(pattern: str) -> str:
    """Return what is wrong with a topic filter of the rights file; empty: nothing."""
    if not pattern:
        return "a topic filter is empty"
    levels = pattern.split("/")
    if len(levels) > LEVELS_MAX:
        return f"a topic filter has more than {LEVELS_MAX} levels"
    for level in levels[:-1]:
        if "#" in level or ("+" in level and level != "+"):
            return "a wildcard is not a level of its own"
    last = levels[-1]
    if len(last) > 1 and ("#" in last or "+" in last):
        return "a wildcard is not a level of its own"
    for level in levels:
        for name in (USER, CLIENT):
            if name in level and level != name:
                return f"`{name}` is not a level of its own"
    return ""


def filled(pattern: str, user: str | None, client_id: str) -> list[str] | None:
    """Return the levels of `pattern` for this asker; None if it cannot be about them.

    A name that is no level of its own would let its bearer choose what the right says.
    """
    levels = pattern.split("/")
    for index, level in enumerate(levels):
        if level in {USER, CLIENT}:
            name = user if level == USER else client_id
            if not name or any(character in name for character in "/+#"):
                return None
            levels[index] = name
    return levels


def covers(pattern: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return if `pattern` matches every topic that the filter `wanted` matches."""
    if wanted[0].startswith("$") and pattern[0] in {"+", "#"}:
        return False  # a wildcard never reaches there (MQTT-4.7.2-1)
    for index, level in enumerate(pattern):
        if level == "#":
            return True
        if index >= len(wanted):
            return False
        other = wanted[index]
        if other == "#" or level not in {"+", other}:
            return False
    return len(wanted) == len(pattern)


def overlaps(pattern: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return if some topic matches both filters."""
    for left, right in ((pattern, wanted), (wanted, pattern)):
        if left[0].startswith("$") and right[0] in {"+", "#"}:
            return False
    for index in range(max(len(pattern), len(wanted))):
        pair = [levels[index] for levels in (pattern, wanted) if index < len(levels)]
        if "#" in pair:
            return True  # the parent too (section 4.7.1.2)
        if len(pair) < 2 or (pair[0] != pair[1] and "+" not in pair):
            return False
    return True


def part_below(wanted: Sequence[str], prefix: Sequence[str]) -> list[str] | None:
    """Return the filter below `prefix` that `wanted` stands for there; None if it has no part.

    `+/x` below `headwater` is `x`, and `#` is `#`; so is `headwater/#`.
    """
    for index, level in enumerate(prefix):
        if index >= len(wanted):
            return None
        if wanted[index] == "#":
            return ["#"]
        if wanted[index] not in {"+", level}:
            return None
    return list(wanted[len(prefix) :]) or None
