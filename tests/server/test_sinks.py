"""The sinks by themselves: a batch that is given twice, ids, and what cannot be written."""

import asyncio
import json
import re
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
import sqlalchemy as sa

import server.sinks.alerts as alerts_module
from broker.credentials import hash_password
from headwater.cli import main
from server.checkpoint import Checkpoint
from server.config import read
from server.errors import JobsError, ServerError
from server.sinks.alerts import Alerts, message_of, payload_of
from server.sinks.batches import Batches
from server.sinks.database import LEDGER, Database, expanded
from server.sinks.files import FilesSink
from server.sinks.shown import TableName
from server.sinks.views import view_name
from tests.broker.running import CONFIG, RunningBroker, client, take
from tests.broker.store.databases import KINDS, postgresql

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("end", pa.timestamp("us", tz="UTC")),
        ("count", pa.int64()),
        ("temp", pa.float64()),
        ("day", pa.date32()),
        ("sure", pa.bool_()),
    ]
)


def batch(*ids):
    rows = [
        {"id": one, "end": NOON, "count": 2**40, "temp": -1.5, "day": NOON.date(), "sure": True}
        for one in ids
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


@pytest.fixture(scope="module")
def postgres():
    """One for all, as it takes a second to start."""
    if "postgresql" not in KINDS:
        yield None
        return
    with postgresql() as running:
        yield running


@pytest.fixture(params=KINDS)
def url(request, tmp_path, postgres):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'out.db'}"
    return postgres.url(postgres.database())


def rows_of(url, table="frost"):
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        rows = [
            dict(row) for row in connection.execute(sa.text(f"select * from {table}")).mappings()
        ]
    engine.dispose()
    return rows


def written(url, *batches, checkpoint="c1", stream="frost-db"):
    """Whether each of the batches was new."""
    with closing(Database(url, TableName("frost"), stream, checkpoint)) as database:
        return [database.write(rows, number) for number, rows in batches]


