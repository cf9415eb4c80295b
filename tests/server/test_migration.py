"""A job that means something else: filled beside itself, shown, and cut off anywhere on the way."""

import json
import sqlite3
import threading
from contextlib import closing, contextmanager

import pyarrow as pa
import pytest
import sqlalchemy as sa

from headwater.cli import main
from server import process
from server.checkpoint import begun_of, hold
from server.config import read
from server.errors import JobsError
from server.history import table_of
from server.process import streams_of
from server.sinks.alert_marks import alerted_at, alerted_of
from server.sinks.database import Database, opened
from server.sinks.shown import TableName
from server.sinks.views import show_table
from server.source.places import LogPlace
from server.upkeep import consumers, migration
from server.upkeep.migration import foresee, migrate
from server.upkeep.versions import shown_version
from tests.server.logs import FakeLog, result
from tests.server.test_on_spark import Driver, all_rows, jobs_file, table, until

FIRST = """
[jobs.history]
kind = "history"
source = "region"
subscriptions = ["Frost"]
sink = ["archive", "db"]
"""
SECOND = FIRST.replace('subscriptions = ["Frost"]', "version = 2")
CONSUMER = "headwater.history-archive.{}"


class KilledError(BaseException):
    """What nothing on the way takes care of."""


@pytest.fixture
def two():
    with FakeLog("ea") as a, FakeLog("eb") as b:
        yield {"a": a, "b": b}


def begun(file, places):
    """Have the streams of a file begun, and read up to these places."""
    for stream in streams_of(read(file)):
        spark = stream.begin().folder / "spark"
        for name, text in (("commits", "v1\n{}"), ("offsets", f"v1\n{{}}\n{json.dumps(places)}")):
            (spark / name).mkdir(parents=True)
            (spark / name / "0").write_text(text)
        stream.stop()


def ready(folder, logs):
    """A job in its first version that has read something, and the file of its second."""
    for log in logs.values():
        log.add(*[result(n, 1000 * n) for n in range(5)])
        log.acks[CONSUMER.format(1)] = 3
    begun(jobs_file(folder, logs, FIRST), {"a": "ea:3", "b": "eb:4"})
    put(folder, "history", "first")
    return jobs_file(folder, logs, SECOND)


def put(folder, name, *ids):
    with closing(sqlite3.connect(folder / "out.db")) as database, database:
        database.execute(f'create table if not exists "{name}" (id text, "end" text)')
        database.executemany(f'insert into "{name}" values (?, 1)', [(one,) for one in ids])
        if not name.endswith("_v2"):
            database.execute(f'create view "{name}_view" as select id from "{name}"')


@pytest.fixture
def filled(tmp_path, monkeypatch):
    """What stands for Spark: the second version's table, once however often it is run."""
    runs = []

    def read_all(jobs, streams):
        runs.append([stream.name for stream in streams])
        if len(runs) == 1:
            put(tmp_path, "history_v2", "first", "second")
        for stream in streams:
            stream.stop()
        return True

    monkeypatch.setattr(migration, "read_all", read_all)
    return runs


def shown(folder):
    with closing(sqlite3.connect(folder / "out.db")) as database:
        return [row[0] for row in database.execute("select id from history_view")]


def test_a_job_that_means_something_else_names_the_command(tmp_path, two):
    ready(tmp_path, two)
    file = jobs_file(tmp_path, two, FIRST.replace("Frost", "Heat"))
    with pytest.raises(JobsError, match=r"write version = 2 there and run `headwater server migr"):
        process.check(file)


def test_a_server_runs_no_version_that_is_not_shown(tmp_path, two, filled):
    file = ready(tmp_path, two)
    with pytest.raises(JobsError, match="version 1 is shown, and the file has version 2: run"):
        process.check(file)
    migrate(file, "history")
    process.check(file)
    with pytest.raises(JobsError, match="version 2 is shown, and the file has version 1"):
        process.check(jobs_file(tmp_path, two, FIRST))


def test_nothing_is_shown_before_everything_is_read(tmp_path, two, monkeypatch):
    file = ready(tmp_path, two)
    monkeypatch.setattr(migration, "read_all", lambda *_: False)
    assert main(["server", "migrate", "history", str(file)]) == 2
    assert shown(tmp_path) == ["first"]
    assert shown_version(read(file), read(file).jobs["history"]) is None
    assert two["a"].forgotten == []
    with pytest.raises(JobsError, match="version 1 is shown, and the file has version 2: run"):
        process.check(file)


