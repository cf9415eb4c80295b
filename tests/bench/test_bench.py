"""The benches measure what they say: loads, clients, reports; a short run of each kind."""

import json
import os
import re
import socket
import threading

import pytest

from bench import batches, idle, intake, mqtt_face
from bench.__main__ import BEGIN, BENCHES, END, Findings, write_page
from bench.clients import payload_of
from bench.load import Load, Outcome, measure
from bench.report import Goal, Options, Report, Table, as_markdown, as_text, goals_table
from bench.servers import broker, mosquitto
from language import check_text


def events(load, number, due_s=1.0):
    told = json.loads(payload_of(load, number, number % load.publishers, due_s, 1.7e12))
    return told if isinstance(told, list) else [told]


# --- loads ------------------------------------------------------------------------------------


@pytest.mark.parametrize("one_in", [1, 3, 10])
def test_each_publisher_is_wanted_equally_often(one_in):
    load = Load(rate=1000.0, seconds=3.0, one_in=one_in)
    wanted = [number % load.publishers for number in range(load.messages()) if load.wanted(number)]
    counts = {wanted.count(publisher) for publisher in range(load.publishers)}
    assert max(counts) - min(counts) <= 1
    assert load.expected() == len(wanted) == load.messages() // one_in


def test_the_threshold_of_the_specifications_tells_the_wanted_from_the_others():
    load = Load(one_in=10)
    for number in range(200):
        assert (events(load, number)[0]["val"] > 26) == load.wanted(number)


def test_no_id_comes_twice_in_a_run_or_in_another():
    ids = [
        event["id"]
        for run in (1, 2)
        for number in range(50)
        for event in events(Load(batch=10, run=run), number)
    ]
    assert len(set(ids)) == len(ids) == 2 * 50 * 10


def test_a_source_s_times_go_up_from_batch_to_batch():
    load = Load(rate=100.0, batch=20)
    times = [
        event["timestamp"]
        for turn in range(20)
        for event in events(load, turn * load.publishers, turn * load.publishers / load.rate)
    ]
    assert times == sorted(times)
    assert len(set(times)) > len(times) // 2


def test_a_payload_has_the_size_that_was_asked_for():
    payload = payload_of(Load(payload_bytes=150), 7, 7, 1.0, 1.7e12)
    assert len(payload) == 150


def test_every_judged_case_stands_for_one_goal():
    judged = [case for case in mqtt_face.cases(Options()) if case.judged]
    outcome = Outcome(
        published=1,
        delivered=1,
        expected=1,
        seconds=1.0,
        cpu_us=1.0,
        p50_us=1.0,
        p99_us=1.0,
        lag_p99_us=1.0,
        cut=False,
    )
    found = [mqtt_face.Figures(case, outcome, outcome, 1.0, 1.0) for case in judged]
    assert sum(len(goal.values) for goal in mqtt_face.goals_of(found)) == len(judged)


def test_every_specification_is_sound():
    texts = [case for case in mqtt_face.cases(Options()) if case.way.text]
    for text in [*map(mqtt_face.specification, texts), *batches.TEXTS.values()]:
        assert check_text(text).diagnostics == ()


# --- runs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", mqtt_face.WAYS, ids=lambda way: way.name)
def test_a_broker_is_measured_without_and_with_detection(way):
    case = mqtt_face.Case(Load(rate=500.0, seconds=0.4, qos=1), way, judged=True)
    with broker(mqtt_face.specification(case)) as server:
        asked = mqtt_face.ours(case)
        outcome = measure(server.pid, server.port, asked)
    assert outcome.delivered == outcome.expected == asked.expected() > 0
    assert not outcome.cut
    assert outcome.cpu_us > 0
    assert 0 < outcome.p50_us <= outcome.p99_us


def test_an_unpaced_load_arrives_as_a_whole():
    load = Load(rate=0.0, burst=10, unpaced_messages=3_000, inflight_max=100)
    with broker() as server:
        for qos in (0, 1):
            case = mqtt_face.Case(load, mqtt_face.WAYS[0], judged=False)
            outcome = measure(server.pid, server.port, mqtt_face.ours(case))
            assert outcome.delivered == outcome.published == 3_000, qos


