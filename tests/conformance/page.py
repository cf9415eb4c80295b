"""The page of the statements: what `python -m headwater.pages` writes to docs/mqtt-conformance.md.

Owns its text. Must not know how the statements are tested. Invariant: the page has each statement
of the register once, with the words of its test.
"""

from tests.conformance.statements import UNTESTED, numbers, register
from tests.conformance.wire import NAMES

HEAD = """\
# Conformance to MQTT

Both standards number what they demand. This page has each of these statements in our own words and
says what becomes of it; behind each there is a test of that number in `tests/conformance`, which
talks to the broker's MQTT face over real sockets with a client of its own: once with all sessions
in memory, once with a disk that has them before anything is promised. `python -m headwater.pages`
writes the page from these tests.

    python -m pytest tests/conformance                             # against this project's server
    python -m pytest tests/conformance -k 3.1.2-24                 # one statement
    HEADWATER_CONFORMANCE=1883 python -m pytest tests/conformance  # against what listens there

The tests are tested too: `make long` runs them against mosquitto where it is installed, and knows
the few places where mosquitto 2.0.11 does otherwise (`tests/conformance/test_processes.py`).

The interoperability cases of Eclipse Paho (`client_test.py` and `client_test5.py` of
paho.mqtt.testing), run by hand on 2026-11-23 beside a broker with
`mqtt_limits.keep_alive_s_max = 60` and a user to whom `test/nosubscribe` is denied: 10 of 10 for
3.1.1, 26 of 27 for 5. The one that fails, `test_subscribe_failure`, has no reason code but 0 to 2
and 0x80 in a SUBACK; MQTT 5 has 0x87, *not authorized*, for a topic that one may not read (section
3.9.3), and so does the broker.

*Holds* means that the test passes. Where the broker holds a statement only within a limit of its
own, the limit and its reason stand beside it; the limits are in [MQTT](mqtt.md#limits).

| standard | statements | tested | not testable at a server, or not spoken here |
|---|---|---|---|
"""


def page():
    """The whole text."""
    statements = register()
    by_version = {
        version: [one for one in statements if one.version == version] for version in NAMES
    }
    parts = [HEAD]
    for version, name in NAMES.items():
        whole, tested = len(numbers(version)), len(by_version[version])
        parts.append(f"| MQTT {name} | {whole} | {tested} | {whole - tested} |\n")
    for version, name in NAMES.items():
        parts.append(f"\n## MQTT {name}\n\n| number | what it asks for | result |\n|---|---|---|\n")
        parts += [_row(one) for one in by_version[version]]
        parts.append("\nNot tested:\n\n")
        for reason, many in UNTESTED.items():
            if version in many:
                listed = ", ".join(many[version].split())
                parts.append(f"- {listed}: {reason}.\n")
    return "".join(parts)


def _row(statement):
    result = f"holds; {statement.within}" if statement.within else "holds"
    return f"| MQTT-{statement.number} | {statement.words} | {result} |\n"
