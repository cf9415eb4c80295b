"""The broker's own topics, seen by mosquitto's clients: from a text and events to results."""

import json
import random
import socket
import time

import pytest

from tests.broker.mqtt.programs import publish, run, subscriber
from tests.broker.running import CONFIG, RunningBroker

pytestmark = pytest.mark.program("mosquitto_pub", "mosquitto_sub", "mosquitto_rr")
EVERY_VERSION = pytest.mark.parametrize("version", ["mqttv311", "mqttv5"])
V5 = ("-V", "mqttv5")
TEXT = """
event {kind}(val: float)
define Warm{kind}(val)
detect {kind}(val > 20)
assign val = {kind}.val
subscription {kind}Hot from anna to {kind}-alerts
detect Warm{kind}
"""


def started(folder, *flags):
    return RunningBroker(folder, CONFIG, "--set", f"broker.data_dir={folder}/data", *flags)


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with started(tmp_path_factory.mktemp("broker")) as running:
        yield running
        assert running.process.poll() is None


@pytest.fixture
def port(broker):
    return broker.port()


@pytest.fixture
def kind(request):
    """An event type of the test's own."""
    return "T" + "".join(x for x in request.node.name.title() if x.isalnum())[-30:]


def now_ms():
    return time.time_ns() // 1_000_000


def reading(val, **more):
    return json.dumps({"timestamp": now_ms(), "val": val, **more})


def asked(port, verb, body, request="1"):
    """The answer to a request, by its MQTT 5 response topic."""
    said = ("-t", f"headwater/{verb}/me/{request}", "-e", f"answers/{request}", "-m", body)
    status, output, errors = run("mosquitto_rr", port, *V5, "-q", 1, "-W", 8, *said)
    assert status == 0, errors
    return json.loads(output)


def submitted(port, kind):
    reply = asked(port, "submit", TEXT.format(kind=kind), kind)
    assert reply["ok"], reply
    return reply


def told(watched, count=1):
    """Topic and payload of the next messages."""
    pairs = [line.split("|", 1) for line in watched.messages(count)]
    return [(topic, json.loads(text) if text else None) for topic, text in pairs]


def hearing(port, *topics, version="mqttv5"):
    wanted = [word for topic in topics for word in ("-t", topic)]
    return subscriber(port, "-V", version, *wanted, "-q", 1, form="%t|%p")


@EVERY_VERSION
def test_from_a_text_and_events_to_results_and_the_end(port, kind, version):
    topics = (f"headwater/results/anna/{kind}Hot", f"headwater/actors/{kind}-alerts")
    with hearing(port, *topics, "headwater/reply/me/+", version=version) as hears:
        say = ("-V", version, "-q", 1, "-t")
        publish(port, *say, "headwater/submit/me/1", "-m", TEXT.format(kind=kind))
        done = {"ok": True, "subscriptions": [f"{kind}Hot"], "definitions": [f"Warm{kind}"]}
        states = [{**done, "state": state} for state in ("accepted", "active")]
        assert told(hears, 2) == [("headwater/reply/me/1", reply) for reply in states]
        events = f"headwater/events/{kind}/s1"
        publish(port, *say, events, "-m", reading(19, id="cold"))
        publish(port, *say, events, "-m", reading(21, id="one"))
        batch = ",".join(reading(22 + number, id=f"b{number}") for number in range(3))
        publish(port, *say, events, "-m", f"[{batch}]")
        heard = told(hears, 8)
        for topic in topics:
            results = [result for where, result in heard if where == topic]
            assert [one["events"] for one in results] == [
                {f"Warm{kind}": [result["events"][f"Warm{kind}"][0]]} for result in results
            ]
            assert [one["subscription"] for one in results] == [f"{kind}Hot"] * 4
            assert len({one["id"] for one in results}) == 4
        publish(port, *say, "headwater/submit/me/again", "-m", TEXT.format(kind=kind))
        assert told(hears, 2) == [("headwater/reply/me/again", reply) for reply in states]
        publish(port, *say, "headwater/cancel/me/2", "-m", f"{kind}Hot")
        assert told(hears)[0][1]["ok"] is True
        publish(port, *say, events, "-m", reading(30))
        publish(port, *say, "headwater/cancel/me/3", "-m", f"{kind}Hot")
        ((where, reply),) = told(hears)  # and no result before it
        assert where == "headwater/reply/me/3"
        assert reply["errors"][0]["code"] == "HW505"


def test_a_faulty_text_is_refused_with_its_places_and_nothing_is_installed(broker, port, kind):
    text = TEXT.format(kind=kind).replace("val > 20", "vel > 20")
    reply = asked(port, "submit", text, kind)
    assert reply["ok"] is False
    (error,) = reply["errors"]
    assert (error["line"], error["code"][:2]) == (4, "HW")
    assert error["column"] == text.splitlines()[3].index("vel") + 1
    listed = broker.get("/v1/subscriptions")[1]["subscriptions"]
    assert f"{kind}Hot" not in [one["subscription"] for one in listed]


