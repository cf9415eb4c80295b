"""What hosts want is known behind a restart, and is what each of them said last."""

from broker.network.origin.own import Interest
from broker.network.routing.probes import Neighbours, Probe, Probes
from broker.network.routing.wants import HostWants, Wants

TEMP = {"Temp": {"val": "float"}}
KEY = {"Key": {}}


def test_who_wants_a_type_is_told_with_its_declaration():
    wants = Wants()
    wants.handle(HostWants("b", 1, TEMP))
    wants.handle(HostWants("c", 1, TEMP | KEY))
    assert wants.due("Temp", {}) == [("b", TEMP, None), ("c", TEMP, None)]
    assert wants.due("Key", {}) == [("c", KEY, None)]


def test_what_is_said_again_is_no_news():
    """Else each probe would cost each broker a record."""
    wants = Wants()
    wants.handle(HostWants("b", 1, TEMP))
    assert wants.news([HostWants("b", 2, TEMP), HostWants("c", 1, {})]) == []


def test_a_word_that_was_overtaken_changes_nothing():
    wants = Wants()
    wants.handle(HostWants("b", 2, TEMP))
    assert wants.news([HostWants("b", 1, KEY)]) == []
    assert wants.news([HostWants("b", 3, KEY)]) == [HostWants("b", 3, KEY)]


def test_who_wants_nothing_is_forgotten():
    wants = Wants()
    wants.handle(HostWants("b", 1, TEMP))
    assert wants.news([HostWants("b", 2, {})])
    wants.handle(HostWants("b", 2, {}))
    assert (wants.hosts, wants.due("Temp", {})) == ((), [])


def test_what_is_wanted_outlasts_a_process():
    wants, again = Wants(), Wants()
    wants.handle(HostWants("b", 7, TEMP))
    again.restore(wants.state())
    assert again.due("Temp", {}) == [("b", TEMP, None)]
    assert again.news([HostWants("b", 6, KEY)]) == []


def test_a_probe_brings_what_its_broker_wants_and_is_passed_on_with_it():
    probes = Probes("b")
    probes.heard("a", Probe("a", 1, TEMP))
    (said,) = probes.due(Neighbours(["a", "c"], ["a", "c"]), 0)
    assert said == ("c", Probe("a", 1, TEMP))
    assert probes.take_wants() == [HostWants("a", 1, TEMP)]
    assert probes.take_wants() == []


def test_a_later_probe_says_the_same_where_nothing_else_is_wanted():
    probes = Probes("a")
    probes.begin(TEMP)
    number = probes.begin()
    assert list(probes.due(Neighbours(["b"], ["b"]), 0)) == [("b", Probe("a", number, TEMP))]


def test_a_broker_that_does_not_say_changes_nothing():
    probes = Probes("b")
    probes.heard("a", Probe("a", 1))
    assert probes.take_wants() == []


def test_what_a_host_has_asked_for_stays_with_what_it_wants():
    wants = Wants()
    wants.handle(HostWants("b", 1, TEMP | KEY))
    asked = {"b": Interest(TEMP, 7)}
    assert wants.due("Temp", asked) == []
    assert wants.due("Key", asked) == [("b", TEMP | KEY, 7)]


def test_there_is_room_for_so_many_and_what_cannot_be_is_not_taken():
    wants = Wants(1, lambda types: "?" not in types)
    assert wants.news([HostWants("b", 1, {"?": {}})]) == []
    wants.handle(HostWants("b", 1, TEMP))
    assert wants.news([HostWants("c", 1, TEMP)]) == []
