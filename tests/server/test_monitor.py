"""What the server's process tells of itself: by HTTP, as metrics and on the command line."""

import json
import os
import signal
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from headwater.cli import main
from server.config import read
from server.errors import JobsError, ServerError
from server.face import Face
from server.monitor import METRICS, Monitor, metrics
from server.process import streams_of
from server.source.log import Log
from server.streams import AGAIN_S, ONCE_MAX, JobStream, short
from tests.server.logs import FakeLog, result

JOBS = """
[server]
name = "valley"
[sources.region]
brokers = { a = "%s", b = "%s" }
[jobs.history]
kind = "history"
source = "region"
sink = "archive"
[sinks.archive]
kind = "parquet"
path = "history"
"""


def progress(number, rows, a, b, **more):
    said = {
        "batchId": number,
        "numInputRows": rows,
        "durationMs": {"triggerExecution": 250, "addBatch": 100},
        "eventTime": {"watermark": "2026-03-01T12:00:00.000Z"},
        "sources": [{"endOffset": {"a": a, "b": b}}],
        "stateOperators": [{"numRowsDroppedByWatermark": 2}],
    }
    return SimpleNamespace(json=json.dumps(said | more))


@pytest.fixture
def told(tmp_path):
    """Streams at two brokers, one of which is away, and what is told of it."""
    with FakeLog("ea") as a, FakeLog("eb") as b:
        a.add(*[result(n, n) for n in range(10)])
        (tmp_path / "jobs.toml").write_text(JOBS % (a.url, b.url))
        b.close()
        jobs = read(tmp_path / "jobs.toml")
        (stream,) = streams_of(jobs)
        recent = [progress(0, 0, "ea:0", "eb:0"), progress(1, 7, "ea:7:6000", "eb:4:5500")]
        stream.running = SimpleNamespace(isActive=True, recentProgress=recent)
        monitor = Monitor(jobs, [stream])
        for name, log in (("a", a), ("b", b)):
            asked = Log(name, log.url)
            monitor._note(("region", name), asked)
            asked.close()
        yield SimpleNamespace(monitor=monitor, stream=stream, recent=recent)


def test_the_lag_per_broker_and_who_is_away(told):
    status = told.monitor.status()
    (stream,) = status["streams"]
    assert stream["state"] == "running"
    assert (stream["batch"], stream["rows"], stream["late"]) == (1, 7, 4)
    a, b = stream["brokers"]
    assert a == {"broker": "a", "up": True, "next": 7, "reached": 6000, "lag": 3}
    assert b == {"broker": "b", "up": False, "next": 4, "reached": 5500}
    away = next(one for one in status["brokers"] if not one["up"])
    assert "b cannot be reached" in away["why"]


def test_the_lag_is_right_before_the_first_batch_of_a_run(told):
    """It goes on from where the run before has left it, not from the beginning of the log."""
    spark = told.stream.begin().folder / "spark"
    for name in ("commits", "offsets"):
        (spark / name).mkdir(parents=True)
        for number, at in ((8, 5), (9, 8), (10, 9)):
            places = json.dumps({"a": f"ea:{at}:6000", "b": "eb:4"})
            (spark / name / str(number)).write_text(f"v1\n{{}}\n{places}")
    (spark / "commits" / "10").unlink()  # planned and not done
    for recent in ([], [progress(9, 0, None, None, sources=[{"endOffset": None}])]):
        told.stream.running.recentProgress = recent
        (stream,) = told.monitor.status()["streams"]
        a, b = stream["brokers"]
        assert (a["next"], a["lag"]) == (8, 2)
        assert b["next"] == 4
    told.stream.running = None
    (stream,) = told.monitor.status()["streams"]
    assert stream["brokers"][0]["lag"] == 2
    told.stream.stop()