STEPS = {
    "before the views": (migration, "show_table"),
    "before the folders": (migration, "show_folder"),
    "before the note": (migration, "note_shown"),
    "before consumers are forgotten": (migration, "forget_of"),
    "before that is noted": (consumers, "note_shown"),
}


@pytest.mark.parametrize("step", STEPS)
def test_cut_off_anywhere_it_goes_on(tmp_path, two, filled, step):
    file = ready(tmp_path, two)

    def killed(*_):
        raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*STEPS[step], killed)
        with pytest.raises(KilledError):
            migrate(file, "history")
    if step == "before the views":
        assert shown(tmp_path) == ["first"]
    if step != "before that is noted":
        assert all(log.forgotten == [] for log in two.values())
    assert migrate(file, "history") == 0
    assert shown(tmp_path) == ["first", "second"]
    assert (tmp_path / "history.shown").read_text() == "history_v2"
    assert [log.acks for log in two.values()] == [{}, {}]
    assert shown_version(read(file), read(file).jobs["history"]) == (2, (1,))


def test_consumers_of_a_version_that_runs_stay_until_it_has_ended(tmp_path, two, filled, capfd):
    file = ready(tmp_path, two)
    job = read(file).jobs["history"]
    with hold(begun_of(read(file), job)[0].folder):
        assert migrate(file, "history") == 0
        assert "version 1 is still run by a process" in capfd.readouterr().err
        assert all(CONSUMER.format(1) in log.acks for log in two.values())
        consumers.forget_former(read(file))
        assert all(CONSUMER.format(1) in log.acks for log in two.values())
    consumers.forget_former(read(file))
    assert [log.acks for log in two.values()] == [{}, {}]


def test_a_broker_that_is_away_forgets_with_the_next_start(tmp_path, two, filled):
    file = ready(tmp_path, two)
    two["b"].close()
    assert migrate(file, "history") == 0
    assert two["a"].acks == {}
    two["b"].open()
    consumers.forget_former(read(file))
    assert two["b"].acks == {}


GONE = (
    "broker b: offsets 0 to 1 are in its log no more, and version 1 may have them: a `backfill`"
    " begins with a history"
)


