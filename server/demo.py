"""The whole chain on one machine: six brokers, recorded weather, and Spark behind them.

Owns the order of the demonstration and its account. Must not know how any part works. Invariant: it
ends well only if the history holds exactly the results that the brokers' outboxes hold.

    python -m server.demo

Each broker stands for a region and gets the stations of its own; beside it the same readings are
replayed in one process.
"""

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import aiomqtt
import msgspec

from headwater.cli import main as headwater
from headwater.demo.material import (
    DemoMaterial,
    NetworkSettled,
    RecordedReading,
    Sent,
    StationAdvertised,
    StationRecording,
    load,
    steps,
)
from headwater.engine import Engine
from server.history import table_of
from server.source.log import Log

BROKERS: Final = 6
READY_S: Final = 60.0
QUIET_S: Final = 3.0  # a log that ends where it ended so long ago has all results
END_S: Final = 600.0
IN_FLIGHT_MAX: Final = 500

_BROKER: Final = """
[broker]
name = "{name}"
data_dir = "{folder}/data"
[mqtt]
port = 0
[http]
port = 0
[log]
format = "json"
"""

_JOBS: Final = """
[server]
name = "demo"
http = "127.0.0.1:0"
[sources.regions]
brokers = {{ {brokers} }}
[jobs.history]
kind = "history"
source = "regions"
sink = "archive"
[jobs.hours]
kind = "windows"
source = "regions"
window = "1 h"
by = ["subscription"]
sink = "database"
[sinks.archive]
kind = "parquet"
path = "history"
[sinks.database]
kind = "database"
url = "sqlite:///{folder}/hours.db"
"""


class DemoBroker:
    """One broker in a process of its own, with a part of the stations."""

    def __init__(self, name: str, folder: Path, recordings: list[StationRecording]) -> None:
        self.name = name
        self.recordings = recordings
        folder.mkdir()
        config = folder / "broker.toml"
        config.write_text(_BROKER.format(name=name, folder=folder), encoding="utf-8")
        self._log = folder / "broker.log"
        with self._log.open("wb") as output:
            self.process = _started(["broker", "--config", str(config)], output)
        self.where: dict[str, Any] = {}

    def ready(self) -> None:
        """Wait until it listens. Raises RuntimeError."""
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline and self.process.poll() is None:
            for line in self._log.read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(ValueError):
                    record = json.loads(line)
                    if record.get("event") == "ready":
                        self.where = record
                        return
            time.sleep(0.05)
        raise RuntimeError(f"{self.name} is not ready: {self._log.read_text(encoding='utf-8')}")

    @property
    def url(self) -> str:
        """Of its HTTP face."""
        return f"http://127.0.0.1:{_port(self.where['http'])}"

    async def feed(self) -> int:
        """Publish its readings; how many."""
        room = asyncio.Semaphore(IN_FLIGHT_MAX)
        port = _port(self.where["mqtt"])

        async def publish(client: aiomqtt.Client, step: Sent) -> None:
            try:
                await client.publish(
                    *_message(step), qos=1, retain=not isinstance(step, RecordedReading)
                )
            finally:
                room.release()

        count = 0
        async with (
            aiomqtt.Client("127.0.0.1", port, max_queued_outgoing_messages=0) as client,
            asyncio.TaskGroup() as sending,
        ):
            client.pending_calls_threshold = 2 * IN_FLIGHT_MAX  # it would warn of each
            for _, step in steps(self.recordings):
                if isinstance(step, NetworkSettled):  # there is but one broker to know the stations
                    continue
                await room.acquire()
                sending.create_task(publish(client, step))
                count += isinstance(step, RecordedReading)
        return count

    def results(self) -> Counter[str]:
        """Count what its outbox holds, by subscription, once nothing is added any more."""
        log = Log(self.name, self.url)
        standing = log.offsets()
        while (after := log.offsets(standing.end, QUIET_S)).end != standing.end:
            standing = after
        counts: Counter[str] = Counter()
        for begin in range(standing.earliest, standing.end, 1000):
            data = log.page(standing.epoch, begin, min(begin + 1000, standing.end), "json")
            counts.update(row["result"]["subscription"] for row in json.loads(data)["rows"])
        log.close()
        return counts

    def replayed(self, text: str) -> int:
        """Count the results that the same readings give in one process."""
        engine = Engine(text, lateness_ms=None)
        engine.push([event for recording in self.recordings for event in _events(recording)])
        return len(engine.finish())


def regions_of(material: DemoMaterial) -> list[list[StationRecording]]:
    """The stations, dealt out to the brokers one after the other."""
    names = [name for recording in material.recordings for name in recording.stations]
    place = {name: n % BROKERS for n, name in enumerate(names)}
    return [
        [_part(recording, {name for name in names if place[name] == n})
         for recording in material.recordings
         if any(place[name] == n for name in recording.stations)]
        for n in range(BROKERS)
    ]  # fmt: skip