def test_values_keep_their_types(url):
    written(url, (0, batch("a")))
    engine = sa.create_engine(url)
    table = sa.Table("frost", sa.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        (row,) = connection.execute(sa.select(table)).mappings()
    engine.dispose()
    assert dict(row) == {
        "id": "a",
        "end": datetime(2026, 3, 1, 12),  # noqa: DTZ001 - as the database has it, in UTC
        "count": 2**40,
        "temp": -1.5,
        "day": date(2026, 3, 1),
        "sure": True,
    }


def test_what_a_database_does_not_take_for_a_text_is_no_end_of_the_stream(url):
    """PostgreSQL takes no NUL, which a sensor may well send."""
    written(url, (0, batch("a\0ü\ufffd\U0001f600'\";--", "\0")))
    nul = "\0" if url.startswith("sqlite") else "\ufffd"
    found = [row["id"] for row in rows_of(url)]
    assert found == [f"a{nul}ü\ufffd\U0001f600'\";--", nul]


def test_a_batch_that_is_given_again_is_passed_over(url):
    """A driver that dies between the database's commit and Spark's gives it again."""
    assert written(url, (0, batch("a", "b")), (1, batch("c"))) == [True, True]
    assert written(url, (1, batch("c")), (2, batch("d"))) == [False, True]
    assert [row["id"] for row in rows_of(url)] == ["a", "b", "c", "d"]
    (ledger,) = rows_of(url, LEDGER)
    assert ledger == {"stream": "frost-db", "checkpoint": "c1", "batch": 2, "rows": 4}


def test_sinks_tell_whether_they_have_a_batch(url, tmp_path):
    """What one of them has is not to be run again without a part of it."""
    with closing(Database(url, TableName("frost"), "frost-db", "c1")) as database:
        assert not database.holds(0)
        database.write(batch("a"), 0)
        assert database.holds(0)
        assert not database.holds(1)
    listed = tmp_path / "files" / "_spark_metadata"
    files = FilesSink(listed.parent)
    assert not files.holds(0)
    listed.mkdir(parents=True)
    (listed / "9.compact").touch()
    (listed / ".10.crc").touch()
    assert [files.holds(n) for n in (3, 9, 10)] == [True, True, False]


def test_a_batch_is_taken_for_kept_where_the_database_does_not_answer():
    url = "postgresql+psycopg://nobody@127.0.0.1:1/none"
    with closing(Database(url, TableName("frost"), "frost-db", "c1")) as database:
        assert database.holds(0)


def test_a_batch_that_fails_leaves_nothing(url, monkeypatch):
    written(url, (0, batch("a")))
    import server.sinks.database as module

    whole = module._plain

    def torn(rows):
        yield from whole(rows)
        raise OSError("the disk is full")

    monkeypatch.setattr(module, "CHUNK_ROWS", 1)
    monkeypatch.setattr(module, "_plain", torn)
    with pytest.raises(OSError, match="full"):
        written(url, (1, batch("b")))
    monkeypatch.undo()
    assert written(url, (1, batch("b"))) == [True]
    assert [row["id"] for row in rows_of(url)] == ["a", "b"]


JOBS = """
[sources.region]
brokers = {{ a = "http://127.0.0.1:1" }}
[jobs.history]
kind = "history"
source = "region"
sink = ["alerts", "first", "second"]
[sinks.first]
kind = "database"
url = "sqlite:///{folder}/first.db"
[sinks.second]
kind = "database"
url = "sqlite:///{folder}/second.db"
[sinks.alerts]
kind = "mqtt"
"""


def test_a_batch_that_one_sink_refuses_comes_to_the_others_once(tmp_path, monkeypatch):
    """And alerts go out when all that keeps the batch has it, whatever the order in the file."""
    (tmp_path / "jobs.toml").write_text(JOBS.format(folder=tmp_path))
    jobs = read(tmp_path / "jobs.toml")
    sinks = tuple(jobs.sinks[name] for name in jobs.jobs["history"]["sink"])
    sent, refused = [], [True]
    monkeypatch.setattr(Alerts, "send", lambda _self, rows: sent.extend(rows))
    write = Database.write

    def failing(self, rows, number):
        if "second" in self._url and refused:
            refused.clear()
            raise OSError("the disk is full")
        return write(self, rows, number)

    monkeypatch.setattr(Database, "write", failing)
    place = Checkpoint(tmp_path, "c1")
    with closing(Batches(jobs, jobs.jobs["history"], sinks, place)) as batches:
        frame = SimpleNamespace(toArrow=lambda: batch("a", "b"))
        with pytest.raises(OSError, match="full"):
            batches(frame, 0)
        assert sent == []
        batches(frame, 0)
    for name in ("first", "second"):
        kept = rows_of(f"sqlite:///{tmp_path}/{name}.db", "history")
        assert [row["id"] for row in kept] == ["a", "b"]
    assert [row["id"] for row in sent] == ["a", "b"]


def test_an_empty_batch_is_noted_too(url):
    assert written(url, (0, batch()), (0, batch("late"))) == [True, False]
    assert rows_of(url) == []


def test_many_rows_go_in_parts(url):
    written(url, (0, batch(*map(str, range(2500)))))
    assert len(rows_of(url)) == 2500


def test_another_checkpoint_is_refused_and_not_taken_for_what_is_there(url):
    written(url, (0, batch("a")))
    with pytest.raises(ServerError, match="another checkpoint"):
        written(url, (0, batch("a")), checkpoint="c2")
    assert len(rows_of(url)) == 1


@pytest.mark.parametrize(
    ("column", "fault"),
    [
        ("temp text", "column temp is TEXT, and the rows have double"),
        ("temp integer", "column temp is INTEGER, and the rows have double"),
        ("other text", "there is no column temp"),
    ],
)
def test_a_table_of_something_else_is_refused_with_what_mends_it(url, column, fault):
    columns = f'id text, "end" timestamp, count bigint, day date, sure boolean, {column}'
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text(f"create table frost ({columns})"))
    engine.dispose()
    with pytest.raises(JobsError, match=rf"table frost: {fault}.*headwater server migrate"):
        written(url, (0, batch("a")))
    assert rows_of(url) == []


def test_streams_have_lines_of_their_own(url):
    written(url, (0, batch("a")))
    assert written(url, (0, batch("b")), stream="other-db", checkpoint="c2") == [True]


def test_a_url_takes_secrets_from_the_environment():
    assert expanded("postgresql://u:$SECRET@h/d", {"SECRET": "x"}) == "postgresql://u:x@h/d"
    with pytest.raises(JobsError, match="SECRET, which is not set"):
        expanded("postgresql://u:$SECRET@h/d", {})
    with pytest.raises(JobsError, match="not understood"):
        Database("nosuch://x", TableName("t"), "s", "c").write(batch("a"), 0)


# --- alerts --------------------------------------------------------------------------------------


