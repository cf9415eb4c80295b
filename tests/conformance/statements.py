"""The statements of the two MQTT standards that are tested, each with its test.

Owns the register: a statement has the version of the standard, its number there, what it asks for
in our own words, and, where we deliberately do otherwise, why. Invariant: one test a statement.
"""

from dataclasses import dataclass

import pytest

from tests.conformance.wire import NAMES, V5, V311

MODULES = (
    "test_wire",
    "test_connect",
    "test_wills",
    "test_publish",
    "test_properties",
    "test_subscribe",
    "test_qos",
    "test_sessions",
    "test_topics",
)


@dataclass(frozen=True)
class Statement:
    version: int
    number: str
    words: str
    test: object
    otherwise: str = ""

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


def states(words, *, v311=None, v5=None, otherwise=""):
    """Mark a test of `(scene, version)` as that of a statement, in one standard or in both."""

    def mark(test):
        cases = []
        for version, number in ((V311, v311), (V5, v5)):
            if number is None:
                continue
            statement = Statement(version, number, words, test, otherwise)
            known = STATEMENTS.setdefault(statement.key, statement)
            assert known is statement or known.test.__name__ == test.__name__, statement.key
            STATEMENTS[statement.key] = statement
            cases.append(pytest.param(version, id=statement.key))
        return pytest.mark.parametrize("version", cases)(test)

    return mark
