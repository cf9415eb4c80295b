"""The servers under load: a whole broker of ours, and mosquitto where it is installed.

Owns their processes. Must not know loads. Invariant: each is a process of its own on a port that
the system chose, with nothing of another run in it, and is stopped at the end.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench import wire

ROOT = Path(__file__).resolve().parent.parent
SEARCH_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
# Drops nothing, however far a subscriber is behind, and does not wait for more to send (as uvloop
# does not): mosquitto's defaults would lose messages and hold others back for 40 ms.
PATIENT = """\
allow_anonymous true
max_queued_messages 0
max_inflight_messages 0
set_tcp_nodelay true
log_type error
"""
CONFIG = """\
[broker]
data_dir = "{folder}/data"
[mqtt]
port = 0
[http]
port = 0
"""
KEEPS_NOTHING: Mapping[str, str] = {"broker.data_dir": ""}
STOP_S = 15.0


class Server(msgspec.Struct, frozen=True):
    """A running server."""

    name: str
    pid: int
    port: int


def mosquitto_program() -> str | None:
    """Where mosquitto is installed, if it is."""
    return shutil.which("mosquitto", path=SEARCH_PATH)


def mosquitto_version() -> str:
    """What it calls itself."""
    program = mosquitto_program()
    if program is None:
        return "mosquitto is not installed"
    told = subprocess.run([program, "-h"], capture_output=True, text=True, check=False).stdout
    return told.splitlines()[0] if told else "mosquitto"


@contextmanager
def mosquitto(settings: str = "") -> Iterator[Server | None]:
    """A mosquitto, or None where there is no such program; `{folder}` in settings is its own."""
    program = mosquitto_program()
    if program is None:
        yield None
        return
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "mosquitto.conf"
        more = settings.format(folder=folder)
        config.write_text(f"listener {port} 127.0.0.1\n{PATIENT}{more}", encoding="utf-8")
        process = subprocess.Popen([program, "-c", str(config)], stderr=subprocess.DEVNULL)
        try:
            wait_for_port(port, process)
            yield Server("mosquitto", process.pid, port)
        finally:
            stop(process)


@contextmanager
def broker(
    specification: str = "", name: str = "broker", settings: Mapping[str, str] = KEEPS_NOTHING
) -> Iterator[Server]:
    """A `headwater broker` with its MQTT and HTTP faces, which runs this specification.

    `settings` are flags beyond the bench's own; without any it keeps nothing on disk, as mosquitto
    does by itself.
    """
    with tempfile.TemporaryDirectory() as folder:
        process, told = start_broker(folder, settings)
        try:
            port = int(told["mqtt"].rpartition(":")[2])
            if specification:
                submit(port, specification)
            yield Server(name, process.pid, port)
        finally:
            stop(process)


def start_broker(
    folder: str, settings: Mapping[str, str] | None = None
) -> "tuple[subprocess.Popen[str], dict[str, Any]]":
    """A broker's process, and what its ready line told. RuntimeError: it does not start."""
    config = Path(folder, "bench.toml")
    config.write_text(CONFIG.format(folder=folder), encoding="utf-8")
    command = [sys.executable, "-m", "headwater.cli", "broker", "--config", str(config)]
    command += ["--set", "log.format=json"]
    command += [f"--set={key}={value}" for key, value in (settings or {}).items()]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    told: dict[str, Any] = {}
    while told.get("event") != "ready":  # lines before it tell what is kept
        line = process.stderr.readline() if process.stderr is not None else ""
        try:
            told = msgspec.json.decode(line)
        except msgspec.DecodeError:
            stop(process)
            raise RuntimeError(f"the broker does not start: {line.strip()}") from None
    return process, told


def submit(port: int, specification: str) -> None:
    """Install a specification over MQTT; RuntimeError with the answer where it is refused."""
    connection = wire.connect(port, "bench", 4)
    connection.settimeout(STOP_S)
    wire.subscribe(connection, "headwater/reply/bench/1", 0, 4)
    topic = wire.short_text("headwater/submit/bench/1")
    connection.sendall(wire.publish(topic, specification.encode(), 0, 0, 4))
    data = b""
    while (frame := wire.frame_at(data, 0)) is None:
        data += connection.recv(65536) or b"\x30\x00"
    connection.close()
    answer = data[data.find(b"{") : frame[1]]
    if not msgspec.json.decode(answer)["ok"]:
        raise RuntimeError(f"the specification was refused: {answer.decode()}")


def stop(process: "subprocess.Popen[Any]") -> None:
    """End a process that was started here."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stderr is not None:
        process.stderr.close()


def free_port() -> int:
    """A TCP port of 127.0.0.1 that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for_port(port: int, process: "subprocess.Popen[Any]", patience_s: float = 15.0) -> None:
    """Return once the port accepts; RuntimeError where the process ends or takes too long."""
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with status {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("the server does not listen")
