"""A broker as a real process: versions of a subscription by MQTT, the command line and HTTP."""

import asyncio
import json
import time

import pytest

from headwater.cli import main
from tests.broker.running import CONFIG, RunningBroker, ask, client, take

TYPES = "event A(n: int)\nevent B(n: int)\n"
BEGIN = time.time_ns() // 1_000_000
PAIR = "define Pair(n)\ndetect A as a then B as b within 1 min\nassign n = a.n\n"


def told(seq=1, condition=""):
    return f"subscription Told seq {seq} from anna to alerts\ndetect Pair{condition}\n"


@pytest.fixture
def broker(tmp_path):
    with RunningBroker(tmp_path, CONFIG, "--set", f"broker.data_dir={tmp_path}/data") as running:
        yield running


async def send(one, type_name, timestamp):
    event = {"timestamp": timestamp, "n": 1}
    await one.publish(f"headwater/events/{type_name}/{type_name}", json.dumps(event), qos=1)


def test_versions_and_what_a_changed_text_keeps(broker):
    async def scene():
        async with client(broker.port(), "headwater/results/anna/Told") as one:
            first = await ask(one, "submit", TYPES + PAIR + told(3))
            assert first["state"] == "active"
            assert await ask(one, "submit", TYPES + PAIR + told(3)) == first
            begin = time.time_ns() // 1_000_000
            await send(one, "A", begin)
            for seq in (2, 3):
                reply = await ask(one, "submit", TYPES + PAIR + told(seq, "(n > 0)"))
                assert (reply["errors"][0]["code"], reply["errors"][0]["seq"]) == ("HW501", 3)
            stranger = await ask(one, "submit", TYPES + PAIR + told(4, "(n > 0)"), name="other")
            assert stranger["errors"][0]["code"] == "HW502"
            assert (await ask(one, "cancel", "Told", name="other"))["ok"] is False
            changed = await ask(one, "submit", TYPES + PAIR + told(4, "(n > 0)"), name="anna")
            assert changed["state"] == "active"
            await send(one, "B", begin + 1)
            ((_, result),) = await take(one)
            assert result["seq"] == 4

    asyncio.run(scene())
    (listed,) = broker.get("/v1/subscriptions")[1]["subscriptions"]
    assert (listed["seq"], listed["state"], listed["client"]) == (4, "active", "anna")


@pytest.mark.parametrize("scheme", ["mqtt", "http"])
def test_the_command_waits_until_all_is_active(broker, scheme, tmp_path, capsys):
    spec = tmp_path / "told.hw"
    at = ["--broker", f"{scheme}://127.0.0.1:{broker.port(scheme)}"]
    goes_on = "Told of anna: changed, goes on with its state\n  Pair: goes on with its state\n"
    for seq, change in ((1, ""), (1, ""), (2, goes_on)):
        spec.write_text(TYPES + PAIR + told(seq))
        assert main(["submit", str(spec), *at, "--wait"]) == 0
        assert capsys.readouterr().out == f"active: Told\n{change}"
    spec.write_text(TYPES + PAIR + told(1))
    assert main(["submit", str(spec), *at, "--wait"]) == 2
    assert "HW501" in capsys.readouterr().err
    spec.write_text(TYPES + PAIR + told(3))
    assert main(["submit", str(spec), *at, "--as", "stranger"]) == 2
    assert "HW502" in capsys.readouterr().err
    assert main(["cancel", "Told", *at, "--as", "stranger"]) == 1
    assert main(["cancel", "Told", *at]) == 0


def test_what_was_accepted_and_half_done_outlasts_a_kill(tmp_path):
    """And so does who it belongs to: the same text is answered as before, an older one refused."""
    flags = ("--set", f"broker.data_dir={tmp_path}/data")
    text = TYPES + PAIR + told(2)

    async def before(port):
        async with client(port) as one:
            answer = await ask(one, "submit", text)
            await send(one, "A", BEGIN)
            return answer

    async def after(port):
        async with client(port, "headwater/results/anna/Told") as one:
            again = await ask(one, "submit", text, name="me", request="2")
            lower = await ask(one, "submit", TYPES + PAIR + told(1), request="3")
            assert (lower["errors"][0]["code"], lower["errors"][0]["seq"]) == ("HW501", 2)
            stranger = await ask(one, "cancel", "Told", name="other", request="4")
            assert stranger["ok"] is False
            changed = await ask(one, "submit", TYPES + PAIR + told(3, "(n > 0)"), request="5")
            assert changed["state"] == "active"
            await send(one, "B", BEGIN + 1)
            ((_, result),) = await take(one)
            assert (result["seq"], result["start"]) == (3, BEGIN)
            return again

    with RunningBroker(tmp_path, CONFIG, *flags) as running:
        answer = asyncio.run(before(running.port()))
        running.process.kill()
    with RunningBroker(tmp_path, CONFIG, *flags) as running:
        (listed,) = running.get("/v1/subscriptions")[1]["subscriptions"]
        assert (listed["seq"], listed["state"], listed["client"]) == (2, "active", "me")
        assert asyncio.run(after(running.port())) == answer
