"""A real home is killed and its disk deleted: its stand-in goes on, nothing is lost or doubled."""

import asyncio
import json
import shutil

import pytest

from headwater.cli import main
from tests.broker.network.fleet import Fleet
from tests.broker.network.log_reader import LogReader
from tests.broker.running import PATIENCE_S, client

LINE = {"b1": "b0", "b2": "b1"}
BEGIN_MS = 1_700_000_000_000
TEXT = """event Temp(val: float)
subscription Pair from anna to log
detect Temp(val > 5) as a then Temp(val < 5) as b within 1 s
"""
LEASE_MS = 12_000
KNOWN_S = 3.0  # by then a stand-in knows what was given out


class Line(Fleet):
    """Brokers in a line; the home at its end has a neighbour stand in."""

    links = {"b2": 'stand_in = "*"'}  # noqa: RUF012  # as in Fleet

    def __init__(self, folder):
        super().__init__(folder, LINE)
        self.sent = 0

    async def publish(self, count):
        async with client(self.brokers["b0"].port()) as sensor:
            for _ in range(count):
                self.sent += 1
                event = {
                    "id": f"t{self.sent}",
                    "timestamp": BEGIN_MS + 1000 * self.sent,
                    "val": 9.0 if self.sent % 2 else 1.0,
                }
                topic = "headwater/events/Temp/t"
                await sensor.publish(topic, json.dumps(event), qos=1, timeout=PATIENCE_S)

    def pairs(self, broker):
        return [tuple(result["events"]["a"]) for result in self.results(broker)]

    def homes(self, at):
        """Return where each subscription is at home as a broker lists it, and if that is away."""
        _, answer = self.brokers[at].get("/v1/subscriptions?client=anna&network=1")
        rows = answer["subscriptions"]
        return [(row["subscription"], row["home"], row.get("away", False)) for row in rows]

    def unreached(self, at):
        """Return the brokers that one cannot ask."""
        _, answer = self.brokers[at].get("/v1/status?network=1")
        return [row["broker"] for row in answer["unreached"]]

    def feed(self):
        return self.network("b2")["stand_ins"]

    async def destroy(self):
        """Kill the home, and delete all that it had."""
        broker = self.brokers["b2"]
        broker.process.kill()
        await asyncio.to_thread(broker.process.wait, PATIENCE_S)
        broker.__exit__()
        shutil.rmtree(self.folder / "b2")

    async def command(self, *words, at="b1"):
        address = f"http://127.0.0.1:{self.brokers[at].port('http')}"
        return await asyncio.to_thread(main, [*words, "--broker", address])


def run(scenario, *arguments, line=None):
    async def main_():
        brokers = line(*arguments)
        try:
            await brokers.start()
            await scenario(brokers)
        finally:
            await brokers.stop()

    asyncio.run(main_())


async def has_a_stand_in(line, capsys):
    """See how far that follows, at another broker."""
    assert await line.command("status", at="b0") == 0
    assert "b1 following" in capsys.readouterr().out
    assert await line.command("ls", "--json", at="b0") == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["home"], row["stand_in"], row["stand_in_state"]) == ("b2", "b1", "following")


async def is_listed_while_away(line, capsys):
    """See at every broker what the home had, and where that can go on."""
    for at in ("b0", "b1"):
        await line.until(lambda at=at: line.homes(at) == [("Pair", "b2", True)])
        assert await line.command("ls", at=at) == 0
        told = capsys.readouterr()
        assert "b2 (away)" in told.out
        assert "`headwater take-over b2`, asked of b1" in told.err
        assert await line.command("status", at=at) == 1
        assert "`headwater take-over b2`, asked of b1" in capsys.readouterr().err
        assert await line.command("cancel", "Pair", "--as", "anna", at=at) == 1
        assert "`b1` has a copy of it" in capsys.readouterr().err


@pytest.mark.timeout(240)
def test_a_home_whose_disk_is_gone_goes_on_at_its_stand_in(tmp_path, capsys):
    async def scenario(line):
        status, reply = await asyncio.to_thread(
            line.brokers["b2"].get, "/v1/subscriptions?client=anna", "POST", TEXT.encode()
        )
        assert status == 200, reply
        await line.until(lambda: line.subscribed("b2") == ["active"])
        await line.until(lambda: line.feed()["state"] == "following")
        assert line.feed()["stand_in"] == "b1"
        await line.publish(40)
        await line.until(lambda: len(line.pairs("b2")) == 20)
        await asyncio.sleep(KNOWN_S)
        given_out = line.pairs("b2")

        await has_a_stand_in(line, capsys)

        # One that can be reached is not taken over, nor by a broker without a copy.
        assert await line.command("take-over", "b2") == 1
        assert await line.command("take-over", "b2", at="b0") == 1
        told = capsys.readouterr().err
        assert "goes on by itself" in told
        assert "`b1` has a later copy of `b2`" in told

        await line.publish(7)  # what it is killed in the midst of
        just_given_out = line.pairs("b2")
        await line.destroy()
        await line.publish(5)
        await line.until(lambda: "b2" not in line.network("b1")["tree"])

        await is_listed_while_away(line, capsys)
        assert await line.command("take-over", "b2", "--json") == 0
        reply = json.loads(capsys.readouterr().out)
        assert reply["subscriptions"] == [["anna", "Pair"]]
        await line.until(lambda: line.subscribed("b1") == ["active"])
        await line.publish(8)
        wanted = [(f"t{number}",) for number in range(1, 61, 2)]
        await line.until(lambda: {*just_given_out, *line.pairs("b1")} == set(wanted))
        assert len(line.pairs("b1")) == len(set(line.pairs("b1")))
        assert set(given_out).isdisjoint(line.pairs("b1"))
        await line.until(lambda: line.homes("b0") == [("Pair", "b1", False)])
        assert await line.command("ls", at="b0") == 0
        assert "b1 has taken b2 over" in capsys.readouterr().err

        # It comes back with nothing, and has no subscription; the new home ends it.
        line.begin("b2")
        await asyncio.to_thread(line.brokers["b2"].__enter__)
        await line.until(lambda: line.feed()["taken_over"] == {"b2": ["b1"]})
        assert line.subscribed("b2") == []
        # A tree that changes begins its sessions again: a question that is under way is lost then.
        await line.until(lambda: line.unreached("b0") == [])
        path = "/v1/subscriptions/Pair?client=anna&network=1"
        status, reply = await asyncio.to_thread(line.brokers["b0"].get, path, "DELETE")
        assert (status, reply.get("home")) == (200, "b1"), reply
        assert line.subscribed("b1") == []

    run(scenario, tmp_path, line=Line)


