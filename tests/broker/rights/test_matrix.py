"""Every request and path by every role, tried at a real broker over MQTT and HTTP.

The cases are written from the table of requests; what each role may is written down here once more,
by hand, so that a slip in the table shows.
"""

import asyncio
import base64
import contextlib
import json
import secrets

import aiomqtt
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from broker.credentials import hash_password, new_token, token_digest
from broker.http.routes import ROUTES
from broker.mqtt.codec import packets as p
from broker.mqtt.codec.reasons import Reason
from broker.rights.requests import BY_ROUTE, BY_TOPIC, REQUESTS
from tests.broker.mqtt.sockets import RawClient
from tests.broker.running import CONFIG, PATIENCE_S, RunningBroker

GRANTED = {
    "look": "health join interface metrics status network plan list consumers_list functions_list",
    "publish": "health join interface publish",
    "subscribe": "health join interface metrics status network plan list consumers_list"
    " functions_list submit preview cancel resume results",
    "operate": "health join interface metrics status network plan list consumers_list"
    " functions_list cancel resume drain forget take_over reload consumers",
    "administrate": " ".join(entry.name for entry in REQUESTS),
    "sensor": "health join interface publish",  # of the file: it publishes its own readings
    "nobody": "health join interface",  # who has logged in and has no role
}
PASSWORD = "open sesame"
SPY = "event Temp(val: float)\nsubscription Spy from {} to {} detect Temp(val > -999)\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A broker with a user and a token for each role, called as the role."""
    folder = tmp_path_factory.mktemp("rights")
    encoded, tokens = hash_password(PASSWORD), {role: new_token() for role in GRANTED}
    lines = ['[roles.sensor]\npublish = ["events/+/{user}"]']
    for role in GRANTED:
        roles = [] if role == "nobody" else [role]
        lines.append(f'[users.{role}]\nroles = {json.dumps(roles)}\npassword = "{encoded}"')
        digest = token_digest(tokens[role])
        lines.append(f'[tokens.{role}-token]\nroles = {json.dumps(roles)}\ndigest = "{digest}"')
    (folder / "rights.toml").write_text("\n".join(lines))
    config = CONFIG.replace("[broker]", '[broker]\nrights = "rights.toml"')
    # All cases come from one address, and those that guess must not bar those after them.
    config += "[mqtt_limits]\nlogin_failures_max = 1_000_000\n"
    with RunningBroker(folder, config, "--set", f"broker.data_dir={folder}/data") as broker:
        yield broker, tokens, folder
        text = "".join(map(str, broker.lines))
        assert PASSWORD not in text
        assert not [token for token in tokens.values() if token in text], "a token in the log"


async def http(port, method, path, authorization):
    """The status and errors, or what was stopped; of an endless stream the status alone."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = b"nonsense" if method == "POST" else b""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
    head += f"Content-Length: {len(body)}\r\nConnection: close\r\n"
    if authorization:
        head += f"Authorization: {authorization}\r\n"
    try:
        async with asyncio.timeout(PATIENCE_S):
            writer.write(head.encode() + b"\r\n" + body)
            status = int((await reader.readline()).split()[1])
            if path.startswith("/v1/results") and status == 200:
                return status, []
            data = (await reader.read()).partition(b"\r\n\r\n")[2]
    finally:
        writer.close()
    with contextlib.suppress(ValueError):
        answer = json.loads(data)
        return status, answer.get("errors", answer.get("stopped", []))
    return status, []


def basic(user, password=PASSWORD):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize("role", GRANTED)
@pytest.mark.parametrize("by", ["password", "token"])
def test_each_path_answers_each_role_as_the_table_says(site, role, by):
    """403 with the right that is missing, and anything else but 401 where it is granted."""
    broker, tokens, _ = site
    who = basic(role) if by == "password" else f"Bearer {tokens[role]}"

    async def scenario():
        wrong = []
        for route in ROUTES:
            entry = BY_ROUTE[f"{route.method} {route.path}"]
            path = route.path.replace("{name}", "x")
            status, errors = await http(broker.port("http"), route.method, path, who)
            granted = entry.name in GRANTED[role].split()
            if granted == (status in {401, 403}):
                wrong.append((route.method, route.path, status))
            if not granted:
                assert f"it needs the right `{entry.need}`" in errors[0]["message"]
        assert wrong == []

    asyncio.run(scenario())


def test_who_gives_no_name_or_a_wrong_one_gets_the_probes_alone(site):
    broker, tokens, _ = site

    async def scenario():
        for who in ("", basic("look", "wrong"), f"Bearer {tokens['look']}x"):
            for route in ROUTES:
                path = route.path.replace("{name}", "x")
                status, _ = await http(broker.port("http"), route.method, path, who)
                need = BY_ROUTE[f"{route.method} {route.path}"].need
                assert (status == 401) == (need != "nothing"), (route.path, status)

    asyncio.run(scenario())


@contextlib.asynccontextmanager
async def mqtt(broker, user):
    async with aiomqtt.Client(
        "127.0.0.1",
        broker.port(),
        username=user,
        password=PASSWORD,
        protocol=aiomqtt.ProtocolVersion.V5,
        identifier=f"{user}-{secrets.token_hex(4)}",
    ) as client:
        yield client


async def granted_to_publish(client, topic, payload=b"nonsense"):
    """Whether a publication is acknowledged as one that was let in, whatever came of it."""
    await client.send(p.Publish(topic, payload, 1, packet_id=1))
    async with asyncio.timeout(PATIENCE_S):
        while not isinstance(answer := await client.next(), p.Puback):
            assert answer is not None
    return answer.code != Reason.NOT_AUTHORIZED


@pytest.mark.parametrize("role", GRANTED)
def test_each_request_topic_takes_each_role_as_the_table_says(site, role):
    broker, _, _ = site

    async def scenario():
        client = await RawClient.open(
            broker.port(), username=role, password=PASSWORD.encode(), client_id=role
        )
        for kind, entry in BY_TOPIC.items():
            topic = f"headwater/{kind}/{role}/1"
            granted = entry.name in GRANTED[role].split()
            assert await granted_to_publish(client, topic) == granted, kind
        own = role in {"publish", "sensor", "administrate"}
        event = b'{"val": 1}'
        assert await granted_to_publish(client, f"headwater/events/T/{role}", event) == own
        others = role in {"publish", "administrate"}
        assert await granted_to_publish(client, "headwater/events/T/t8", event) == others
        assert await granted_to_publish(client, "secret/x") == (role == "administrate")
        await client.close()

    asyncio.run(scenario())


async def asked(broker, user, verb, body, reply=None, name=None):
    """The answer to a request, at the user's own reply topic or at `reply`."""
    async with mqtt(broker, user) as client, asyncio.timeout(PATIENCE_S):
        await client.subscribe(f"headwater/reply/{user}/#", qos=1)
        properties = Properties(PacketTypes.PUBLISH)
        if reply:
            properties.ResponseTopic = reply
        topic = f"headwater/{verb}/{name or user}/7"
        await client.publish(topic, body, qos=1, properties=properties)
        message = await anext(aiter(client.messages))
        return json.loads(message.payload)


