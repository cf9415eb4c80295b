"""A configuration as people read it: the values with their origins, and the page of all settings.

Owns these two texts. Must not know how values are found. Invariant: no secret is ever shown.
"""

import json
from typing import Any

import msgspec

from broker.config.named import NAMED
from broker.config.reader import Loaded, SettingOrigin
from broker.config.table import Setting, introduction, sections, settings

HIDDEN = "(hidden)"
PAGE_HEAD = """
# Configuration

<!-- Written by `make docs` from the table in broker/config/table.py; edit that. -->

A broker reads one TOML file, `headwater broker --config FILE.toml`, and runs without any.
Every key has a default. What a key is called here, it is called everywhere:

- in the file: `port = 1884` under `[mqtt]`;
- in the environment: `HEADWATER__MQTT__PORT=1884`, which overrides the file;
- as a flag: `--set mqtt.port=1884`, which overrides both.

A key or section that does not exist is refused with its place and the nearest name that does, and
so is a value of the wrong type or beyond its limits: a broker never starts on a configuration that
it understood by half. `headwater config show --origin` prints every value with where it came from.

Paths in the file are relative to the file's directory. Users, their passwords' hashes and what each
may do stand in a file of their own, see [Rights](rights.md).
"""


class Shown(msgspec.Struct, frozen=True):
    """One value for showing; `origin` is `default`, a file with its line, `env` or `flag`."""

    key: str
    value: Any
    unit: str
    origin: str


def shown(loaded: Loaded) -> list[Shown]:
    """Every value in the order of the table, without secrets."""
    rows = []
    for row in settings(loaded.config.named()):
        value = getattr(loaded.config.section(row.section), row.name)
        if row.about.secret and value:
            value = dict.fromkeys(value, HIDDEN) if isinstance(value, dict) else HIDDEN
        origin = loaded.origins[row.key]
        rows.append(Shown(row.key, value, row.about.unit, _in_words(origin)))
    return rows


def _in_words(origin: SettingOrigin) -> str:
    if origin.kind == "file":
        return origin.place.rpartition(":")[0]
    return origin.place if origin.kind == "default" else f"{origin.kind} {origin.place}"


def as_toml(rows: list[Shown], *, origins: bool) -> str:
    """The values as TOML, with unit and origin as comments."""
    lines: list[str] = []
    section = ""
    for row in rows:
        home, _, name = row.key.rpartition(".")
        if home != section:
            lines += ["", f"[{home}]"] if lines else [f"[{home}]"]
            section = home
        remarks = [remark for remark in (row.unit, row.origin if origins else "") if remark]
        text = f"{name} = {_toml(row.value)}"
        lines.append(f"{text:<44} # {', '.join(remarks)}" if remarks else text)
    return "\n".join(lines) + "\n"


def page() -> str:
    """docs/configuration.md."""
    lines = [PAGE_HEAD.strip()]
    named = [f"{kind}.NAME" for kind in NAMED]
    rows = settings(named)
    for section, type_ in sections(named).items():
        lines += ["", f"## [{section}]", "", introduction(section, type_), ""]
        lines += ["| key | value | default | meaning |", "|---|---|---|---|"]
        lines += [_page_row(row) for row in rows if row.section == section]
    return "\n".join(lines) + "\n"


def _page_row(row: Setting) -> str:
    expected = row.expected.replace("|", "\\|")
    meaning = row.about.meaning.replace("|", "\\|")
    return f"| `{row.name}` | {expected} | `{_toml(row.default)}` | {meaning} |"


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)
