"""A broker as a real process that joins mosquitto: what it tells of that, and what outlasts it."""

import asyncio
import json
import os
import subprocess
import time

import pytest

from tests.broker.joining.scene import TEXT, client, ids, send, take
from tests.broker.joining.servers import Mosquitto
from tests.broker.mqtt.sockets import make_certificates
from tests.broker.running import CONFIG, PATIENCE_S, RunningBroker, refused

SECRET = "sesame-in-the-hall"
STATUS = "headwater/status/site-1"


def now_ms():
    return time.time_ns() // 1_000_000


@pytest.fixture
def mosquitto(tmp_path, find_program):
    find_program("mosquitto")
    folder = tmp_path / "mosquitto"
    folder.mkdir()
    with Mosquitto(folder) as running:
        yield running


def broker(tmp_path, server, more="", **options):
    join = f"[joins.hall]\nport = {server.port}\n{more}"
    flags = ("--set", f"broker.data_dir={tmp_path}/data")
    return RunningBroker(tmp_path, CONFIG + join, *flags, **options)


def metric(running, name):
    (line,) = [one for one in running.get("/metrics")[1].splitlines() if one.startswith(name)]
    return float(line.rpartition(" ")[2])


async def until_ready(running):
    async with asyncio.timeout(PATIENCE_S):
        while (await asyncio.to_thread(running.get, "/readyz"))[0] != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def test_it_is_ready_once_the_server_is_joined_and_tells_where_not(tmp_path, mosquitto):
    mosquitto.stop()
    with broker(tmp_path, mosquitto) as running:
        assert running.line("join_lost")["join"] == "hall"
        where = f"mqtt://127.0.0.1:{mosquitto.port}"
        status, told = running.get("/readyz")
        assert (status, told["ready"]) == (503, False)
        assert told["missing"][0].startswith(f"the MQTT server hall at {where}: ")
        assert metric(running, 'headwater_join_up{join="hall"}') == 0
        mosquitto.start()
        assert running.line("joined")["at"] == where
        asyncio.run(until_ready(running))
        assert metric(running, 'headwater_join_up{join="hall"}') == 1
        assert metric(running, 'headwater_join_messages_total{what="connections"}') == 1
        state = running.get("/v1/status")[1]["joins"]["hall"]
        assert (state["state"], state["address"], state["connections"]) == ("connected", where, 1)
        assert running.end() == 0


def test_its_state_stands_there_whether_it_ends_or_is_killed(tmp_path, mosquitto):
    async def scene():
        async with client(mosquitto, STATUS) as one:
            for end, last in (("end", "stopped"), ("kill", "lost")):
                with broker(tmp_path, mosquitto) as running:
                    await take(one, lambda found: found[-1][1]["state"] == "ready")
                    if end == "kill":
                        running.process.kill()
                    else:
                        assert await asyncio.to_thread(running.end) == 0
                    ((_, said),) = await take(one, lambda _: True)
                    assert said["state"] == last

    asyncio.run(scene())


def test_a_killed_broker_finds_what_came_meanwhile_and_what_it_had_not_acknowledged(
    tmp_path, mosquitto
):
    async def scene():
        begin = now_ms()
        topic = "headwater/results/anna/Hot"
        async with client(mosquitto, topic) as one:
            with broker(tmp_path, mosquitto, "requests = true\n") as running:
                await until_ready(running)
                await one.publish("headwater/submit/me/1", TEXT, qos=1)
                await one.subscribe("headwater/reply/#", qos=1)
                await take(one, lambda found: found[-1][1].get("state") == "active")
                sending = asyncio.create_task(send(one, range(200), begin))
                found = await take(one, lambda found: len(found) == 50)
                running.process.kill()
                await sending
            await send(one, range(200, 220), begin)
            with broker(tmp_path, mosquitto, "requests = true\n") as running:

                def all_there(more):
                    return {*ids(told for _, told in [*found, *more])} == {
                        f"e{number}" for number in range(220)
                    }

                found += await take(one, all_there)
                told = [result for _, result in found]
                by_event = {}
                for result in told:
                    by_event.setdefault(result["events"]["Temp"][0], set()).add(result["id"])
                assert all(len(one) == 1 for one in by_event.values())

    asyncio.run(scene())


@pytest.mark.program("openssl", "mosquitto_passwd")
@pytest.mark.parametrize("given", ["environment", "file"])
def test_tls_user_and_password_and_no_secret_in_the_log(tmp_path, find_program, given):
    find_program("mosquitto")
    make_certificates(tmp_path, find_program("openssl"))
    users = tmp_path / "users"
    users.write_text(f"site:{SECRET}\n")
    subprocess.run([find_program("mosquitto_passwd"), "-U", str(users)], check=True)
    lines = [
        "allow_anonymous false",
        f"password_file {users}",
        f"cafile {tmp_path}/ca.pem",
        f"certfile {tmp_path}/server.pem",
        f"keyfile {tmp_path}/server.key",
        "require_certificate true",
    ]
    words = tmp_path / "password"
    words.write_text("wrong\n")
    words.chmod(0o600)
    tls = f'tls = true\ntls_ca = "{tmp_path}/ca.pem"\ntls_cert = "{tmp_path}/client.pem"\n'
    tls += f'tls_key = "{tmp_path}/client.key"\nuser = "site"\n'
    environ = {"HEADWATER__LOG__LEVEL": "debug"}
    if given == "file":
        tls += f'password_file = "{words}"\n'
    else:
        environ["HEADWATER__JOINS__HALL__PASSWORD"] = "wrong"
    with Mosquitto(tmp_path, *lines) as server:
        with broker(tmp_path, server, tls, environ=environ) as running:
            lost = running.line("join_lost")
            assert lost["reason"] == "it said: not authorized"
            assert running.end() == 0
        words.write_text(f"{SECRET}\n")
        if given == "environment":
            environ["HEADWATER__JOINS__HALL__PASSWORD"] = SECRET
        with broker(tmp_path, server, tls, environ=environ) as running:
            running.line("joined")
            status = json.dumps(running.get("/v1/status")[1])
            assert running.end() == 0
            assert SECRET not in json.dumps(running.lines) + status
        # Of another authority, or none: the name of the file decides.
        strange = tls.replace(f'tls_ca = "{tmp_path}/ca.pem"\n', "")
        with broker(tmp_path, server, strange, environ=environ) as running:
            assert "certificate verify failed" in running.line("join_lost")["reason"]
            assert running.end() == 0


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ('user = "a"\npassword_file = "nowhere"', "cannot be read: no such file or directory"),
        ('user = "a"\npassword_file = "empty"', "is no password"),
        ('tls = true\ntls_ca = "nowhere.pem"', "the certificates cannot be read ("),
        ('tls = true\ntls_ca = "empty"', "the certificates cannot be read ("),
    ],
)
def test_what_cannot_be_read_is_said_at_the_start(tmp_path, more, says):
    (tmp_path / "empty").write_text("")
    config = tmp_path / "site.toml"
    config.write_text(f"{CONFIG}\n[joins.hall]\n{more}\n")
    flags = ["--config", str(config), "--set", f"broker.data_dir={tmp_path}/data"]
    status, errors = refused(flags)
    assert status == 2
    assert "joins.hall" in errors
    assert says in errors
    assert os.linesep not in errors.strip()
