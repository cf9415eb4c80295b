"""Replays the recordings of real weather stations as sensors, for docker-compose.yml.

    python deploy/replay.py singapore --broker mqtt://127.0.0.1:1883

The values are those that were measured, see examples/data/README.md. Only the times are moved: what
was recorded is sent `--rate` times as fast until it has caught up with the present, and as fast as
it was measured from then on, from the beginning again at the end. What was published and
acknowledged stands in the log, a line a minute.
"""

import argparse
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headwater.cli.frame import main as headwater
from headwater.client import broker_for, publisher_for
from headwater.demo.material import StationRecording, load
from headwater.remote import ClientError

HOMES = {
    "grand-st-bernard": {"FrozenGround", "ColdStation", "WindChill"},
    "singapore": {"HotStation", "StormCell", "RapidCooling", "CoolingFront"},
}
TELL_S = 60.0
RETRY_S = 2.0


def texts(text: str, names: set[str]) -> str:
    """Return a text with all declarations, and of the subscriptions those of these names."""
    items = re.split(r"\n(?=\S)", text)
    found = ((re.match(r"subscription\s+(\w+)", item), item) for item in items)
    return "\n".join(item for named, item in found if named is None or named[1] in names)


def submitted(text: str, address: str, file: Path) -> None:
    """Submit a text until it is taken; the same text again changes nothing."""
    file.write_text(text, encoding="utf-8")
    os.environ["HEADWATER_PASSWORD"] = secret("demo")
    while headwater(["submit", str(file), "--broker", address, "--user", "demo"]) != 0:
        time.sleep(RETRY_S)


def secret(name: str) -> str:
    """Return the first line of a secret's file."""
    text = Path("/run/secrets", name).read_text(encoding="utf-8")
    return text.split("\n", 1)[0]


def events(recording: StationRecording, rate: float) -> Iterator[tuple[float, Any, dict[str, Any]]]:
    """Yield when each reading is due (seconds of `time.time`), the reading, and what to publish."""
    import msgspec

    first_ms, last_ms = recording.readings[0].time_ms, recording.readings[-1].time_ms
    length_s = (last_ms - first_ms) / 1000 + 60
    begun_s = time.time()
    # Sent `rate` times as fast from `began_s` on, the last reading is of the moment it is sent at.
    base_s = begun_s - length_s * (1 - 1 / rate)
    turn = 0
    while True:
        for reading in recording.readings:
            at_s = base_s + (reading.time_ms - first_ms) / 1000
            due_s = begun_s + (at_s - base_s) / rate if turn == 0 else at_s
            said = msgspec.json.decode(reading.payload)
            said |= {"id": f"{reading.id}-{int(begun_s)}-{turn}", "timestamp": int(at_s * 1000)}
            yield due_s, reading, said
        base_s += length_s
        turn += 1


def play(recording: StationRecording, address: str, rate: float) -> None:
    """Publish for ever; the connection comes back by itself, and nothing is left out."""
    broker = broker_for(address, "sensors", secret("sensors"), None, 30.0)
    while True:
        try:
            publisher = publisher_for(broker, f"replay-{os.getpid()}-{time.time_ns()}")
            break
        except ClientError as error:
            sys.stderr.write(f"{error}\n")
            time.sleep(RETRY_S)
    for station in recording.stations.values():
        said: dict[str, Any] = {"source": station.name, "types": station.types}
        said["location"] = station.location
        if station.position is not None:
            said["position"] = station.position
        publisher.advertise(station.name, said)
    told_s = time.monotonic()
    for count, (due_s, reading, said) in enumerate(events(recording, rate), 1):
        if (wait_s := due_s - time.time()) > 0:
            time.sleep(wait_s)
        publisher.send(reading.type, reading.source, [said])
        if time.monotonic() - told_s > TELL_S:
            publisher.wait(None)
            sys.stdout.write(f"{count} readings published and acknowledged\n")
            sys.stdout.flush()
            told_s = time.monotonic()


def main() -> None:
    """Submit the site's subscriptions where that is asked for, and play."""
    parser = argparse.ArgumentParser(description="Replay the recordings of real weather stations.")
    parser.add_argument("recording", choices=sorted(HOMES))
    parser.add_argument("--broker", default="mqtt://mqtt:1883")
    parser.add_argument("--submit", metavar="URL", help="where to submit the subscriptions first")
    parser.add_argument("--rate", type=float, default=60.0)
    arguments = parser.parse_args()
    # As the first process of a container it would be deaf to the signal that ends containers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    material = load()
    if arguments.submit:
        submitted(
            texts(material.text, HOMES[arguments.recording]),
            arguments.submit,
            Path(tempfile.gettempdir(), "weather.hw"),
        )
    (recording,) = (
        one
        for one in material.recordings
        if next(iter(one.stations.values())).location.startswith(arguments.recording)
    )
    play(recording, arguments.broker, arguments.rate)


if __name__ == "__main__":
    main()
