"""Real brokers to which user functions are given: they are where tasks run, and outlast a crash."""

import asyncio
import json

import pytest

from headwater.cli import main
from tests.broker.network import fleet
from tests.broker.network.fleet import Fleet
from tests.broker.running import PATIENCE_S, client

OWN = """from headwater import Function
Half = Function(lambda x: x / 2, "float")
"""
OTHER = OWN.replace("/ 2", "/ 4")
TEXT = """event Temp(val: float)
subscription {name} from anna to log
detect Temp as t
assign half = Half(t.val)
"""
RUNS = fleet.CONFIG.replace("[broker]", "[broker]\nrun_given_functions = true")
LINE = {"b1": "b0", "b2": "b1", "b3": "b2"}
BEGIN_MS = 1_700_000_000_000


class Line(Fleet):
    """Brokers in a line that decide where tasks run; the last one joins later."""

    more = "\n[coordinator]\nenabled = true\nmeasure_ms = 1000\n"

    def __init__(self, folder):
        super().__init__(folder, LINE)
        self.names = self.names[:3]
        self.sent = 0

    async def give(self, broker, text=OWN, name="own"):
        return await self.ask(broker, f"/v1/functions/{name}", "POST", text)

    async def ask(self, broker, path, method="GET", text=None):
        body = None if text is None else text.encode()
        return await asyncio.to_thread(self.brokers[broker].get, path, method, body)

    async def publish(self, broker, val):
        self.sent += 1
        event = {"id": f"t{self.sent}", "timestamp": BEGIN_MS + 1000 * self.sent, "val": val}
        async with client(self.brokers[broker].port()) as one:
            topic = "headwater/events/Temp/t"
            await one.publish(topic, json.dumps(event), qos=1, timeout=PATIENCE_S)

    def halves(self, home):
        return [result["values"]["half"] for result in self.results(home)]

    def files(self, broker):
        return self.brokers[broker].get("/v1/status")[1]["functions"]["files"]

    def hosts(self, home):
        cells = self.network(home)["cells"]
        return [cell["host"] for cell in cells if cell["state"] == "active"]


def play(folder, monkeypatch, scenario):
    monkeypatch.setattr(fleet, "CONFIG", RUNS)

    async def run():
        line = Line(folder)
        try:
            await line.start()
            await scenario(line)
        finally:
            await line.stop()

    asyncio.run(run())


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_function_given_at_one_end_is_called_at_the_other(tmp_path, monkeypatch):
    async def scenario(line):
        status, reply = await line.give("b0")
        assert (status, reply["functions"], reply["changed"]) == (200, ["Half"], True)
        await line.until(lambda: "own" in line.files("b2"))
        for name in ("b0", "b1"):
            await line.until(
                lambda name=name: line.brokers[name].get("/v1/drain", "POST")[0] == 200
            )
        status, reply = await line.ask("b1", "/v1/subscriptions", "POST", TEXT.format(name="A"))
        assert status == 200, reply
        await line.until(lambda: line.hosts("b1") == ["b2"])
        await line.publish("b0", 3.0)
        await line.until(lambda: line.halves("b1") == [1.5])

        # The host is killed, then its home: both go on from their disks.
        await line.kill("b2")
        await line.publish("b0", 5.0)
        await line.until(lambda: line.halves("b1") == [1.5, 2.5])
        await line.kill("b1")
        await line.publish("b0", 7.0)
        await line.until(lambda: line.halves("b1") == [1.5, 2.5, 3.5])

        # Neither a change nor a removal is taken anywhere while the text calls it.
        for broker in ("b0", "b2"):
            status, reply = await line.give(broker, OTHER)
            assert (status, "`anna/A at b1`" in str(reply)) == (409, True), reply
            status, reply = await line.ask(broker, "/v1/functions/own", "DELETE")
            assert (status, "`anna/A at b1`" in str(reply)) == (409, True), reply

        # One that joins later gets it, and may have it removed once no text calls it.
        line.begin("b3")
        await asyncio.to_thread(line.brokers["b3"].__enter__)
        await line.until(lambda: "own" in line.files("b3"))
        status, reply = await line.ask("b3", "/v1/functions/own", "DELETE")
        assert status == 409, reply
        assert (await line.ask("b1", "/v1/subscriptions/A?client=anna", "DELETE"))[0] == 200
        status, reply = await line.ask("b3", "/v1/functions/own", "DELETE")
        assert status == 200, reply
        for name in ("b0", "b1", "b2"):
            await line.until(lambda name=name: line.files(name) == {})
        status, reply = await line.ask("b1", "/v1/subscriptions", "POST", TEXT.format(name="B"))
        assert (status, "Half" in str(reply)) == (422, True), reply

    play(tmp_path, monkeypatch, scenario)


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_broker_that_does_not_run_them_passes_them_on_and_hosts_no_caller(
    tmp_path, monkeypatch, capsys
):
    async def scenario(line):
        broker = line.brokers["b1"]
        broker.process.terminate()
        await asyncio.to_thread(broker.process.wait, PATIENCE_S)
        broker.__exit__()
        monkeypatch.setattr(fleet, "CONFIG", RUNS.replace("functions = true", "functions = false"))
        line.begin("b1")
        await asyncio.to_thread(line.brokers["b1"].__enter__)
        status, reply = await line.give("b1")
        assert (status, "run_given_functions" in str(reply)) == (409, True), reply
        assert (await line.give("b0"))[0] == 200
        await line.until(lambda: "own" in line.files("b2"))
        url = f"http://127.0.0.1:{line.brokers['b0'].port('http')}"
        assert await asyncio.to_thread(main, ["functions", "ls", "--broker", url]) == 1
        assert "b1 runs none of them" in capsys.readouterr().out

        # Its home is b0, which may not keep it: b1 refuses it, and it goes to b2.
        await line.until(lambda: line.brokers["b0"].get("/v1/drain", "POST")[0] == 200)
        status, reply = await line.ask("b0", "/v1/subscriptions", "POST", TEXT.format(name="A"))
        assert status == 200, reply
        await line.until(lambda: line.hosts("b0") == ["b2"])
        await line.publish("b1", 3.0)
        await line.until(lambda: line.halves("b0") == [1.5])

        # With b2 drained as well b1 alone is left, and says why it does not take the task.
        assert (await line.ask("b2", "/v1/drain", "POST"))[0] == 200
        told = await asyncio.to_thread(line.brokers["b0"].line, "cell_refused")
        assert told["reason"].startswith("it calls the function `Half`"), told
        assert told["about_broker"] == "b1"

    play(tmp_path, monkeypatch, scenario)
