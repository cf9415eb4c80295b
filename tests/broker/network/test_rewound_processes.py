"""Real brokers whose disk went back in time: nothing that is stored is lost in silence."""

import asyncio
import json
import shutil

import aiomqtt
import pytest

from headwater.cli import main
from tests.broker.network.fleet import CONFIG, Fleet, FleetBroker
from tests.broker.running import PATIENCE_S, ask, client

TEXT = "event Dust(val: int)\nsubscription Heard from one to alerts\ndetect Dust\n"
LINE = {"b1": "b0"}
BEGIN_MS = 1_700_000_000_000


def ids_of(first, last):
    return [f"d{number}" for number in range(first, last + 1)]


async def publish(fleet, first, last):
    """At the broker whose disk goes back; each is acknowledged."""
    async with client(fleet.brokers["b1"].port()) as one:
        for number in range(first, last + 1):
            event = {"id": f"d{number}", "val": number, "timestamp": BEGIN_MS + 100 * number}
            said = json.dumps(event)
            await one.publish("headwater/events/Dust/s", said, qos=1, timeout=PATIENCE_S)


def heard(fleet):
    return [row["events"]["Dust"][0] for row in fleet.results("b0")]


async def linked(folder, parents=LINE):
    fleet = Fleet(folder, parents)
    await fleet.start()
    count = len(parents)
    await fleet.until(lambda: all(len(fleet.network(n)["known"]) == count for n in fleet.names))
    async with client(fleet.brokers["b0"].port()) as one:
        assert (await ask(one, "submit", TEXT))["state"] == "active"
    return fleet


async def stopped(fleet, name):
    assert await asyncio.to_thread(fleet.brokers[name].end) == 0
    fleet.brokers[name].__exit__()


async def begun(fleet, name):
    fleet.begin(name)
    await asyncio.to_thread(fleet.brokers[name].__enter__)


async def put_back(folder, copied):
    """Stop the origin, put an older copy (or nothing) in its place, start it, and publish."""
    fleet = await linked(folder)
    data = folder / "b1" / "data"
    try:
        await publish(fleet, 1, 10)
        await fleet.until(lambda: len(heard(fleet)) == 10)
        await stopped(fleet, "b1")
        if copied:
            shutil.copytree(data, folder / "copy")
        await begun(fleet, "b1")
        epoch = fleet.brokers["b1"].get("/v1/log/offsets")[1]["epoch"]
        await publish(fleet, 11, 30)
        await fleet.until(lambda: len(heard(fleet)) == 30)
        await stopped(fleet, "b1")
        shutil.rmtree(data)
        if copied:
            shutil.copytree(folder / "copy", data)
        await begun(fleet, "b1")
        await publish(fleet, 31, 70)
        renewed = fleet.brokers["b1"].get("/v1/log/offsets")[1]["epoch"]
        assert renewed != epoch
        await fleet.until(lambda: len(heard(fleet)) >= 70)
        assert heard(fleet) == ids_of(1, 70)
        line = await asyncio.to_thread(fleet.brokers["b1"].line, "rewound")
        told = fleet.network("b1")["incarnation"]
        _, metrics = fleet.brokers["b1"].get("/metrics")
        assert 'headwater_network_total{what="rewound"} 1.0' in metrics
        assert fleet.brokers["b1"].get("/readyz")[0] == 200
        return line, told
    finally:
        await fleet.stop()


@pytest.mark.timeout(120)
def test_a_directory_restored_from_an_older_copy_loses_no_event_that_is_stored(tmp_path):
    """Of 40 events acknowledged after the restore, half were taken for repeats."""
    line, told = asyncio.run(put_back(tmp_path, copied=True))
    assert line["positions_to"] - line["positions_from"] >= 19
    assert line["seen_by"] == "b0"
    (gap,) = told["rewound"]
    assert gap["to"] == line["positions_to"]


@pytest.mark.timeout(120)
def test_a_namesake_with_an_empty_disk_is_heard_from_its_first_event_on(tmp_path):
    line, _ = asyncio.run(put_back(tmp_path, copied=False))
    assert line["positions_from"] == 1


async def cancelled_behind_a_copy(folder):
    """A home is backed up, a subscription of its is cancelled, and the backup is put back."""
    fleet = await linked(folder)
    data, copy = folder / "b0" / "data", folder / "copy"
    restored = ["restore", str(copy), "--config", str(folder / "b0" / "broker.toml"), "--replace"]
    try:
        url = f"http://127.0.0.1:{fleet.brokers['b0'].port('http')}"
        assert await asyncio.to_thread(main, ["backup", str(copy), "--broker", url]) == 0
        async with client(fleet.brokers["b0"].port()) as one:
            assert (await ask(one, "cancel", "Heard"))["ok"]
        await publish(fleet, 1, 10)
        await stopped(fleet, "b0")
        assert main(restored) == 0
        assert data.is_dir()
        await begun(fleet, "b0")
        broker = fleet.brokers["b0"]
        await fleet.until(lambda: broker.get("/readyz")[0] == 200)
        await fleet.until(lambda: fleet.subscribed("b0") == [])
        line = await asyncio.to_thread(broker.line, "cancelled_again")
        assert line["subscription"] == "Heard"
        await publish(fleet, 11, 30)
        assert fleet.results("b0") == []
        async with client(broker.port()) as one:  # its name is free again, and stays taken
            assert (await ask(one, "submit", TEXT))["state"] == "active"
        await publish(fleet, 31, 40)
        await fleet.until(lambda: len(heard(fleet)) == 10)
        await stopped(fleet, "b0")
        await begun(fleet, "b0")
        await fleet.until(lambda: len(fleet.network("b0")["known"]) == 1)
        assert fleet.subscribed("b0") == ["active"]
        assert heard(fleet) == ids_of(31, 40)
    finally:
        await fleet.stop()