def test_a_message_is_the_result_itself_under_a_topic_of_its_columns():
    row = {"actor": "desk", "subscription": "a+b#", "payload": '{"id":"x"}'}
    assert message_of("alerts/{actor}/{subscription}", row) == ("alerts/desk/a_b_", b'{"id":"x"}')
    topic, said = message_of("w/{location}/{nothing}", {"location": "hall/3", "end": NOON, "id": 1})
    assert topic == "w/hall/3/none"
    assert json.loads(said) == {"location": "hall/3", "end": NOON.timestamp() * 1000, "id": 1}


def test_values_that_are_no_topics_reach_a_broker_all_the_same(tmp_path):
    values = ["hall\nway", "\x00\x1f\x7f\x9f", "\ufdd0\uffff\U0010fffe", "é" * 5000, "ü+#/☃"]
    rows = [{"location": value, "id": n} for n, value in enumerate(values)]

    async def scenario(broker):
        async with client(broker.port(), "alerts/#") as one:
            alerts = Alerts(f"mqtt://127.0.0.1:{broker.port()}", "alerts/{location}/x")
            assert await asyncio.to_thread(alerts.send, rows) == len(rows)
            return await take(one, len(rows))

    with RunningBroker(tmp_path) as broker:
        found = asyncio.run(scenario(broker))
    assert [said for _, said in found] == rows
    topics = [topic for topic, _ in found]
    cut = "alerts/" + "é" * 496
    assert topics == ["alerts/hall_way/x", "alerts/____/x", "alerts/___/x", cut, "alerts/ü__/☃/x"]


@pytest.mark.parametrize("url", ["http://x", "mqtt://", "mqtt://u:p@x"])
def test_no_server_of_mqtt(url):
    with pytest.raises(JobsError, match=r"expected mqtt://|no password belongs"):
        Alerts(url, "t")


def test_no_topic_to_publish_to():
    with pytest.raises(JobsError, match="no topic"):
        Alerts("mqtt://x", "alerts/#")


def test_alerts_reach_a_broker_with_the_ids_of_their_results(tmp_path):
    rows = [
        {"actor": "desk", "subscription": "Long", "payload": json.dumps({"id": f"r{n}"})}
        for n in range(20)
    ]

    async def scenario(broker):
        async with client(broker.port(), "alerts/#") as one:
            alerts = Alerts(f"mqtt://127.0.0.1:{broker.port()}", "alerts/{actor}/{subscription}")
            assert await asyncio.to_thread(alerts.send, rows) == 20
            return await take(one, 20)

    with RunningBroker(tmp_path) as broker:
        found = asyncio.run(scenario(broker))
    assert found == [("alerts/desk/Long", {"id": f"r{n}"}) for n in range(20)]


def test_alerts_that_the_server_does_not_take_fail_the_batch_and_say_why(tmp_path, monkeypatch):
    rights = tmp_path / "rights.toml"
    desk = '[roles.desk]\nplain_publish = ["alerts/desk"]\n[users.server]\nroles = ["desk"]\n'
    rights.write_text(f'{desk}password = "{hash_password("sesame")}"\n')
    rows = [{"actor": actor, "id": n} for n, actor in enumerate(("desk", "door", "desk", "roof"))]
    with RunningBroker(tmp_path, CONFIG, "--set", f"broker.rights={rights}") as broker:
        monkeypatch.setenv("SINK_PASSWORD", "sesame")
        address = f"mqtt://127.0.0.1:{broker.port()}"
        alerts = Alerts(address, "alerts/{actor}", "server", "SINK_PASSWORD")
        assert alerts.send(rows[::2]) == 2
        with pytest.raises(ServerError, match=r"refused by 127.*: of 4, 2 not authorized"):
            alerts.send(rows)


class Slow:
    """A client of a server that acknowledges everything, each after a while, or some of it."""

    def __init__(self, acknowledged=10**9):
        self.acknowledged = acknowledged
        self.published = []
        self._client = SimpleNamespace(on_publish=None)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        pass

    async def publish(self, topic, payload, qos):
        self.published.append((topic, json.loads(payload)["id"], qos))
        await asyncio.sleep(0.1 if len(self.published) <= self.acknowledged else 1000)


