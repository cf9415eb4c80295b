"""Sections of which there may be several, each under a name of its own, as `[joins.hall]`.

Owns which such sections a configuration has and the sentences for those that will not do. Must not
know what is in them. Invariant: a name that is found here can stand in a file, in the environment
and in a flag.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from broker.config.joins import JOINS_MAX, JoinSection
from broker.config.mappings import MAPPINGS_MAX, MappingSection

NAME_PATTERN = r"[a-z](?:_?[a-z0-9]){0,31}"
NAME_SAYS = "a small letter, then up to 31 small letters or digits, with single `_` between"
_VARIABLE = "HEADWATER__"


class Kind(msgspec.Struct, frozen=True):
    """One kind of them: what one is called, how many may be, and what those beyond are not."""

    singular: str
    at_most: int
    beyond: str


Kinds = Mapping[str, Kind]

# Each is an attribute of `Config` of the same name, a dict by the names.
NAMED: Final = {
    "joins": Kind("server", JOINS_MAX, "joined"),
    "mappings": Kind("mapping", MAPPINGS_MAX, "taken"),
}
NAMED_TYPES: Final[dict[str, type[Any]]] = {"joins": JoinSection, "mappings": MappingSection}


def section_names(
    kinds: Kinds, tables: Mapping[str, Any], environ: Mapping[str, str], flags: Mapping[str, str]
) -> list[str]:
    """All that any source tells of, dotted; of each kind in the order of the file, then by name."""
    accepted: list[str] = []
    for section, kind in kinds.items():
        names = _names(section, tables, environ, flags)
        good = [name for name in names if re.fullmatch(NAME_PATTERN, name)]
        accepted += [f"{section}.{name}" for name in good[: kind.at_most]]
    return accepted


def _names(
    section: str, tables: Mapping[str, Any], environ: Mapping[str, str], flags: Mapping[str, str]
) -> list[str]:
    named = tables.get(section)
    inside = named.items() if isinstance(named, dict) else ()
    distinct = dict.fromkeys(name for name, table in inside if isinstance(table, dict))
    begin = f"{_VARIABLE}{section.upper()}__"
    others = {key.removeprefix(begin).lower() for key in environ if key.startswith(begin)}
    others = {name.partition("__")[0] for name in others if "__" in name}
    begin = f"{section}."
    others |= {key.split(".")[1] for key in flags if key.startswith(begin) and key.count(".") > 1}
    return list(distinct | dict.fromkeys(sorted(others)))


def tables_of(kinds: Kinds, tables: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], object]]:
    """The sections of a file with their paths: of such a kind those of each name."""
    for section, table in tables.items():
        if section in kinds and isinstance(table, dict):
            yield from (((section, name), inner) for name, inner in table.items())
        else:
            yield (section,), table


def not_named(kinds: Kinds, path: Sequence[str], table: object = None) -> str | None:
    """Why a section of this path is none of such a kind; None where it is something else."""
    if not path or path[0] not in kinds:
        return None
    section, kind = path[0], kinds[path[0]]
    if len(path) == 1 or not isinstance(table, dict | None):
        return (
            f"each {kind.singular} has a section of its own: write [{section}.NAME] above its keys"
        )
    name = ".".join(path[1:])
    if re.fullmatch(NAME_PATTERN, name):
        return f"more than {kind.at_most} {kind.singular}s are not {kind.beyond}"
    return f"the name `{name}` will not do, expected {NAME_SAYS}"