def test_a_check_says_what_would_be_done_and_does_nothing(tmp_path, two, capsys):
    file = ready(tmp_path, two)
    two["b"].retain(2)
    before = sorted(path.name for path in (tmp_path / "state").iterdir())
    assert main(["server", "migrate", "history", str(file), "--check"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "version 2 is filled and then shown in the place of version 1",
        "broker a: offsets 0 to 4 are read",
        "broker b: offsets 2 to 4 are read",
        GONE,
        f"sink archive: folder {tmp_path}/history_v2 is filled",
        "sink db: table history_v2 is filled; the views then show it",
        "broker a: consumer headwater.history-archive.1 (at offset 3) is then forgotten",
        "broker b: consumer headwater.history-archive.1 (at offset 3) is then forgotten",
    ]
    assert sorted(path.name for path in (tmp_path / "state").iterdir()) == before
    assert two["a"].forgotten == []
    assert foresee(jobs_file(tmp_path, two, FIRST), "history") == [
        "no other version of history was begun: there is nothing to migrate"
    ]


ROWS = pa.schema([(name, pa.string()) for name in ("id", "subscription", "values")])


def rows(*frost, subscription="Frost"):
    values = [
        {"id": f"{n}", "subscription": subscription, "values": one} for n, one in enumerate(frost)
    ]
    return pa.Table.from_pylist(values, ROWS)


def test_who_still_fills_the_former_table_does_not_take_the_views_back(tmp_path):
    """A new value there would make its view anew."""
    url = f"sqlite:///{tmp_path}/out.db"
    former = Database(url, TableName("history"), "history-db", "c1")
    second = Database(url, TableName("history", "_v2"), "history-db@2", "c2")
    engine = opened(url)
    with closing(former), closing(second):
        former.write(rows('{"n":1}'), 0)
        second.write(rows('{"n":1}', '{"n":2}'), 0)
        second.write(rows('{"m":1}', subscription="Heat"), 1)
        assert views_in(engine) == {"history_frost": 1, "history_v2_frost": 2, "history_v2_heat": 1}
        assert show_table(engine, TableName("history", "_v2")) == "history"
        assert views_in(engine) == {"history_frost": 2, "history_heat": 1}
        former.write(rows('{"n":1,"more":true}', "{}", "{}"), 1)
        former.write(rows("{}", subscription="Wind"), 2)
        assert views_in(engine) == {"history_frost": 2, "history_heat": 1}
        second.write(rows('{"more":true}'), 2)
        assert views_in(engine) == {"history_frost": 3, "history_heat": 1}
        show_table(engine, TableName("history"))
        assert views_in(engine) == {"history_frost": 4, "history_wind": 1}
    engine.dispose()


def views_in(engine):
    with engine.connect() as connection:
        names = sa.inspect(connection).get_view_names()
        count = "select count(*) from {}".format
        return {name: connection.execute(sa.text(count(name))).scalar() for name in names}


def test_a_table_that_two_jobs_share_is_not_switched_for_one(tmp_path, two, filled):
    text = FIRST + FIRST.replace("jobs.history", "jobs.other").replace('["archive", "db"]', '"db"')
    file = jobs_file(tmp_path, two, text)
    file.write_text(file.read_text().replace("out.db", 'out.db"\ntable = "rows').replace('""', '"'))
    begun(file, {"a": "ea:3"})
    file.write_text(file.read_text().replace('subscriptions = ["Frost"]', "version = 2", 1))
    with pytest.raises(JobsError, match="shares table rows with other"):
        migrate(file, "history")
    assert filled == []


def test_no_alert_is_sent_again_of_what_the_former_version_has_read(tmp_path, two):
    jobs = read(jobs_file(tmp_path, two, FIRST))
    places = {"a": LogPlace("ea", 3, None), "b": LogPlace("eb", 4, None)}
    alerted = alerted_of(json.loads(json.dumps(alerted_at(jobs.jobs["history"], places).plain())))
    rows = [
        {"broker": "a", "epoch": "ea", "offset": 2},
        {"broker": "a", "epoch": "ea", "offset": 3},
    ]
    rows += [
        {"broker": "b", "epoch": "new", "offset": 0},
        {"broker": "c", "epoch": "e", "offset": 0},
    ]
    assert [alerted.holds(row) for row in rows] == [True, False, False, False]
    assert not alerted_of(None).holds(rows[0])


@contextmanager
def fed(logs):
    """Logs to which something comes all the time."""
    stopping = threading.Event()

    def feed():
        number = 0
        while not stopping.wait(0.2):
            for name, log in logs.items():
                number += 1
                log.add(result(number, 1000 * number, "Frost" if number % 3 else "Heat", name))

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def batches(folder, version):
    commits = folder / "state" / f"history-archive-{version}" / "spark" / "commits"
    return len([file for file in commits.glob("*") if file.name.isdigit()])


def ended(driver, folder):
    try:
        assert driver.end() == 0, (folder / "driver.log").read_text()[-3000:]
    finally:
        driver.kill()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_migration_under_load_is_killed_and_loses_and_doubles_nothing(tmp_path, two):
    """The server runs the former version all the while, and the new one afterwards."""
    file = jobs_file(tmp_path, two, FIRST, batch_rows=40)
    second = tmp_path / "second.toml"
    # Larger batches than what comes meanwhile: it gets to the end of the logs.
    text = file.read_text().replace("batch_rows = 40", "batch_rows = 200")
    second.write_text(text.replace('subscriptions = ["Frost"]', "version = 2"))
    migrating = ("migrate", "history")
    with fed(two):
        server = Driver(tmp_path, file)
        try:
            until(lambda: batches(tmp_path, 1) > 3, server, "batches of the first version")
            for turn in range(2):
                command = Driver(tmp_path, second, command=migrating)
                enough = batches(tmp_path, 2) + turn
                try:
                    until(lambda n=enough: batches(tmp_path, 2) > n, command, "a batch")
                finally:
                    command.kill()
                assert not (tmp_path / "history.shown").exists()
            ended(Driver(tmp_path, second, command=migrating), tmp_path)
            assert all(CONSUMER.format(1) in log.acks for log in two.values())
            again = batches(tmp_path, 1)
            until(lambda: batches(tmp_path, 1) > again, server, "the first version to go on")
        finally:
            server.kill()
    ended(Driver(tmp_path, second, "--once"), tmp_path)
    rows = table(tmp_path, "history_v2")
    assert sorted((row["broker"], row["offset"]) for row in rows) == all_rows(two)
    kept = table_of(tmp_path / "history", ["broker", "offset"]).to_pylist()
    assert sorted((row["broker"], row["offset"]) for row in kept) == all_rows(two)
    heat = [row for row in rows if row["subscription"] == "Heat"]
    assert heat
    assert len(table(tmp_path, "history_heat")) == len(heat)
    for log in two.values():
        assert CONSUMER.format(1) in log.forgotten
        assert sorted(log.acks) == [CONSUMER.format(2)]
