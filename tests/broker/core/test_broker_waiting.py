"""What a running broker decides by time: silence, closed lists, dropped runs, ends."""

import pytest

from broker.core.messages import SourceAdvertised, SourceWithdrawn
from tests.broker.core.machine import NOW, Machine, event, subscription

IDLE_MS = 10_000
LATENESS_MS = 500
EVENTS = "event Temp(val: float)\n"


@pytest.fixture
def machine():
    return Machine(idle_timeout_ms=IDLE_MS, lateness_ms=LATENESS_MS)


def submit(machine, detect, header="subscription S from anna to alerts"):
    answer = machine.submit(f"{EVENTS}{header}\ndetect {detect}")
    assert answer["ok"], answer


def spans(results):
    return [(one["start"] - NOW, one["end"] - NOW) for one in results]


def test_silence_is_told_once_it_has_lasted(machine):
    submit(machine, "absent Temp for 1 min")
    assert machine.send(event(0), event(20_000)) == []
    machine.wait(60_000)
    assert machine.results() == []
    machine.wait(60_000)
    assert spans(machine.results()) == [(20_000, 80_000)]
    assert machine.broker.next_wake() is None


def test_silence_is_told_of_a_type_that_never_came(machine):
    """Time goes with the foremost source, once nobody speaks up for the type."""
    submit(machine, "absent Temp for 1 min")
    machine.submit("event Other()\nsubscription O from anna to alerts\ndetect Other")
    machine.now += 100_000
    found = machine.send({"timestamp": NOW + 100_000}, type_name="Other", source="o")
    assert [(one["subscription"], *spans([one])[0]) for one in found] == [
        ("S", 0, 60_000),
        ("O", 100_000, 100_000),
    ]


@pytest.mark.parametrize("order", [(60, 20, 40), (20, 60, 40)])
def test_each_of_several_silences_is_told_in_its_time(machine, order):
    """Though the two types that the first of them waits for are waited for by others, too."""
    silences = {
        20: "Temp without[20 s] Other",
        40: "absent Temp for 40 s",
        60: "absent Other for 1 min",
    }
    for seconds in order:
        machine.submit(
            f"{EVENTS}event Other(val: float)\nsubscription S{seconds} from anna to a\n"
            f"detect {silences[seconds]}"
        )
    machine.send(event(0), type_name="Other", source="o")
    machine.send(event(1))
    waited = LATENESS_MS + IDLE_MS  # how long sources may say nothing before time goes on
    for seconds in sorted(order):
        machine.wait(NOW + seconds * 1_000 + waited + 10 - machine.now)
        assert [one["subscription"] for one in machine.results()] == [f"S{seconds}"]


def test_silence_of_a_group_begins_with_its_first_event(machine):
    submit(machine, "absent Temp(val > 30) for 1 min\ngroup by source")
    machine.send(event(5_000, 20), source="a")
    machine.wait(300_000)
    (result,) = machine.results()
    assert spans([result]) == [(5_000, 65_000)]
    assert result["group"] == {"source": "a"}


def test_what_must_not_follow_is_waited_for_so_long_and_no_longer(machine):
    submit(machine, "Temp(val > 30) as hot without[5 s] Temp(val < 0) as cold")
    assert machine.send(event(0, 31)) == []
    assert machine.send(event(5_000 + LATENESS_MS, 1)) == []
    assert spans(machine.send(event(5_002 + LATENESS_MS, 1))) == [(0, 0)]
    machine.send(event(10_000, 31), event(12_000, -1))
    assert machine.wait(1_000_000) == []


def test_a_list_at_the_end_is_closed_by_time_alone(machine):
    submit(machine, "Temp(val > 30) as hot then Temp(val <= 30)+ as cool within 5 s")
    assert machine.send(event(0, 31), event(1_000, 20), event(2_000, 21)) == []
    machine.wait(60_000)
    (result,) = machine.results()
    assert len(result["events"]["cool"]) == 2


def test_a_run_is_closed_by_time_alone(machine):
    submit(machine, "Temp+[..2 s] as beats")
    machine.send(event(0), event(1_000), event(3_000))
    machine.wait(60_000)
    assert spans(machine.results()) == [(0, 3_000)]


def test_a_run_that_was_dropped_lets_the_next_one_be_told(machine):
    submit(
        machine,
        "[first] Temp(val > 30) as a then Temp(val < 0) as b within 5 s where b.val < a.val - 50",
    )
    machine.send(event(0, 31), event(2_000, 41), event(3_000, -15))
    machine.wait(60_000)
    assert spans(machine.results()) == [(2_000, 3_000)]


def test_when_the_last_source_goes_silence_is_decided_at_once(machine):
    submit(machine, "Temp(val > 30) as hot without[5 s] Temp(val < 0) as cold")
    machine.send(event(0, 31))
    machine.tell(SourceWithdrawn("t1"))
    assert spans(machine.results()) == [(0, 0)]


def test_a_subscription_ends(machine):
    submit(machine, "Temp", header="subscription S from anna to alerts for 10 s")
    sent = machine.send(event(0), event(9_999), event(10_000), event(15_000))
    sent += machine.send(event(20_000))
    assert spans(sent) == [(0, 0), (9_999, 9_999)]


def test_results_are_thinned_in_order(machine):
    submit(machine, "Temp\ngroup by source\nat most 2 per 10 s")
    found = machine.send(event(4_000), event(3_600), event(3_800), event(14_000), event(30_000))
    machine.wait(60_000)
    found += machine.results()
    starts = [start for start, _ in spans(found)]
    assert starts == [3_600, 3_800, 14_000, 30_000]
    assert machine.broker.dropped()["at_most"] == 1


def test_uncertain_times_are_weighed_as_soon_as_they_come(machine):
    submit(machine, "Temp(val > 30) as a then Temp(val < 0) as b within 1 min")
    assert machine.send(event(0, 31), event(5_000, -1))[0]["certainty"] == "yes"
    machine.send(event(10_000, 31), event(10_200, -1, uncertainty=500), event(20_000, 1))
    found = machine.results()
    machine.wait(60_000)
    found += machine.results()
    told = sorted((one["start"] - NOW, one["certainty"]) for one in found)
    assert told == [(0, "yes"), (10_000, "maybe")]


def test_an_occurrence_is_told_though_a_type_has_a_source_that_never_speaks_again():
    """It came back and was silent: the type goes with the others, and these are silent too."""
    machine = Machine(lateness_ms=0, idle_timeout_ms=5_000)
    machine.submit(
        "event Temp(val: float)\nevent Hum(val: float)\n"
        + subscription("Both", "Hum as h and[recent] Temp as t within 10 s")
    )
    machine.tell(SourceAdvertised("h1", b'{"types": ["Hum"]}'))
    machine.send(event(100, id="h"), type_name="Hum", source="h1")
    machine.tell(SourceWithdrawn("h1"))
    machine.tell(SourceAdvertised("h1", b'{"types": ["Hum"]}'))
    machine.now += 300
    machine.send(event(300, id="t"))
    machine.wait(60_000)
    assert [one["events"] for one in machine.results()] == [{"h": ["h"], "t": ["t"]}]
