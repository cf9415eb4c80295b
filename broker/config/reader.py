"""From a TOML file, the environment and flags to a checked configuration.

Owns the order of precedence (default, file, environment, flag: the last wins) and the places that
errors name. Must not know what a setting is for. Invariant: either everything was understood, or
`ConfigError` lists all that was not and nothing is used.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from broker.config.checks import contradictions
from broker.config.document import Document
from broker.config.errors import ConfigError, SettingRefusedError, did_you_mean
from broker.config.links import PEERS_MAX, peers_of_text
from broker.config.mappings import ATTRIBUTES_MAX, attributes_of_text
from broker.config.named import NAMED, not_named, section_names, tables_of
from broker.config.table import Config, Setting, sections, settings
from broker.config.values import check_attribute, check_peer, checked, from_text

PREFIX = "HEADWATER__"
# Settings of earlier versions, with what has come in their place.
GONE = {
    "links.first_wait_ms": "the first events of a type wait until all brokers have answered",
}
NO_FLAG = "every user of this machine can read a command line; set it in the environment or a file"

MOVED = {
    "mqtt.users": "; users stand in the file that `rights` under [broker] names, see docs/rights.md"
}


class SettingOrigin(msgspec.Struct, frozen=True):
    """The origin of a value: `kind` is default, file, env or flag; `place` names it exactly.

    `folder` is what a relative path in the value is relative to.
    """

    kind: str
    place: str
    folder: str = ""


class Loaded(msgspec.Struct, frozen=True):
    """A checked configuration and, by dotted key, where each value came from."""

    config: Config
    origins: dict[str, SettingOrigin]


class _Given(msgspec.Struct, frozen=True):
    value: object
    origin: SettingOrigin
    entry_place: Callable[[str], str] | None = None


_Givens = Iterator[tuple[str, _Given]]
_Rows = Mapping[str, Setting]


def load(
    path: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> Loaded:
    """Reads a configuration; without a path, the defaults and what overrides them.

    `environ` is the environment (only names beginning with HEADWATER__ are looked at) and `flags`
    are dotted keys with the text of their values. Raises ConfigError.
    """
    document = None if path is None else Document(Path(path))
    named = section_names(NAMED, document.tables if document else {}, environ or {}, flags or {})
    rows = {setting.key: setting for setting in settings(named)}
    folder = str(Path(path).parent) if path is not None else ""
    default = SettingOrigin("default", "default", folder)
    given = {key: _Given(row.default, default) for key, row in rows.items()}
    problems: list[str] = []
    if document is not None:
        given.update(_from_file(document, rows, problems))
    given.update(_from_environment(environ or {}, rows, problems))
    given.update(_from_flags(flags or {}, rows, problems))
    values: dict[str, Any] = {}
    for key, assigned in given.items():
        try:
            values[key] = _settled(rows[key], assigned)
        except SettingRefusedError as refused:
            problems.append(f"{_where(key, assigned.origin)}: {refused}")
        except ConfigError as error:
            problems.extend(error.problems)
    if problems:
        raise ConfigError(*sorted(problems, key=_in_file(path)))
    origins = {key: assigned.origin for key, assigned in given.items()}
    config = _assembled(values, origins, named)
    if wrong := [f"{_where(key, origins[key])}: {why}" for key, why in contradictions(config)]:
        raise ConfigError(*wrong)
    return Loaded(config, origins)


def _where(key: str, origin: SettingOrigin) -> str:
    """The place of a value and its key, which a flag's place names already."""
    return origin.place if origin.kind == "flag" else f"{origin.place}: {key}"


def _in_file(path: str | Path | None) -> Callable[[str], tuple[int, int]]:
    """Sorts problems by their line and column in the file; those from elsewhere stay behind."""
    place = re.compile(rf"{re.escape(str(path))}:(\d+):(\d+): ")

    def key(problem: str) -> tuple[int, int]:
        match = place.match(problem)
        return (int(match[1]), int(match[2])) if match else (sys.maxsize, 0)

    return key


def _assembled(
    values: Mapping[str, Any], origins: Mapping[str, SettingOrigin], named: Iterable[str]
) -> Config:
    parts: dict[str, Any] = {}
    for section, type_ in sections(named).items():
        prefix = f"{section}."
        own = {k.removeprefix(prefix): v for k, v in values.items() if k.startswith(prefix)}
        try:
            parts[section] = type_(**own)
        except ValueError as error:  # a part has looked at its own limits together
            key = prefix + str(error).partition(" ")[0]  # it begins with one of their names
            place = f"{_where(key, origins[key])}: " if key in origins else f"[{section}]: "
            raise ConfigError(f"{place}{error}") from None
    parts |= {kind: {} for kind in NAMED}
    for section in named:
        kind, _, name = section.partition(".")
        parts[kind][name] = parts.pop(section)
    return Config(**parts)


def _settled(setting: Setting, given: _Given) -> Any:
    """The value itself: checked, paths made whole."""
    value, origin = given.value, given.origin
    if origin.kind in {"env", "flag"} and isinstance(value, str):
        value = from_text(setting, value)
    if setting.kind is dict:
        return _listed(setting, given)
    value = checked(setting, value)
    if setting.about.path and value:
        return str(Path(origin.folder, value))
    return value


