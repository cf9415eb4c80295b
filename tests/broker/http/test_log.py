"""The log of results over HTTP: a real database, a real listener, every answer as described."""

import asyncio
import json
from base64 import b64encode

import jsonschema
import msgspec
import pytest
from aiohttp import ClientSession

from broker.credentials import hash_password
from broker.http import HttpOptions, listen, log_handlers, make_app
from broker.http.log_routes import LOG_ROUTES
from broker.http.routes import ROUTES, SCHEMAS
from broker.store import RESULTS, Outbox, Retention, Settled, Store
from tests.broker.http.fakes import OPEN, FakeBroker, rights_of
from tests.broker.rows import row_of

PATIENCE_S = 15.0


def result(number: int, end_ms: int) -> bytes:
    told = {"subscription": "Frost", "seq": 1, "id": f"f-{number}", "end": end_ms, "values": {}}
    return json.dumps(told).encode()


class Site:
    """A log behind a face; every answer is held against the table of routes."""

    def __init__(self, outbox: Outbox | None, base: str, session: ClientSession) -> None:
        self.outbox = outbox
        self.base = base
        self._session = session

    async def add(self, *ends_ms: int, now_ms: int = 0) -> None:
        assert self.outbox is not None
        at = self.outbox.end
        rows = [
            row_of(at + n, "Frost", "team", "alerts", result(at + n, end_ms))
            for n, end_ms in enumerate(ends_ms)
        ]
        future = asyncio.get_running_loop().create_future()
        self.outbox.append(rows, now_ms, future.set_result)
        assert await future is None

    async def ask(self, method: str, path: str, **more):
        """(status, body); JSON is decoded."""
        async with self._session.request(method, self.base + path, **more) as answer:
            data = await answer.read()
            body = json.loads(data) if answer.content_type == "application/json" else data
            self._check(method, path, answer.status, answer.content_type, body)
            return answer.status, body

    async def get(self, path: str, **more):
        return await self.ask("GET", path, **more)

    def _check(self, method: str, path: str, status: int, media: str, body) -> None:
        plain = path.partition("?")[0]
        route = next(one for one in ROUTES if one.method == method and fits(one.path, plain))
        if status in (401, 404) and status not in route.answers:
            return
        described = route.answers[status]
        assert media in (described.media, *described.others)
        if media == "application/json":
            schema = {"$ref": f"#/components/schemas/{described.schema}"}
            jsonschema.validate(body, schema | {"components": {"schemas": SCHEMAS}})


def fits(route: str, path: str) -> bool:
    before, named, _ = route.partition("{")
    return path.startswith(before) if named else path == route


def talk(folder, scenario, *, kept=True, users=None, retention=None, afterwards=None) -> None:
    async def run() -> None:
        store = Store.open(f"sqlite:///{folder / 'headwater.db'}", parts=[RESULTS])
        try:
            outbox = await Outbox.open(store, retention)
            app = make_app(FakeBroker(), users or OPEN, log=outbox if kept else None)
            listener = await listen(app, "127.0.0.1", 0, HttpOptions())
            try:
                async with asyncio.timeout(PATIENCE_S), ClientSession() as session:
                    base = f"http://127.0.0.1:{listener.port}"
                    await scenario(Site(outbox if kept else None, base, session))
            finally:
                await listener.close()
            if afterwards is not None:
                async with asyncio.timeout(PATIENCE_S):
                    await afterwards()
        finally:
            await store.close()

    asyncio.run(run())