def test_who_keeps_windows_open(told, tmp_path, capsys):
    """A broker that is away, else the one that has promised least, and why it has."""
    with FakeLog("ea") as a, FakeLog("eb") as b:
        a.promise(70_000)
        b.promise(10_000, behind="Frost: AirTemp of source s9")
        windows = JOBS.replace('"history"\nsource', '"windows"\nwindow = "1 min"\nsource')
        (tmp_path / "timed.toml").write_text(windows % (a.url, b.url))
        jobs = read(tmp_path / "timed.toml")
        monitor = Monitor(jobs, streams_of(jobs))

        def look():
            for name, log in (("a", a), ("b", b)):
                asked = Log(name, log.url)
                monitor._note(("region", name), asked)
                asked.close()
            return monitor.status()

        status = look()
        (stream,) = status["streams"]
        assert [one["settled"] for one in stream["brokers"]] == [70_000, 10_000]
        assert stream["held_by"] == "b"
        assert 'broker_settled_seconds{source="region",broker="b"} 10\n' in metrics(status)
        face = Face("127.0.0.1:0", look)
        try:
            assert main(["server", "status", "--server", face.url]) == 0
            shown = capsys.readouterr().out
            assert "history-archive: waits for broker b: Frost: AirTemp of source s9" in shown
            assert "1970-01-01T00:01:10.000+00:00" in shown
            a.close()
            assert main(["server", "status", "--server", face.url]) == 1
            assert "waits for broker a, which is away" in capsys.readouterr().out
        finally:
            face.close()


def test_a_job_is_told_of_what_it_reads_alone(tmp_path):
    """Others of the broker's subscriptions are as far behind as they like."""
    jobs_of = """
[jobs.some]
kind = "dedup"
source = "region"
subscriptions = ["Heat", "Frost"]
sink = "shown"
[jobs.pairs]
kind = "join"
source = "region"
left = { subscription = "Heat" }
right = { subscription = "Smoke" }
within = "1 s"
sink = "shown"
[jobs.every]
kind = "dedup"
source = "region"
sink = "shown"
[sinks.shown]
kind = "console"
"""
    with FakeLog("ea") as a, FakeLog("eb") as b:
        (tmp_path / "jobs.toml").write_text(JOBS % (a.url, b.url) + jobs_of)
        a.promise(10_000, 3, "Stays: Tag")
        a.settled_of = {"Frost,Heat": (2, 70_000, "Frost: s9"), "Heat,Smoke": (0, None, "")}
        b.promise(0, 3, "Smoke: s4")
        b.settled_of = {"Frost,Heat": (1, 80_000, "Heat: s4"), "Heat,Smoke": (1, None, "Smoke: s4")}
        jobs = read(tmp_path / "jobs.toml")
        monitor = Monitor(jobs, streams_of(jobs))
        for name, log in (("a", a), ("b", b)):
            asked = Log(name, log.url)
            monitor._note(("region", name), asked)
            asked.close()
        status = monitor.status()
        told = {one["job"]: one for one in status["streams"]}
        seen = {
            job: [(one.get("settled", "-"), one.get("behind")) for one in told[job]["brokers"]]
            for job in told
        }
        assert seen == {
            "history": [("-", None), ("-", None)],
            "some": [(70_000, "Frost: s9"), (80_000, "Heat: s4")],
            "pairs": [("-", None), (None, "Smoke: s4")],
            "every": [(10_000, "Stays: Tag"), (0, "Smoke: s4")],
        }
        held = [told[job].get("held_by") for job in seen]
        assert held == [None, "a", "b", "b"]
        assert [(one["broker"], one["settled"]) for one in status["brokers"]] == [
            ("a", 10_000),
            ("b", None),
        ]


def test_rows_are_counted_once(told):
    told.monitor.status()
    told.recent[:] = [*told.recent[1:], progress(2, 5, "ea:10", "eb:6")]
    (stream,) = told.monitor.status()["streams"]
    assert (stream["rows"], stream["late"]) == (12, 6)


def test_a_batch_that_waited_for_rows_is_counted(told):
    """Spark tells of it, with no rows, for as long as it has none."""
    idle = {"durationMs": {"latestOffset": 1, "triggerExecution": 1}}
    told.recent += [progress(2, 0, "ea:7", "eb:4", **idle), progress(2, 5, "ea:10", "eb:6")]
    (stream,) = told.monitor.status()["streams"]
    assert stream["rows"] == 12


def test_a_batch_in_which_the_watermark_alone_moved_has_no_rows(told):
    places = {"a": "ea:7:6000:5000", "b": "eb:4:5500"}
    sources = [{"startOffset": places, "endOffset": places | {"a": "ea:7:6000:5500"}}]
    told.recent.append(progress(2, 1, "ea:7", "eb:4", sources=sources))
    told.recent.append(progress(3, 2, "ea:8", "eb:5"))
    (stream,) = told.monitor.status()["streams"]
    assert stream["rows"] == 7 + 0 + 2


