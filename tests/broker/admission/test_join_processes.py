"""Three brokers of one network, two of them invited: what happens at one is detected at another."""

import asyncio
import json
import stat
import subprocess
import tomllib

import aiomqtt
import pytest

from headwater.cli import main
from tests.broker.network.fleet import FleetBroker, Gap

FIRST = """
[broker]
name = "b0"
data_dir = "{folder}/data"
[mqtt]
port = 0
[http]
port = 0
[links]
host = "127.0.0.1"
port = 0
{links}
[log]
format = "json"
"""
SECURED = """
tls_cert = "own.pem"
tls_key = "own.key"
tls_ca = "authority.pem"
tls_ca_key = "authority.key"
"""
FREE = {f"HEADWATER__{face}__PORT": "0" for face in ("MQTT", "HTTP", "LINKS")}
TEXT = "event Temp(val: float)\nsubscription Hot from anna to fan detect Temp(val > 0)\n"
SIGNING = "ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"


def openssl(folder, line):
    subprocess.run(["openssl", *line.split()], cwd=folder, check=True, capture_output=True)


def authority(folder):
    """The authority of a network and the first broker's certificate, as the page makes them."""
    openssl(folder, f"req -x509 -newkey {SIGNING} -days 30 -subj /CN=net -keyout authority.key"
            " -out authority.pem")  # fmt: skip
    openssl(folder, f"req -newkey {SIGNING} -subj /CN=b0 -keyout own.key -out own.csr")
    openssl(folder, "x509 -req -in own.csr -CA authority.pem -CAkey authority.key -CAcreateserial"
            " -days 30 -out own.pem")  # fmt: skip


def invited(broker, capsys, *more):
    """A code of a running broker."""
    assert main(["invite", "--broker", url(broker), *more]) == 0
    code = capsys.readouterr().out.strip().rpartition("\n")[2]
    assert code not in "".join(map(str, broker.lines))
    return code


def url(broker):
    return f"http://127.0.0.1:{broker.port('http')}"


def joined(folder, name, code):
    """Start the broker that joins by a code."""
    assert main(["join", code, "--name", name, "--dir", str(folder / name)]) == 0
    config = (folder / name / "broker.toml").read_text()
    return FleetBroker(folder / name, config + '[log]\nformat = "json"\n', environ=FREE)


@pytest.mark.program("openssl")
@pytest.mark.parametrize("links", ["", SECURED], ids=["secret", "certificates"])
@pytest.mark.timeout(120)
def test_brokers_that_were_invited_take_part(tmp_path, capsys, links, monkeypatch):
    """The second by a code of the first, the third by one of the second."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    first = tmp_path / "b0"
    first.mkdir()
    if links:
        authority(first)
    with FleetBroker(first, FIRST.format(folder=first, links=links)) as b0:
        trusted = ["--trusted"] if links else []
        with (
            joined(tmp_path, "b1", invited(b0, capsys, *trusted)) as b1,
            joined(tmp_path, "b2", invited(b1, capsys)) as b2,
        ):
            if links:
                status, answer = b2.get("/v1/invites", "POST", b"")
                assert status == 409
                assert "cannot sign them" in answer["errors"][0]["message"]
            asyncio.run(detected(b0, b2))
        for path in (tmp_path / "b2").iterdir():
            if path.is_file() and path.name != "broker.toml":  # which this test has written anew
                assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        names = {path.name for path in (tmp_path / "b2").iterdir()} - {"data", "broker.toml"}
        secured = {"link.pem", "link.key", "authority.pem"}
        assert names == (secured if links else {"links.secret"})


def reached(there, here):
    """Whether all know each other, and the subscription is where it is to be."""
    (listed,) = there.get("/v1/subscriptions")[1]["subscriptions"]
    known = here.get("/v1/network")[1]["brokers"]
    return listed["state"] == "active" and len(known) == 3


async def detected(there, here):
    """An event at one broker is detected for a subscription at the other."""
    status, answer = await asyncio.to_thread(there.get, "/v1/subscriptions", "POST", TEXT.encode())
    assert status == 200, answer
    async with asyncio.timeout(60):
        while not await asyncio.to_thread(reached, there, here):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        async with (
            aiomqtt.Client("127.0.0.1", there.port()) as anna,
            aiomqtt.Client("127.0.0.1", here.port()) as sensor,
        ):
            await anna.subscribe("headwater/results/#", qos=1)
            await sensor.publish(
                "headwater/events/Temp/t1", json.dumps({"val": 1.0, "id": "e1"}), qos=1
            )
            message = await anext(anna.messages)
            assert json.loads(message.payload)["events"]["Temp"] == ["e1"]


@pytest.mark.timeout(60)
def test_brokers_in_one_folder_get_ports_of_their_own(tmp_path, capsys, monkeypatch):
    """Though none of them runs yet; what is beside them and cannot be read is left alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    first = tmp_path / "b0"
    first.mkdir()
    for name, text in {"spoilt": "[links\n", "other": "name = 3\n"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "broker.toml").write_text(text)
    ports = []
    with FleetBroker(first, FIRST.format(folder=first, links="")) as b0:
        for name in ("b1", "b2", "b3"):
            code = invited(b0, capsys)
            assert main(["join", code, "--name", name, "--dir", str(tmp_path / name)]) == 0
            sections = tomllib.loads((tmp_path / name / "broker.toml").read_text())
            ports += [sections[face]["port"] for face in ("mqtt", "http", "links")]
    assert len(ports) == len(set(ports)) == 9


