"""What the HTTP face answers, refuses and bounds."""

import asyncio
import gzip
import json
import logging
import socket
from base64 import b64encode
from types import SimpleNamespace

import pytest
from aiohttp import ClientError, ClientSession
from aiohttp.test_utils import TestClient, TestServer
from openapi_spec_validator import validate

from broker.credentials import hash_password, new_token, token_digest
from broker.engine.ledger import Ledger as CoreLedger
from broker.http import HttpListenError, HttpOptions, MetricsLedger, handlers, listen, make_app
from broker.http.openapi import is_open
from broker.http.plan_shapes import PLAN_SCHEMAS
from broker.http.routes import ROUTES, SCHEMAS
from broker.metrics.ledger import FAMILIES
from broker.mqtt.limits import MqttLimits
from broker.mqtt.sessions.logins import Logins
from broker.rights.current import CurrentRights
from broker.rights.table import RightsTable, TokenEntry, UserEntry
from tests.broker.http.fakes import OPEN, FakeBroker, rights_of, talk

TEXT = {"Content-Type": "text/plain"}


def basic(name: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"{name}:{password}".encode()).decode()}


async def submit(client, text: str | bytes, status: int = 200, **more):
    answer = await client.post("/v1/subscriptions", data=text, headers=TEXT, **more)
    assert answer.status == status, await answer.text()
    return await answer.json()


def test_health_and_readiness_say_what_is_missing():
    broker = FakeBroker()

    async def scenario(client):
        answer = await client.get("/readyz")
        assert (answer.status, await answer.json()) == (200, {"ready": True, "missing": []})
        broker.missing = ["mqtt: not listening yet"]
        answer = await client.get("/readyz")
        assert answer.status == 503
        assert await answer.json() == {"ready": False, "missing": ["mqtt: not listening yet"]}
        answer = await client.get("/healthz")
        assert (answer.status, await answer.json()) == (200, {"healthy": True})
        broker.alive = False
        assert (await client.get("/healthz")).status == 503

    talk(broker, scenario)


@pytest.mark.parametrize(("code", "status"), [("HW505", 404), ("HW515", 409), ("HW516", 504)])
@pytest.mark.parametrize(("method", "further"), [("DELETE", ""), ("POST", "/resume")])
def test_an_end_that_is_refused_in_the_network_has_a_status_of_its_own(
    code, status, method, further
):
    broker = FakeBroker()

    async def end(*_names, home):
        return {"ok": False, "errors": [{"code": code, "message": home}]}

    broker.end = end  # type: ignore[method-assign]

    async def scenario(client):
        answer = await client.request(method, f"/v1/subscriptions/Frost{further}?home=pi3")
        assert answer.status == status
        assert (await answer.json())["errors"][0]["message"] == "pi3"

    talk(broker, scenario)


def test_what_is_submitted_is_listed_and_can_be_cancelled_by_its_client_alone():
    broker = FakeBroker()

    async def scenario(client):
        reply = await submit(client, "Frost\na/b.c-d", params={"client": "anna"})
        assert reply == {"ok": True, "subscriptions": ["Frost", "a/b.c-d"], "definitions": []}
        listed = await (await client.get("/v1/subscriptions")).json()
        assert [s["subscription"] for s in listed["subscriptions"]] == ["Frost", "a/b.c-d"]
        answer = await client.delete("/v1/subscriptions/Frost", params={"client": "bert"})
        assert answer.status == 404
        assert (await answer.json())["errors"][0]["message"] == "no `Frost` of yours"
        for path in ("/v1/subscriptions/a%2Fb.c-d", "/v1/subscriptions/Frost"):
            answer = await client.delete(path, params={"client": "anna"})
            assert answer.status == 200
        assert broker.installed == {}

    talk(broker, scenario)


def test_a_faulty_specification_is_answered_with_its_diagnostics_and_not_installed():
    broker = FakeBroker()

    async def scenario(client):
        reply = await submit(client, "Frost\nbad", 422)
        assert reply["ok"] is False
        assert reply["errors"][0]["code"] == "HW100"
        assert reply["errors"][0]["line"] == 2
        assert broker.installed == {}

    talk(broker, scenario)


