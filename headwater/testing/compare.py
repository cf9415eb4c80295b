"""Whether a result is what an expectation says, and in what it differs.

Owns the comparison and the form in which a result is told: that of an expectation, so that it can
be copied into the file. Must not know files or the order of a test. Invariant: what an expectation
does not say is not compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from broker.engine.event.occurrence import Absence
from broker.engine.runtime.subscribed import OccurrenceResult
from headwater.testing.notation import interval_text
from headwater.testing.script import ApproximateNumber, Expect

_BARE_MAX = 40
_MISSING = object()


def differences(wanted: Expect, result: OccurrenceResult) -> list[str]:
    """The names of the parts in which a result is not what is expected; none if it is."""
    parts = [] if result.subscription == wanted.subscription else [wanted.subscription]
    bound = events_of(result)
    for alias, ids in wanted.events:
        own, constituents = bound.get(alias, ((), ()))
        if ids != own and (own == constituents or sorted(ids) != sorted(constituents)):
            parts.append(alias)
    if wanted.start is not None and result.start != wanted.start:
        parts.append("start")
    if wanted.end is not None and result.end != wanted.end:
        parts.append("end")
    if wanted.certainty is not None and result.certainty != wanted.certainty:
        parts.append("certainty")
    document = result.to_dict() if wanted.values or wanted.group else {}
    for path, value in wanted.values:
        if not same(value, _at(document["values"], path)):
            parts.append(".".join(path))
    for key, value in wanted.group:
        if not same(value, document["group"].get(key, _MISSING)):
            parts.append(f"group {key}")
    return parts


def events_of(result: OccurrenceResult) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """By alias: the ids of what is bound, and those of the readings behind it.

    A detected event's id is a digest, which nobody writes by hand; the ids of what it was detected
    from, in whatever order, may stand for it.
    """
    by_alias: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    for name, member in zip(result.template.names, result.events, strict=True):
        if member is None or isinstance(member, Absence):
            continue
        members = member if isinstance(member, tuple) else (member,)
        own = tuple(event.id for event in members)
        by_alias[name] = (own, tuple(event_id for event in members for event_id in event.ids))
    return by_alias


def same(wanted: Any, value: Any) -> bool:
    """Tell whether a value is the one expected; numbers as numbers, about as many digits."""
    if isinstance(wanted, ApproximateNumber):
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        digits = wanted.number.as_tuple().exponent
        assert isinstance(digits, int)
        return abs(Decimal(value) - wanted.number) * 2 <= Decimal(1).scaleb(digits)
    if isinstance(wanted, bool) or isinstance(value, bool):
        return wanted is value
    return bool(wanted == value)


def _at(values: Any, path: tuple[str, ...]) -> Any:
    """The value at a path; a list of events is asked for one of them by its number from 0."""
    whole = ".".join(path)
    if isinstance(values, Mapping) and whole in values:
        return values[whole]
    for name in path:
        if isinstance(values, Mapping):
            values = values.get(name, _MISSING)
        elif isinstance(values, list) and name.isdecimal() and int(name) < len(values):
            values = values[int(name)]
        else:
            return _MISSING
    return values


def result_text(result: OccurrenceResult, zero_ms: int) -> str:
    """A result as an expectation that it would meet."""
    document = result.to_dict()
    parts = [f"{document['subscription']}:"]
    for name, (own, constituents) in events_of(result).items():
        ids = own if own == constituents or len(constituents) > len(own) * 5 else constituents
        plain = all(_is_bare(event_id) and "," not in event_id for event_id in ids)
        parts.append(f"{name}={','.join(ids) if plain else json.dumps(ids, ensure_ascii=False)}")
    parts += ["at", interval_text(result.start, result.end, zero_ms)]
    values = dict(_flat(document["values"]))
    for word, named in (("with", values), ("group", document["group"])):
        if named:
            parts.append(word)
            parts += [f"{name}={_value_text(value)}" for name, value in named.items()]
    if document["certainty"] == "maybe":
        parts.append("maybe")
    return " ".join(parts)


def _flat(values: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Values by dotted path; lists stay whole."""
    pairs: list[tuple[str, Any]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            pairs += [(f"{name}.{inner}", below) for inner, below in value.items()]
        else:
            pairs.append((name, value))
    return pairs


def _value_text(value: Any) -> str:
    if isinstance(value, str) and _is_bare(value) and not _reads_as_other(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _is_bare(text: str) -> bool:
    return (
        0 < len(text) <= _BARE_MAX
        and text.isprintable()
        and not any(c in ' "[]{}()' for c in text)
        and text[0] not in "~#"
    )


def _reads_as_other(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
