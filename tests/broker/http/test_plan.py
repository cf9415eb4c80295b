"""Draining over HTTP, and what is told of a plan."""

import jsonschema

from broker.core.coordinator.seen import plan
from broker.http.routes import SCHEMAS
from tests.broker.core.coordinator.town import Town
from tests.broker.http.fakes import FakeBroker, talk

PAGE = {"Origin": "http://elsewhere.example"}


def test_without_a_coordinator_there_is_no_plan_and_nothing_is_drained():
    broker = FakeBroker()

    async def scenario(client):
        for method, path in (("GET", "/v1/plan"), ("POST", "/v1/drain"), ("DELETE", "/v1/drain")):
            answer = await client.request(method, path)
            assert answer.status == 409
            assert "coordinator.enabled" in (await answer.json())["errors"][0]["message"]

    talk(broker, scenario)


def test_a_broker_is_drained_and_taken_up_again():
    broker = FakeBroker()
    broker.plans = {"broker": "fake"}

    async def scenario(client):
        assert (await client.post("/v1/drain", headers=PAGE)).status == 403
        assert not broker.drained
        answer = await client.post("/v1/drain")
        assert (answer.status, await answer.json()) == (200, {"ok": True})
        assert broker.drained
        assert (await client.delete("/v1/drain", headers=PAGE)).status == 403
        assert broker.drained
        assert (await client.delete("/v1/drain")).status == 200
        assert not broker.drained
        assert (await (await client.get("/v1/plan")).json()) == {"broker": "fake"}

    talk(broker, scenario)


def test_a_plan_is_as_it_is_described():
    town = Town(1, 3, [(0, 1), (1, 2)], {("b2", "A"): 1000.0})
    town.submit("b0", {("b2", "A"): 1.0})
    town.run(60)
    one = town.houses["b0"].coordinator
    assert one.laid is not None
    told = plan(one.running(), one.known, 10)
    told |= {"broker": "b0", "epoch": "0", "quiet": True, "drained": False, "infeasible": False}
    described = {"$ref": "#/components/schemas/Plan", "components": {"schemas": SCHEMAS}}
    jsonschema.validate(told, described)
    assert told["tasks"][0]["next"] is not None
    for name, shape in SCHEMAS.items():
        if name.startswith("Plan"):
            assert set(shape["required"]) == set(shape["properties"]), name
