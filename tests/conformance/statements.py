"""The statements of the two MQTT standards that are tested, each with its test.

Owns the register: a statement has the version of the standard, its number there, what it asks for
in our own words, and, where we deliberately do otherwise past a limit, why. Invariant: one test a
statement.
"""

import importlib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conformance.wire import NAMES, V5, V311


@dataclass(frozen=True)
class Statement:
    version: int
    number: str
    words: str
    test: object
    within: str = ""  # the limit past which we deliberately do otherwise, and why

    @property
    def key(self):
        """As in the test's name: the standard's version and the number."""
        return f"{NAMES[self.version]}-MQTT-{self.number}"

    @property
    def place(self):
        """For sorting: chapter, section and number as numbers."""
        section, _, number = self.number.rpartition("-")
        return (self.version, *map(int, section.split(".")), int(number))


STATEMENTS = {}

# How many statements each section of a standard has; in MQTT 5, 2.2.1 has no first.
_COUNTS = {
    V311: """
        1.4.0:3 2.2.2:2 2.3.1:7 3.1.0:2 3.1.2:24 3.1.3:11 3.1.4:5 3.2.0:1 3.2.2:6 3.3.1:12 3.3.2:3
        3.3.4:1 3.3.5:2 3.6.1:1 3.8.1:1 3.8.3:4 3.8.4:6 3.9.3:2 3.10.1:1 3.10.3:2 3.10.4:6 3.12.4:1
        3.14.1:1 3.14.4:3 4.1.0:2 4.3.1:1 4.3.2:2 4.3.3:2 4.4.0:1 4.5.0:2 4.6.0:6 4.7.1:3 4.7.2:1
        4.7.3:4 4.8.0:2 6.0.0:4
    """,
    V5: """
        1.5.4:3 1.5.5:1 1.5.7:1 2.1.3:1 2.2.1:6 2.2.2:1 3.1.0:2 3.1.2:30 3.1.3:12 3.1.4:6 3.2.0:2
        3.2.2:22 3.3.1:13 3.3.2:20 3.3.4:10 3.4.2:3 3.5.2:3 3.6.1:1 3.6.2:3 3.7.2:3 3.8.1:1 3.8.3:5
        3.8.4:8 3.9.2:2 3.9.3:2 3.10.1:1 3.10.3:2 3.10.4:6 3.11.2:2 3.11.3:2 3.12.4:1 3.14.0:1
        3.14.1:1 3.14.2:4 3.14.4:3 3.15.1:1 3.15.2:3 4.1.0:2 4.2.0:1 4.3.1:1 4.3.2:5 4.3.3:13
        4.4.0:2 4.5.0:2 4.6.0:6 4.7.0:1 4.7.1:2 4.7.2:1 4.7.3:4 4.8.2:6 4.9.0:3 4.12.0:7 4.12.1:2
        4.13.1:1 4.13.2:1 6.0.0:4
    """,
}
NONE = {(V5, "2.2.1-1")}

# What no test of a server can show, by its reason.
UNTESTED = {
    "what clients have to do, which a server can neither cause nor see broken": {
        V311: "2.3.1-2 2.3.1-3 3.1.2-23 4.5.0-2 4.6.0-1 4.6.0-2 4.6.0-3 4.6.0-4",
        V5: "3.1.2-20 3.1.2-21 3.2.2-4 3.2.2-5 3.2.2-21 3.3.2-10 3.3.4-8 4.5.0-2 4.6.0-1 4.6.0-2 "
        "4.6.0-3 4.6.0-4",
    },
    "of what this server never sends: reason strings and user properties of its own, AUTH": {
        V5: "3.2.2-19 3.2.2-20 3.4.2-3 3.5.2-2 3.5.2-3 3.6.2-2 3.6.2-3 3.7.2-2 3.7.2-3 3.9.2-2 "
        "3.11.2-2 3.14.2-4 3.15.2-1 3.15.2-2 3.15.2-3",
    },
    "extended authentication, which is not spoken here": {
        V5: "3.1.2-30 4.12.0-2 4.12.0-3 4.12.0-4 4.12.0-5 4.12.1-1 4.12.1-2",
    },
    "of servers without retained messages": {V5: "3.2.2-14"},
    "of servers that send a copy for each of overlapping subscriptions": {V5: "3.3.4-5"},
    "cannot be broken: two bytes hold a text's length": {V311: "4.7.3-3", V5: "4.7.3-3"},
    "what all tests stand on: a transport that loses nothing and keeps the order": {V5: "4.2.0-1"},
    "WebSockets, which are not spoken here": {
        V311: "6.0.0-1 6.0.0-2 6.0.0-3 6.0.0-4",
        V5: "6.0.0-1 6.0.0-2 6.0.0-3 6.0.0-4",
    },
}


def numbers(version):
    """All numbers of a standard's statements for clients and servers, in order."""
    return [
        f"{section}-{number}"
        for part in _COUNTS[version].split()
        for section, _, count in [part.partition(":")]
        for number in range(1, int(count) + 1)
        if (version, f"{section}-{number}") not in NONE
    ]


def states(words, *, v311=None, v5=None, within=""):
    """Mark a test of `(scene, version)` as that of a statement, in one standard or in both."""

    def mark(test):
        cases = []
        for version, number in ((V311, v311), (V5, v5)):
            if number is None:
                continue
            statement = Statement(version, number, words, test, within)
            known = STATEMENTS.setdefault(statement.key, statement)
            assert known is statement or known.test.__name__ == test.__name__, statement.key
            STATEMENTS[statement.key] = statement
            cases.append(pytest.param(version, id=statement.key))
        return pytest.mark.parametrize("version", cases)(test)

    return mark


def register():
    """All statements, in the order of the standards, with the modules of their tests read."""
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        if "import states\n" in path.read_text(encoding="utf-8"):
            importlib.import_module(f"tests.conformance.{path.stem}")
    return sorted(STATEMENTS.values(), key=lambda statement: statement.place)
