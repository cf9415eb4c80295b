"""Our MQTT face beside mosquitto under the same loads: CPU per message and latency.

Owns the two servers and the table. Must not know the broker behind the face. Invariant: both
servers see byte for byte the same load, one after the other, on the same machine.

    python -m bench.mqtt_face [--quick] [--json]
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench.load import Load, Outcome, free_port, measure, wait_for_port

SEARCH_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
PATIENT = "allow_anonymous true\nmax_queued_messages 0\nmax_inflight_messages 0\nlog_type error\n"


@contextmanager
def mosquitto() -> Iterator[tuple[int, int] | None]:
    """Pid and port of a mosquitto that drops nothing, or None where there is no such program."""
    program = shutil.which("mosquitto", path=SEARCH_PATH)
    if program is None:
        yield None
        return
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "mosquitto.conf"
        settings.write_text(f"listener {port} 127.0.0.1\n{PATIENT}")
        process = subprocess.Popen([program, "-c", str(settings)], stderr=subprocess.DEVNULL)
        try:
            wait_for_port(port, process)
            yield process.pid, port
        finally:
            process.terminate()
            process.wait(timeout=15)


@contextmanager
def face(loop: str = "uvloop") -> Iterator[tuple[int, int]]:
    """Pid and port of a process with our face and an application that completes at once."""
    port = free_port()
    command = [sys.executable, "-m", "bench.mqtt_face", "--serve", str(port), "--loop", loop]
    root = Path(__file__).resolve().parent.parent
    process = subprocess.Popen(command, cwd=root)
    try:
        wait_for_port(port, process)
        yield process.pid, port
    finally:
        process.terminate()
        process.wait(timeout=15)


def serve(port: int, loop: str) -> None:
    """Be that process, until it is told to end."""
    import signal

    import uvloop

    from broker.mqtt.application import InboundMessage
    from broker.mqtt.listening import Listener
    from broker.mqtt.router import Prefix
    from broker.mqtt.server import MqttServer

    class Done:
        def on_publish(self, messages: list[InboundMessage]) -> None:
            for message in messages:
                server.complete(message.token)

    prefix = Prefix("headwater", ("headwater/events/#",))
    server = MqttServer(Done(), listeners=[Listener(port=port)], prefix=prefix)

    async def run() -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        await server.start()
        await stop.wait()
        await server.stop()

    if loop == "uvloop":
        uvloop.run(run())
    else:
        asyncio.run(run())


def loads(*, quick: bool) -> Iterator[tuple[str, Load]]:
    """Every load by its name."""
    seconds = 2.0 if quick else 6.0
    for qos in (0, 1):
        for rate in (1000.0, 5000.0):
            load = Load(qos=qos, rate=rate, seconds=seconds)
            yield f"QoS {qos}, {rate:.0f}/s paced", load
            bursts = msgspec.structs.replace(load, burst=50)
            yield f"QoS {qos}, {rate:.0f}/s, 50 at once", bursts
        fast = Load(qos=qos, rate=0.0, burst=50)
        yield f"QoS {qos}, as fast as it goes", fast


def application_load(load: Load) -> Load:
    """The same load on the application's topics, which clients see as well."""
    return msgspec.structs.replace(
        load, topic="headwater/events/Temp/s{source}", topic_filter="headwater/events/#"
    )


def compare(*, quick: bool, loop: str) -> list[dict[str, Any]]:
    """Measure every load on both servers, print as it goes, return the figures."""
    rows = []
    with mosquitto() as other, face(loop) as ours:
        if other is None:
            print("mosquitto is not installed: only our own figures, no ratio")
        for name, load in loads(quick=quick):
            there = measure(*other, load) if other is not None else None
            here = measure(*ours, load)
            handed = measure(*ours, application_load(load))
            rows.append(row(name, there, here, handed))
            show(name, there, here, handed)
    return rows


def row(name: str, there: Outcome | None, here: Outcome, handed: Outcome) -> dict[str, Any]:
    """One load's figures as plain data."""
    ratios = {}
    if there is not None:
        ratios = {
            "ratio": here.cpu_us / there.cpu_us,
            "ratio_application": handed.cpu_us / there.cpu_us,
        }
    outcomes = {"mosquitto": there, "face": here, "face_application": handed}
    plain: dict[str, Any] = msgspec.to_builtins(outcomes)
    return {"load": name, **ratios, **plain}


def show(name: str, there: Outcome | None, here: Outcome, handed: Outcome) -> None:
    """The same for a person."""
    print(name)
    for label, outcome in (("mosquitto", there), ("face", here), ("face, application", handed)):
        if outcome is not None:
            ratio = f"  ×{outcome.cpu_us / there.cpu_us:.2f}" if there is not None else ""
            print(f"  {label:18} {outcome.line()}{ratio}", flush=True)


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description="our MQTT face beside mosquitto")
    parser.add_argument("--quick", action="store_true", help="2 s for each load instead of 6 s")
    parser.add_argument("--json", action="store_true", help="the figures as JSON at the end")
    parser.add_argument("--loop", choices=("uvloop", "asyncio"), default="uvloop")
    parser.add_argument("--serve", type=int, metavar="PORT", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve, arguments.loop)
        return
    rows = compare(quick=arguments.quick, loop=arguments.loop)
    if arguments.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
