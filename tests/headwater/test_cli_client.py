"""The commands that talk to a running broker, over HTTP and over MQTT."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import aiomqtt
import pytest

from broker.credentials import hash_password
from headwater.cli import main
from tests.broker.http.fakes import rights_of
from tests.headwater.conftest import FaceThread

FROST = b'{"subscription": "Frost", "end": 1000, "values": {"temp": -1.5}}'
HEAT = b'{"subscription": "Heat", "end": 2000, "values": {}}'


@pytest.fixture
def spec(tmp_path):
    """Writes a specification as the fake broker reads it: a name a line."""

    def write(text: str) -> str:
        path = tmp_path / "spec.hw"
        path.write_text(text)
        return str(path)

    return write


def test_a_specification_is_installed_listed_and_cancelled(face, spec, capsys):
    at = ["--broker", face.url]
    assert main(["ls", *at]) == 0
    assert "no subscriptions" in capsys.readouterr().out
    assert main(["submit", spec("Frost\na/b"), *at, "--as", "anna", "--wait"]) == 0
    assert capsys.readouterr().out == "active: Frost, a/b\n"
    assert main(["ls", *at]) == 0
    heads, first, _second = capsys.readouterr().out.splitlines()
    assert heads.split() == ["SUBSCRIPTION", "SUBSCRIBER", "ACTOR", "SEQ", "STATE", "RESULTS"]
    assert first.split() == ["Frost", "anna", "active"]
    assert main(["cancel", "Frost", *at]) == 1
    assert "no `Frost` of yours" in capsys.readouterr().err
    for name in ("Frost", "a/b"):
        assert main(["cancel", name, *at, "--as", "anna"]) == 0
    assert face.broker.installed == {}


def test_the_end_of_a_subscription_is_told_where_one_has_an_end(face, monkeypatch, capsys):
    listed = [
        {
            "subscription": "Trial",
            "subscriber": "anna",
            "state": "active",
            "ends": 1_700_000_000_000,
        },
        {"subscription": "Frost", "subscriber": "anna", "state": "active"},
    ]
    monkeypatch.setattr(face.broker, "subscriptions", lambda _user: listed)
    assert main(["ls", "--broker", face.url]) == 0
    heads, first, second = capsys.readouterr().out.splitlines()
    assert heads.split()[-1] == "ENDS"
    assert first.split()[-1] == "2023-11-14T22:13:20.000Z"
    assert second.split()[-1] == "-"


def test_a_list_that_lacks_a_broker_names_it(face, spec, capsys):
    at = ["--broker", face.url]
    assert main(["submit", spec("Frost"), *at]) == 0
    face.broker.unreached.append({"broker": "pi3", "reason": "no way leads there"})
    capsys.readouterr()
    assert main(["ls", *at]) == 0
    captured = capsys.readouterr()
    assert "Frost" in captured.out, "what there is, is listed"
    assert captured.err == ("headwater: pi3 cannot be asked, and is left out: no way leads there\n")
    assert main(["ls", *at, "--alone"]) == 0


def test_the_end_of_a_subscription_is_asked_of_the_network_of_a_home_or_of_the_broker_alone(
    face, spec
):
    at = ["--broker", face.url, "--as", "anna"]
    for words, asked in (
        (["cancel", "Frost"], [("Frost", "cancelled", "")]),
        (["cancel", "Frost", "--home", "pi3"], [("Frost", "cancelled", "pi3")]),
        (["resume", "Frost"], [("Frost", "resumed", "")]),
        (["cancel", "Frost", "--alone"], []),
    ):
        face.broker.ended.clear()
        assert main(["submit", spec("Frost"), *at]) == 0
        assert main([*words, *at]) == 0
        assert face.broker.ended == asked, words
    assert main(["cancel", "Frost", *at, "--alone", "--home", "pi3"]) == 2


STATE = {
    "broker": "hall", "version": "1.0", "missing": [], "since": 0, "now": 93_784_000,
    "subscriptions": 2, "suspended": 0, "held": 5, "received": 10, "memory_bytes": 66_000_000,
}  # fmt: skip


def test_status_is_a_row_for_each_broker_and_fails_where_one_takes_no_events(face, capsys):
    at = ["status", "--broker", face.url]
    face.broker.states += [STATE, STATE | {"broker": "pi1", "memory_bytes": None, "now": 0}]
    assert main(at) == 0
    rows = [line.split("  ") for line in capsys.readouterr().out.splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert cells[1] == ["hall", "ready", "1 d 2 h", "2", "0", "5", "10", "66", "1.0"]
    assert cells[2] == ["pi1", "ready", "0 s", "2", "0", "5", "10", "-", "1.0"]
    face.broker.states[1]["missing"] = ["the MQTT face"]
    assert main(at) == 1
    assert "pi1 takes no events: the MQTT face\n" in capsys.readouterr().out
    assert main([*at, "--alone"]) == 0
    assert main(["status", "--broker", "mqtt://127.0.0.1:1"]) == 2


def test_status_names_who_cannot_be_asked(face, capsys):
    face.broker.states += [STATE]
    face.broker.unreached += [{"broker": "pi3", "reason": "no way leads there"}]
    assert main(["status", "--broker", face.url]) == 1
    assert capsys.readouterr().err == "headwater: pi3 cannot be asked: no way leads there\n"
    assert main(["status", "--broker", face.url, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["brokers"] == [STATE]


STAND_IN = {
    "broker": "roof", "state": "following", "behind": 0, "lease_ms": 0, "leased": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "cell"),
    [
        ({}, "roof following"),
        ({"state": "copying", "behind": 7}, "roof copying, 7 behind"),
        ({"lease_ms": 30_000}, "roof following, lease 30 s"),
        ({"lease_ms": 500, "leased": False}, "roof following, lease 0.5 s not held"),
    ],
)
def test_status_has_a_column_for_stand_ins_where_a_home_has_one(face, change, cell, capsys):
    face.broker.states += [STATE | {"stand_in": STAND_IN | change}, STATE | {"broker": "roof"}]
    assert main(["status", "--broker", face.url]) == 0
    heads, home, other = capsys.readouterr().out.splitlines()
    column = heads.index("STAND-IN")
    assert home[column:].strip() == cell
    assert other[column:].strip() == "-"
    del face.broker.states[0]["stand_in"]
    assert main(["status", "--broker", face.url]) == 0
    assert "STAND-IN" not in capsys.readouterr().out


AWAY = {"broker": "pi3", "reason": "no way leads there"}


@pytest.mark.parametrize(
    ("words", "remark"),
    [
        ({"stand_in": "roof"}, "`headwater take-over pi3`, asked of roof"),
        ({"taken_over_by": "roof"}, "roof has taken pi3 over"),
    ],
)
@pytest.mark.parametrize("command", ["status", "ls"])
def test_who_has_the_subscriptions_of_a_home_that_is_away_is_told(
    face, command, words, remark, capsys
):
    face.broker.states += [STATE]
    face.broker.unreached += [AWAY | words]
    assert main([command, "--broker", face.url]) == (1 if command == "status" else 0)
    assert remark in capsys.readouterr().err


def test_a_list_has_a_column_for_stand_ins_and_marks_what_is_a_copy(face, monkeypatch, capsys):
    row = {"subscriber": "anna", "state": "active"}
    listed = [
        row | {"subscription": "A", "home": "hall", "stand_in": "pi1", "stand_in_state": "copying"},
        row | {"subscription": "B", "home": "pi3", "stand_in": "roof", "away": True},
        row | {"subscription": "C", "home": "roof"},
    ]
    monkeypatch.setattr(face.broker, "subscriptions", lambda _user: listed)
    face.broker.unreached += [AWAY | {"stand_in": "roof"}]
    assert main(["ls", "--broker", face.url]) == 0
    captured = capsys.readouterr()
    cells = [line.split("  ") for line in captured.out.splitlines()]
    ends = [[cell.strip() for cell in line if cell.strip()][-2:] for line in cells]
    assert ends == [
        ["HOME", "STAND IN"],
        ["hall", "pi1 (copying)"],
        ["pi3 (away)", "roof"],
        ["roof", "-"],
    ]
    assert "pi3 cannot be asked, and what is listed is a copy: no way" in captured.err


def test_json_is_the_brokers_own_answer(face, spec, capsys):
    at = ["--broker", face.url, "--json"]
    assert main(["submit", spec("Frost"), *at]) == 0
    assert json.loads(capsys.readouterr().out)["subscriptions"] == ["Frost"]
    assert main(["ls", *at]) == 0
    assert json.loads(capsys.readouterr().out)[0]["subscriber"] == "cli"
    assert main(["submit", spec("bad"), *at]) == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["errors"][0]["code"] == "HW100"
    assert captured.err == ""
    assert main(["cancel", "Frost", *at]) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True


def test_a_refused_cancellation_tells_all_that_the_broker_told(face, monkeypatch, capsys):
    error = {"code": "HW505", "message": "there is none", "hint": "look again"}

    async def end(*_names, home):
        assert home in {"", "pi3"}
        return {"ok": False, "errors": [error]}

    monkeypatch.setattr(face.broker, "end", end)
    assert main(["cancel", "Frost", "--broker", face.url, "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"ok": False, "errors": [error]}
    assert main(["cancel", "Frost", "--broker", face.url, "--home", "pi3"]) == 1
    assert capsys.readouterr().err == "headwater: there is none; look again\n"
    assert main(["cancel", " ", "--broker", face.url]) == 2
    assert "empty" in capsys.readouterr().err


def test_a_faulty_specification_is_told_with_a_caret_and_installs_nothing(face, spec, capsys):
    path = spec("Frost\nbad")
    assert main(["submit", path, "--broker", face.url]) == 2
    assert capsys.readouterr().err == f"{path}:2:1: HW100: bad\n    2 | bad\n      | ^\n"
    assert face.broker.installed == {}


def test_waiting_for_what_does_not_become_active_ends_with_its_state(face, spec, capsys):
    face.broker.subscriptions = lambda _user: [{"subscription": "Frost", "state": "starting"}]
    command = ["submit", spec("Frost"), "--broker", face.url, "--wait", "--timeout", "0.5"]
    assert main(command) == 1
    assert "Frost (starting)" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_tail_prints_what_it_is_asked_for_and_ends_with_the_count(face, capsys, flags):
    face_feeds(face, ("Heat", HEAT), ("Frost", FROST), ("Frost", FROST), ("Frost", HEAT))
    assert main(["tail", "Frost", "--count", "2", "--broker", face.url, *flags]) == 0
    line = FROST.decode() if flags else "1970-01-01T00:00:01.000Z Frost temp=-1.5"
    assert capsys.readouterr().out.splitlines() == [line, line]


def test_tail_says_that_it_waits_for_a_subscription_that_is_not_there(face, spec, capsys):
    assert main(["submit", spec("Frost"), "--broker", face.url]) == 0
    face_feeds(face, ("Frst", b'{"subscription": "Frst", "end": 0}'))
    assert main(["tail", "Frst", "--count", "1", "--broker", face.url]) == 0
    told = capsys.readouterr().err
    assert told == "no subscription Frst is there yet, waiting for it; did you mean Frost?\n"


def test_tail_ends_with_3_when_the_broker_goes(face, capsys):
    def end() -> None:
        assert face.followed.wait(10)
        face.loop.call_soon_threadsafe(face.broker.fan.close)

    thread = threading.Thread(target=end)
    thread.start()
    assert main(["tail", "--broker", face.url]) == 3
    thread.join(10)
    assert "the broker ended the stream" in capsys.readouterr().err


def face_feeds(face: FaceThread, *results: tuple[str, bytes]) -> None:
    threading.Thread(target=face.publish, args=results).start()


# --- users, and brokers that are none ---------------------------------------------------------


def test_a_broker_with_users_wants_a_name_and_a_password(monkeypatch, capsys):
    with FaceThread(rights_of(anna=hash_password("sesame"))) as face:
        at = ["ls", "--broker", face.url]
        assert main(at) == 2
        assert "has users; name one with --user" in capsys.readouterr().err
        monkeypatch.setenv("HEADWATER_PASSWORD", "wrong")
        assert main([*at, "--user", "anna"]) == 2
        assert "does not know this user and password" in capsys.readouterr().err
        assert main(["tail", "--broker", face.url, "--user", "anna"]) == 2
        monkeypatch.setenv("HEADWATER_PASSWORD", "sesame")
        assert main([*at, "--user", "anna"]) == 0


def test_the_broker_may_be_named_by_the_environment(face, monkeypatch, capsys):
    monkeypatch.setenv("HEADWATER_BROKER", face.url)
    assert main(["ls"]) == 0


COMMANDS = [["ls"], ["submit", "SPEC"], ["cancel", "Frost"], ["tail"]]


@pytest.mark.parametrize("scheme", ["http", "mqtt"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_broker_that_is_not_there_is_status_3(scheme, command, spec, capsys):
    if (scheme, command[0]) == ("mqtt", "ls"):
        command = ["cancel", "Heat"]  # ls is refused over MQTT before anything is sent
    with socket.socket() as closed:  # bound and not listening: nobody else gets the port
        closed.bind(("127.0.0.1", 0))
        url = f"{scheme}://127.0.0.1:{closed.getsockname()[1]}"
        words = [spec("Frost") if word == "SPEC" else word for word in command]
        assert main([*words, "--broker", url]) == 3
    told = capsys.readouterr().err
    assert f"cannot reach {url}: connection refused; is it running?" in told


@contextmanager
def one_answer(data: bytes) -> Iterator[str]:
    """A server that answers the first request with these bytes and goes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(data)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join(10)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{",
    ],
)
def test_something_else_that_listens_there_is_status_3(data, capsys):
    with one_answer(data) as url:
        assert main(["ls", "--broker", url]) == 3
    assert "cannot reach" in capsys.readouterr().err