@pytest.mark.program("mosquitto")
def test_mosquitto_is_measured_by_the_same_load():
    load = Load(rate=500.0, seconds=0.4, one_in=5)
    with mosquitto() as server:
        outcome = measure(server.pid, server.port, load)
    assert outcome.delivered == load.messages() // 5
    assert outcome.cpu_us > 0


def test_without_mosquitto_only_the_ratios_are_missing(monkeypatch):
    monkeypatch.setattr("bench.servers.mosquitto_program", lambda: None)
    monkeypatch.setattr(
        mqtt_face,
        "cases",
        lambda _: [mqtt_face.Case(Load(rate=500.0, seconds=0.2), mqtt_face.WAYS[0], judged=True)],
    )
    report = mqtt_face.report(Options(quick=True))
    cpu, latency = (table.rows for table in report.tables)
    assert cpu[0][1] == cpu[0][3] == latency[0][1] == "-"
    assert float(cpu[0][2]) > 0
    assert not any(goal.values for goal in report.goals)
    assert "mosquitto is not installed: no ratios." in report.notes


def test_a_client_that_is_cut_off_is_told_of():
    """A server that closes whoever publishes: the run ends and says so."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve(connection):
            with connection:
                connection.recv(1024)
                connection.sendall(b"\x20\x02\0\0")
                if connection.recv(1024)[:1] == b"\x82":
                    connection.sendall(b"\x90\x03\0\x01\0")
                    connection.recv(1)

        def accept():
            for _ in range(3):
                threading.Thread(target=serve, args=listening.accept()[:1], daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        load = Load(rate=1000.0, seconds=0.5, publishers=2, qos=1)
        # Of this very process: any will do, and it is there.
        outcome = measure(os.getpid(), listening.getsockname()[1], load)
    assert outcome.cut
    assert outcome.delivered == 0 < outcome.expected


def test_a_specification_that_is_refused_stops_the_bench():
    with pytest.raises(RuntimeError, match="refused"), broker("subscription Nothing"):
        pass


def test_a_door_and_an_idle_broker_are_measured():
    found = intake.figures(200, 1)
    assert found[0][2] == 1.0
    assert all(nanoseconds > 0 for _, nanoseconds, _ in found)
    start = idle.once()
    assert 0 < start.ready_cpu_s < 15
    assert 0 < start.ready_s < 15
    assert 10 < start.resident_mb < 500


# --- reports ----------------------------------------------------------------------------------

FACE = Report(
    "A title",
    [Table("Of a kind", ["", "µs"], [["slow", "12"], ["slower than that", "3"]])],
    [Goal("kept", 2.0, [1.0, 2.0], " ×"), Goal("not kept", 2.0, [1.5, 2.5], " ×")],
    ["A note."],
)


def test_a_goal_is_met_only_by_all_its_values():
    kept, not_kept = FACE.goals
    assert (kept.met, kept.verdict(), kept.reached()) == (True, "met", "1.00 to 2.00 ×")
    assert (not_kept.met, not_kept.verdict()) == (False, "missed in 1 of 2")
    unknown = Goal("unknown", 2.0, [], " ×", "nothing there")
    assert (unknown.met, unknown.reached()) == (False, "not measured: nothing there")


def test_all_figures_and_notes_are_in_every_form():
    for text in (as_text(FACE), as_markdown([FACE], ["here"])):
        for part in ("A title", "Of a kind", "slower than that", "12", "A note."):
            assert part in text
    assert [row[-1] for row in goals_table([FACE]).rows] == ["met", "missed in 1 of 2"]


def test_figures_are_written_between_the_marks_of_a_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    for _ in range(2):  # a second time changes nothing more
        write_page(page, Findings(["this machine"], 1.0, [FACE]), "the command")
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
    assert text.count("| slow | 12 |") == 1
    assert "`the command`" in text


def test_every_bench_is_run_and_says_how():
    for words in BENCHES:
        name, *_ = words.split()
        module = __import__(name, fromlist=["report"])
        assert callable(getattr(module, "report", None) or module.main)
        assert re.search(rf"python -m {name}\b", module.__doc__)