_LISTED = {
    "peer": (peers_of_text, check_peer, PEERS_MAX, "brokers, at most {} are linked to"),
    "attribute": (attributes_of_text, check_attribute, ATTRIBUTES_MAX, "attributes, at most {}"),
}


def _listed(setting: Setting, given: _Given) -> dict[str, str]:
    """Names with a text each: a table, or a text from the environment or a flag."""
    value, origin = given.value, given.origin
    of_text, check, at_most, beyond = _LISTED[setting.about.entries]
    if isinstance(value, str) and origin.kind in {"env", "flag"}:
        try:
            value = of_text(value)
        except ValueError as error:
            raise SettingRefusedError(str(error)) from None
    table: dict[str, object] = checked(setting, value)
    if len(table) > at_most:
        raise SettingRefusedError(f"found {len(table)} {beyond.format(at_most)}")
    place = given.entry_place or (lambda _: _where(setting.key, origin))
    return _entries(table, place, check)


def _entries(
    table: Mapping[str, object],
    place: Callable[[str], str],
    check: Callable[[str, object], str],
) -> dict[str, str]:
    accepted, problems = {}, []
    for name, value in table.items():
        try:
            accepted[name] = check(name, value)
        except SettingRefusedError as refused:
            problems.append(f"{place(name)}: {refused}")
    if problems:
        raise ConfigError(*problems)
    return accepted


# --- where values come from -------------------------------------------------------------------


def _from_file(document: Document, rows: _Rows, problems: list[str]) -> _Givens:
    defined = {row.section for row in rows.values()}
    for path, table in tables_of(NAMED, document.tables):
        section = ".".join(path)
        if section not in defined:
            why = not_named(NAMED, path, table) or _unknown_section(section, table, rows)
            problems.append(f"{document.place(*path)}: {why}")
            continue
        if not isinstance(table, dict):
            place = document.place(*path)
            problems.append(f"{place}: `{section}` is a section: write [{section}] above its keys")
            continue
        for name, value in table.items():
            key, place = f"{section}.{name}", document.place(*path, name)
            if key in rows:
                origin = SettingOrigin("file", place, document.folder)
                yield key, _Given(value, origin, _places_under(document, section, name))
            else:
                problems.append(f"{place}: {_unknown_key(section, name, rows)}")


def _places_under(document: Document, section: str, name: str) -> Callable[[str], str]:
    return lambda entry: document.place(*section.split("."), name, entry)


def _from_environment(environ: Mapping[str, str], rows: _Rows, problems: list[str]) -> _Givens:
    by_variable = {row.variable: row for row in rows.values()}
    for variable in sorted(environ):
        if not variable.startswith(PREFIX):
            continue
        if variable in by_variable:
            key = by_variable[variable].key
            yield key, _Given(environ[variable], SettingOrigin("env", variable))
        else:
            path = variable.removeprefix(PREFIX).lower().split("__")
            path = path if len(path) > 1 else [*path, ""]
            section, name = ".".join(path[:-1]), path[-1]
            why = (
                _unknown_key(section, name, rows)
                if any(row.section == section for row in rows.values())
                else not_named(NAMED, path[:-1]) or _unknown_section(path[0], None, rows)
            )
            problems.append(f"{variable}: {why}")


def _from_flags(flags: Mapping[str, str], rows: _Rows, problems: list[str]) -> _Givens:
    for key, text in flags.items():
        if key in rows and rows[key].about.never_a_flag:
            problems.append(f"--set {key}: {NO_FLAG}")
        elif key in rows:
            yield key, _Given(text, SettingOrigin("flag", f"--set {key}"))
        else:
            gone = f": {GONE[key]}" if key in GONE else did_you_mean(key, rows)
            problems.append(f"--set {key}: no such key{gone}")


# --- what is near -----------------------------------------------------------------------------


def _unknown_section(section: str, table: object, rows: _Rows) -> str:
    homes = [row.key for row in rows.values() if row.name == section]
    if homes and not isinstance(table, dict):
        return f"the key `{section}` belongs into a section: {_or(homes)}"
    return f"no such section `{section}`{did_you_mean(section, [*sections(), *NAMED])}"


def _unknown_key(section: str, name: str, rows: _Rows) -> str:
    if f"{section}.{name}" in GONE:
        return f"[{section}] has no key `{name}` any more: {GONE[f'{section}.{name}']}; remove it"
    neighbours = [row.name for row in rows.values() if row.section == section]
    elsewhere = [row.key for row in rows.values() if row.name == name]
    hint = MOVED.get(f"{section}.{name}") or did_you_mean(name, neighbours)
    if not hint and elsewhere:
        hint = f"; did you mean {_or(elsewhere)}?"
    return f"[{section}] has no key `{name}`{hint}"


def _or(keys: list[str]) -> str:
    return " or ".join(f"`{key}`" for key in keys)
