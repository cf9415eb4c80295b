"""mosquitto's own clients against the MQTT face, in both versions and on both event loops."""

import pytest

from broker.credentials import Users, hash_password
from broker.mqtt.listeners import Listener, Tls
from tests.broker.mqtt.sockets import (
    Program,
    make_certificates,
    mosquitto_pub,
    mosquitto_sub,
    serving,
    until,
)
from tests.loops import RUNNERS

pytestmark = pytest.mark.program("mosquitto_pub", "mosquitto_sub")
EVERY_VERSION = pytest.mark.parametrize("version", ["mqttv311", "mqttv5"])


@pytest.fixture(params=RUNNERS)
def run(request):
    return RUNNERS[request.param]


@pytest.fixture(scope="module")
def users():
    return Users({"ann": hash_password("secret")})


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    from tests.conftest import require_program

    return make_certificates(tmp_path_factory.mktemp("tls"), require_program("openssl"))


@EVERY_VERSION
@pytest.mark.parametrize("qos", [0, 1])
def test_what_is_published_is_received(run, version, qos):
    async def scene():
        async with serving() as server:
            sub = await mosquitto_sub(server, "a/b", 3, "-V", version, "-q", qos)
            said = ("-V", version, "-q", qos, "-t", "a/b")
            for text in ("one", "two", "x" * 5000):
                assert await mosquitto_pub(server.port, *said, "-m", text) == (0, [], "")
            status, lines, _ = await sub.result()
            assert (status, lines) == (0, [f"a/b|{qos}|0|{t}" for t in ("one", "two", "x" * 5000)])

    run(scene())


@EVERY_VERSION
def test_retained_messages_are_received_by_later_subscribers_until_deleted(run, version):
    async def scene():
        async with serving() as server:
            speaks = ("-V", version, "-t", "r/1")
            await mosquitto_pub(server.port, *speaks, "-q", 1, "-r", "-m", "kept")
            sub = await mosquitto_sub(server, "r/+", 1, "-V", version, "-q", 1)
            assert (await sub.result())[:2] == (0, ["r/1|1|1|kept"])
            await mosquitto_pub(server.port, *speaks, "-r", "-n")
            assert server.retained("#") == []

    run(scene())


@EVERY_VERSION
def test_a_will_is_published_when_a_client_is_killed_and_not_when_it_leaves(run, version):
    async def scene():
        async with serving() as server:
            watcher = await mosquitto_sub(server, "will", 1, "-V", version)
            will = ("--will-topic", "will", "--will-payload", "gone", "-V", version)
            leaves = await mosquitto_sub(server, "x", 1, *will)
            await mosquitto_pub(server.port, "-t", "x", "-m", "go")
            assert (await leaves.result())[0] == 0
            killed = await mosquitto_sub(server, "x", 1, *will)
            await killed.kill()
            assert (await watcher.result())[1] == ["will|0|0|gone"]
            assert server.counters()["messages_in"] == 2

    run(scene())


@EVERY_VERSION
def test_messages_wait_for_a_client_with_a_kept_session(run, version):
    async def scene():
        async with serving() as server:
            keep = ("-V", version, "-q", 1, "-i", "keeper", "-c")
            first = await mosquitto_sub(server, "k", 1, *keep)
            await mosquitto_pub(server.port, "-t", "k", "-q", 1, "-m", "first")
            assert (await first.result())[1] == ["k|1|0|first"]
            await until(lambda: server.counters()["connections"] == 0)
            for text in ("two", "three"):
                await mosquitto_pub(server.port, "-t", "k", "-q", 1, "-m", text)
            again = await Program.start(
                *("mosquitto_sub", "-p", server.port, "-t", "k", "-C", 2, *keep)
            )
            assert (await again.result())[1] == ["two", "three"]

    run(scene())


@EVERY_VERSION
def test_users_come_in_with_their_password_only(run, version, users):
    async def scene():
        async with serving(users=users) as server:
            say = ("-V", version, "-t", "a", "-m", "x", "-q", 1)
            assert (await mosquitto_pub(server.port, *say, "-u", "ann", "-P", "secret"))[0] == 0
            for login in ((), ("-u", "ann", "-P", "wrong"), ("-u", "bob", "-P", "secret")):
                status, _, errors = await mosquitto_pub(server.port, *say, *login)
                assert status != 0
                assert "connection" in errors.lower()
            assert server.counters()["messages_in"] == 1
            assert server.counters()["closed"] == {
                "client_disconnected": 1,
                "not_authorized": 1,
                "bad_user_name_or_password": 2,
            }

    run(scene())


@EVERY_VERSION
def test_tls_works_and_is_verified(run, version, certificates):
    async def scene():
        tls = Tls(str(certificates / "server.pem"), str(certificates / "server.key"))
        async with serving(Listener(port=0, tls=tls)) as server:
            secure = ("-V", version, "--cafile", certificates / "ca.pem")
            sub = await mosquitto_sub(server, "t", 1, *secure, "-q", 1)
            say = ("-h", "127.0.0.1", "-t", "t", "-m", "x" * 40_000, "-q", 1)
            assert (await mosquitto_pub(server.port, *say, *secure))[0] == 0
            assert (await sub.result())[1] == ["t|1|0|" + "x" * 40_000]
            assert (await mosquitto_pub(server.port, *say, "-V", version))[0] != 0

    run(scene())


def test_a_client_ca_lets_in_only_its_clients_and_names_them(run, certificates):
    async def scene():
        files = [str(certificates / name) for name in ("server.pem", "server.key", "ca.pem")]
        async with serving(Listener(port=0, tls=Tls(*files))) as server:
            say = ("-h", "127.0.0.1", "-t", "headwater/x", "-m", "x", "-q", 1)
            secure = ("--cafile", certificates / "ca.pem")
            mine = ("--cert", certificates / "client.pem", "--key", certificates / "client.key")
            assert (await mosquitto_pub(server.port, *say, *secure))[0] != 0
            assert (await mosquitto_pub(server.port, *say, *secure, *mine))[0] == 0
            (message,) = server.application.messages
            assert message.client.user == "pump-7"

    run(scene())


@EVERY_VERSION
def test_many_messages_of_one_client_arrive_whole_and_in_order(run, version):
    async def scene():
        async with serving() as server:
            sub = await mosquitto_sub(server, "n", 2000, "-V", version, "-q", 1)
            pub = await Program.start(
                *("sh", "-c", 'seq 2000 | exec mosquitto_pub -p "$0" -V "$1" -q 1 -t n -l'),
                *(server.port, version),
            )
            assert (await pub.result())[0] == 0
            assert (await sub.result())[1] == [f"n|1|0|{number}" for number in range(1, 2001)]

    run(scene())