def test_a_body_is_bounded_and_must_be_text():
    broker = FakeBroker()

    async def scenario(client):
        await submit(client, "x" * 100)
        refusal = await submit(client, "x" * 101, 413)
        assert "100 bytes" in refusal["errors"][0]["message"]
        refusal = await submit(client, b"\xff", 422)
        assert "UTF-8" in refusal["errors"][0]["message"]
        answer = await client.post("/v1/subscriptions", json={"text": "Frost"})
        assert answer.status == 415
        refusal = await submit(client, "Frost", 400, params={"client": "c" * 129})
        assert list(broker.installed) == ["x" * 100]

    talk(broker, scenario, options=HttpOptions(text_bytes_max=100))


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/", "/openapi.json"])
def test_head_is_answered_as_get_without_the_body(path):
    async def scenario(client):
        head, whole = await client.head(path), await client.get(path)
        assert (head.status, await head.read()) == (200, b"")
        assert head.headers["Content-Type"] == whole.headers["Content-Type"]
        if path == "/metrics":  # which grow, as time passes
            assert int(head.headers["Content-Length"]) > 1_000
        else:
            assert head.headers["Content-Length"] == whole.headers["Content-Length"]

    talk(FakeBroker(), scenario)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("HEAD", "/nothing", 404), ("HEAD", "/v1/results", 405)],
)
def test_head_of_what_is_not_there_or_never_ends(method, path, status):
    async def scenario(client):
        assert (await client.request(method, path)).status == status

    talk(FakeBroker(), scenario)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nothing", 404), ("PUT", "/v1/status", 405), ("POST", "/healthz", 405)],
)
def test_what_does_not_exist_is_refused_as_json(method, path, status):
    async def scenario(client):
        answer = await client.request(method, path)
        assert answer.status == status
        body = await answer.json()
        assert body["ok"] is False
        assert path in body["errors"][0]["message"]
        assert ("Allow" in answer.headers) == (status == 405)

    talk(FakeBroker(), scenario)


def test_a_broker_that_fails_to_answer_is_a_logged_500_and_the_next_request_is_served(caplog):
    broker = FakeBroker()
    broker.status = lambda: {}["missing"]  # type: ignore[method-assign]

    async def scenario(client):
        answer = await client.get("/v1/status")
        assert answer.status == 500
        assert "missing" not in await answer.text()
        assert (await client.get("/healthz")).status == 200

    with caplog.at_level(logging.ERROR, logger="headwater.http"):
        talk(broker, scenario)
    assert [record.exc_info[0] for record in caplog.records] == [KeyError]


# --- users ------------------------------------------------------------------------------------


def test_with_users_only_the_probes_are_open():
    users = rights_of(anna=hash_password("sesame"))

    async def scenario(client):
        for route in ROUTES:
            path = route.path.replace("{name}", "x")
            answer = await client.request(route.method, path)
            assert (answer.status == 401) == (not is_open(route)), route
            if not is_open(route):
                assert answer.headers["WWW-Authenticate"].startswith("Basic ")
        for login in (("anna", "wrong"), ("bert", "sesame"), ("", "")):
            assert (await client.get("/v1/status", headers=basic(*login))).status == 401
        for header in ("Basic", "Basic ###", "Basic /w==", "Bearer x", "Basic YW5uYQ=="):
            answer = await client.get("/v1/status", headers={"Authorization": header})
            assert answer.status == 401
        answer = await client.get("/v1/status", headers=basic("anna", "sesame"))
        assert answer.status == 200

    talk(FakeBroker(), scenario, users)