@pytest.mark.long
@pytest.mark.timeout(120)
def test_a_home_restored_from_a_backup_revives_no_subscription_that_was_cancelled(tmp_path):
    asyncio.run(cancelled_behind_a_copy(tmp_path))


async def copied_beside(fleet, folder, neighbour, name):
    """Copy the disk of b1 and begin it as another broker; b1 goes on and publishes."""
    await publish(fleet, 1, 10)
    await stopped(fleet, "b1")
    (folder / "clone").mkdir()
    shutil.copytree(folder / "b1" / "data", folder / "clone" / "data")
    await begun(fleet, "b1")
    await publish(fleet, 11, 20)
    await fleet.until(lambda: len(heard(fleet)) == 20)
    port = fleet.links_port(neighbour)
    peers = f'[links.peers]\n{neighbour} = "127.0.0.1:{port}"'
    config = CONFIG.format(name=name, folder=folder / "clone", peers=peers)
    return await asyncio.to_thread(FleetBroker(folder / "clone", config).__enter__)


async def refused(clone):
    """Publish what the copy does not acknowledge."""
    event = json.dumps({"id": "never", "val": 1, "timestamp": BEGIN_MS})
    with pytest.raises(aiomqtt.MqttError):
        async with client(clone.port()) as one:
            await one.publish("headwater/events/Dust/s", event, qos=1, timeout=1.0)


async def cloned(folder, neighbour):
    """A copy of a running broker's disk begins beside it, and ends; the original goes on."""
    fleet = await linked(folder, {"b1": "b0", "b2": "b0"})
    clone = None
    try:
        clone = await copied_beside(fleet, folder, neighbour, "b1")
        await fleet.until(lambda: "another" in str(clone.get("/readyz")))
        assert clone.get("/readyz")[0] == 503
        await refused(clone)
        await publish(fleet, 21, 30)
        await fleet.until(lambda: len(heard(fleet)) == 30)
        assert fleet.brokers["b1"].get("/readyz")[0] == 200
        clone.__exit__()
        await publish(fleet, 31, 40)
        await fleet.until(lambda: len(heard(fleet)) >= 40)
        assert heard(fleet) == ids_of(1, 40)
        assert fleet.network("b1")["incarnation"]["rewound"] == []
    finally:
        if clone is not None:
            clone.__exit__()
        await fleet.stop()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("neighbour", ["b0", pytest.param("b2", marks=pytest.mark.long)])
def test_a_cloned_card_beside_its_original_admits_nothing_and_does_no_harm(tmp_path, neighbour):
    """Of the original's events some were lost, and after the clone's end all."""
    asyncio.run(cloned(tmp_path, neighbour))


async def cloned_as_another(folder, neighbour):
    """A copy begins under another name; the original goes on, restarts, and is gone for good."""
    fleet = await linked(folder, {"b1": "b0", "b2": "b0"})
    clone = None
    try:
        clone = await copied_beside(fleet, folder, neighbour, "kitchen")
        line = await asyncio.to_thread(clone.line, "identity_taken")
        assert line["by"] == "b1"
        code, why = clone.get("/readyz")
        assert code == 503
        assert "headwater forget b1" in str(why)
        await refused(clone)
        told = clone.get("/v1/status")[1]["network"]["incarnation"]
        assert told["identity"] == fleet.network("b1")["incarnation"]["identity"]
        await publish(fleet, 21, 30)
        await fleet.kill("b1")
        await publish(fleet, 31, 40)
        await fleet.until(lambda: len(heard(fleet)) >= 40)
        assert heard(fleet) == ids_of(1, 40)
        assert fleet.brokers["b1"].get("/readyz")[0] == 200
        assert clone.get("/readyz")[0] == 503
        await stopped(fleet, "b1")
        url = f"http://127.0.0.1:{fleet.brokers['b2'].port('http')}"
        assert await asyncio.to_thread(main, ["forget", "b1", "--broker", url]) == 0
        await fleet.until(lambda: clone.get("/readyz")[0] == 200)
        fleet.brokers["b1"] = clone
        await publish(fleet, 41, 50)
        await fleet.until(lambda: len(heard(fleet)) >= 50)
        assert [one for one in heard(fleet) if one != "never"] == ids_of(1, 50)
    finally:
        if clone is not None:
            clone.__exit__()
            if fleet.brokers["b1"] is clone:
                fleet.brokers.pop("b1")
        await fleet.stop()


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.parametrize("neighbour", ["b0", "b2"])
def test_a_copy_under_another_name_admits_nothing_until_its_original_is_forgotten(
    tmp_path, neighbour
):
    """Both went on with the same subscriptions and kept events, and nothing said so."""
    asyncio.run(cloned_as_another(tmp_path, neighbour))