def _part(recording: StationRecording, names: set[str]) -> StationRecording:
    readings = [reading for reading in recording.readings if reading.source in names]
    last = {reading.source: index for index, reading in enumerate(readings)}
    stations = {
        name: replace(station, last=last[name])
        for name, station in recording.stations.items()
        if name in names
    }
    return replace(recording, stations=stations, readings=readings)


def _message(step: Sent) -> tuple[str, bytes]:
    if isinstance(step, RecordedReading):
        return f"headwater/events/{step.type}/{step.source}", step.payload
    topic = f"headwater/sources/{step.station.name}"
    if not isinstance(step, StationAdvertised):
        return topic, b""
    station = step.station
    document: dict[str, Any] = {
        "source": station.name,
        "types": station.types,
        "location": station.location,
    }
    if station.position is not None:
        document["position"] = station.position
    return topic, msgspec.json.encode(document)


def _events(recording: StationRecording) -> Iterator[dict[str, Any]]:
    for reading in recording.readings:
        station = recording.stations[reading.source]
        event: dict[str, Any] = {"type": reading.type, "source": reading.source}
        event["location"] = station.location
        if station.position is not None:
            event["position"] = station.position
        yield event | msgspec.json.decode(reading.payload)


def main() -> int:
    """0 where the history holds what the outboxes hold, and something."""
    material = load()
    with tempfile.TemporaryDirectory(prefix="headwater-server-") as name:
        folder = Path(name)
        regions: list[DemoBroker] = []
        server = None
        try:
            for n, recordings in enumerate(regions_of(material)):
                regions.append(
                    DemoBroker(f"region-{n + 1}", folder / f"region-{n + 1}", recordings)
                )
            for region in regions:
                region.ready()
            _submit(regions, material.text, folder)
            jobs = _jobs(regions, folder)
            with (folder / "server.log").open("wb") as output:
                server = _started(["server", "run", str(jobs)], output)
            _tell(f"{BROKERS} brokers and the server are running; the readings are sent")
            counts = asyncio.run(_fed(regions))
            _tell(f"{sum(counts)} readings sent")
            outboxes = [region.results() for region in regions]
            _stop(server)
            last = _started(["server", "run", "--once", str(jobs)], None)
            if last.wait(END_S) != 0:
                _tell((folder / "server.log").read_text(encoding="utf-8")[-2000:])
                return 1
            replayed = [region.replayed(material.text) for region in regions]
            return _account(regions, counts, outboxes, replayed, folder / "history")
        finally:
            for process in [*(region.process for region in regions), *([server] if server else [])]:
                _stop(process)


async def _fed(regions: Sequence[DemoBroker]) -> list[int]:
    return await asyncio.gather(*(region.feed() for region in regions))


def _submit(regions: Sequence[DemoBroker], text: str, folder: Path) -> None:
    (folder / "weather.hw").write_text(text, encoding="utf-8")
    for region in regions:
        if headwater(["submit", str(folder / "weather.hw"), "--broker", region.url]) != 0:
            raise RuntimeError(f"{region.name} refused the specification")


def _jobs(regions: Sequence[DemoBroker], folder: Path) -> Path:
    brokers = ", ".join(f'{region.name} = "{region.url}"' for region in regions)
    file = folder / "jobs.toml"
    file.write_text(_JOBS.format(brokers=brokers, folder=folder), encoding="utf-8")
    return file


def _account(
    regions: Sequence[DemoBroker],
    counts: Sequence[int],
    outboxes: Sequence[Counter[str]],
    replayed: Sequence[int],
    history: Path,
) -> int:
    """The table, and whether it comes out even."""
    rows = table_of(history, ["broker", "subscription"]).to_pylist()
    kept = Counter((row["broker"], row["subscription"]) for row in rows)
    good = bool(rows)
    _tell(f"{'broker':<10}{'readings':>10}{'replayed':>10}{'outbox':>8}{'history':>9}")
    for region, count, outbox, expected in zip(regions, counts, outboxes, replayed, strict=True):
        mine = {name: n for (broker, name), n in kept.items() if broker == region.name}
        good &= mine == dict(outbox)
        _tell(
            f"{region.name:<10}{count:>10}{expected:>10}{outbox.total():>8}{sum(mine.values()):>9}"
        )
    _tell("the history holds what the outboxes hold" if good else "THEY DIFFER")
    return 0 if good else 1


def _started(words: Sequence[str], said: Any) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "-m", "headwater.cli", *words],
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=said,
        start_new_session=True,
    )


def _stop(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(60.0)


def _port(where: str) -> int:
    return int(where.rpartition(":")[2])


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