def test_a_broker_that_does_not_answer_in_time_is_status_3(capsys):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert main(["ls", "--broker", url, "--timeout", "0.2"]) == 3
    assert "no answer in time" in capsys.readouterr().err


# --- MQTT -------------------------------------------------------------------------------------


@contextmanager
def responder(port: int, replies: dict[str, bytes], results: list[bytes]) -> Iterator[list[str]]:
    """Plays the broker's part on another MQTT server: a reply by body, results once subscribed.

    Gives the list of topics and bodies that it saw.
    """
    seen: list[str] = []
    ready = threading.Event()

    async def serve() -> None:
        async with aiomqtt.Client("127.0.0.1", port, protocol=aiomqtt.ProtocolVersion.V5) as client:
            await client.subscribe("headwater/submit/+/+", qos=1)
            await client.subscribe("headwater/cancel/+/+", qos=1)
            await client.subscribe("test/end", qos=1)
            for number, result in enumerate(results):
                await client.publish(f"headwater/results/me/{number}", result, qos=1, retain=True)
            ready.set()
            async for message in client.messages:
                if message.topic.matches("test/end"):
                    return
                assert isinstance(message.payload, bytes)
                body = message.payload.decode()
                seen.append(f"{'/'.join(str(message.topic).split('/')[:3])} {body}")
                name = json.loads(body)["name"] if body.startswith("{") else body
                for reply in replies[name].splitlines():
                    await client.publish(message.properties.ResponseTopic, reply, qos=1)

    async def end() -> None:
        async with aiomqtt.Client("127.0.0.1", port) as client:
            await client.publish("test/end", b"", qos=1)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(10)
        yield seen
    finally:
        asyncio.run(end())
        thread.join(10)


