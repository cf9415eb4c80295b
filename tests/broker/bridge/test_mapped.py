"""Foreign topics of a joined server become events as those of the broker's own face do."""

import asyncio

import pytest

from broker.config.mappings import MappingSection
from broker.core.messages import SourceAdvertised
from tests.broker.bridge.scene import Scene, client, section, until
from tests.broker.bridge.servers import PATIENCE_S, Line, OwnFace
from tests.broker.sparkplug.encoder import payload, read

TEXT = "event Climate(val: float)\nsubscription Hot from anna to alerts\ndetect Climate(val > 30)\n"


@pytest.mark.parametrize("retained", [False, True])
def test_what_comes_is_taken_and_what_was_retained_before_only_where_it_is_wanted(retained):
    mapping = MappingSection(
        preset="zigbee2mqtt",
        type="Climate",
        attributes={"val": "temperature"},
        retained=retained,
    )

    async def scene(server):
        async with client(server) as sensor:
            await sensor.publish("zigbee2mqtt/old", '{"temperature": 40}', qos=1, retain=True)
            mappings = {"climate": mapping}
            async with Scene(section(server), mappings=mappings) as found:
                found.submit(TEXT)
                await found.up()
                await sensor.publish("zigbee2mqtt/new", '{"temperature": 41}', qos=1, retain=True)
                await sensor.publish("zigbee2mqtt/new", '{"temperature": 42}', qos=1)
                await until(
                    lambda: any(
                        one["values"]["Climate"]["val"] == 42 for one in found.inside.results
                    )
                )
                await until(lambda: not found.join.counts()["unacknowledged"])
                return [one["values"]["Climate"]["val"] for one in found.inside.results]

    with OwnFace() as server:
        values = asyncio.run(scene(server))
    assert values == ([40, 41, 42] if retained else [41, 42])


def test_a_join_may_leave_them_out():
    async def scene(server):
        mappings = {"homie": MappingSection(preset="homie")}
        joins = section(server), section(server, mappings=False, client_id="b")
        found = Scene(*joins, mappings=mappings)
        return [server.join._filters for server in found.joined.servers]

    class Nowhere:
        port = 1

    own = ("headwater/events/#", "headwater/sources/#")
    assert asyncio.run(scene(Nowhere)) == [(*own, "homie/+/+/+"), own]


BORN = payload({"name": "Temp", "alias": 3, "datatype": 9, "float_value": 20.5}, seq=1)
HOT = payload({"alias": 3, "float_value": 35.5}, seq=2)
SPARKPLUG = MappingSection(
    preset="sparkplug-b", type="Climate", attributes={"val": "Temp"}, rebirth=True
)


def test_an_edge_node_at_a_joined_server_is_asked_for_its_births_and_missed():
    async def scene(server):
        async with (
            Line(server.port) as line,
            client(server, "spBv1.0/plant/NCMD/hall") as node,
            Scene(section(line), mappings={"plant": SPARKPLUG}) as found,
        ):
            found.submit(TEXT)
            await found.up()
            await node.publish("spBv1.0/plant/DDATA/hall/left", HOT)
            async with asyncio.timeout(PATIENCE_S):
                command = await anext(aiter(node.messages))
            _, (_, metric) = read(command.payload)
            assert read(metric)[0] == (1, b"Node Control/Rebirth")
            await node.publish("spBv1.0/plant/DBIRTH/hall/left", BORN)
            await node.publish("spBv1.0/plant/DDATA/hall/left", HOT)
            await until(lambda: found.inside.results)
            notes = found.runner.core.ledger.notes
            assert notes["payloads_not_mapped"] == 1
            line.cut()  # from now on births may have been missed
            await until(lambda: found.join.counts()["connections"] == 2)
            hotter = payload({"alias": 3, "float_value": 45.5}, seq=3)
            await node.publish("spBv1.0/plant/DDATA/hall/left", hotter)
            await until(lambda: notes["payloads_not_mapped"] == 2)
            found.runner.handle(SourceAdvertised("plant/hall/known", b'{"location": "hall"}'))
            for device in ("known", "left"):
                dead = payload(timestamp=1)
                await node.publish(f"spBv1.0/plant/DDEATH/hall/{device}", dead)
            told = found.inside.published
            await until(lambda: "sources/plant/hall/left" in [one.topic for one in told])
            withdrawn = [one.topic for one in told if not one.payload]
            assert withdrawn == ["sources/plant/hall/left"], "the other said what it is"
            return [one["values"]["Climate"]["val"] for one in found.inside.results]

    with OwnFace() as server:
        assert asyncio.run(scene(server)) == [35.5]