@pytest.mark.timeout(60)
def test_a_code_admits_one_broker_and_no_mistake_uses_it_up(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    first = tmp_path / "b0"
    first.mkdir()

    def refused(status, *words):
        assert main(["join", *words]) == status
        assert not (tmp_path / "b1").exists()
        return capsys.readouterr().err

    with FleetBroker(first, FIRST.format(folder=first, links="")) as b0:
        code = invited(b0, capsys)
        where = ["--dir", str(tmp_path / "b1")]
        assert "--name" in refused(1, code, "--name", "b0", *where)
        assert "in use" in refused(2, code, "--name", "b1", "--dir", str(first))
        assert "copy it once more" in refused(2, code[:-1], *where)
        assert "begins with" in refused(2, "hello", *where)
        assert "cannot reach" in refused(3, code, "--address", "http://127.0.0.1:9", *where)
        assert main(["join", code, "--name", "b1", *where]) == 0
        secret = (tmp_path / "b1" / "links.secret").read_text().strip()
        capsys.readouterr()
        assert main(["join", code, "--name", "b2", "--dir", str(tmp_path / "b2")]) == 1
        assert "is used" in capsys.readouterr().err
        # Another code, but the name is given out already.
        assert (
            main(["join", invited(b0, capsys), "--name", "b1", "--dir", str(tmp_path / "b2")]) == 1
        )
        assert not [path for path in tmp_path.iterdir() if path.name not in {"b0", "b1", "state"}]
        asyncio.run(overheard(tmp_path, b0, invited(b0, capsys), secret, capsys))
        assert secret not in "".join(map(str, b0.lines))
        assert secret not in json.dumps(b0.get("/v1/status")[1])


async def overheard(folder, broker, code, secret, capsys):
    """Who sits on the line reads no secret, and whoever changes a byte there is found out."""
    heard = bytearray()

    class Listening(Gap):
        async def _pump(self, reader, writer):
            while data := await reader.read(65536):
                heard.extend(data)
                writer.write(data.replace(b'"sealed":"', b'"sealed":"AAAA') if spoil else data)
            writer.close()

    line = await Listening(lambda: broker.port("http")).start()
    words = ["join", code, "--address", f"http://127.0.0.1:{line.port}", "--name", "b3"]
    words += ["--dir", str(folder / "b3")]
    spoil = True
    assert await asyncio.to_thread(main, words) == 1
    assert not (folder / "b3").exists()
    spoil = False
    assert await asyncio.to_thread(main, words) == 0
    await line.stop()
    assert b"sealed" in heard
    assert secret.encode() not in heard
    assert code[10:40].encode() not in heard
