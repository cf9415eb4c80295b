"""Three real brokers in a line: subscriptions are listed and ended at the far end."""

import asyncio
import json

import pytest

from headwater.cli import main
from tests.broker.network.fleet import Fleet
from tests.broker.running import ask, client

PARENTS = {"pi1": "hall", "pi2": "pi1"}
SPEC = "event Temp(val: float)\nsubscription {} from {} to {} detect Temp(val > 0)\n"


def spec(name, who="me"):
    return SPEC.format(name, who, who)


async def submitted(fleet, name, text, who="me"):
    async with client(fleet.brokers[name].port()) as one:
        assert (await ask(one, "submit", text, who))["ok"]


async def asked(fleet, name, verb, body, who="me"):
    async with client(fleet.brokers[name].port()) as one:
        return await ask(one, verb, json.dumps(body), who)


def rows(answer):
    return [(row["subscription"], row["home"]) for row in answer["subscriptions"]]


def command(fleet, name, *words):
    url = f"http://127.0.0.1:{fleet.brokers[name].port('http')}"
    return main([*words, "--broker", url])


async def all_linked(fleet):
    """Wait until each broker knows the way to each other."""
    names = fleet.names

    def holds():
        answers = [fleet.brokers[name].get("/v1/subscriptions?network=1")[1] for name in names]
        return not any(answer["unreached"] for answer in answers) and all(
            len(fleet.brokers[name].get("/v1/network")[1]["brokers"]) == len(names)
            for name in names
        )

    await fleet.until(holds)


@pytest.mark.timeout(180)
def test_subscriptions_of_all_homes_are_listed_and_ended_from_any_broker(tmp_path, capsys):
    async def scene():
        fleet = Fleet(tmp_path, PARENTS)
        try:
            await fleet.start()
            await submitted(fleet, "hall", spec("Warm"))
            await submitted(fleet, "pi1", spec("Mid"))
            await submitted(fleet, "pi2", spec("Far"))
            await submitted(fleet, "pi2", spec("Warm"))
            await all_linked(fleet)
            # Links go through this loop, so what waits for them runs beside it.
            await asyncio.to_thread(check_lists, fleet, capsys)
            await asyncio.to_thread(check_states, fleet, capsys)
            await check_mqtt(fleet)
            await check_ends(fleet, capsys)
        finally:
            await fleet.stop()

    asyncio.run(scene())


def check_lists(fleet, capsys):
    everywhere = {("Warm", "hall"), ("Mid", "pi1"), ("Far", "pi2"), ("Warm", "pi2")}
    for name in fleet.names:
        status, answer = fleet.brokers[name].get("/v1/subscriptions?network=1")
        assert (status, set(rows(answer)), answer["unreached"]) == (200, everywhere, [])
        assert answer["subscriptions"][0]["home"] == name, "its own come first"
    status, alone = fleet.brokers["hall"].get("/v1/subscriptions")
    assert [row["subscription"] for row in alone["subscriptions"]] == ["Warm"]
    assert "unreached" not in alone
    assert "home" not in alone["subscriptions"][0], "the answer of one broker is as it was"
    assert command(fleet, "hall", "ls") == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[0].split()[-1] == "HOME"
    assert len(shown.splitlines()) == 5
    assert command(fleet, "hall", "ls", "--alone") == 0
    assert "HOME" not in capsys.readouterr().out


def check_states(fleet, capsys):
    for name in fleet.names:
        status, answer = fleet.brokers[name].get("/v1/status?network=1")
        assert (status, answer["unreached"]) == (200, [])
        states = {state["broker"]: state for state in answer["brokers"]}
        assert answer["brokers"][0]["broker"] == name, "its own comes first"
        assert {who: state["subscriptions"] for who, state in states.items()} == {
            "hall": 1, "pi1": 1, "pi2": 2,
        }  # fmt: skip
        assert all(state["memory_bytes"] > 1_000_000 for state in states.values())
    assert command(fleet, "pi1", "status") == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in shown[1:]] == [
        ["pi1", "ready"], ["hall", "ready"], ["pi2", "ready"],
    ]  # fmt: skip
    assert command(fleet, "pi1", "status", "--alone") == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


async def check_mqtt(fleet):
    answer = await asked(fleet, "pi1", "list", {"network": True})
    assert ("Far", "pi2") in rows(answer)
    answer = await asked(fleet, "pi1", "list", {})
    assert [row["subscription"] for row in answer["subscriptions"]] == ["Mid"]
    refused = await asked(fleet, "pi1", "cancel", {"name": "Warm", "network": True})
    assert [error["code"] for error in refused["errors"]] == ["HW515"]
    stranger = await asked(fleet, "pi1", "cancel", {"name": "Far", "home": "pi2"}, "you")
    assert [error["code"] for error in stranger["errors"]] == ["HW502"]
    ended = await asked(fleet, "hall", "cancel", {"name": "Far", "network": True})
    assert ended == {"ok": True, "subscriptions": ["Far"], "definitions": [], "home": "pi2"}
    assert ("Far", "pi2") not in rows(await asked(fleet, "pi2", "list", {"network": True}))


async def check_ends(fleet, capsys):
    def run(*words):
        return asyncio.to_thread(command, fleet, *words)

    assert await run("pi1", "cancel", "Warm", "--as", "me") == 1
    assert "several homes: `hall`, `pi2`" in capsys.readouterr().err
    assert await run("pi1", "cancel", "Warm", "--as", "me", "--alone") == 1
    capsys.readouterr()
    assert await run("pi1", "cancel", "Warm", "--as", "me", "--home", "pi2") == 0
    assert capsys.readouterr().out == "cancelled: Warm at pi2\n"
    # What was confirmed is in the journal of its home: it outlasts a kill right behind.
    await fleet.kill("pi2")
    assert fleet.subscribed("pi2") == []
    fleet.gaps["pi2"].cut()
    await fleet.until(lambda: "pi2" in unreached(fleet, "hall"))
    assert await run("hall", "ls") == 0
    assert "pi2 cannot be asked, and is left out" in capsys.readouterr().err
    assert await run("hall", "status") == 1
    assert "pi2 cannot be asked: " in capsys.readouterr().err
    await fleet.until(lambda: unreached(fleet, "hall")["pi2"] == "no way leads there")
    assert await run("hall", "cancel", "Any", "--as", "me", "--home", "pi2") == 1
    assert "`pi2` cannot be asked: no way leads there" in capsys.readouterr().err
    status, answer = fleet.brokers["hall"].get("/v1/subscriptions/X?home=nowhere", "DELETE")
    assert (status, answer["errors"][0]["code"]) == (504, "HW516")
    # What can be reached is ended though others cannot be asked.
    assert await run("hall", "cancel", "Mid", "--as", "me") == 0


def unreached(fleet, name):
    answer = fleet.brokers[name].get("/v1/subscriptions?network=1")[1]
    return {row["broker"]: row["reason"] for row in answer["unreached"]}
