"""Named networks: the addresses of a network's brokers, and who asks them.

Owns the file of contexts and what may stand in it. Must not know what brokers are asked. Invariant:
no password or token stands in the file; it names the file that holds a token. A file that cannot be
understood is refused whole, and written anew in one move.
"""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwater.cli.output import CommandError, read_text

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
KEYS = ("brokers", "user", "token_file")


@dataclass(frozen=True, slots=True)
class NamedNetwork:
    """A network: where its brokers are reached, the first one for commands that ask one broker."""

    name: str
    brokers: tuple[str, ...]
    user: str | None = None
    token_file: str | None = None

    def token(self) -> str | None:
        """Return the token that its file holds. Raises CommandError."""
        if self.token_file is None:
            return None
        return read_text(str(Path(self.token_file).expanduser())).strip()


@dataclass(slots=True)
class Contexts:
    """All contexts, by name, and the one that is used where none is named."""

    selected: str = ""
    by_name: dict[str, NamedNetwork] = field(default_factory=dict)

    def get(self, name: str) -> NamedNetwork:
        """Return the context of a name. Raises CommandError."""
        if name not in self.by_name:
            from language.suggest import nearest

            near = nearest(name, self.by_name)
            hint = f"did you mean `{near}`?" if near else "`headwater context ls` lists them"
            raise CommandError(2, f"no context `{name[:64]}`; {hint}")
        return self.by_name[name]


def file_of(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where contexts are kept: `HEADWATER_CONTEXTS`, else below the user's configuration."""
    if named := environ.get("HEADWATER_CONTEXTS"):
        return Path(named)
    home = environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(home).expanduser() / "headwater" / "contexts.toml"


def load(path: Path | None = None) -> Contexts:
    """Return the contexts of `path`; none where there is no such file. Raises CommandError."""
    path = path or file_of()
    if not path.exists():
        return Contexts()
    text = read_text(str(path))
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CommandError(2, f"{path}: {error}".lower()) from None
    tables = raw.get("contexts", {})
    if not isinstance(tables, dict) or set(raw) - {"selected", "contexts"}:
        raise CommandError(2, f"{path}: expected `selected` and tables [contexts.NAME]")
    contexts = Contexts(str(raw.get("selected", "")))
    for name, table in tables.items():
        contexts.by_name[name] = _context(path, name, table)
    return contexts


def save(contexts: Contexts, path: Path | None = None) -> Path:
    """Write `contexts`, for this user alone, and return where. Raises CommandError."""
    path = path or file_of()
    lines = [f"selected = {json.dumps(contexts.selected)}"] if contexts.selected else []
    for context in contexts.by_name.values():
        lines += ["", f"[contexts.{json.dumps(context.name)}]"]
        lines.append(f"brokers = {json.dumps(list(context.brokers))}")
        for key, value in (("user", context.user), ("token_file", context.token_file)):
            if value is not None:
                lines.append(f"{key} = {json.dumps(value)}")
    fresh = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh.touch(mode=0o600)
        fresh.write_text("\n".join(lines).lstrip("\n") + "\n", encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CommandError(2, f"{path}: cannot be written: {reason}") from None
    return path


def _context(path: Path, name: str, table: Any) -> NamedNetwork:
    where = f"{path}: [contexts.{name}]"
    if not NAME.fullmatch(name):
        raise CommandError(2, f"{where}: a name has 1 to 64 letters, digits, `.`, `_` and `-`")
    if not isinstance(table, dict) or set(table) - set(KEYS):
        raise CommandError(2, f"{where}: expected the keys {', '.join(KEYS)}")
    brokers = table.get("brokers")
    if not isinstance(brokers, list) or not brokers or not all(isinstance(b, str) for b in brokers):
        raise CommandError(2, f"{where}: `brokers` is a list of addresses, at least one")
    others = {key: table.get(key) for key in KEYS[1:]}
    if not all(value is None or isinstance(value, str) for value in others.values()):
        raise CommandError(2, f"{where}: `user` and `token_file` are texts")
    return NamedNetwork(name, tuple(brokers), **others)