def test_metrics_are_what_prometheus_reads(told):
    families = {
        one.name: one for one in text_string_to_metric_families(metrics(told.monitor.status()))
    }
    assert set(families) == {name.removesuffix("_total") for name in METRICS}
    lag = {
        one.labels["broker"]: one.value for one in families["headwater_server_stream_lag"].samples
    }
    assert lag == {"a": 3.0}
    up = {one.labels["broker"]: one.value for one in families["headwater_server_broker_up"].samples}
    assert up == {"a": 1.0, "b": 0.0}
    assert families["headwater_server_stream_batch_seconds"].samples[0].value == 0.25


def test_names_that_would_break_the_text_are_escaped():
    one = {"source": 'a"\n\\', "broker": "b", "up": True}
    text = metrics({"brokers": [one], "streams": []})
    (family,) = [f for f in text_string_to_metric_families(text) if f.samples]
    assert family.samples[0].labels["source"] == 'a"\n\\'


def ask(url, path):
    with urllib.request.urlopen(url + path, timeout=15) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def test_the_face_tells_it_and_nothing_else(told):
    face = Face("127.0.0.1:0", told.monitor.status)
    try:
        assert ask(face.url, "/healthz")[1] == "ok\n"
        assert json.loads(ask(face.url, "/v1/status")[1])["server"] == "valley"
        assert "headwater_server_stream_lag" in ask(face.url, "/metrics")[1]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            ask(face.url, "/v1/jobs")
        port = face.url.rpartition(":")[2]
        for host, status in ((f"localhost:{port}", 200), ("[::1]", 200), ("evil.test", 403)):
            request = urllib.request.Request(face.url + "/v1/status", headers={"Host": host})
            if status == 200:
                urllib.request.urlopen(request, timeout=15).close()
            else:
                with pytest.raises(urllib.error.HTTPError, match="403"):
                    urllib.request.urlopen(request, timeout=15)
    finally:
        face.close()


def test_the_command_shows_streams_and_brokers(told, capsys):
    face = Face("127.0.0.1:0", told.monitor.status)
    try:
        assert main(["server", "status", "--server", face.url]) == 1  # a broker is away
        shown = capsys.readouterr().out.splitlines()
        assert shown[1].split() == [
            "history-archive", "running", "1", "7", "2026-03-01T12:00:00.000Z", "3",
        ]  # fmt: skip
        assert any(line.split()[:3] == ["b", "history-archive", "away"] for line in shown)
        assert "history-archive: 4 came later than the windows that they are of" in shown
        main(["server", "status", "--server", face.url, "--json"])
        assert json.loads(capsys.readouterr().out)["streams"][0]["stream"] == "history-archive"
    finally:
        face.close()
    assert main(["server", "status", "--server", face.url]) == 3
    assert "is `headwater server run` running?" in capsys.readouterr().err


@pytest.mark.parametrize("where", ["nowhere", "127.0.0.1:x", "127.0.0.1:70000"])
def test_a_face_that_cannot_be_had(where):
    with pytest.raises(JobsError, match=r"server\.http"):
        Face(where, dict)


# --- streams that fail ---------------------------------------------------------------------------


class Falling(JobStream):
    """A stream whose runs end with these errors."""

    def start(self, spark, *, once):
        self._began_s = self.clock()
        self.running = SimpleNamespace(isActive=True)

    def fall(self, error):
        self.running = SimpleNamespace(isActive=False, exception=lambda: error)


def test_a_stream_that_failed_is_begun_again_later_each_time(told, capsys):
    now = [0.0]
    stream = Falling(
        told.stream.jobs, told.stream.job, told.stream.sinks, told.stream.lead, lambda: now[0]
    )
    stream.start(None, once=False)
    for pause_s in (*AGAIN_S, AGAIN_S[-1]):
        stream.fall("java.io.IOException: the disk")
        assert stream.look(None, once=False)
        assert stream.running is None
        now[0] += pause_s - 0.01
        stream.look(None, once=False)
        assert stream.running is None
        now[0] += 0.02
        assert stream.look(None, once=False)
        assert stream.running.isActive
    now[0] += 1000.0
    stream.fall("once more")
    stream.look(None, once=False)
    assert stream.failures == 1  # it had been up for long


