"""How results of the product are held against those of the reference matcher.

Owns: what must agree, and how digests of detected events are matched with their structure.
Must not know: the product; it is given result objects as they stand in the output.
Invariant: the answer is a list of sentences, empty only if everything agrees.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby, permutations
from typing import Any, TypeAlias

from tests.oracles import spec as s
from tests.oracles.worked import WorkedCase

Result: TypeAlias = Mapping[str, Any]

PERMUTED_MAX = 5  # larger classes of results that look alike are only counted


def compare(spec: s.Spec, expected: Sequence[Result], actual: Sequence[Result]) -> list[str]:
    """What differs between the reference matcher's results and the product's.

    Agreement means: the same results (subscription, seq, actor, start, end, certainty, group,
    values, ids of primitive events), in order, with distinct ids, and one digest per structure of a
    detected event and one structure per digest.
    """
    defined = defined_aliases(spec)
    wanted = [visible(result, defined) for result in expected]
    given = [visible(result, defined) for result in actual]
    if Counter(wanted) != Counter(given):
        missing, surplus = Counter(wanted) - Counter(given), Counter(given) - Counter(wanted)
        return [f"missing: {one}" for one in missing.elements()] + [
            f"surplus: {one}" for one in surplus.elements()
        ]
    ids = [result["id"] for result in actual if "id" in result]
    found = [f"id given twice: {one}" for one, times in Counter(ids).items() if times > 1]
    found += _out_of_order(expected, wanted, given)
    return found + _mismatched(expected, actual, wanted, given)


def unmet(case: WorkedCase, results: Sequence[Result]) -> list[str]:
    """What differs from a worked case; of detected events only whether there is one counts."""
    if len(results) != len(case.expected):
        return [f"{len(results)} results, not {len(case.expected)}"]
    found = []
    for result, expected in zip(results, case.expected, strict=True):
        for alias in sorted({*result["events"], *expected.primitives}):
            ids, wanted_ids = result["events"].get(alias, []), expected.primitives.get(alias, [])
            if not (ids == wanted_ids or (alias in case.defined and ids and wanted_ids)):
                found.append(f"events of {alias}: {ids}, not {wanted_ids}")
        for key in ("subscription", "start", "end", "group", "values", "certainty"):
            wanted = getattr(expected, key)
            if wanted is not None and _canonical(result[key]) != _canonical(wanted):
                found.append(f"{key}: {result[key]}, not {wanted}")
    return found


def defined_aliases(spec: s.Spec) -> dict[str, frozenset[str]]:
    """Per subscription, the names of its places that detected events fill."""
    names = {one.name for one in spec.definitions}
    return {
        one.name: frozenset(a.name for a in s.atoms_of(one.case.pattern) if a.type in names)
        for one in spec.subscriptions
    }


def visible(result: Result, defined: Mapping[str, frozenset[str]]) -> str:
    """All of a result that both sides can name, as one text; 7 and 7.0 are the same number."""
    made = defined[result["subscription"]]
    shown = {
        key: result[key]
        for key in ("subscription", "seq", "actor", "start", "end", "certainty", "values")
    }
    # An empty list may be told or left out.
    if isinstance(shown["values"], Mapping):
        shown["values"] = {k: v for k, v in shown["values"].items() if v != []}
    shown["group"] = result.get("group") or {}
    shown["events"] = {
        alias: [None] * len(ids) if alias in made else list(ids)
        for alias, ids in result["events"].items()
        if ids
    }
    return _canonical(shown)


def _canonical(value: Any) -> str:
    return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False)


def _plain(value: Any) -> Any:
    match value:
        case Mapping():
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case float() if value.is_integer():
            return int(value)
    return value


def _out_of_order(
    expected: Sequence[Result], wanted: Sequence[str], given: Sequence[str]
) -> list[str]:
    """Results of equal (end, start, ids) may stand in any order among themselves.

    Where no detected event is bound, those of an earlier subscription stand first all the same:
    then the key names the subscription too.
    """

    def key(numbered: tuple[int, Result]) -> tuple[str, str]:
        result = numbered[1]
        plain = all(None not in ids for ids in result["events"].values())
        return json.dumps(result["order"]), result["subscription"] if plain else ""

    for _, run in groupby(enumerate(expected), key):
        places = [number for number, _ in run]
        here = Counter(wanted[number] for number in places)
        if here != Counter(given[number] for number in places):
            return [f"result {places[0]} is {given[places[0]]} where {wanted[places[0]]} was due"]
    return []


def _bound(result: Result, key: str, aliases: frozenset[str]) -> tuple[Any, ...]:
    return tuple(
        one for alias in sorted(result["events"]) if alias in aliases for one in result[key][alias]
    )


def _mismatched(
    expected: Sequence[Result],
    actual: Sequence[Result],
    wanted: Sequence[str],
    given: Sequence[str],
) -> list[str]:
    """Whether digests and structures can be matched one to one over all results."""
    classes: dict[str, tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]] = {}
    for result, look in zip(expected, wanted, strict=True):
        made = frozenset(a for a, ids in result["events"].items() if None in ids)
        classes.setdefault(look, ([], []))[0].append(_bound(result, "structure", made))
    made_by_look = {
        look: frozenset(a for a, ids in result["events"].items() if None in ids)
        for result, look in zip(expected, wanted, strict=True)
    }
    for result, look in zip(actual, given, strict=True):
        classes[look][1].append(_bound(result, "events", made_by_look[look]))
    ordered = sorted(classes.values(), key=lambda sides: len(sides[0]))
    if not _matches(ordered, {}, {}):
        return ["the ids of detected events do not stand one to one for their structures"]
    return []


def _matches(
    classes: Sequence[tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]],
    digest_of: dict[Any, str],
    structure_of: dict[str, Any],
) -> bool:
    forth, back = dict(digest_of), dict(structure_of)
    alone = 0  # those that leave no choice come first; so many that each must not nest deeper
    for structures, digests in classes:
        if len(structures) > 1:
            break
        if not _fits(structures, digests, forth, back):
            return False
        alone += 1
    if alone == len(classes):
        return True
    (structures, digests), *rest = classes[alone:]
    if len(structures) > PERMUTED_MAX:
        return len(set(structures)) == len(set(digests)) and _matches(rest, forth, back)
    for permuted in permutations(digests):
        tried, tried_back = dict(forth), dict(back)
        if _fits(structures, permuted, tried, tried_back) and _matches(rest, tried, tried_back):
            return True
    return False


def _fits(
    structures: Sequence[tuple[Any, ...]],
    digests: Sequence[tuple[Any, ...]],
    digest_of: dict[Any, str],
    structure_of: dict[str, Any],
) -> bool:
    """Whether these stand for each other one by one, beside what is known; that is noted."""
    return all(
        digest_of.setdefault(structure, digest) == digest
        and structure_of.setdefault(digest, structure) == structure
        for one, other in zip(structures, digests, strict=True)
        for structure, digest in zip(one, other, strict=True)
    )