def test_an_address_that_guesses_passwords_is_looked_at_no_more_for_a_while(monkeypatch):
    """Who is known already goes on being served there, and no guess costs anything any more."""
    users = rights_of(anna=hash_password("sesame"))
    checked, login = [], users.login
    monkeypatch.setattr(users, "login", lambda *words: checked.append(words) or login(*words))
    failures = Logins(MqttLimits(login_failures_max=2, login_window_ms=60_000))

    async def scenario():
        app = make_app(FakeBroker(), users, failures=failures)
        async with TestClient(TestServer(app)) as client:

            async def status(*words):
                headers = basic(*words) if words else {}
                return (await client.get("/v1/status", headers=headers)).status

            assert await status("anna", "sesame") == 200
            for _ in range(5):
                assert await status() == 401  # no guess at all
            assert [await status("anna", str(n)) for n in range(4)] == [401, 401, 429, 429]
            assert await status("anna", "sesame") == 200
            assert await status("bert", "sesame") == 429
            assert (await client.get("/healthz")).status == 200
        assert [password for _, password in checked] == ["sesame", "0", "1"]

    asyncio.run(scenario())


def test_a_token_and_a_login_known_before_a_reload_pass_where_others_guess():
    """One device with an old password must not keep out those beside it at the same address."""
    token, kept, changed = new_token(), hash_password("sesame"), hash_password("old")
    users = {"anna": UserEntry(password=kept), "bert": UserEntry(password=changed)}
    tokens = {"probe": TokenEntry(digest=token_digest(token))}
    rights = CurrentRights(
        RightsTable(users=users, tokens=tokens, everyone=("administrate",)), "headwater"
    )
    failures = Logins(MqttLimits(login_failures_max=1, login_window_ms=60_000))

    async def scenario():
        async with TestClient(TestServer(make_app(FakeBroker(), rights, failures=failures))) as one:

            async def status(headers):
                return (await one.get("/v1/status", headers=headers)).status

            assert await status(basic("anna", "sesame")) == 200
            assert await status(basic("bert", "old")) == 200
            assert await status(basic("anna", "guess")) == 401
            after = users | {"bert": UserEntry(password=hash_password("new"))}
            rights.replace(RightsTable(users=after, tokens=tokens, everyone=("administrate",)))
            assert await status(basic("anna", "sesame")) == 200
            assert await status(basic("bert", "old")) == 429
            assert await status({"Authorization": f"Bearer {token}"}) == 200
            assert await status({"Authorization": f"Bearer {token}x"}) == 429

    asyncio.run(scenario())


def test_a_user_acts_under_its_own_name_whatever_it_calls_itself():
    broker = FakeBroker()
    users = rights_of(anna=hash_password("sesame"))

    async def scenario(client):
        headers = TEXT | basic("anna", "sesame")
        path = "/v1/subscriptions?client=bert"
        assert (await client.post(path, data="Frost", headers=headers)).status == 200
        assert broker.installed == {"Frost": "anna"}

    talk(broker, scenario, users)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://[broken"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 403),
        ({"Host": "[broken"}, 403),
        ({"Host": "localhost:8080", "Origin": "http://localhost:8080"}, 200),
        ({"Host": "[::1]:8080"}, 200),
        ({}, 200),
    ],
)
def test_a_web_page_cannot_reach_an_open_broker_through_its_visitor(headers, status):
    broker = FakeBroker()

    async def scenario(client):
        answer = await client.post("/v1/subscriptions", data="Frost", headers=TEXT | headers)
        assert answer.status in ({status} if status == 200 else {400, 403})
        assert bool(broker.installed) == (status == 200)

    talk(broker, scenario)


# --- metrics ----------------------------------------------------------------------------------


def test_metrics_tell_the_ledger_with_names_that_follow_prometheus_habits():
    broker = FakeBroker()
    broker.account = MetricsLedger(
        received=9,
        out=3,
        filtered=2,
        held=1,
        dropped={"late": 2, "repeat": 1, 'od"d\n': 0},
        detected=8,
        notes={"stamped_on_arrival": 7},
        results=4,
        subscriptions=5,
        mqtt_clients=6,
    )

    async def scenario(client):
        answer = await client.get("/metrics")
        assert answer.headers["Content-Type"].startswith("text/plain")
        text = await answer.text()
        for line in (
            "headwater_events_received_total 9.0",
            "headwater_events_out_total 3.0",
            "headwater_events_filtered_total 2.0",
            "headwater_events_held 1.0",
            'headwater_events_dropped_total{reason="late"} 2.0',
            'headwater_events_dropped_total{reason="repeat"} 1.0',
            "headwater_detected_total 8.0",
            'headwater_notes_total{note="stamped_on_arrival"} 7.0',
            "headwater_results_total 4.0",
            "headwater_subscriptions 5.0",
            "headwater_mqtt_clients 6.0",
        ):
            assert line in text.splitlines()
        broker.account = MetricsLedger(received=10)
        assert "headwater_events_received_total 10.0" in await (await client.get("/metrics")).text()
        lint(text)

    talk(broker, scenario)


