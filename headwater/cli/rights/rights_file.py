"""A rights file as the commands change it: one table of a user or token at a time.

Owns the reading, the writing and the asking for passwords. Must not know what a command is called.
Invariant: the file is replaced whole or not at all, only its owner can read it, and lines that are
not of the table in hand stay as they were.
"""

import argparse
import json
import os
import re
import sys
import tempfile
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

from headwater.cli.output import CommandError, ask_password, complain

FILE_BYTES_MAX = 262_144  # as of a configuration: what is longer a broker would not read
PASSWORD_LENGTH_MAX = 1024
_NAME = r"""(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))"""
_HEADER = re.compile(rf"\s*\[\s*([a-z]+)\s*\.\s*{_NAME}\s*\]")


def add_file(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the file."""
    parser.add_argument(
        "--file",
        required=True,
        metavar="RIGHTS.toml",
        help="the file that `rights` under [broker] names; `headwater reload` has it read again",
    )


def add_roles(parser: argparse.ArgumentParser) -> None:
    """Add the option for roles."""
    parser.add_argument(
        "--role",
        action="append",
        default=[],
        metavar="ROLE",
        help="look, publish, subscribe, operate, administrate or one of the file's; may repeat",
    )


def add_password(parser: argparse.ArgumentParser) -> None:
    """Add the option for programs."""
    parser.add_argument(
        "--password-stdin",
        action="store_true",
        help="take the password from the first line of standard input, not from the terminal",
    )


def checked_name(name: str) -> str:
    """Return the name of a user or token. Raises CommandError."""
    from broker.rights.names import NAME_PATTERN, NAME_SAYS

    if not re.fullmatch(NAME_PATTERN, name):
        raise CommandError(2, f"the name `{name}` will not do, expected {NAME_SAYS}")
    return name


def password(arguments: argparse.Namespace) -> str:
    """Return what somebody types unseen, twice, or the first line of standard input."""
    if sys.stdin.isatty() and not arguments.password_stdin:
        typed = ask_password("password: ")
        if ask_password("once more: ") != typed:
            raise CommandError(2, "the two passwords differ")
    else:
        typed = sys.stdin.readline(PASSWORD_LENGTH_MAX + 2).rstrip("\r\n")
    if not typed:
        raise CommandError(2, "an empty password is no password")
    if len(typed) > PASSWORD_LENGTH_MAX:
        raise CommandError(2, f"a password has at most {PASSWORD_LENGTH_MAX} characters")
    return typed


class RightsFile:
    """The tables of a rights file, and its lines. Raises CommandError for what is no such file."""

    def __init__(self, name: str, *, new: bool = False) -> None:
        """Read it; `new`: it need not be there yet."""
        self.path = Path(name)
        text = self._text(new=new)
        self.tables = self._read(text)
        self._lines = text.splitlines()

    def names(self, section: str) -> list[str]:
        """List the names of users or tokens, in the file's order."""
        return list(self.tables.get(section, {}))

    def demand(self, section: str, name: str, *, there: bool) -> None:
        """Refuse unless the name is there, or is not. Raises CommandError."""
        taken = [part for part in ("users", "tokens") if name in self.tables.get(part, {})]
        word = section.removesuffix("s")
        if there and section not in taken:
            raise CommandError(2, f"{self.path}: there is no {word} `{name}`")
        if not there and taken:
            hint = "; `headwater user passwd` changes a password" if taken == ["users"] else ""
            raise CommandError(2, f"{self.path}: `{name}` is there already{hint}")

    def add(self, section: str, name: str, keys: dict[str, Any]) -> None:
        """Write a table at the end of the file."""
        key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
        blank = [""] if self._lines and self._lines[-1].strip() else []
        lines = [f"{key_} = {json.dumps(value)}" for key_, value in keys.items()]
        self._lines += [*blank, f"[{section}.{key}]", *lines]
        self.tables.setdefault(section, {})[name] = keys
        self._write()

    def put(self, section: str, name: str, key: str, value: str) -> None:
        """Give one key of a table another value."""
        begin, end = self._lines_of(section, name)
        line = f"{key} = {json.dumps(value)}"
        pattern = re.compile(rf"\s*{key}\s*=")
        for number in range(begin + 1, end):
            if pattern.match(self._lines[number]):
                self._lines[number] = line
                break
        else:
            self._lines.insert(begin + 1, line)
        self.tables[section][name][key] = value
        self._write()

    def remove(self, section: str, name: str) -> None:
        """Take a table away, which is there."""
        begin, end = self._lines_of(section, name)
        # The remark above the next table belongs to that.
        while end > begin + 1 and self._lines[end - 1].lstrip()[:1] in {"", "#"}:
            end -= 1
        del self._lines[begin:end]
        del self.tables[section][name]
        if not self.tables[section]:
            del self.tables[section]
        self._write()

    def _lines_of(self, section: str, name: str) -> tuple[int, int]:
        """The lines of a table, from its header to the next."""
        for begin, line in enumerate(self._lines):
            match = _HEADER.match(line)
            if match is not None and match[1] == section and name in match.groups()[1:]:
                for end in range(begin + 1, len(self._lines)):
                    if self._lines[end].lstrip().startswith("["):
                        return begin, end
                return begin, len(self._lines)
        raise self._laid_out()

    def _laid_out(self) -> CommandError:
        return CommandError(2, f"{self.path}: it is laid out in a way that cannot be changed")

    def _read(self, text: str) -> dict[str, Any]:
        from broker.rights.reader import RightsError, read_rights

        try:
            tables = tomllib.loads(text)
            read_rights(tables)
        except RightsError as error:
            raise CommandError(2, f"{self.path}: {error}") from None
        except (ValueError, RecursionError) as error:  # also of a number that is too long
            raise CommandError(2, f"{self.path}: not TOML: {error}") from None
        return tables

    def _text(self, *, new: bool) -> str:
        try:
            with self.path.open("rb") as file:
                data = file.read(FILE_BYTES_MAX + 1)
                self._tell_of_others(os.fstat(file.fileno()).st_mode)
        except FileNotFoundError:
            if new:
                return ""
            raise CommandError(2, f"{self.path}: there is no such file") from None
        except OSError as error:
            raise self._failure("read", error) from None
        if len(data) > FILE_BYTES_MAX:
            raise CommandError(2, f"{self.path}: longer than {FILE_BYTES_MAX} bytes")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise CommandError(2, f"{self.path}: not UTF-8") from None

    def _tell_of_others(self, mode: int) -> None:
        if os.name == "posix" and mode & 0o077:
            complain(f"{self.path}: others could read it; once written it is its owner's alone")

    def _write(self) -> None:
        """Write all or nothing; what is written is what a broker would read."""
        text = "".join(f"{line}\n" for line in self._lines)
        try:
            good = tomllib.loads(text) == self.tables
        except tomllib.TOMLDecodeError:
            good = False
        if not good:
            raise self._laid_out()
        self._read(text)  # such as a role that there is none of
        target = self.path.resolve()
        try:
            # It is made for its owner alone (0600), whatever the old one was.
            number, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
            try:
                with os.fdopen(number, "w", encoding="utf-8") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                Path(temporary).replace(target)
            except BaseException:
                with suppress(OSError):
                    Path(temporary).unlink()
                raise
        except OSError as error:
            raise self._failure("written", error) from None

    def _failure(self, verb: str, error: OSError) -> CommandError:
        reason = (error.strerror or str(error)).lower()
        return CommandError(2, f"{self.path}: cannot be {verb}: {reason}")