def test_a_text_that_speaks_drives_or_reads_beyond_ones_rights_is_refused_with_reasons(site):
    """Found by an attack: one user read all types, drove the front door and spoke as another."""
    broker, _, _ = site
    reply = asyncio.run(asked(broker, "subscribe", "submit", SPY.format("anna", "front-door-lock")))
    assert [error["message"] for error in reply["errors"]] == [
        "`subscribe` may not submit in the name of `anna`",
        "`subscribe` may not drive the actor `front-door-lock`",
    ]
    assert reply["errors"][0]["line"] == 2
    mine = SPY.format("subscribe", "subscribe")
    assert asyncio.run(asked(broker, "subscribe", "submit", mine))["ok"]
    assert asyncio.run(asked(broker, "look", "list", ""))["subscriptions"] == []
    listed = asyncio.run(asked(broker, "operate", "list", ""))["subscriptions"]
    assert [entry["subscription"] for entry in listed] == ["Spy"]
    # Whoever operates a broker may end what runs away there.
    assert asyncio.run(asked(broker, "operate", "cancel", "Spy"))["ok"]


def test_an_answer_goes_nowhere_that_the_asker_may_not_hear(site):
    """Found by an attack: the response topic `secret/place` got everybody's subscriptions."""
    broker, _, _ = site

    async def scenario():
        async with mqtt(broker, "administrate") as watcher:
            await watcher.subscribe("secret/#", qos=1)
            await watcher.subscribe("headwater/reply/anna/#", qos=1)
            answers = [
                await asked(broker, "subscribe", "list", "", reply="secret/place"),
                await asked(broker, "subscribe", "list", "", name="anna"),
            ]
            assert [answer["errors"][0]["code"] for answer in answers] == ["HW513"] * 2
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await anext(aiter(watcher.messages))

    asyncio.run(scenario())


def test_a_reload_takes_rights_away_and_tells_whom_it_concerns(site):
    """Clients, subscriptions and tokens are judged again; a faulty file changes nothing."""
    broker, tokens, folder = site
    file = folder / "rights.toml"
    before = file.read_text()
    port = broker.port("http")
    root = basic("administrate")

    async def scenario():
        assert (await asked(broker, "subscribe", "submit", SPY.format("subscribe", "subscribe")))[
            "ok"
        ]
        file.write_text(before + "\n[users.x]\nrole = 1\n")
        status, errors = await http(port, "POST", "/v1/reload", root)
        assert status == 422
        assert "did you mean `roles`?" in errors[0]["message"]
        assert errors[0]["message"].endswith("    role\n    ^")
        assert (await http(port, "GET", "/v1/status", basic("look")))[0] == 200
        less = before.replace('[users.subscribe]\nroles = ["subscribe"]', "[users.subscribe]")
        less = less.replace(token_digest(tokens["look"]), "sha256$" + "0" * 64)
        file.write_text(less)
        async with mqtt(broker, "subscribe") as client:
            await client.subscribe("headwater/reply/subscribe/#", qos=1)
            assert (await http(port, "POST", "/v1/reload", root)) == (200, ["subscribe/Spy"])
            with pytest.raises(aiomqtt.MqttError):
                async with asyncio.timeout(PATIENCE_S):
                    await anext(aiter(client.messages))
        status, _ = await http(port, "GET", "/v1/status", f"Bearer {tokens['look']}")
        assert status == 401
        listed = (await asked(broker, "administrate", "list", ""))["subscriptions"]
        assert listed == []
        file.write_text(before)
        broker.process.send_signal(1)
        while broker.line("reloaded")["clients_closed"] < 1:  # the one that lost its roles
            pass
        broker.line("reloaded")
        # What was stopped is not revived by itself.
        assert (await asked(broker, "administrate", "list", ""))["subscriptions"] == []

    asyncio.run(scenario())


def test_each_route_and_each_request_topic_stands_in_the_table():
    """Whoever adds one has to say what it needs."""
    from broker.core.topics import NAMES_AFTER

    assert {f"{route.method} {route.path}" for route in ROUTES} == set(BY_ROUTE)
    assert set(BY_TOPIC) == set(NAMES_AFTER) - {"events", "sources"}