def test_the_ledger_shown_has_every_counter_of_the_cores():
    core = CoreLedger()
    core.events.received = 3
    core.events.drop("late", 3)
    shown = MetricsLedger(**core.to_dict())
    assert (shown.received, shown.dropped) == (3, {"late": 3})
    assert {row.field for row in FAMILIES} == set(MetricsLedger.__struct_fields__)


def lint(text: str) -> None:
    """Promtool's habits: a prefix, help for all, `_total` on counters alone, base units."""
    kinds = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line.split(" ")[2:]
            kinds[name] = kind
    helped = {line.split(" ")[2] for line in text.splitlines() if line.startswith("# HELP ")}
    assert set(kinds) == helped
    for name, kind in kinds.items():
        assert name.startswith(("headwater_", "process_"))
        assert name.endswith("_total") == (kind == "counter"), name
        assert not name.endswith(("_ms", "_milliseconds", "_minutes", "_kilobytes"))


# --- the live stream --------------------------------------------------------------------------


def line(subscription: str, number: int) -> bytes:
    return json.dumps({"subscription": subscription, "n": number}).encode()


def test_results_stream_line_by_line_and_only_those_asked_for():
    broker = FakeBroker()

    async def scenario(client):
        everything = await client.get("/v1/results")
        frost = await client.get("/v1/results", params={"subscription": "Frost"})
        assert frost.headers["Content-Type"] == "application/x-ndjson"
        for number, name in enumerate(["Frost", "Heat", "Frost"]):
            broker.fan.publish("anna", name, line(name, number))
        broker.fan.close()
        told = [json.loads(text)["n"] for text in (await everything.text()).splitlines()]
        assert told == [0, 1, 2]
        told = [json.loads(text)["n"] for text in (await frost.text()).splitlines()]
        assert told == [0, 2]

    talk(broker, scenario)


def test_a_follower_that_is_too_slow_is_cut_off_and_told_so_and_no_other():
    broker = FakeBroker(queue_max=3)

    async def scenario(client):
        slow = await client.get("/v1/results")
        quick = broker.fan.follow()
        for number in range(4):  # without giving the stream a chance to run
            broker.fan.publish("anna", "Frost", line("Frost", number))
            assert len(await quick.take()) == 1
        lines = (await slow.text()).splitlines()
        assert [json.loads(text)["n"] for text in lines[:3]] == [0, 1, 2]
        assert json.loads(lines[3])["ok"] is False
        assert "slow" in lines[3]
        assert broker.fan.overflows == 1
        assert len(broker.fan) == 1

    talk(broker, scenario)


def test_followers_are_bounded_and_one_that_leaves_makes_room():
    broker = FakeBroker(followers_max=1)

    async def scenario(client):
        first = await client.get("/v1/results")
        refused = await client.get("/v1/results")
        assert refused.status == 503
        assert "streams_max" in await refused.text()
        left = broker.leaving()
        first.close()
        await left.wait()
        again = await client.get("/v1/results")
        assert again.status == 200

    talk(broker, scenario)


def test_a_quiet_stream_gives_signs_of_life(monkeypatch):
    monkeypatch.setattr("broker.http.handlers.ALIVE_EVERY_S", 0.01)
    broker = FakeBroker()

    async def scenario(client):
        stream = await client.get("/v1/results")
        assert await stream.content.readline() == b"\n"

    talk(broker, scenario)


# --- the description --------------------------------------------------------------------------


