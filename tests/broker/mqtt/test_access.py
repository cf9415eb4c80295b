"""Client certificates and rights at a broker process, as its configuration asks for them."""

import asyncio
import ssl
from contextlib import suppress

import pytest

from broker.config import ConfigError, load
from broker.credentials import hash_password
from broker.mqtt.codec import packets as p
from broker.mqtt.codec.reasons import Reason
from tests.broker.mqtt.sockets import RawClient, make_certificates
from tests.broker.running import CONFIG, RunningBroker, refused
from tests.conftest import require_program

RIGHTS = """
[everyone]
roles = ["device"]
[roles.device]
publish = ["events/+/{user}"]
plain_publish = ["own/{user}/#", "board/{client}"]
plain_subscribe = ["own/{user}/#"]
[roles.board]
plain_subscribe = ["board/#"]
[users.ann]
roles = ["board"]
"""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("certificates"), require_program("openssl"))


def configured(certificates, **more):
    lines = {
        "tls_port": "0",
        "tls_cert": f'"{certificates}/server.pem"',
        "tls_key": f'"{certificates}/server.key"',
        "tls_client_ca": f'"{certificates}/ca.pem"',
        **more,
    }
    text = "".join(f"{key} = {value}\n" for key, value in lines.items())
    config = CONFIG.replace("[broker]", '[broker]\nrights = "rights.toml"')
    return config.replace("[http]", f"{text}[http]")


def context(certificates, *, named):
    made = ssl.create_default_context(cafile=certificates / "ca.pem")
    if named:
        made.load_cert_chain(certificates / "client.pem", certificates / "client.key")
    return made


async def said(client, topic):
    """What a client hears of a message at QoS 1, None if its connection ends."""
    await client.send(p.Publish(topic, b"x", 1, packet_id=1))
    packet = await client.next()
    return None if packet is None or isinstance(packet, p.Disconnect) else packet.code


@pytest.mark.program("openssl")
def test_certificates_name_users_and_rights_are_theirs(tmp_path, certificates):
    (tmp_path / "rights.toml").write_text(f'{RIGHTS}password = "{hash_password("a")}"\n')
    config = configured(certificates, tls_client_certificates='"optional"')

    async def scene(broker):
        port = broker.port("mqtts")
        pump = await RawClient.open(port, client_id="c1", context=context(certificates, named=True))
        ann = await RawClient.open(
            port,
            client_id="c2",
            context=context(certificates, named=False),
            username="ann",
            password=b"a",
        )
        assert pump.welcome.code == ann.welcome.code == 0
        assert await said(pump, "own/pump-7/x") == Reason.NO_MATCHING_SUBSCRIBERS
        assert await said(pump, "own/ann/x") == Reason.NOT_AUTHORIZED
        assert await said(pump, "board/c1") == Reason.NO_MATCHING_SUBSCRIBERS
        assert await said(pump, "board/c2") == Reason.NOT_AUTHORIZED
        assert await said(pump, "headwater/events/T/pump-8") == Reason.NOT_AUTHORIZED
        for client, codes in ((pump, (1, 135, 135)), (ann, (135, 1, 135))):
            wanted = ("own/pump-7/+", "board/#", "#")
            filters = tuple(p.Filter(one, 1) for one in wanted)
            await client.send(p.Subscribe(2, filters))
            assert (await client.next()).codes == codes
        old = await RawClient.open(
            port,
            p.V311,
            "c3",
            context(certificates, named=False),
            username="ann",
            password=b"a",
        )
        assert await said(old, "own/ann/x") == 0
        assert await said(old, "own/pump-7/x") is None
        nobody = await RawClient.open(
            port, client_id="c4", context=context(certificates, named=False)
        )
        assert nobody.welcome.code == Reason.NOT_AUTHORIZED
        for client in (pump, ann, old, nobody):
            await client.close()

    with RunningBroker(tmp_path, config, "--set", f"broker.data_dir={tmp_path}/data") as broker:
        asyncio.run(scene(broker))


@pytest.mark.program("openssl")
def test_where_certificates_are_required_a_password_is_not_enough(tmp_path, certificates):
    async def scene(broker):
        with suppress(ConnectionError, ssl.SSLError):
            bare = await RawClient.open(
                broker.port("mqtts"),
                context=context(certificates, named=False),
                username="ann",
                password=b"a",
            )
            assert bare.welcome is None
        named = context(certificates, named=True)
        wrong = await RawClient.open(
            broker.port("mqtts"), context=named, username="ann", password=b"b"
        )
        assert wrong.welcome.code == Reason.BAD_USER_NAME_OR_PASSWORD
        right = await RawClient.open(broker.port("mqtts"), context=named)
        assert right.welcome.code == 0
        for client in (wrong, right):
            await client.close()

    (tmp_path / "rights.toml").write_text(f'[users.ann]\npassword = "{hash_password("a")}"\n')
    config = configured(certificates)
    with RunningBroker(tmp_path, config, "--set", f"broker.data_dir={tmp_path}/data") as broker:
        asyncio.run(scene(broker))


def test_rights_that_are_not_understood_start_nothing(tmp_path):
    (tmp_path / "rights.toml").write_text("[users.ann]\n  roles = ['lok']\n")
    (tmp_path / "broker.toml").write_text('[broker]\nrights = "rights.toml"\n[mqtt]\nport = 0\n')
    data = ("--set", f"broker.data_dir={tmp_path}/data")
    status, errors = refused(["--config", str(tmp_path / "broker.toml"), *data])
    assert status == 2
    assert "rights.toml:2:3: there is no role `lok`; did you mean `look`?" in errors
    assert "      roles\n      ^\n" in errors


def test_without_users_only_required_certificates_open_a_broker_to_others(tmp_path):
    path = tmp_path / "site.toml"
    tls = 'host = "0.0.0.0"\ntls_cert = "c"\ntls_key = "k"\ntls_client_ca = "a"\n'
    http = "[http]\nenabled = false\n"
    path.write_text(f"[mqtt]\nplain = false\n{tls}{http}")
    assert load(path).config.mqtt.tls_client_certificates == "required"
    for text in (
        f"[mqtt]\n{tls}{http}",
        f'[mqtt]\nplain = false\ntls_client_certificates = "optional"\n{tls}{http}',
    ):
        path.write_text(text)
        with pytest.raises(ConfigError, match="can be reached from other machines"):
            load(path)
    path.write_text('[mqtt]\ntls_client_ca = "a"\n')
    with pytest.raises(ConfigError, match="come by TLS alone"):
        load(path)
