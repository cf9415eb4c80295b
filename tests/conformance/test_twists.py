"""Every test of a statement can fail: a server with a planted fault makes it."""

import logging

import pytest

from tests.conformance import clients
from tests.conformance.peers import Ours
from tests.conformance.statements import STATEMENTS, register
from tests.conformance.test_processes import outcome
from tests.conformance.twists_heard import HEARD
from tests.conformance.twists_said import SAID

FAULTS = [*SAID, *HEARD]

# So many failures at most: a fault that breaks more breaks what all tests stand on.
NARROW = 50

# Of some faults, the statement that forbids just that.
FORBIDDEN = {
    "dup_is_lost": "3.1.1-MQTT-3.3.1-1",
    "dup_always": "5-MQTT-3.3.1-3",
    "retain_is_lost": "3.1.1-MQTT-3.3.1-8",
    "retain_always": "3.1.1-MQTT-3.3.1-9",
    "session_present_is_wrong": "3.1.1-MQTT-3.2.2-2",
    "acknowledge_flags_are_set": "5-MQTT-3.2.2-1",
    "identifiers_are_others": "5-MQTT-3.8.4-2",
    "identifiers_are_all_1": "5-MQTT-2.2.1-4",
    "codes_are_reversed": "5-MQTT-3.9.3-1",
    "properties_are_reversed": "5-MQTT-3.3.2-18",
    "pings_are_answered_twice": "5-MQTT-3.12.4-1",
    "keep_alives_are_ignored": "5-MQTT-3.1.2-22",
    "receive_maxima_are_ignored": "5-MQTT-3.3.4-9",
    "maximum_packet_sizes_are_ignored": "5-MQTT-3.1.2-24",
    "sessions_never_expire": "5-MQTT-4.1.0-2",
    "everybody_has_a_will": "3.1.1-MQTT-3.1.2-12",
    "wills_are_all_retained": "3.1.1-MQTT-3.1.2-16",
    "disconnects_leave_a_will": "5-MQTT-3.14.4-3",
    "empty_messages_get_a_byte": "3.1.1-MQTT-3.3.1-11",
    "expiries_are_ignored": "5-MQTT-3.3.2-5",
    "wildcards_match_all": "5-MQTT-4.7.1-2",
    "no_local_is_ignored": "5-MQTT-3.8.3-3",
    "retain_handling_is_always_0": "5-MQTT-3.3.1-11",
    "retain_is_never_as_published": "5-MQTT-3.3.1-13",
    "unsubscribes_take_nothing_away": "3.1.1-MQTT-3.10.4-2",
    "pubacks_are_not_heard": "5-MQTT-4.3.2-3",
    "pubcomps_are_not_heard": "5-MQTT-4.3.3-5",
}


@pytest.fixture(autouse=True)
def impatient(monkeypatch, caplog):
    """What does not come at once does not come; what the faulty servers log is of no use."""
    monkeypatch.setattr(clients, "PATIENCE_S", 0.3)
    caplog.set_level(logging.CRITICAL)


@pytest.mark.parametrize(("name", "key"), FORBIDDEN.items())
def test_a_fault_is_seen_by_what_forbids_it(name, key, monkeypatch):
    register()
    (fault,) = [one for one in FAULTS if one.__name__ == name]
    fault(monkeypatch)
    with Ours() as peer:
        assert outcome(STATEMENTS[key], peer)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_every_statement_is_broken_by_some_fault():
    statements = register()
    seen, narrowly = set(), set()
    for fault in FAULTS:
        with pytest.MonkeyPatch.context() as monkeypatch:
            fault(monkeypatch)
            with Ours() as peer:
                found = {one.key for one in statements if outcome(one, peer)}
        assert found, fault.__name__
        seen |= found
        narrowly |= found if len(found) <= NARROW else set()
    assert sorted(one.key for one in statements if one.key not in seen) == []
    assert len(narrowly) > len(statements) // 2
