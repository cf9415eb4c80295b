"""How a broker starts, refuses to start, and ends."""

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import aiomqtt
import pytest

from broker.credentials import hash_password
from tests.broker.mqtt.sockets import make_certificates
from tests.broker.running import (
    CONFIG,
    PATIENCE_S,
    ROOT,
    RunningBroker,
    ask,
    client,
    refused,
    start,
    take,
)

HOT = "event Temp(val: float)\nsubscription Hot from anna to alerts\ndetect Temp(val > 30)\n"


@pytest.fixture
def own(tmp_path):
    """Flags that give a broker ports and a directory of its own."""
    return [
        "--set=mqtt.port=0",
        "--set=http.port=0",
        f"--set=broker.data_dir={tmp_path}/data",
    ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_status_0_and_clients_are_told(tmp_path, own, number):
    with RunningBroker(tmp_path, CONFIG, *own) as broker:
        told = []

        async def scene():
            # The connection ends under the client, which may notice in the middle of leaving.
            with contextlib.suppress(aiomqtt.MqttError, OSError):
                async with client(broker.port(), "headwater/status/+") as one:
                    told.extend(await take(one))
                    broker.process.send_signal(number)
                    told.extend(await take(one))

        asyncio.run(scene())
        states = [(topic, payload["state"]) for topic, payload in told]
        assert states == [("headwater/status/site-1", state) for state in ("ready", "stopped")]
        assert broker.ended() == 0
        assert [line["event"] for line in broker.lines] == ["ready", "account", "stopped"]


def test_under_nohup_it_outlives_the_terminal(tmp_path, own):
    config = write(tmp_path, CONFIG)
    command = [sys.executable, "-m", "headwater.cli", "broker", "--config", config, *own]
    process = subprocess.Popen(
        ["nohup", *command],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            while '"ready"' not in (line := process.stderr.readline()):
                assert line
            told = Path(f"/proc/{process.pid}/status").read_text()
            ignored = int(re.search(r"SigIgn:\s*(\w+)", told)[1], 16)
            assert ignored >> (signal.SIGHUP - 1) & 1
            process.send_signal(signal.SIGHUP)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
            ends = [json.loads(line)["event"] for line in process.stderr]
        finally:
            process.kill()
    assert ends == ["account", "stopped"]


def ended_by(process, number):
    """Its status after a signal, which is sent again as somebody does for whom nothing happens.

    Python looks for signals before it waits in a system call; of one that comes in between it
    hears with the next.
    """
    for _ in range(4):
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(PATIENCE_S / 4)
    return process.poll()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_status_0_before_it_has_begun(tmp_path, own, number):
    """Here while it waits for its configuration, which comes through a pipe."""
    os.mkfifo(tmp_path / "site.toml")
    process = start(["--config", str(tmp_path / "site.toml"), *own])
    try:
        with (tmp_path / "site.toml").open("w"):  # opens once the broker does
            assert ended_by(process, number) == 0
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        process.stderr.close()


def test_it_ends_while_clients_are_connected_and_results_are_followed(tmp_path, own):
    with RunningBroker(tmp_path, CONFIG, *own) as broker:
        sockets = [
            socket.create_connection(("127.0.0.1", broker.port(face))) for face in ("mqtt", "http")
        ]
        with sockets[0], sockets[1]:
            sockets[1].sendall(b"GET /v1/results HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert sockets[1].recv(15) == b"HTTP/1.1 200 OK"
            began_s = time.monotonic()
            assert broker.end() == 0
            assert time.monotonic() - began_s < 8  # nobody's patience is waited for


def test_its_log_as_text_is_a_line_each(tmp_path, own):
    config = CONFIG.replace("json", "text")
    process = start(["--config", write(tmp_path, config), *own])
    try:
        line = process.stderr.readline()
        assert " INFO site-1 ready mqtt=127.0.0.1:" in line
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        process.stderr.close()


def write(folder, config):
    path = folder / "broker.toml"
    path.write_text(config)
    return str(path)


# --- what it refuses --------------------------------------------------------------------------


def sentence(errors):
    """The one line that is there: no traceback, nothing beside it."""
    lines = errors.splitlines()
    assert len(lines) == 1, errors
    assert lines[0].startswith("headwater: ")
    return lines[0]


@pytest.mark.parametrize("face", ["mqtt", "http"])
def test_a_port_in_use_is_told_in_a_sentence(own, face):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, errors = refused([*own, f"--set={face}.port={port}"])
    assert status == 2
    assert sentence(errors) == (
        f"headwater: cannot listen for {face.upper()} on 127.0.0.1:{port}: address already in use; "
        f"choose another port under [{face}], or end what listens there"
    )


def test_a_broker_that_cannot_start_says_so_as_json_where_json_was_asked_for(own):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "headwater.cli", "broker", "--json", *own]
        done = subprocess.run(
            [*command, f"--set=http.port={port}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
    assert (done.returncode, done.stderr) == (2, "")
    assert "already in use" in json.loads(done.stdout)["errors"][0]["message"]


def test_with_json_its_log_is_json(tmp_path, own):
    """Whatever its configuration says."""
    text = CONFIG.replace('"json"', '"text"')
    with RunningBroker(tmp_path, text, *own, "--json") as broker:
        assert broker.where["mqtt"]
        assert broker.end() == 0


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_form_of_the_log_can_be_chosen_for_one_process(form, tmp_path, own):
    """`--log` wins over the file and over `--set`."""
    other = {"text": "json", "json": "text"}[form]
    text = CONFIG.replace('"json"', f'"{other}"')
    flags = [*own, "--log", form, f"--set=log.format={other}"]
    with contextlib.ExitStack() as stack:
        if form == "json":
            broker = stack.enter_context(RunningBroker(tmp_path, text, *flags))
            assert broker.end() == 0
            assert all({"time", "level", "broker", "event"} <= set(line) for line in broker.lines)
        else:
            file = tmp_path / "broker.toml"
            file.write_text(text)
            process = start(["--config", str(file), *flags])
            stack.callback(process.stderr.close)
            while " ready " not in (line := process.stderr.readline()):
                assert line and not line.startswith("{")  # noqa: PT018
            process.terminate()
            assert process.wait(PATIENCE_S) == 0


def test_a_directory_that_cannot_be_written_is_told_in_a_sentence(tmp_path, own):
    """Root may write anywhere, so where the test is root a file stands in the way instead."""
    if os.geteuid() == 0:
        (tmp_path / "data").write_text("")
    else:
        (tmp_path / "data").mkdir(mode=0o555)
    status, errors = refused(own)
    assert status == 2
    assert f"the data directory {tmp_path}/data cannot be written" in sentence(errors)


def test_a_directory_on_a_read_only_disk_is_told_in_a_sentence(own):
    """Nobody, not even root, makes a directory there."""
    status, errors = refused([*own, "--set=broker.data_dir=/proc/headwater"])
    assert status == 2
    assert "the data directory /proc/headwater cannot be written" in sentence(errors)


def test_a_directory_belongs_to_one_broker(tmp_path, own):
    with RunningBroker(tmp_path, CONFIG, *own):
        assert (tmp_path / "data").stat().st_mode & 0o077 == 0  # and to its user alone
        status, errors = refused(own)
    assert status == 2
    assert "is in use by another broker" in sentence(errors)
    with RunningBroker(tmp_path, CONFIG, *own):
        pass  # the lock of a broker that was killed is gone with it


def test_an_unknown_key_is_refused_with_the_nearest(tmp_path):
    status, errors = refused(["--config", write(tmp_path, "[mqtt]\nprot = 1\n")])
    assert status == 2
    assert "broker.toml:2:1" in sentence(errors)
    assert "`port`" in errors


def test_strangers_are_not_let_in_from_other_machines_without_users(own):
    status, errors = refused([*own, "--set=mqtt.host=0.0.0.0"])
    assert status == 2
    assert "no user is configured" in sentence(errors)


def test_a_certificate_that_is_none_is_told_in_a_sentence(tmp_path, own):
    flags = [f"--set=mqtt.tls_{name}={tmp_path}/none.pem" for name in ("cert", "key")]
    status, errors = refused([*own, *flags])
    assert status == 2
    assert sentence(errors).endswith("none.pem: cannot be read: no such file or directory")
    (tmp_path / "none.pem").write_text("nothing of the kind")
    status, errors = refused([*own, *flags])
    assert status == 2
    assert sentence(errors).endswith("cannot be used: it is not what a file in PEM should hold")


@pytest.mark.program("openssl")
def test_a_key_under_a_passphrase_is_not_waited_for(tmp_path, own, find_program):
    """OpenSSL would ask the terminal for it, and the broker would never start."""
    made = [find_program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt"]
    made += ["ec_paramgen_curve:prime256v1", "-subj", "/CN=x", "-passout", "pass:sesame"]
    made += ["-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
    flags = [f"--set=mqtt.tls_{name}={tmp_path}/{name}.pem" for name in ("cert", "key")]
    status, errors = refused([*own, *flags])
    assert status == 2
    assert "key.pem is locked with a passphrase" in sentence(errors)


# --- users and TLS ----------------------------------------------------------------------------


def test_users_come_in_by_password_and_requests_are_theirs(tmp_path, own):
    rights = tmp_path / "rights.toml"
    rights.write_text(
        f"""
[roles.person]
submit_as = ["*"]
read_types = ["*"]
drive = ["*"]
subscribe = ["reply/#"]
[users.anna]
roles = ["person"]
password = "{hash_password("sesame")}"
[roles.other]
submit_as = ["bert"]
subscribe = ["reply/#"]
[users.bert]
roles = ["other"]
password = "{hash_password("open")}"
"""
    )
    with RunningBroker(tmp_path, CONFIG, *own, "--set", f"broker.rights={rights}") as broker:
        anna = {"username": "anna", "password": "sesame"}
        bert = {"username": "bert", "password": "open"}

        async def scene():
            for login in ({}, {**anna, "password": "wrong"}):
                with pytest.raises(aiomqtt.MqttError):
                    async with client(broker.port(), **login):
                        pass
            async with client(broker.port(), **anna) as one, client(broker.port(), **bert) as two:
                assert (await ask(one, "submit", HOT, name="whoever"))["ok"] is True
                # The user counts, not the name that the topic gives.
                reply = await ask(two, "cancel", "Hot", name="anna")
                assert reply["errors"][0]["code"] == "HW505"
                higher = HOT.replace("Hot", "Hot seq 2")
                reply = await ask(two, "submit", higher, name="anna")
                assert [error["code"] for error in reply["errors"]] == ["HW512"] * 3
                assert (await ask(one, "cancel", "Hot", name="whoever"))["ok"] is True

        asyncio.run(scene())
        assert broker.get("/v1/status")[0] == 401
        assert broker.get("/readyz")[0] == 200


@pytest.mark.program("openssl")
def test_tls_listens_beside_or_instead_of_plain(tmp_path, own, find_program):
    make_certificates(tmp_path, find_program("openssl"))
    tls = f"""
tls_port = 0
tls_cert = "{tmp_path}/server.pem"
tls_key = "{tmp_path}/server.key"
"""
    context = ssl.create_default_context(cafile=tmp_path / "ca.pem")
    for plain in ("true", "false"):
        config = CONFIG.replace("[http]", f"plain = {plain}\n{tls}[http]")
        with RunningBroker(tmp_path, config, *own) as broker:
            assert set(broker.where) == {"mqtts", "http"} | ({"mqtt"} if plain == "true" else set())

            async def scene():
                async with client(broker.port("mqtts"), tls_context=context) as one:
                    assert (await ask(one, "submit", HOT))["ok"] is True

            asyncio.run(scene())
            assert broker.end() == 0


# --- the supervisor, size and speed -----------------------------------------------------------


def test_systemd_is_told_that_it_is_ready_alive_and_ending(tmp_path, own):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(str(tmp_path / "notify"))
        supervisor.settimeout(PATIENCE_S)
        environ = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "200000"}
        with RunningBroker(tmp_path, CONFIG, *own, environ=environ) as broker:
            said = [supervisor.recv(100) for _ in range(4)]
            assert b"READY=1" in said
            assert said.count(b"WATCHDOG=1") >= 3
            broker.process.terminate()
            while supervisor.recv(100) != b"STOPPING=1":
                pass
            assert broker.ended() == 0


@pytest.mark.parametrize(("flags", "size_kb"), [(["--set=broker.data_dir="], 64_000), ([], 72_000)])
def test_an_idle_broker_is_small_and_starts_soon(tmp_path, own, flags, size_kb):
    """A second of work is the goal, of which others may have the machine for longer.

    What keeps a database needs some 16 MB for the library that it is reached by.
    """
    with RunningBroker(tmp_path, CONFIG, *own, *flags) as broker:
        status = Path(f"/proc/{broker.process.pid}/status").read_text()
        fields = dict(line.split(":", 1) for line in status.splitlines())
        assert int(fields["VmRSS"].split()[0]) < size_kb
        stat = Path(f"/proc/{broker.process.pid}/stat").read_text().rpartition(")")[2].split()
        worked_s = (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")  # utime, stime
        assert 0 < worked_s < 2