def test_what_would_lose_something_stays_down(told, capsys):
    stream = Falling(told.stream.jobs, told.stream.job, told.stream.sinks, told.stream.lead)
    stream.fall("…\nserver.source.planning.LostError: broker a: offsets 3 to 8 (6 offsets) …")
    assert not stream.look(None, once=False)
    assert stream.down
    assert stream.error == "broker a: offsets 3 to 8 (6 offsets) …"
    assert "it stays down" in capsys.readouterr().err


def test_a_line_of_code_on_the_way_of_an_error_is_no_error(told, capsys):
    """As Spark tells of a broker that went away while it was read."""
    stream = Falling(told.stream.jobs, told.stream.job, told.stream.sinks, told.stream.lead)
    stream.fall(
        "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most\n"
        '  File "server/source/range_reader.py", line 194, in _pages\n'
        "    except EpochError:\n"
        '  File "server/source/log.py", line 201, in _ask\n'
        '    raise AwayError(f"broker {self.broker} cannot be reached: {why}") from None\n'
        "server.source.log.AwayError: broker b cannot be reached: connection reset by peer\n"
        "SQLSTATE: 38000"
    )
    assert stream.look(None, once=False)
    assert not stream.down
    assert "again in 1 s" in capsys.readouterr().err


def test_a_bounded_run_does_not_try_for_ever(told, capsys):
    stream = Falling(
        told.stream.jobs, told.stream.job, told.stream.sinks, told.stream.lead, lambda: 0.0
    )
    for _ in range(ONCE_MAX - 1):
        stream.fall("broker b cannot be reached")
        assert stream.look(None, once=True)
    stream.fall("broker b cannot be reached")
    assert not stream.look(None, once=True)
    assert stream.down


def test_a_bounded_run_that_has_waited_for_a_broker_does_not_do_so_again(told, capsys):
    stream = Falling(
        told.stream.jobs, told.stream.job, told.stream.sinks, told.stream.lead, lambda: 0.0
    )
    stream.fall("…\nserver.source.log.AwayError: broker b cannot be reached: refused")
    assert stream.look(None, once=False)
    stream.fall("…\nserver.source.log.AwayError: broker b cannot be reached: refused")
    assert not stream.look(None, once=True)
    assert stream.down
    assert stream.error == "broker b cannot be reached: refused"


def test_a_stream_that_has_read_all_is_done(told):
    stream = Falling(told.stream.jobs, told.stream.job, told.stream.sinks, told.stream.lead)
    stream.fall(None)
    assert not stream.look(None, once=True)
    assert not stream.down


def test_a_stream_that_ends_without_a_word_before_it_was_told_to_is_begun_again(told, capsys):
    now = [0.0]
    stream = Falling(
        told.stream.jobs, told.stream.job, told.stream.sinks, told.stream.lead, lambda: now[0]
    )
    stream.fall(None)
    assert stream.look(None, once=False)
    now[0] += AGAIN_S[0]
    stream.look(None, once=False)
    assert stream.running.isActive
    assert "it has ended without a word" in capsys.readouterr().err


def test_errors_are_told_without_their_stacks():
    long = "org.apache.X: Job aborted\n  File a\npkg.mod.SomeError: broker b1: it is gone\n\tat y"
    assert short(long) == "broker b1: it is gone"
    assert short("plain\nmore") == "plain"
    wrapped = (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: An exception was raised by the"
        " Python Proxy. Return Message: Traceback (most recent call last):\n"
        '  File "a.py", line 3, in call\n    raise e\n'
        "pyspark.errors.exceptions.captured.NumberFormatException: [CAST] 'x' is no number\n"
        "== DataFrame ==\n\tat java.x\nCaused by: org.y.SparkException: Job aborted\n\tat java.z"
    )
    assert short(wrapped) == "[CAST] 'x' is no number"
    assert short("py4j.Py4JException: it is gone\n\tat x") == "it is gone"
    assert short("") == "it failed without a word"