def test_a_range_is_handed_out_exactly_and_for_ever_the_same(tmp_path):
    """Byte for byte, after more has come, and after a restart."""
    first: list[bytes] = []

    async def raw(site: Site, path: str) -> bytes:
        async with ClientSession() as session, session.get(site.base + path) as answer:
            assert answer.status == 200
            return await answer.read()

    async def before(site: Site) -> None:
        await site.add(10, 20, 30, 40)
        status, body = await site.get("/v1/log?from=1&to=3")
        assert status == 200
        assert (body["from"], body["to"]) == (1, 3)
        assert [row["offset"] for row in body["rows"]] == [1, 2]
        assert body["rows"][0]["result"] == json.loads(result(1, 20))
        first[:] = [
            await raw(site, f"/v1/log?from=1&to=3&format={form}") for form in ("json", "msgpack")
        ]
        await site.add(50)
        assert await raw(site, "/v1/log?from=1&to=3&format=json") == first[0]

    async def after(site: Site) -> None:
        assert await raw(site, "/v1/log?from=1&to=3&format=json") == first[0]
        assert await raw(site, "/v1/log?from=1&to=3&format=msgpack") == first[1]
        assert msgspec.msgpack.decode(first[1]) == json.loads(first[0])

    talk(tmp_path, before)
    talk(tmp_path, after)


def test_ranges_put_together_are_the_log_with_nothing_twice(tmp_path):
    async def scenario(site: Site) -> None:
        await site.add(*range(100))
        found = []
        for begin in range(0, 100, 7):
            _, body = await site.get(f"/v1/log?from={begin}&to={min(begin + 7, 100)}")
            found += [row["offset"] for row in body["rows"]]
        assert found == list(range(100))

    talk(tmp_path, scenario)


def test_what_is_not_there_yet_is_416_and_what_is_gone_410(tmp_path):
    """Each with what can be had, so that a consumer need not guess."""

    async def scenario(site: Site) -> None:
        await site.add(1, 2, 3)
        status, body = await site.get("/v1/log?from=1&to=4")
        assert status == 416
        assert (body["earliest"], body["end"]) == (0, 3)
        far = "9" * 20
        for path in (f"log?from=0&to={far}", f"log?from={far}&to={far}", f"log/ts_at?offset={far}"):
            assert (await site.get(f"/v1/{path}"))[0] == 416
        assert (await site.ask("POST", f"/v1/log/ack?consumer=a&offset={far}"))[0] == 416
        assert site.outbox is not None
        await site.add(4, now_ms=10_000)
        site.outbox.retain(10_000)
        await site.outbox.forget("nobody")  # done after it
        for to in (4, 20_000):
            status, body = await site.get(f"/v1/log?from=2&to={to}")
            assert status == 410
        assert body["earliest"] == 3
        status, body = await site.get("/v1/log?from=3&to=4")
        assert status == 200
        assert [row["offset"] for row in body["rows"]] == [3]

    talk(tmp_path, scenario, retention=Retention(age_ms_max=5000))


def test_a_range_that_is_too_large_says_how_much_fits(tmp_path, monkeypatch):
    monkeypatch.setattr(log_handlers, "ROWS_MAX", 3)
    monkeypatch.setattr(log_handlers, "RANGE_BYTES_MAX", 2 * len(result(0, 1)))

    async def scenario(site: Site) -> None:
        await site.add(*range(5))
        status, body = await site.get("/v1/log?from=1&to=5")
        assert (status, body["fits"]) == (413, 4)
        status, body = await site.get("/v1/log?from=1&to=4")
        assert (status, body["fits"]) == (413, 3)
        assert (await site.get("/v1/log?from=1&to=6"))[0] == 416
        assert (await site.get("/v1/log?from=1&to=3"))[0] == 200

    talk(tmp_path, scenario)


def waited_for(outbox: Outbox) -> asyncio.Event:
    """Set when somebody waits for the log to go on."""
    waits, beyond = asyncio.Event(), outbox.beyond

    async def noted(after: int) -> None:
        waits.set()
        await beyond(after)

    outbox.beyond = noted  # type: ignore[method-assign]
    return waits