def test_a_batch_may_take_as_long_as_something_of_it_is_acknowledged(monkeypatch):
    monkeypatch.setattr(alerts_module, "SILENCE_S", 1.0)
    rows = [{"id": n} for n in range(15 * alerts_module.UNDER_WAY_MAX)]  # one and a half seconds
    server = Slow()
    monkeypatch.setattr("aiomqtt.Client", lambda *_, **__: server)
    assert Alerts("mqtt://x", "t").send(rows) == len(rows)
    assert server.published == [("t", n, 1) for n in range(len(rows))]
    server = Slow(acknowledged=150)
    with pytest.raises(ServerError, match="cannot be sent to x:1883: no answer"):
        Alerts("mqtt://x", "t").send(rows)
    assert len(server.published) == 2 * alerts_module.UNDER_WAY_MAX


def test_alerts_that_cannot_be_sent_fail_the_batch():
    with pytest.raises(ServerError, match="cannot be sent to 127"):
        Alerts("mqtt://127.0.0.1:1", "t").send([{"id": 1}])
    assert Alerts("mqtt://127.0.0.1:1", "t").send([]) == 0


def test_a_row_without_a_payload_is_told_as_json_with_times_as_headwater_writes_them():
    row = {"id": "x", "end": datetime(2026, 3, 1, tzinfo=UTC), "mean": 1.5, "payload": None}
    told = json.loads(payload_of(row))
    assert told == {**row, "end": 1_772_323_200_000}
    assert payload_of({"payload": "{}", "id": "x"}) == "{}"


# --- tables that people can ask ----------------------------------------------------------------

RESULTS = pa.schema(
    [
        ("id", pa.string()),
        ("offset", pa.int64()),
        ("subscription", pa.string()),
        ("start", pa.timestamp("us", tz="UTC")),
        ("end", pa.timestamp("us", tz="UTC")),
        ("values", pa.string()),
        ("payload", pa.string()),
    ]
)


def results(*told):
    """Rows of (subscription, values)."""
    rows = [
        {
            "id": f"r{n}",
            "offset": n,
            "subscription": subscription,
            "start": NOON,
            "end": NOON,
            "values": json.dumps(values, ensure_ascii=False),
            "payload": json.dumps({"values": values}),
        }
        for n, (subscription, values) in enumerate(told)
    ]
    return pa.Table.from_pylist(rows, RESULTS)


def test_each_subscription_has_a_view_with_its_values_typed(url):
    written(
        url,
        (0, results(("Frost", {"temp": -1.5, "open": True, "tag": "it's", "id": 7}))),
        (1, results(("Frost", {"temp": -2, "list": [1, 2]}), ("dock/7: %s", {"n": 2**53 + 1}))),
    )
    rows = rows_of(url, "frost_frost")
    assert [row["log_offset"] for row in rows] == [0, 0]
    assert {"started_at", "ended_at", "value_id"} <= set(rows[0])
    assert not {"start", "end", "offset", "values"} & set(rows[0])
    assert [float(row["temp"]) for row in rows] == [-1.5, -2]
    assert [row["open"] for row in rows] == [True, None]
    assert [row["tag"] for row in rows] == ["it's", None]
    assert int(rows[0]["value_id"]) == 7
    assert rows[0]["list"] is None
    listed = rows[1]["list"]
    assert (json.loads(listed) if isinstance(listed, str) else listed) == [1, 2]
    (other,) = rows_of(url, view_name("frost", "dock/7: %s"))
    assert int(other["n"]) == 2**53 + 1


def test_what_the_page_asks_of_views_is_answered(url):
    """The example of a dashboard in docs/server.md, on the views that it names."""
    page = (Path(__file__).parents[2] / "docs/server.md").read_text(encoding="utf-8")
    flows, stays = re.findall(r"^```sql\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    rows = results(
        ("Flows", {"entered": 3, "departed": 1}),
        ("Stays", {"tagID": "t1"}),
        ("Stays", {"tagID": "t2"}),
    )
    rows = rows.append_column("broker", [["north", "south", "south"]])
    with closing(Database(url, TableName("history"), "history-db", "c1")) as database:
        assert database.write(rows, 0)
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        (flow,) = connection.execute(sa.text(flows)).mappings()
        (stay,) = connection.execute(sa.text(stays)).mappings()
    engine.dispose()
    assert (int(flow["entered"]), int(flow["departed"])) == (3, 1)
    assert (stay["broker"], stay["stays"]) == ("south", 2)
    assert "2026-03-01 12:00" in str(flow["time"])


