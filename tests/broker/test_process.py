"""A broker as a process: from a text and events over MQTT to results, and everything refused."""

import asyncio
import json
import time

import pytest

from headwater.cli import main
from tests.broker.running import CONFIG, RunningBroker, ask, client, take

HOT = """
event Temp(val: float)
subscription Hot from anna to alerts
detect Temp(val > 30)
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """One for all tests of this file; each uses subscriptions of its own name."""
    folder = tmp_path_factory.mktemp("broker")
    with RunningBroker(folder, CONFIG, "--set", f"broker.data_dir={folder}/data") as running:
        yield running
        assert running.process.poll() is None


def now_ms():
    return time.time_ns() // 1_000_000


def hot(name):
    return HOT.replace("Hot", name)


def reading(val, **more):
    return json.dumps({"timestamp": now_ms(), "val": val, **more})


def test_from_text_and_events_to_results(broker):
    async def scene():
        topics = ["headwater/results/anna/+", "headwater/actors/alerts"]
        async with client(broker.port(), *topics) as one:
            assert await ask(one, "submit", hot("Hot")) == {
                "ok": True,
                "subscriptions": ["Hot"],
                "definitions": [],
                "state": "active",
            }
            await one.publish("headwater/events/Temp/t1", reading(20, id="a"), qos=1)
            await one.publish("headwater/events/Temp/t1", reading(31, id="b"), qos=1)
            found = await take(one, 2)
            assert [topic for topic, _ in found] == ["headwater/results/anna/Hot", topics[1]]
            assert found[0][1] == found[1][1]
            result = found[0][1]
            assert result["events"] == {"Temp": ["b"]}
            assert 0 <= result["detected_at"] - result["end"] < 5_000
            batch = f"[{reading(32, id='c')}, {reading(33, id='d')}]"
            await one.publish("headwater/events/Temp/t1", batch, qos=0)
            ids = [result["events"]["Temp"] for _, result in await take(one, 4)]
            assert ids == [["c"], ["c"], ["d"], ["d"]]
            assert (await ask(one, "cancel", "Hot"))["ok"] is True
            assert (await ask(one, "cancel", "Hot"))["errors"][0]["code"] == "HW505"

    asyncio.run(scene())


def test_the_answer_goes_where_the_formats_say(broker):
    """In 3.1.1 there is no response topic."""
    from aiomqtt.client import ProtocolVersion

    async def scene():
        async with client(broker.port(), "headwater/reply/#", version=ProtocolVersion.V311) as one:
            await one.publish("headwater/submit/me/one", "subscription", qos=1)
            ((topic, reply),) = await take(one)
            assert topic == "headwater/reply/me/one"
            assert reply["ok"] is False
            assert {"code", "message", "line", "column", "hint"} <= set(reply["errors"][0])
            await one.publish("headwater/submit/me/two", b"\xff", qos=1)
            ((topic, reply),) = await take(one)
            assert (topic, reply["errors"][0]["code"]) == ("headwater/reply/me/two", "HW507")
            for levels in ("me/a%20b", "m%65/50%", "me/a/b%2fc"):  # as the client wrote them
                await one.publish(f"headwater/cancel/{levels}", "None", qos=1)
                assert (await take(one))[0][0] == f"headwater/reply/{levels}"

    asyncio.run(scene())


def test_events_sent_right_after_a_submission_are_seen_by_it(broker):
    """Without waiting for the answer, from another connection, at QoS 0."""

    async def scene():
        async with (
            client(broker.port(), "headwater/results/anna/Soon") as one,
            client(broker.port()) as other,
        ):
            await one.publish("headwater/submit/me/1", hot("Soon").replace("Temp", "Soon"), qos=0)
            # The order in which two connections are read is settled once this has come round.
            await one.subscribe("headwater/reply/none", qos=0)
            for number in range(5):
                await other.publish("headwater/events/Soon/t1", reading(31 + number), qos=0)
            values = [one["values"]["Soon"]["val"] for _, one in await take(one, 5)]
            assert sorted(values) == [31, 32, 33, 34, 35]
            await ask(one, "cancel", "Soon")

    asyncio.run(scene())


def test_bad_payloads_come_back_on_rejected_and_nobody_is_harmed(broker):
    async def scene():
        topics = ["headwater/rejected", "headwater/results/anna/Bad"]
        async with client(broker.port(), *topics) as one, client(broker.port()) as bad:
            await ask(one, "submit", hot("Bad").replace("Temp", "Bad"))
            for payload, reason in [
                (b"{", "not_json"),
                (b"\xff\x00", "not_json"),
                (b'{"val": NaN}', "not_finite"),
                (b'{"val": "warm"}', "wrong_type"),
                (b'{"val": ' + b"[" * 10_000, "too_deep"),
                (b'{"val": 1, "x": "' + b"x" * 1_100_000 + b'"}', "too_large"),
            ]:
                # Refused for good: MQTT 5 tells the publisher, which aiomqtt passes over.
                await bad.publish("headwater/events/Bad/t1", payload, qos=1)
                ((topic, told),) = await take(one)
                assert (topic, told["reason"]) == ("headwater/rejected", reason)
                assert told["topic"] == "events/Bad/t1"
            await bad.publish("headwater/events/Bad/t1", reading(31), qos=1)
            ((topic, _),) = await take(one)
            assert topic == "headwater/results/anna/Bad"
            await ask(one, "cancel", "Bad")

    asyncio.run(scene())
    for _ in range(20):
        asyncio.run(publish_once(broker, "headwater/events/Bad/t1", b"{"))
    lines = [line for line in broker.lines if line.get("reason") == "not_json"]
    assert len(lines) <= 1


async def publish_once(broker, topic, payload):
    async with client(broker.port()) as one:
        await one.publish(topic, payload, qos=1)


def test_late_events_and_advertisements_are_published(broker):
    async def scene():
        topics = ["headwater/late/+", "headwater/sources/#"]
        async with client(broker.port(), *topics) as one:
            await ask(one, "submit", hot("Late").replace("Temp", "Late"))
            await one.publish("headwater/sources/t9", '{"location": "hall"}', qos=1, retain=True)
            assert await take(one) == [("headwater/sources/t9", {"location": "hall"})]
            await one.publish("headwater/events/Late/t9", reading(1), qos=1)
            old = json.dumps({"timestamp": now_ms() - 60_000, "val": 2, "id": "old"})
            await one.publish("headwater/events/Late/t9", old, qos=1)
            ((topic, told),) = await take(one)
            assert topic == "headwater/late/Late"
            assert (told["id"], told["source"], told["location"]) == ("old", "t9", "hall")
            async with client(broker.port(), "headwater/sources/#") as newcomer:
                assert await take(newcomer) == [("headwater/sources/t9", {"location": "hall"})]
            await one.publish("headwater/sources/t9", b"", qos=1, retain=True)
            assert await take(one) == [("headwater/sources/t9", None)]
            await ask(one, "cancel", "Late")

    asyncio.run(scene())


def test_a_malformed_packet_closes_that_client_alone(broker):
    async def scene():
        async with client(broker.port(), "a/b") as one:
            reader, writer = await asyncio.open_connection("127.0.0.1", broker.port())
            writer.write(b"\x10\xff\xff\xff\xff\xff")
            async with asyncio.timeout(10):
                assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()
            await one.publish("a/b", "1", qos=1)
            assert await take(one) == [("a/b", 1)]

    asyncio.run(scene())
    assert "closed the MQTT client" in broker.line("mqtt")["message"]
    assert not [line for line in broker.lines if "text" in line]  # nothing beside the log


def test_nobody_is_made_to_speak_on_our_topics(broker):
    """An answer does not go to a topic of ours that the asker names."""
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    async def scene():
        topics = ["headwater/results/#", "headwater/reply/me/x"]
        async with client(broker.port(), *topics) as one:
            properties = Properties(PacketTypes.PUBLISH)
            properties.ResponseTopic = "headwater/results/anna/Hot"
            properties.CorrelationData = b"7"
            await one.publish("headwater/cancel/me/x", "none", qos=1, properties=properties)
            async with asyncio.timeout(10):
                message = await anext(aiter(one.messages))
            assert str(message.topic) == "headwater/reply/me/x"
            assert message.properties.CorrelationData == b"7"

    asyncio.run(scene())


def test_events_are_shown_to_clients_and_results_are_not_to_be_published(broker):
    async def scene():
        topics = ["headwater/events/#", "headwater/results/#", "headwater/rejected"]
        async with client(broker.port(), *topics) as one:
            await one.publish("headwater/results/anna/Hot", "{}", qos=1)
            ((topic, told),) = await take(one)
            assert (topic, told["reason"]) == ("headwater/rejected", "unknown_topic")
            await one.publish("headwater/events/Nobody/t1", "{}", qos=1)
            assert (await take(one))[0] == ("headwater/events/Nobody/t1", {})

    asyncio.run(scene())


# --- HTTP -------------------------------------------------------------------------------------


def test_http_tells_the_state_and_takes_texts(broker):
    assert broker.get("/healthz") == (200, {"healthy": True})
    assert broker.get("/readyz") == (200, {"ready": True, "missing": []})
    status, reply = broker.get("/v1/subscriptions?client=me", "POST", b"nonsense")
    assert (status, reply["ok"]) == (422, False)
    text = hot("ByHttp").encode()
    status, reply = broker.get("/v1/subscriptions?client=me", "POST", text)
    assert (status, reply["subscriptions"]) == (200, ["ByHttp"])
    _, listed = broker.get("/v1/subscriptions")
    (one,) = [one for one in listed["subscriptions"] if one["subscription"] == "ByHttp"]
    assert (one["subscriber"], one["actor"], one["seq"], one["state"], one["results"]) == (
        *("anna", "alerts", 1, "active"),
        0,
    )
    status, _ = broker.get("/v1/subscriptions/ByHttp?client=stranger", "DELETE")
    assert status == 404
    status, reply = broker.get("/v1/subscriptions/ByHttp?client=anna", "DELETE")
    assert (status, reply["ok"]) == (200, True)


def test_the_list_is_the_same_over_mqtt_and_knows_what_was_submitted_before(broker, capsys):
    async def scene():
        async with client(broker.port(), "headwater/reply/me/#") as one:
            for verb, body in (("submit", hot("Listed")), ("list", ""), ("cancel", "Listed")):
                await one.publish(f"headwater/{verb}/me/{verb}", body, qos=1)
            told = [reply for topic, reply in await take(one, 4) if topic.endswith("/list")]
        return told[0]

    reply = asyncio.run(scene())
    assert reply["ok"] is True
    assert [one["subscription"] for one in reply["subscriptions"]][-1] == "Listed"
    for name in ("Hot1", "Hot2"):
        assert broker.get("/v1/subscriptions", "POST", hot(name).encode())[0] == 200
    _, listed = broker.get("/v1/subscriptions")
    assert main(["ls", "--json", "--broker", f"mqtt://127.0.0.1:{broker.port()}"]) == 0
    assert json.loads(capsys.readouterr().out) == listed["subscriptions"]
    for name in ("Hot1", "Hot2"):
        broker.get(f"/v1/subscriptions/{name}", "DELETE")


def test_the_ledger_is_balanced_and_shown(broker):
    _, status = broker.get("/v1/status")
    account = status["events"]
    assert status["broker"] == "site-1"
    total = account["out"] + account["filtered"] + account["held"]
    assert account["received"] == total + sum(account["dropped"].values())
    _, metrics = broker.get("/metrics")
    assert f"headwater_events_received_total {float(account['received'])}" in metrics


def test_results_can_be_followed_by_http(broker, capsys):
    """By the command line, which ends after the first."""
    import threading

    from headwater.cli import main

    url = f"http://{broker.where['http']}"
    said = []
    follow = ["tail", "Tailed", "--count", "1", "--json", "--broker", url]
    thread = threading.Thread(target=lambda: said.append(main(follow)))
    asyncio.run(scene_submit(broker, hot("Tailed").replace("Temp", "Tailed")))
    thread.start()
    deadline = time.monotonic() + 10
    while broker.get("/v1/status")[1]["http_followers"] == 0:
        assert time.monotonic() < deadline
    asyncio.run(publish_once(broker, "headwater/events/Tailed/t1", reading(31)))
    thread.join(10)
    assert said == [0]
    assert json.loads(capsys.readouterr().out)["subscription"] == "Tailed"


async def scene_submit(broker, text):
    async with client(broker.port()) as one:
        assert (await ask(one, "submit", text))["ok"] is True


def test_the_command_line_works_against_it(broker, tmp_path, capsys):
    from headwater.cli import main

    spec = tmp_path / "spec.hw"
    spec.write_text(hot("ByCli"))
    for url in (f"http://{broker.where['http']}", f"mqtt://{broker.where['mqtt']}"):
        at = ["--broker", url]
        assert main(["submit", str(spec), *at]) == 0
        assert capsys.readouterr().out == "installed: ByCli\n"
        assert main(["cancel", "ByCli", *at]) == 0
        assert main(["cancel", "ByCli", *at]) == 1
        capsys.readouterr()


# --- mosquitto's own clients ------------------------------------------------------------------


@pytest.mark.program("mosquitto_pub", "mosquitto_sub")
@pytest.mark.parametrize("version", ["mqttv311", "mqttv5"])
def test_mosquittos_clients_submit_send_and_receive(broker, version):
    from tests.broker.mqtt.sockets import Program, mosquitto_pub

    async def scene():
        port, kind = broker.port(), f"T{version}"
        speaks = ("-V", version, "-q", 1)
        topic = f"headwater/results/anna/{kind}"
        sub = await Program.start("mosquitto_sub", "-p", port, "-t", topic, "-C", 1, *speaks)
        text = hot(kind).replace("Temp", "Mosq")
        submit = ("-t", "headwater/submit/me/1", "-m", text)
        assert (await mosquitto_pub(port, *speaks, *submit))[0] == 0
        deadline = time.monotonic() + 10
        while not sub_is_there(broker, topic):
            assert time.monotonic() < deadline
        send = ("-t", "headwater/events/Mosq/t1", "-m", reading(31))
        assert (await mosquitto_pub(port, *speaks, *send))[0] == 0
        status, lines, _ = await sub.result()
        assert status == 0
        assert json.loads(lines[0])["subscription"] == kind

    asyncio.run(scene())


def sub_is_there(broker, topic):
    return broker.get("/v1/status")[1]["mqtt"]["subscriptions"] > 0
