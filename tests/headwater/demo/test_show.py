"""The demonstration's course against a broker that answers as it is told to."""

import asyncio
import io
import json
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from broker.mqtt.listeners import Listener
from broker.mqtt.routing.router import Prefix
from broker.mqtt.server import MqttServer
from headwater.cli.output import CommandError
from headwater.demo import show
from headwater.demo.layout import ROOT
from headwater.demo.material import DemoMaterial, RecordedReading, Station, StationRecording
from headwater.demo.process import BrokerFailedError
from headwater.demo.screen import Screen
from language import check_text

TEXT = "event T(value: int)\nsubscription Seen from someone to somewhere detect T as t\n"
COUNTS = 'headwater_events_received_total 6.0\nheadwater_events_dropped_total{reason="late"} '


class ToldBroker:
    """Takes everything, notes what came, and publishes what `answers` says for an event's id."""

    def __init__(self, answers, *, counts=COUNTS + "0.0\n", refuses=False, stops_at=None) -> None:
        self.answers = answers
        self.counts = counts
        self.refuses = refuses
        self.stops_at = stops_at
        self.came: list[str] = []
        self.payloads: list[bytes] = []
        self.process = SimpleNamespace(returncode=None)
        self.server: MqttServer | None = None
        self.ended = False

    def on_publish(self, messages) -> None:
        for message in messages:
            kind, *rest = message.topic.split("/")[1:]
            if kind == "submit":
                self.answer(message)
            else:
                self.came.append("/".join([kind, *rest]) + ("" if message.payload else " gone"))
                self.payloads.append(message.payload)
            if kind == "events":
                event_id = json.loads(message.payload)["id"]
                for topic, payload in self.answers.get(event_id, ()):
                    self.server.publish(topic, payload)
                if event_id == self.stops_at:
                    self.process.returncode = -9
                    asyncio.get_running_loop().create_task(self.server.stop())
                    return
            self.server.complete(message.token)

    def answer(self, message) -> None:
        errors = [{"message": "no such thing"}]
        reply = {"ok": False, "errors": errors} if self.refuses else {"ok": True}
        self.server.publish(message.response_topic, json.dumps(reply).encode())
        self.server.complete(message.token)

    async def get(self, path):
        if path == "/v1/status":
            return 200, json.dumps({"network": {"inactive": {}, "origins": {}}})
        return 200, self.counts

    def last_words(self) -> str:
        return "oh"

    @asynccontextmanager
    async def running(self, _parents):
        self.server = MqttServer(
            self, listeners=[Listener("127.0.0.1", 0)], prefix=Prefix("headwater")
        )
        await self.server.start()
        self.mqtt_port = self.server.addresses()[0][1]
        try:
            yield {ROOT: self}
        finally:
            await self.server.stop()
            self.ended = True


def material() -> DemoMaterial:
    stations = {name: Station(name, f"here/{name}", [1.0, 2.0], ["T"]) for name in "ab"}
    readings = []
    for index, name in enumerate("abaabb"):
        stations[name].last = index
        event_id = f"{name}-{index}"
        payload = json.dumps({"id": event_id, "timestamp": index, "value": index}).encode()
        readings.append(RecordedReading(event_id, "T", name, index, payload))
    text = check_text(TEXT)
    return DemoMaterial(
        TEXT, text.demand(), [StationRecording("one", stations, readings)], {"Seen": 3}
    )


def seen(event_id: str, result_id: str | None = None) -> tuple[str, bytes]:
    result = {"subscription": "Seen", "id": result_id or f"r-{event_id}", "end": 0, "values": {}}
    return "headwater/results/someone/Seen", json.dumps(
        result | {"events": {"t": [event_id]}}
    ).encode()


GOOD = {event_id: [seen(event_id)] for event_id in ("a-0", "b-1", "b-5")}


def run(broker: ToldBroker, monkeypatch) -> tuple[int, str, str]:
    monkeypatch.setattr(show, "running_network", broker.running)
    monkeypatch.setattr(show, "QUIET_S_MAX", 0.3)
    monkeypatch.setattr(show, "SURPLUS_S", 0.1)
    out, side = io.StringIO(), io.StringIO()
    screen = Screen(as_json=False, out=out, side=side)
    try:
        status = asyncio.run(show.show(material(), screen, rate=5000))
    finally:
        assert broker.ended
    return status, out.getvalue(), side.getvalue()


def test_when_everything_comes_it_succeeds(monkeypatch):
    broker = ToldBroker(GOOD)
    status, out, side = run(broker, monkeypatch)
    assert status == 0
    assert "headwater:" not in side
    row = next(line for line in out.splitlines() if line.startswith("Seen "))
    assert row.split()[:3] == ["Seen", "3", "3"]
    assert "6 events of 2 stations" in out
    assert "3 results" in out


def test_stations_advertise_send_and_withdraw_in_the_order_of_time(monkeypatch):
    broker = ToldBroker(GOOD)
    run(broker, monkeypatch)
    assert broker.came == [
        "sources/a",
        "sources/b",
        "events/T/a",
        "events/T/b",
        "events/T/a",
        "events/T/a",
        "sources/a gone",
        "events/T/b",
        "events/T/b",
        "sources/b gone",
    ]
    assert json.loads(broker.payloads[0]) == {
        "source": "a",
        "types": ["T"],
        "location": "here/a",
        "position": [1.0, 2.0],
    }
    assert json.loads(broker.payloads[2]) == {"id": "a-0", "timestamp": 0, "value": 0}


@pytest.mark.parametrize(
    ("answers", "counts", "says"),
    [
        ({}, "0.0", "Seen has no result, 3 were expected"),
        ({"a-0": [seen("a-0")]}, "0.0", "Seen has 1 results, 3 were expected"),
        ({**GOOD, "a-2": [seen("a-2")]}, "0.0", "Seen has 4 results, 3 were expected"),
        ({**GOOD, "b-5": [seen("b-5", "r-a-0")]}, "0.0", "Seen has 2 results"),
        ({**GOOD, "a-2": [("headwater/late/T", b"{}")]}, "0.0", "headwater/late/T: {}"),
        ({**GOOD, "a-2": [("headwater/rejected", b"why")]}, "0.0", "headwater/rejected: why"),
        (GOOD, "2.0", "2 events were dropped: late"),
    ],
)
def test_what_is_lost_or_too_much_fails_it_and_is_named(monkeypatch, answers, counts, says):
    status, _, side = run(ToldBroker(answers, counts=COUNTS + counts), monkeypatch)
    assert status == 1
    assert f"headwater: {says}" in side


def test_readings_that_did_not_come_in_fail_it(monkeypatch):
    counts = "headwater_events_received_total 5.0\n"
    status, _, side = run(ToldBroker(GOOD, counts=counts), monkeypatch)
    assert status == 1
    assert "6 readings were sent, 5 have come in" in side


def test_a_refused_specification_ends_it_with_the_reason(monkeypatch):
    with pytest.raises(CommandError, match="no such thing"):
        run(ToldBroker({}, refuses=True), monkeypatch)


def test_a_broker_that_ends_is_told_with_its_last_words(monkeypatch):
    with pytest.raises(BrokerFailedError, match=r"ended before its time; .* said last: oh"):
        run(ToldBroker(GOOD, stops_at="a-2"), monkeypatch)