@pytest.mark.program("mosquitto")
def test_submit_and_cancel_work_over_mqtt(mosquitto, spec, capsys):
    good = b'{"ok": true, "subscriptions": ["Frost"], "definitions": []}'
    error = {"code": "HW1", "message": "no", "line": 1, "column": 2}
    bad = json.dumps({"ok": False, "errors": [error]}).encode()
    at = ["--broker", mosquitto.url]
    with responder(mosquitto.port, {"Frost": good, "bad": bad, "none": b"[]"}, []) as seen:
        assert main(["submit", spec("Frost"), *at, "--as", "anna"]) == 0
        assert capsys.readouterr().out == "installed: Frost\n"
        assert main(["submit", spec("bad"), *at]) == 2
        assert "spec.hw:1:2: HW1: no\n    1 | bad\n      |  ^\n" in capsys.readouterr().err
        assert main(["cancel", "Frost", *at]) == 0
        assert main(["cancel", "bad", *at]) == 1
        assert main(["cancel", "none", *at]) == 1
    assert seen == [
        "headwater/submit/anna Frost",
        "headwater/submit/cli bad",
        'headwater/cancel/cli {"name": "Frost", "network": true}',
        'headwater/cancel/cli {"name": "bad", "network": true}',
        'headwater/cancel/cli {"name": "none", "network": true}',
    ]


