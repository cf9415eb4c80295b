"""The databases that the store is tested on: SQLite, and PostgreSQL where it is at hand.

PostgreSQL is at hand where its Python driver is; its server is then a program that tests need.
"""

import contextlib
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

DRIVER = "psycopg"
KINDS = ["sqlite", *(["postgresql"] if importlib.util.find_spec(DRIVER) else [])]
SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))  # Debian keeps them out of PATH
START_S = 15


def program(name: str) -> str:
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *map(str, SERVERS)])
    found = shutil.which(name, path=path)
    if found is None:
        pytest.skip(f"the program {name} is not installed")
    return found


class PostgreSQL:
    """A server of the tests' own, reached through a socket in its directory alone."""

    def __init__(self, folder: Path, user: str | None) -> None:
        self._folder = folder
        self._user = user
        self._numbers = itertools.count()
        self._process: subprocess.Popen[str] | None = None

    def make(self) -> None:
        self._run("initdb", "-D", str(self._folder / "data"), "-A", "trust", "-U", "tests")
        with (self._folder / "data/postgresql.conf").open("a") as file:
            file.write("log_min_messages = 'log'\nfsync = off\n")  # no test cuts the power

    def _run(self, name: str, *arguments: str) -> None:
        subprocess.run(
            [program(name), *arguments],
            user=self._user,
            check=True,
            capture_output=True,
            cwd=self._folder,
        )

    def start(self) -> None:
        flags = ["-D", str(self._folder / "data"), "-k", str(self._folder), "-h", ""]
        self._process = subprocess.Popen(
            [program("postgres"), *flags],
            user=self._user,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self._folder,
        )
        assert self._process.stderr is not None
        told = []
        for line in self._process.stderr:
            told.append(line)
            if "ready to accept connections" in line:
                return
        raise AssertionError("".join(told))

    def stop(self) -> None:
        """At once: open connections are cut."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=START_S)

    def command(self, text: str, database: str = "postgres") -> list[tuple]:
        import psycopg

        told = f"host={self._folder} user=tests dbname={database}"
        with psycopg.connect(told, autocommit=True) as connection:
            done = connection.execute(text)
            return done.fetchall() if done.description else []

    def database(self) -> str:
        """The name of a new, empty one."""
        name = f"headwater{next(self._numbers)}"
        self.command(f"CREATE DATABASE {name}")
        return name

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://tests@/{database}?host={self._folder}"


@contextlib.contextmanager
def postgresql() -> Iterator[PostgreSQL]:
    """A running server; it refuses to be the superuser's."""
    program("initdb")
    user = None
    if os.geteuid() == 0:
        names = [one.pw_name for one in pwd.getpwall()]
        user = "postgres" if "postgres" in names else "nobody"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if user is not None:
            shutil.chown(folder, user)
        server = PostgreSQL(folder, user)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()