def test_an_event_as_msgpack_is_read_by_its_content_type(port, kind, tmp_path):
    import msgspec

    submitted(port, kind)
    file = tmp_path / "event"
    file.write_bytes(msgspec.msgpack.encode({"timestamp": now_ms(), "val": 25.0, "id": "packed"}))
    with hearing(port, f"headwater/results/anna/{kind}Hot") as hears:
        content = ("-D", "publish", "content-type", "application/msgpack")
        publish(port, *V5, "-q", 1, "-t", f"headwater/events/{kind}/s", "-f", file, *content)
        assert told(hears)[0][1]["values"][f"Warm{kind}"]["val"] == 25.0


@EVERY_VERSION
def test_an_advertisement_stands_until_it_is_withdrawn(port, kind, version):
    topic = f"headwater/sources/{kind}"
    say = ("-V", version, "-q", 1, "-t", topic)
    with hearing(port, topic, version=version) as hears:
        publish(port, *say, "-r", "-m", '{"location": "hall", "types": ["Temp"]}')
        ((_, standing),) = told(hears)
        assert standing["location"] == "hall"
        with hearing(port, topic, version=version) as newcomer:
            assert told(newcomer) == [(topic, standing)]
        publish(port, *say, "-r", "-n")
        assert told(hears) == [(topic, None)]
        with hearing(port, topic, version=version) as newcomer:
            publish(port, *say, "-m", '{"location": "yard"}')
            assert told(newcomer)[0][1]["location"] == "yard"
        publish(port, *say, "-n")


@EVERY_VERSION
def test_what_comes_late_and_what_is_refused_is_told(port, kind, version):
    submitted(port, kind)
    say = ("-V", version, "-q", 1, "-t", f"headwater/events/{kind}/s1")
    with hearing(port, f"headwater/late/{kind}", "headwater/rejected", version=version) as hears:
        publish(port, *say, "-m", reading(1))
        publish(
            port, *say, "-m", json.dumps({"timestamp": now_ms() - 60_000, "val": 2, "id": "old"})
        )
        ((topic, late),) = told(hears)
        assert (topic, late["id"], late["val"]) == (f"headwater/late/{kind}", "old", 2)
        for payload, reason in (
            ("{", "not_json"),
            ('{"val": "warm"}', "wrong_type"),
            ('{"val": NaN}', "not_finite"),
            ('{"val": ' + "[" * 5_000, "too_deep"),
        ):
            said = publish(port, *say, "-m", payload)
            if version == "mqttv5":
                assert "Payload format invalid" in said
            ((topic, refused),) = told(hears)
            assert (topic, refused["reason"]) == ("headwater/rejected", reason)
            assert refused["topic"] == f"events/{kind}/s1"
        said = publish(port, "-V", version, "-q", 1, "-t", "headwater/nowhere", "-m", "x")
        assert told(hears)[0][1]["reason"] == "unknown_topic"
        if version == "mqttv5":
            assert "Not authorized" in said
        batch = f"[{reading(1)}, {reading('warm')}, 7]"
        publish(port, *say, "-m", batch)
        ((_, refused),) = told(hears)
        assert [one["index"] for one in refused["errors"]] == [1, 2]


def test_a_malformed_client_beside_good_ones_costs_nobody_a_result(broker, port, kind):
    """Before each event, somebody sends noise; all results come, in order."""
    chance = random.Random(1)
    submitted(port, kind)
    with hearing(port, f"headwater/results/anna/{kind}Hot") as hears:
        for number in range(40):
            with socket.create_connection(("127.0.0.1", port), timeout=8) as bad:
                opening = b"\x10\x0f\x00\x04MQTT\x05\x02\x00\x00\x00\x00\x02" + b"%02d" % number
                bad.sendall(opening * (number % 2) + chance.randbytes(chance.randrange(1, 300)))
                bad.shutdown(socket.SHUT_WR)
                while bad.recv(4096):
                    pass
            event = reading(21 + number, id=f"e{number}")
            publish(port, "-t", f"headwater/events/{kind}/s1", "-m", event, "-q", 1)
        values = [result["values"][f"Warm{kind}"]["val"] for _, result in told(hears, 40)]
        assert values == [21 + number for number in range(40)]
    closed = broker.get("/v1/status")[1]["mqtt"]["closed"]
    assert closed["malformed_packet"] + closed["protocol_error"] > 10
    assert "internal_error" not in closed


def test_the_state_is_retained_and_says_when_the_broker_ends(tmp_path):
    with started(tmp_path) as broker:
        status = "headwater/status/site-1"
        with hearing(broker.port(), status) as watcher:
            assert told(watcher)[0][1]["state"] == "ready"
            assert broker.end() == 0
            assert told(watcher)[0][1]["state"] == "stopped"
            assert "(139)" in watcher.line("DISCONNECT")  # server shutting down


def test_a_broker_that_is_killed_is_missed_by_its_clients_who_find_it_again(tmp_path):
    """Nobody is left to publish its will. A kept session went with it, as nothing of it is on disk;
    whoever connects again is told so (no session present), and subscribes anew.
    """
    with started(tmp_path) as broker:
        port = broker.port()
        with hearing(port, "headwater/status/+") as watcher:
            ((_, first),) = told(watcher)
            broker.process.kill()
            broker.ended()
            with started(tmp_path, "--set", f"mqtt.port={port}"):
                ((_, second),) = told(watcher)
    assert (first["state"], second["state"]) == ("ready", "ready")
    assert first["at"] < second["at"]