def test_a_long_poll_is_answered_by_the_next_result(tmp_path):
    async def scenario(site: Site) -> None:
        await site.add(1)
        assert site.outbox is not None
        waits = waited_for(site.outbox)
        status, body = await site.get("/v1/log/offsets?after=0&wait=60")  # it is beyond already
        assert (status, body["earliest"], body["end"]) == (200, 0, 1)
        assert not waits.is_set()
        asked = asyncio.create_task(site.get("/v1/log/offsets?after=1&wait=60"))
        await waits.wait()
        assert not asked.done()
        await site.add(2)
        status, body = await asked
        assert (status, body["end"]) == (200, 2)

    talk(tmp_path, scenario)


def test_a_long_poll_ends_after_its_time(tmp_path):
    async def scenario(site: Site) -> None:
        status, body = await site.get("/v1/log/offsets?after=0&wait=0.01")
        assert (status, body["end"]) == (200, 0)

    talk(tmp_path, scenario)


def test_a_broker_that_stops_answers_those_who_wait(tmp_path):
    """Instead of cutting them off, or of waiting for them."""
    asked: list[asyncio.Task] = []

    async def scenario(site: Site) -> None:
        assert site.outbox is not None
        waits = waited_for(site.outbox)

        async def ask() -> int:
            async with ClientSession() as session:
                url = site.base + "/v1/log/offsets?after=0&wait=60"
                async with session.get(url) as answer:
                    await answer.read()
                    return answer.status

        asked.append(asyncio.create_task(ask()))
        await waits.wait()

    talk(tmp_path, scenario, afterwards=lambda: asked[0])
    assert asked[0].result() == 200


def test_too_many_who_wait_are_answered_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(log_handlers, "WAITING_MAX", 0)

    async def scenario(site: Site) -> None:
        async with asyncio.timeout(5):
            status, body = await site.get("/v1/log/offsets?after=0&wait=60")
        assert (status, body["end"]) == (200, 0)

    talk(tmp_path, scenario)


def test_an_epoch_that_is_not_the_logs_is_refused_everywhere(tmp_path):
    """A database that was put in the place of another has other results under the same offsets."""

    async def scenario(site: Site) -> None:
        await site.add(1)
        assert site.outbox is not None
        good = site.outbox.epoch
        for method, path in (
            ("GET", "/v1/log/offsets?"),
            ("GET", "/v1/log?from=0&to=1&"),
            ("POST", "/v1/log/ack?consumer=spark&offset=1&"),
            ("GET", "/v1/log/ts_at?offset=0&"),
            ("GET", "/v1/log/first_offset_after?ts=0&"),
            ("GET", "/v1/log/consumers?"),
            ("DELETE", "/v1/log/consumers/spark?"),
        ):
            status, body = await site.ask(method, f"{path}epoch=another")
            assert (status, body["epoch"]) == (409, good)
            assert (await site.ask(method, f"{path}epoch={good}"))[0] == 200

    talk(tmp_path, scenario)


def test_a_consumer_is_known_from_its_first_acknowledgement_and_never_goes_back(tmp_path):
    async def scenario(site: Site) -> None:
        await site.add(*range(5))
        path = "/v1/log/ack?consumer=spark&offset="
        status, body = await site.ask("POST", path + "3")
        assert (status, body["offset"], body["missed"]) == (200, 3, 0)
        assert (await site.ask("POST", path + "1"))[1]["offset"] == 3
        assert (await site.ask("POST", path + "6"))[0] == 416
        assert (await site.ask("POST", "/v1/log/ack?consumer=a%2Fb&offset=5"))[0] == 200
        _, body = await site.get("/v1/log/consumers")
        assert [(c["consumer"], c["offset"]) for c in body["consumers"]] == [
            ("a/b", 5),
            ("spark", 3),
        ]
        assert (await site.ask("DELETE", "/v1/log/consumers/a%2Fb"))[0] == 200
        assert (await site.ask("DELETE", "/v1/log/consumers/a%2Fb"))[0] == 404

    talk(tmp_path, scenario)