@pytest.mark.program("mosquitto")
def test_waiting_over_mqtt_is_for_the_answer_that_all_is_active(mosquitto, spec, capsys):
    done = '{"ok": true, "subscriptions": ["Frost"], "state": "%s"}'
    both = "\n".join(done % state for state in ("accepted", "active")).encode()
    replies = {"Frost": both, "slow": (done % "accepted").encode(), "bad": b'{"ok": false}'}
    at = ["--broker", mosquitto.url, "--wait"]
    with responder(mosquitto.port, replies, []):
        assert main(["submit", spec("Frost"), *at]) == 0
        assert capsys.readouterr().out == "active: Frost\n"
        assert main(["submit", spec("Frost"), *at, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["state"] == "active"
        assert main(["submit", spec("bad"), *at]) == 2
        capsys.readouterr()
        assert main(["submit", spec("slow"), *at, "--timeout", "0.5"]) == 1
        told = "accepted, but not active everywhere in time: Frost"
        assert told in capsys.readouterr().err


@pytest.mark.program("mosquitto")
def test_tail_works_over_mqtt(mosquitto, capsys):
    with responder(mosquitto.port, {}, [HEAT, FROST]):
        assert main(["tail", "Frost", "--count", "1", "--broker", mosquitto.url]) == 0
    assert capsys.readouterr().out == "1970-01-01T00:00:01.000Z Frost temp=-1.5\n"


@pytest.mark.program("mosquitto")
def test_a_server_without_a_broker_behind_it_gives_no_reply(mosquitto, capsys):
    command = ["cancel", "Frost", "--broker", mosquitto.url, "--timeout", "0.5"]
    assert main(command) == 3
    assert "no reply in time" in capsys.readouterr().err