def test_the_command_checks_a_file_without_running_it(tmp_path, capsys):
    (tmp_path / "jobs.toml").write_text(JOBS % ("http://127.0.0.1:1", "http://127.0.0.1:2"))
    assert main(["server", "run", "--check", str(tmp_path / "jobs.toml")]) == 0
    (tmp_path / "jobs.toml").write_text("[server]\nport = 1")
    assert main(["server", "run", "--check", str(tmp_path / "jobs.toml")]) == 2
    assert "there is no server.port" in capsys.readouterr().err


# --- the process ---------------------------------------------------------------------------------


class RefusedError(Exception):
    """As py4j words it where there is no Java any more."""

    __module__ = "py4j.protocol"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_well_when_it_is_told_to(tmp_path, monkeypatch, number):
    """Although Spark takes Ctrl-C for itself as it starts."""
    from server import process

    ended = []

    def begin(_):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return SimpleNamespace(stop=lambda: ended.append("session"))

    def serve(stream, *_, **__):
        os.kill(os.getpid(), number)
        return True

    monkeypatch.setattr(process, "start", begin)
    monkeypatch.setattr(process.JobStream, "start", lambda *_, **__: None)
    monkeypatch.setattr(process.JobStream, "look", serve)
    monkeypatch.setattr(process.JobStream, "stop", lambda _: ended.append("stream"))
    text = JOBS % ("http://127.0.0.1:1", "http://127.0.0.1:2")
    (tmp_path / "jobs.toml").write_text(text.replace("[server]", '[server]\nhttp = "127.0.0.1:0"'))
    before = signal.getsignal(number)
    assert process.run(tmp_path / "jobs.toml") == 0
    assert ended == ["stream", "session"]
    assert signal.getsignal(number) == before


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionRefusedError(111, "refused"), "Java has ended"),
        (RefusedError("no answer"), "Java has ended"),
        (ServerError("of its own"), "of its own"),
    ],
)
def test_a_java_that_ended_is_a_sentence(tmp_path, monkeypatch, capsys, error, said):
    """Whatever is stopped afterwards fails as well, and must not hide why."""
    from server import process

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(process, "start", lambda _: SimpleNamespace(stop=fail))
    monkeypatch.setattr(process.JobStream, "start", fail)
    text = JOBS % ("http://127.0.0.1:1", "http://127.0.0.1:2")
    (tmp_path / "jobs.toml").write_text(text.replace("[server]", '[server]\nhttp = "127.0.0.1:0"'))
    with pytest.raises(ServerError, match=said):
        process.run(tmp_path / "jobs.toml")


def test_state_watermark_and_rate_are_told(told, monkeypatch):
    monkeypatch.setattr("server.monitor.time.time", lambda: 1_772_366_490.0)  # 90 s after noon
    state = [{"numRowsTotal": 3, "memoryUsedBytes": 500}, {"numRowsTotal": 4, "memoryUsedBytes": 1}]
    told.recent.append(
        progress(2, 5, "ea:8", "eb:4", stateOperators=state, inputRowsPerSecond=12.5)
    )
    (stream,) = told.monitor.status()["streams"]
    assert (stream["state_rows"], stream["state_bytes"]) == (7, 501)
    assert (stream["watermark_age_s"], stream["input_rows_s"]) == (90.0, 12.5)
    text = metrics(told.monitor.status())
    for sample in (
        'state_rows{stream="history-archive"} 7',
        'state_bytes{stream="history-archive"} 501',
        'watermark_age_seconds{stream="history-archive"} 90',
        'input_rows_per_second{stream="history-archive"} 12.5',
    ):
        assert f"headwater_server_stream_{sample}" in text
    read = {"read": {"results": 50}}
    told.recent.append(progress(3, 5, "ea:8", "eb:4", inputRowsPerSecond=2, observedMetrics=read))
    (stream,) = told.monitor.status()["streams"]
    assert stream["input_rows_s"] == 20.0
    nothing = {"watermark": "1970-01-01T00:00:00.000Z"}
    told.recent.append(progress(4, 0, "ea:8", "eb:4", eventTime=nothing, inputRowsPerSecond="NaN"))
    (stream,) = told.monitor.status()["streams"]
    assert (stream["watermark_age_s"], stream["input_rows_s"]) == (None, None)
    assert "watermark_age_seconds{" not in metrics(told.monitor.status())
