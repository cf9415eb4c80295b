"""A file of users as the commands change it: lines of `name = "hash"` and remarks.

Owns the reading, the writing and the asking for passwords. Must not know what a command is called.
Invariant: the file is replaced whole or not at all, only its owner can read it, and lines that are
not of the user in hand stay as they were.
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

from headwater.cli.output import CommandError, ask_password, complain

FILE_BYTES_MAX = 262_144  # as of a configuration: what is longer a broker would not read
PASSWORD_LENGTH_MAX = 1024
_KEY = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*=""")


def add_file(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """The option that names the file."""
    parser.add_argument(
        "--file",
        required=required,
        metavar="USERS.toml",
        help="the file that `users` under [mqtt] names; a broker reads it when it starts",
    )


def add_password(parser: argparse.ArgumentParser) -> None:
    """The option for programs."""
    parser.add_argument(
        "--password-stdin",
        action="store_true",
        help="take the password from the first line of standard input, not from the terminal",
    )


def checked_name(name: str) -> str:
    """The name of a user. Raises CommandError."""
    from broker.rights.names import NAME_PATTERN, NAME_SAYS

    if not re.fullmatch(NAME_PATTERN, name):
        raise CommandError(2, f"the user name `{name}` will not do, expected {NAME_SAYS}")
    return name


def password(arguments: argparse.Namespace) -> str:
    """What somebody types unseen, twice, or the first line of standard input."""
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


def line_of(name: str, encoded: str) -> str:
    """The line of one user."""
    key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
    return f'{key} = "{encoded}"'


class UsersFile:
    """The users in a file, in its order. Raises CommandError for what is no such file."""

    def __init__(self, name: str, *, new: bool = False) -> None:
        """Reads it; `new`: it need not be there yet."""
        self.path = Path(name)
        text = self._text(new=new)
        try:
            found = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # also of a number that is too long
            raise CommandError(2, f"{name}: not TOML: {error}") from None
        for key, value in found.items():
            if not isinstance(value, str):
                raise CommandError(
                    2, f'{name}: `{key}` is no user; a file of users has lines of name = "hash"'
                )
        self.users: dict[str, str] = found
        self._lines = text.splitlines()

    def put(self, name: str, encoded: str) -> None:
        """Add a user, or give one another hash."""
        line = line_of(name, encoded)
        at = self._line(name)
        if at is None:
            self._lines.append(line)
        else:
            self._lines[at] = line
        self.users[name] = encoded
        self._write()

    def remove(self, name: str) -> None:
        """Take a user away, who is there."""
        at = self._line(name)
        if at is not None:
            del self._lines[at]
        del self.users[name]
        self._write()

    def _line(self, name: str) -> int | None:
        for at, line in enumerate(self._lines):
            match = _KEY.match(line)
            if match is not None and name in match.groups():
                return at
        return None

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
        """All or nothing; what is written is what a broker would read."""
        text = "".join(f"{line}\n" for line in self._lines)
        try:
            good = tomllib.loads(text) == self.users
        except tomllib.TOMLDecodeError:
            good = False
        if not good:
            raise CommandError(2, f"{self.path}: it is laid out in a way that cannot be changed")
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
