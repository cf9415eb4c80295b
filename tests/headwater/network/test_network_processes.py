"""Three real brokers in a line: what the commands show is what their links counted."""

import asyncio
import json
import re
import time
from typing import ClassVar

import pytest

from headwater.cli import main
from tests.broker.network.fleet import Fleet
from tests.broker.running import ask, client
from tests.test_docs import FENCE, ROOT

PAGE = "docs/monitoring.md"
PARENTS = {"pi1": "hall", "pi2": "pi1"}
JOIN = """event Temp(val: float)
event Noise(val: float)
subscription Both from anna to alerts
detect Temp(val > 0) and Noise(val > 0) within 200 ms
"""


class JoiningFleet(Fleet):
    """Events wait for their partners on the way."""

    links: ClassVar[dict[str, str]] = dict.fromkeys(("hall", "pi1", "pi2"), "correlate = true")
    more = "[limits]\nuncertainty_ms_max = 0\nevent_duration_ms_max = 0\n"


async def publish(fleet, name, readings):
    async with client(fleet.brokers[name].port()) as one:
        for number, (type_name, val, time_ms) in enumerate(readings):
            said = {"id": f"{type_name}{number}", "timestamp": time_ms, "val": val}
            topic = f"headwater/events/{type_name}/{type_name}-1"
            await one.publish(topic, json.dumps(said), qos=1)


async def begun(fleet, text):
    """The fleet with a specification at home at `hall`, and a context of all its brokers."""
    await fleet.start()
    async with client(fleet.brokers["hall"].port()) as one:
        assert (await ask(one, "submit", text))["ok"]
    await fleet.until(lambda: set(fleet.subscribed("hall")) == {"active"})
    urls = [f"http://127.0.0.1:{fleet.brokers[name].port('http')}" for name in fleet.names]
    assert main(["context", "add", "home", *urls]) == 0
    return fleet


def delivered(fleet, name):
    """The events that each link of a broker has delivered, as the links count them."""
    links = fleet.network(name)["links"]
    return {peer: link["counts"]["delivered_events"] for peer, link in links.items()}


def shown(capsys, *words):
    assert main([*words]) == 0
    return capsys.readouterr().out


def check_top(capsys, fleet, by_way):
    """What `top` shows agrees with what `flows` showed, and tells who is waited for."""
    look = json.loads(shown(capsys, "top", "--json", "--count", "1", "--interval", "0.5"))
    assert [row["broker"] for row in look["brokers"]] == list(fleet.names)
    assert all(row["memory_bytes"] > 2**20 and row["cpu"] >= 0 for row in look["brokers"])
    assert {(row["from"], row["to"]): row["events"] for row in look["links"]} == {
        way: sum(row["events"].values()) for way, row in by_way.items()
    }
    tasks = {row["task"]: (row["results"], row["behind"]) for row in look["tasks"]}
    assert tasks == {"anna/Warm": (6, "pi2"), "bob/Hot": (2, "pi2")}
    assert "anna/Warm" in shown(capsys, "top", "--count", "1", "--interval", "0.1")


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWATER_CONTEXTS", str(tmp_path / "contexts.toml"))
    monkeypatch.delenv("HEADWATER_BROKER", raising=False)


class GuardedFleet(Fleet):
    """Tasks run in cells, as each home has a stand-in."""

    links: ClassVar[dict[str, str]] = dict.fromkeys(("hall", "pi1", "pi2"), 'stand_in = "*"')


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", [Fleet, GuardedFleet])
def test_the_page_on_monitoring_shows_what_the_commands_print(tmp_path, capsys, kind):
    """And the counts of a link by type add up to what the link itself delivered."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    (specification,) = [m[3] for m in FENCE.finditer(text) if m[2] == "heat.hw"]
    examples = dict(
        re.findall(r"^\$ (headwater (?:topology|flows) .*)\n((?:[^$`].*\n)+)", text, re.MULTILINE)
    )

    async def scene():
        fleet = await begun(kind(tmp_path, PARENTS), specification)
        try:
            now_ms = int(time.time() * 1000)
            names = ("Temp", "Noise")
            await publish(
                fleet, "pi2", [(name, 21.0 + i, now_ms + i) for i in range(10) for name in names]
            )
            await fleet.until(lambda: len(fleet.results("hall")) == 6 + 2)
            capsys.readouterr()
            assert len(examples) == 2
            for line, printed in examples.items():
                assert await asyncio.to_thread(shown, capsys, *line.split()[1:]) == printed
            told = json.loads(await asyncio.to_thread(shown, capsys, "flows", "--json"))
            by_way = {(row["from"], row["to"]): row for row in told["flows"]}
            for receiver in fleet.names:
                for sender, count in delivered(fleet, receiver).items():
                    assert sum(by_way[sender, receiver]["events"].values()) == count
            assert by_way["pi1", "hall"]["per_s"] == {"Temp": 0}
            drawn = await asyncio.to_thread(shown, capsys, "topology", "--as", "svg")
            assert drawn.startswith("<svg")
            await asyncio.to_thread(check_top, capsys, fleet, by_way)
            assert await asyncio.to_thread(shown, capsys, "doctor") == (
                "nothing is wrong with 3 brokers\n"
            )
            # A broker that is gone is named; what is known of it comes from the others.
            fleet.brokers["pi2"].process.kill()
            fleet.brokers["pi2"].process.wait(15)
            status = await asyncio.to_thread(main, ["flows", "--interval", "0"])
            told = capsys.readouterr()
            assert status == 1
            assert "cannot reach http://127.0.0.1:" in told.err
            assert "pi2   pi1   Temp  6" in told.out
            await fleet.until(lambda: fleet.network("pi1")["links"]["pi2"]["state"] == "down")
            status = await asyncio.to_thread(main, ["doctor", "--json"])
            rows = json.loads(capsys.readouterr().out)["findings"]
            assert status == 1
            assert any("cannot reach" in row["message"] for row in rows)
            assert any(
                "no link to pi2" in row["message"] and "headwater forget pi2" in row["mend"]
                for row in rows
            )
        finally:
            await fleet.stop()

    asyncio.run(scene())


@pytest.mark.timeout(120)
def test_what_waits_for_a_partner_is_told_with_the_partners_it_waits_for(tmp_path, capsys):
    async def scene():
        fleet = await begun(JoiningFleet(tmp_path, PARENTS), JOIN)
        try:
            start_ms = int(time.time() * 1000) - 20_000

            def waiting():
                _, view = fleet.brokers["pi2"].get("/v1/network")
                return view["neighbours"]["pi1"]["waits_for_partners"]

            # What came before the first promises of both sources travels; then it waits.
            readings = [("Noise", -1.0, start_ms), ("Temp", -1.0, start_ms)]
            while not await asyncio.to_thread(waiting):
                assert len(readings) < 60
                readings = [*readings, ("Temp", 5.0, start_ms + 50 * len(readings))]
                await publish(fleet, "pi2", readings)
                await asyncio.sleep(0.2)
            rows = waiting()
            assert {(row["type"], tuple(row["partners"])) for row in rows} == {("Temp", ("Noise",))}
            capsys.readouterr()
            said = await asyncio.to_thread(shown, capsys, "flows", "--interval", "0")
            assert "kept back, until a partner comes:" in said
            assert re.search(r"pi2 +pi1 +Temp +\d +Noise", said)
            assert re.search(r"pi2 has kept \d events back: 0 went later", said)
        finally:
            await fleet.stop()

    asyncio.run(scene())