def test_results_are_kept_until_every_consumer_has_them(tmp_path):
    """And what is taken from one who did not have it is counted and told, gap and all."""

    async def retained(site: Site, now_ms: int) -> int:
        assert site.outbox is not None
        site.outbox.retain(now_ms)
        await site.outbox.forget("nobody")  # done after it
        return site.outbox.earliest

    async def scenario(site: Site) -> None:
        await site.add(*range(10))
        await site.ask("POST", "/v1/log/ack?consumer=fast&offset=8")
        await site.ask("POST", "/v1/log/ack?consumer=slow&offset=3")
        assert await retained(site, 10) == 3
        assert await retained(site, 1001) == 10
        _, body = await site.get("/v1/log/consumers")
        fast, slow = body["consumers"]
        assert (fast["missed"], fast["gap"]) == (2, {"from": 8, "to": 10})
        assert (slow["missed"], slow["gap"]) == (7, {"from": 3, "to": 10})
        assert (await site.get("/v1/log?from=3&to=5"))[0] == 410

    talk(tmp_path, scenario, retention=Retention(acked_age_ms=0, age_ms_max=1000))


def test_event_times_lead_to_offsets_and_back(tmp_path):
    async def scenario(site: Site) -> None:
        status, body = await site.get("/v1/log/first_offset_after?ts=-5")
        assert (status, body["offset"]) == (200, 0)
        await site.add(10, 30, 20, 50)
        times = [(await site.get(f"/v1/log/ts_at?offset={n}"))[1]["ts"] for n in range(4)]
        assert times == [10, 30, 30, 50]
        assert (await site.get("/v1/log/ts_at?offset=4"))[0] == 416
        for ts, offset in ((-1, 0), (9, 0), (10, 1), (29, 1), (30, 3), (49, 3), (50, 4)):
            _, body = await site.get(f"/v1/log/first_offset_after?ts={ts}")
            assert body["offset"] == offset

    talk(tmp_path, scenario)


def test_the_earliest_end_behind_an_offset_is_told(tmp_path):
    async def scenario(site: Site) -> None:
        await site.add(10, 30, 20, 50, 40)
        for offset, ts, found in ((0, -5, 10), (0, 10, 20), (1, 20, 30), (3, 0, 40), (5, 0, None)):
            _, body = await site.get(f"/v1/log/earliest_end?offset={offset}&ts={ts}")
            assert body["ts"] == found
        assert (await site.get("/v1/log/earliest_end?offset=6&ts=0"))[0] == 416

    talk(tmp_path, scenario)


def test_a_promise_is_waited_for_as_long_as_it_takes(tmp_path):
    """And what is told beside it is where the log stood by then; without one nothing is said."""

    async def scenario(site: Site) -> None:
        assert "settled" not in (await site.get("/v1/log/offsets?settled=0"))[1]
        promised: list[Settled] = [Settled(2, None, "B: nothing yet")]
        asked: list[frozenset[str]] = []

        async def settled(names: frozenset[str], _fresh: bool) -> Settled:
            asked.append(names)
            if len(asked) == 5:
                promised.append(Settled(2, 70, "A: a source"))
            return promised[-1]

        site.outbox.promised = settled
        _, body = await site.get("/v1/log/offsets?settled=60&subscriptions=A,B")
        assert (body["settled"], body["subscriptions"], body["behind"]) == (
            None,
            2,
            "B: nothing yet",
        )
        _, body = await site.get("/v1/log/offsets?settled=60&after=0&wait=60")
        assert (body["settled"], body["end"], len(asked)) == (70, 0, 5)
        _, body = await site.get("/v1/log/offsets?settled=70&after=1&wait=60")  # it ends elsewhere
        assert (body["settled"], body["end"]) == (70, 0)
        assert asked[1:3] == [frozenset({"A", "B"}), frozenset()]

    talk(tmp_path, scenario)


