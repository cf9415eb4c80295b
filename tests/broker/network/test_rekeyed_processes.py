"""A network gets another secret one broker at a time, while events pass: nothing is lost."""

import asyncio
import json

import aiomqtt
import pytest

from tests.broker.network.fleet import Fleet

NAMES = ("b0", "b1", "b2")
OLD, NEW = "the-old-secret-of-this-network", "the-new-secret-of-this-network"
TEXT = "event Temp(val: float)\nsubscription Hot from anna to fan detect Temp(val > 0)\n"


class KeyedFleet(Fleet):
    """Each broker has a secret's file of its own, as on machines of their own."""

    def write(self, name, *secrets):
        file = self.folder / f"{name}.secret"
        file.write_text("\n".join(secrets) + "\n")
        file.chmod(0o600)
        return file

    def reload(self, name):
        status, answer = self.brokers[name].get("/v1/reload", "POST", b"")
        assert (status, answer["ok"]) == (200, True), answer


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_network_is_rekeyed_under_load_and_each_event_is_detected_once(tmp_path):
    async def scenario():
        fleet = KeyedFleet(tmp_path, {"b1": "b0", "b2": "b0"})
        fleet.links = {name: f'secret_file = "{fleet.write(name, OLD)}"' for name in NAMES}
        sent, ended = 0, asyncio.Event()

        async def publish():
            nonlocal sent
            async with aiomqtt.Client("127.0.0.1", fleet.brokers["b2"].port()) as sensor:
                while not ended.is_set():
                    event = {"val": 1.0, "id": f"e{sent}", "timestamp": 1_000 + sent}
                    await sensor.publish("headwater/events/Temp/t1", json.dumps(event), qos=1)
                    sent += 1

        try:
            await fleet.start()
            status, _ = fleet.brokers["b1"].get("/v1/subscriptions", "POST", TEXT.encode())
            assert status == 200
            await fleet.until(lambda: fleet.subscribed("b1") == ["active"])
            load = asyncio.create_task(publish())
            for secrets in ((NEW, OLD), (NEW,)):
                for name in NAMES:
                    fleet.write(name, *secrets)
                    await asyncio.to_thread(fleet.reload, name)
                    await asyncio.sleep(1)
            ended.set()
            await load
            await fleet.until(lambda: len(fleet.results("b1")) >= sent)
            detected = [result["events"]["Temp"][0] for result in fleet.results("b1")]
            assert sorted(detected) == sorted(f"e{number}" for number in range(sent))
            assert sent > 20, "no load"
        finally:
            await fleet.stop()

    asyncio.run(scenario())
