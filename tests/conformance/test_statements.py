"""The register of statements: complete, without doubles, and on its page."""

import re

from tests.conformance import page
from tests.conformance.statements import UNTESTED, numbers, register
from tests.conformance.wire import V5, V311

VERSIONS = (V311, V5)


def untested(version):
    return [number for many in UNTESTED.values() for number in many.get(version, "").split()]


def test_each_statement_is_tested_or_has_a_reason_not_to_be():
    for version in VERSIONS:
        tested = [one.number for one in register() if one.version == version]
        assert sorted(tested + untested(version)) == sorted(numbers(version))


def test_the_standards_have_as_many_statements_as_they_say():
    """MQTT 5 has 247 for clients and servers, and 4 for WebSockets."""
    assert [len(numbers(version)) for version in VERSIONS] == [137, 251]
    assert len(register()) >= 300


def test_each_is_told_in_a_sentence():
    for one in register():
        assert one.words[0].isupper() or one.words[0] in "`#+"
        assert one.words.endswith(".")


def test_the_page_has_each_of_them_in_order():
    text = page.page()
    rows = re.findall(r"^\| MQTT-([\d.]+-\d+) \|", text, re.MULTILINE)
    assert rows == [one.number for one in register()]
    for version in VERSIONS:
        assert all(number in text for number in untested(version))