@pytest.mark.parametrize("with_users", [False, True])
def test_the_description_is_valid_openapi_and_covers_every_route(with_users):
    users = rights_of(anna=hash_password("a")) if with_users else OPEN

    async def scenario(client):
        headers = basic("anna", "a") if with_users else {}
        described = await (await client.get("/openapi.json", headers=headers)).json()
        validate(described)
        operations = {
            (method.upper(), path) for path, item in described["paths"].items() for method in item
        }
        assert operations == {(route.method, route.path) for route in ROUTES}
        served = {
            (route.method, resource.canonical)
            for resource in client.app.router.resources()
            for route in resource
            if route.method != "HEAD"
        }
        assert operations == served
        for route in ROUTES:
            operation = described["paths"][route.path][route.method.lower()]
            assert ("security" in operation) == (with_users and not is_open(route))
            # What guards refuse is a Problem on every route.
            (content,) = operation["responses"]["default"]["content"].values()
            assert content["schema"] == {"$ref": "#/components/schemas/Problem"}

    talk(FakeBroker(), scenario, users)


def test_every_schema_is_used():
    named = {answer.schema for route in ROUTES for answer in route.answers.values()}
    parts = {"Diagnostic", "Subscription", *PLAN_SCHEMAS} - {"Plan"}
    assert set(SCHEMAS) - named == parts


# --- the listener -----------------------------------------------------------------------------


def test_a_port_in_use_is_a_sentence():
    async def scenario():
        app = make_app(FakeBroker(), OPEN)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with pytest.raises(HttpListenError) as caught:
                await listen(app, "127.0.0.1", port)
        assert str(caught.value) == (
            f"cannot listen for HTTP on 127.0.0.1:{port}: address already in use"
        )

    asyncio.run(scenario())


def test_connections_are_bounded_and_closing_ends_them():
    async def scenario():
        options = HttpOptions(connections_max=2)
        listener = await listen(make_app(FakeBroker(), OPEN), "127.0.0.1", 0, options)
        url = f"http://127.0.0.1:{listener.port}/healthz"
        held = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(2)]
        for reader, writer in held:  # who has asked for something is not ended for others
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readuntil(b"}")
        async with ClientSession() as session:
            with pytest.raises(ClientError):
                await session.get(url)
            held[0][1].write(
                b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            )
            assert (await held[0][0].read()).startswith(b"HTTP/1.1 200")
            held[0][1].close()
            async with session.get(url) as answer:
                assert answer.status == 200
        await listener.close()
        assert await held[1][0].read() == b""
        held[1][1].close()
        with pytest.raises(OSError, match=r"refused|Connect call failed"):
            await asyncio.open_connection("127.0.0.1", listener.port)

    asyncio.run(scenario())


@pytest.mark.parametrize(("connected", "raised"), [(False, ConnectionError), (True, RuntimeError)])
def test_who_closes_before_the_body_is_read_is_no_fault_of_the_broker(connected, raised):
    """Where a connection is gone, aiohttp's stream raises as where two read from it at a time."""

    async def read():
        raise RuntimeError

    protocol = SimpleNamespace(connected=connected)
    request = SimpleNamespace(headers={}, read=read, protocol=protocol)
    with pytest.raises(raised):
        asyncio.run(handlers._body(request, "body", 100))


@pytest.mark.parametrize(
    "packed",
    [gzip.compress(b"Frost"), gzip.compress(b"Frost")[:-9], b"Frost"],
    ids=["whole", "cut", "none"],
)
def test_a_packed_body_is_refused_as_half_of_a_pack_would_be_half_a_specification(packed, caplog):
    broker = FakeBroker()

    async def scene() -> None:
        listener = await listen(make_app(broker, OPEN), "127.0.0.1", 0)
        try:
            async with ClientSession() as session:
                url = f"http://127.0.0.1:{listener.port}/v1/subscriptions"
                headers = TEXT | {"Content-Encoding": "gzip"}
                async with session.post(url, data=packed, headers=headers) as answer:
                    refusal = await answer.json()
                    assert answer.status == 415, refusal
        finally:
            await listener.close()
        assert "Content-Encoding" in refusal["errors"][0]["message"]
        assert broker.installed == {}

    asyncio.run(scene())
    assert not caplog.records
