"""A broker as a real process that joins mosquitto: what it tells of that, and what outlasts it."""

import asyncio
import json
import os
import subprocess
import time

import pytest

from broker.config.joins import JoinSection
from tests.broker.bridge.scene import TEXT, Scene, client, ids, section, send, take, until
from tests.broker.bridge.servers import Mosquitto
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
                sending = asyncio.create_task(send(one, range(100), begin))
                found = await take(one, lambda found: len(found) >= 20)
                running.process.kill()
                await sending
            await send(one, range(100, 110), begin)
            with broker(tmp_path, mosquitto, "requests = true\n") as running:

                def all_there(more):
                    return {*ids(told for _, told in [*found, *more])} == {
                        f"e{number}" for number in range(110)
                    }

                found += await take(one, all_there)
                told = [result for _, result in found]
                by_event = {}
                for result in told:
                    by_event.setdefault(result["events"]["Temp"][0], set()).add(result["id"])
                assert all(len(one) == 1 for one in by_event.values())

    asyncio.run(scene())


def secured(folder, find_program):
    """What makes mosquitto ask for TLS, a certificate, a user and a password."""
    find_program("mosquitto")
    make_certificates(folder, find_program("openssl"))
    users = folder / "users"
    users.write_text(f"site:{SECRET}\n")
    subprocess.run([find_program("mosquitto_passwd"), "-U", str(users)], check=True)
    return [
        "allow_anonymous false",
        f"password_file {users}",
        f"cafile {folder}/ca.pem",
        f"certfile {folder}/server.pem",
        f"keyfile {folder}/server.key",
        "require_certificate true",
    ]


def login(folder):
    files = {"tls_cert": "client.pem", "tls_key": "client.key"}
    return {"tls": True, "user": "site", **{key: f"{folder}/{name}" for key, name in files.items()}}


def test_a_password_from_a_file_tls_and_a_certificate(tmp_path, find_program, caplog):
    """And whoever has none of these, or trusts another authority, is told why."""
    password = tmp_path / "password"
    password.write_text(f"{SECRET}\nnot this line\n")
    password.chmod(0o600)
    good = {**login(tmp_path), "tls_ca": f"{tmp_path}/ca.pem", "password_file": str(password)}

    async def scene(server):
        async with Scene(section(server, **good)) as site:
            await site.up()
        wrong = {key: value for key, value in good.items() if key != "password_file"}
        for one, why in (
            ({**wrong, "password": "wrong"}, "it said: not authorized"),
            ({**good, "tls_ca": ""}, "certificate verify failed"),
            ({**good, "tls": False, "tls_ca": "", "tls_cert": "", "tls_key": ""}, "it closed"),
        ):
            async with Scene(section(server, **one)) as site:
                await until(lambda site=site: site.join.why != "not connected yet")
                assert why in site.join.why
                assert not site.join.up

    caplog.set_level("DEBUG")
    with Mosquitto(tmp_path, *secured(tmp_path, find_program)) as server:
        asyncio.run(scene(server))
    told = [f"{one.getMessage()} {getattr(one, 'fields', '')}" for one in caplog.records]
    assert any("joined" in one for one in told)
    assert not any(SECRET in one for one in told)


def test_a_password_from_the_environment_stands_in_no_log(tmp_path, find_program):
    files = "".join(
        f'{key} = "{value}"\n' for key, value in login(tmp_path).items() if key != "tls"
    )
    more = f'tls = true\ntls_ca = "{tmp_path}/ca.pem"\n{files}'
    environ = {"HEADWATER__LOG__LEVEL": "debug", "HEADWATER__JOINS__HALL__PASSWORD": SECRET}
    with (
        Mosquitto(tmp_path, *secured(tmp_path, find_program)) as server,
        broker(tmp_path, server, more, environ=environ) as running,
    ):
        running.line("joined")
        status = json.dumps(running.get("/v1/status")[1])
        assert running.end() == 0
        assert SECRET not in json.dumps(running.lines) + status


def test_a_password_that_others_can_read_is_told_of(tmp_path, caplog):
    password = tmp_path / "password"
    password.write_text(SECRET)
    for mode, count in ((0o600, 0), (0o644, 1)):
        password.chmod(mode)
        caplog.clear()

        async def scene():
            Scene(JoinSection(user="a", password_file=str(password)))

        asyncio.run(scene())
        assert len(caplog.records) == count
        assert SECRET not in caplog.text


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