def test_a_promise_that_is_not_on_the_disk_holds_nobody_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(log_handlers, "SETTLED_S", 0.01)

    async def scenario(site: Site) -> None:
        async def settled(_names: frozenset[str], fresh: bool) -> Settled:
            if fresh:
                await asyncio.sleep(60)
                raise AssertionError
            return Settled(2, 40, "A: a source")

        site.outbox.promised = settled
        for more in ("", "&wait=0.01", "&after=0&wait=0.01"):
            _, body = await site.get(f"/v1/log/offsets?settled=60{more}")
            assert (body["settled"], body["subscriptions"], body["behind"]) == (
                40,
                2,
                "A: a source",
            )

    talk(tmp_path, scenario)


@pytest.mark.parametrize(
    "request_line",
    [
        "GET /v1/log",
        "GET /v1/log?from=0",
        "GET /v1/log?from=2&to=1",
        "GET /v1/log?from=-1&to=1",
        "GET /v1/log?from=0&to=1e3",
        "GET /v1/log?from=0&to=١",
        f"GET /v1/log?from=0&to={'9' * 101}",
        "GET /v1/log/first_offset_after?ts=9999999999999999999",
        "GET /v1/log?from=0&to=0&format=xml",
        "GET /v1/log/offsets?after=x",
        "GET /v1/log/offsets?after=0&wait=soon",
        "GET /v1/log/offsets?after=0&wait=-1",
        "GET /v1/log/offsets?after=0&wait=nan",
        "POST /v1/log/ack?offset=0",
        "POST /v1/log/ack?consumer=&offset=0",
        "POST /v1/log/ack?consumer=spark",
        "POST /v1/log/ack?consumer=a%0Ab&offset=0",
        "POST /v1/log/ack?consumer=join:site&offset=0",
        f"POST /v1/log/ack?consumer={'c' * 129}&offset=0",
        "GET /v1/log/ts_at",
        "GET /v1/log/first_offset_after?ts=1.5",
    ],
)
def test_a_malformed_request_is_told_what_is_wrong(tmp_path, request_line):
    async def scenario(site: Site) -> None:
        method, path = request_line.split(" ")
        status, body = await site.ask(method, path)
        assert status == 400
        assert "`" in body["errors"][0]["message"]

    talk(tmp_path, scenario)


def test_arrow_is_handed_out_where_its_library_is_and_else_refused_with_a_way_out(tmp_path):
    async def scenario(site: Site) -> None:
        await site.add(10, 20)
        status, body = await site.get("/v1/log?from=0&to=2&format=arrow")
        try:
            import pyarrow as pa
        except ImportError:
            assert status == 406
            assert "format=msgpack" in body["errors"][0]["message"]
            return
        assert status == 200
        table = pa.ipc.open_stream(body).read_all()
        assert table.column("offset").to_pylist() == [0, 1]
        assert table.column("end").to_pylist() == [10, 20]
        assert json.loads(table.column("payload")[1].as_py()) == json.loads(result(1, 20))

    talk(tmp_path, scenario)


def test_a_broker_that_keeps_nothing_says_so(tmp_path):
    async def scenario(site: Site) -> None:
        status, body = await site.get("/v1/log/offsets")
        assert status == 503
        assert "broker.data_dir" in body["errors"][0]["message"]

    talk(tmp_path, scenario, kept=False)


def test_with_users_the_log_is_for_users_alone(tmp_path):
    login = "Basic " + b64encode(b"anna:sesame").decode()

    async def scenario(site: Site) -> None:
        for route in LOG_ROUTES:
            path = route.path.replace("{name}", "x")
            assert (await site.ask(route.method, path))[0] == 401
        headers = {"Authorization": login}
        assert (await site.get("/v1/log/offsets", headers=headers))[0] == 200

    talk(tmp_path, scenario, users=rights_of(anna=hash_password("sesame")))