@pytest.mark.timeout(240)
def test_the_server_tier_reads_each_result_once_although_a_home_is_destroyed(tmp_path, capsys):
    """It has read more than it said that it has, and not all that the home has found."""

    async def scenario(line):
        addresses = {}

        def known():
            addresses.update(
                {
                    name: f"http://127.0.0.1:{broker.port('http')}"
                    for name, broker in line.brokers.items()
                    if "http" in broker.where
                }
            )
            return addresses

        reader = LogReader(known)
        assert await asyncio.to_thread(reader.read)  # where each log begins
        status, reply = await asyncio.to_thread(
            line.brokers["b2"].get, "/v1/subscriptions?client=anna", "POST", TEXT.encode()
        )
        assert status == 200, reply
        await line.until(lambda: line.subscribed("b2") == ["active"])
        await line.until(lambda: line.feed()["state"] == "following")
        await line.publish(40)
        await line.until(lambda: len(line.pairs("b2")) == 20)
        for _ in range(3):  # batches of five rows at most, the last not acknowledged
            assert await asyncio.to_thread(reader.read)
        read = [result["events"]["a"][0] for _, _, result in reader.rows]
        assert 0 < len(read) < 20
        await asyncio.sleep(KNOWN_S)  # by now all was given out, and the stand-in knows

        await line.publish(7)
        await line.destroy()
        await line.publish(5)
        await line.until(lambda: "b2" not in line.network("b1")["tree"])
        assert await line.command("take-over", "b2", "--json") == 0
        await line.until(lambda: line.subscribed("b1") == ["active"])
        await line.publish(8)
        wanted = [f"t{number}" for number in range(1, 61, 2)]

        def is_all_read():
            reader.read()
            return len(reader.rows) >= len(wanted)

        await line.until(is_all_read)
        await asyncio.to_thread(reader.read)
        names = [result["events"]["a"][0] for _, _, result in reader.rows]
        assert sorted(names) == sorted(wanted)
        assert {broker for broker, _, _ in reader.rows} == {"b1", "b2"}

        # It comes back with another disk: that log is read from its beginning.
        line.begin("b2")
        await asyncio.to_thread(line.brokers["b2"].__enter__)
        await line.until(lambda: line.feed()["taken_over"] == {"b2": ["b1"]})
        for _ in range(3):
            await asyncio.to_thread(reader.read)
        assert len(reader.rows) == len(wanted)

    run(scenario, tmp_path, line=Line)


class LeasedLine(Line):
    """The home has a lease, and nobody is asked when it is lost."""

    links = {"b2": f'stand_in = "*"\nstand_in_lease_ms = {LEASE_MS}'}  # noqa: RUF012  # as in Fleet


@pytest.mark.timeout(240)
def test_a_stand_in_takes_over_by_itself_once_the_lease_has_lapsed(tmp_path):
    """A home that is cut off gives out nothing meanwhile, and nothing twice when it is back."""

    async def scenario(line):
        status, reply = await asyncio.to_thread(
            line.brokers["b2"].get, "/v1/subscriptions?client=anna", "POST", TEXT.encode()
        )
        assert status == 200, reply
        await line.until(lambda: line.subscribed("b2") == ["active"])
        await line.until(lambda: line.feed()["state"] == "following")
        await line.publish(20)
        await line.until(lambda: len(line.pairs("b2")) == 10)
        await asyncio.sleep(KNOWN_S)

        line.gaps["b2"].cut()  # b2 goes on, and cannot be reached
        await line.until(lambda: line.subscribed("b1") == ["active"])
        assert line.network("b1")["stand_ins"]["taken_over"] == {"b2": ["b1"]}
        await line.publish(20)
        wanted = [(f"t{number}",) for number in range(1, 41, 2)]
        await line.until(lambda: line.pairs("b1") == wanted[10:])
        assert line.pairs("b2") == wanted[:10]

        line.gaps["b2"].mend()
        await line.until(lambda: line.subscribed("b2") == [])
        await line.publish(4)
        await line.until(lambda: len(line.pairs("b1")) == 12)
        assert line.pairs("b2") == wanted[:10]

    run(scenario, tmp_path, line=LeasedLine)