def test_a_value_that_changes_its_type_is_json_from_then_on(url):
    """After a restart as well; what was a number before is one still, in JSON."""
    written(url, (0, results(("Frost", {"v": 1}))))
    written(url, (1, results(("Frost", {"v": "one", "more": 2.5}))))
    found = [row["v"] for row in rows_of(url, "frost_frost")]
    assert [json.loads(v) if url.startswith("sqlite") else v for v in found] == [1, "one"]
    assert [row["more"] for row in rows_of(url, "frost_frost")] == [None, 2.5]


def test_a_table_that_an_older_version_made_goes_on_and_has_views(url):
    engine = sa.create_engine(url)
    meta = sa.MetaData()
    kinds = {"id": sa.Text, "offset": sa.BigInteger, "start": sa.DateTime, "end": sa.DateTime}
    names = ("id", "offset", "subscription", "start", "end", "values", "payload")
    sa.Table("frost", meta, *(sa.Column(one, kinds.get(one, sa.Text)()) for one in names))
    meta.create_all(engine)
    engine.dispose()
    written(url, (0, results(("Frost", {"temp": -1.5}))))
    assert [float(row["temp"]) for row in rows_of(url, "frost_frost")] == [-1.5]
    (row,) = rows_of(url)
    assert json.loads(row["values"]) == {"temp": -1.5}


def test_ids_and_ends_are_indexed_and_postgresql_has_json(url):
    written(url, (0, results(("Frost", {"tag": "a\0\\u0000\\"}))))
    written(url, (1, results(("Frost", {"tag": "b"}))))
    engine = sa.create_engine(url)
    inspector = sa.inspect(engine)
    indexes = inspector.get_indexes("frost")
    assert sorted(index["column_names"] for index in indexes) == [["end"], ["id"]]
    types = {one["name"]: type(one["type"]).__name__ for one in inspector.get_columns("frost")}
    engine.dispose()
    is_sqlite = url.startswith("sqlite")
    assert types["values"] == types["payload"] == ("TEXT" if is_sqlite else "JSONB")
    tags = [row["tag"] for row in rows_of(url, "frost_frost")]
    # SQLite ends a text of JSON at a NUL, and has it whole in the table.
    assert tags == ["a" if is_sqlite else "a\ufffd\\u0000\\", "b"]
    if is_sqlite:
        assert json.loads(rows_of(url)[0]["values"]) == {"tag": "a\0\\u0000\\"}


def test_views_that_cannot_be_made_end_no_stream(url, capsys):
    """As where a table of somebody's has the name already."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("create table frost_frost (mine integer)"))
    engine.dispose()
    assert written(url, (0, results(("Frost", {"v": 1})))) == [True]
    assert rows_of(url, "frost_frost") == []
    assert "the views of table frost stay as they are" in capsys.readouterr().err


def test_a_table_without_subscriptions_has_one_view_with_names_that_are_no_keywords(url):
    written(url, (0, batch("a")), (1, batch("b")))
    written(url, (2, batch("c")))
    rows = rows_of(url, "frost_view")
    assert [row["id"] for row in rows] == ["a", "b", "c"]
    assert "ended_at" in rows[0]


def test_the_command_lists_tables_and_views_with_what_is_in_them(tmp_path, capsys):
    file = tmp_path / "jobs.toml"
    head, _, _ = JOBS.format(folder=tmp_path).partition("[sinks.second]")
    text = head.replace('["alerts", "first", "second"]', '["first", "files"]')
    file.write_text(f'{text}[sinks.files]\nkind = "parquet"\npath = "files"\n')
    assert main(["server", "tables", str(file), "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)["tables"]
    assert [(one["name"], one["rows"]) for one in entries] == [
        ("history", None),
        (str(tmp_path / "files"), None),
    ]
    with closing(
        Database(f"sqlite:///{tmp_path}/first.db", TableName("history"), "s", "c")
    ) as database:
        database.write(results(("Frost", {"v": 1}), ("Frost", {"v": 2}), ("Smoke", {})), 0)
    assert main(["server", "tables", str(file), "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)["tables"]
    assert [(one["name"], one["kind"], one["rows"]) for one in entries[:3]] == [
        ("history", "table", 3),
        ("history_frost", "view", 2),
        ("history_smoke", "view", 1),
    ]
    assert entries[1]["columns"][-1] == "v"
    assert entries[1]["last"].startswith("2026-03-01 12:00:00")
    assert main(["server", "tables", str(file)]) == 0
    assert "history_frost" in capsys.readouterr().out
    file.write_text(text)
    assert main(["server", "tables", str(file)]) == 2
