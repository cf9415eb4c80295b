"""A broker that joins where others are discovered is discovered as well, or a sentence says why."""

import asyncio
import json
import tomllib

import msgspec
import pytest

from broker.admission import folder as folders
from broker.admission.code import read
from broker.admission.desk import Desk
from broker.admission.messages import Admission, Enquiry, JoinRequest
from broker.admission.seal import SealedRequest
from broker.config import load
from headwater.cli import main
from headwater.cli.brokers import join

SECRET = "a-secret-of-sixteen"


def granted(tmp_path, discover):
    """Ask a broker of a network for admission, as a broker that joins asks."""
    (tmp_path / "links.secret").write_text(f"{SECRET}\n")
    (tmp_path / "links.secret").chmod(0o600)
    path = tmp_path / "inviting.toml"
    path.write_text(
        '[broker]\nname = "b0"\n[links]\nhost = "0.0.0.0"\n'
        f'secret_file = "{tmp_path}/links.secret"\ndiscover = {json.dumps(discover)}\n'
    )

    async def scene():
        desk = Desk(load(path).config, lambda: 2889, lambda: ["b0"])
        _, answer = await desk.invite("http://192.0.2.1:8080")
        code = read(answer["code"])
        asking = SealedRequest(code.secret, code.id)
        plain = msgspec.msgpack.encode(JoinRequest("b1", b"", asking.public))
        body = msgspec.json.encode(Enquiry(code.id.hex(), asking.seal(plain)))
        status, sealed = await desk.join(body)
        assert status == 200, sealed
        opened = asking.open(msgspec.convert(sealed["sealed"], bytes))
        return answer["code"], msgspec.msgpack.decode(opened, type=Admission)

    return asyncio.run(scene())


def joined(tmp_path, monkeypatch, capsys, *, discover=True, asked="192.0.2.1", package=True):
    """Run the command on what that broker grants; the [links] that it wrote, and its warnings."""
    code, grant = granted(tmp_path, discover)
    monkeypatch.setattr(join, "_asked", lambda *_: (grant, asked))
    monkeypatch.setattr(join, "find_spec", lambda name: name if package else None)
    assert main(["join", code, "--name", "b1", "--dir", str(tmp_path / "b1")]) == 0
    configuration = tmp_path / "b1" / folders.CONFIGURATION
    load(configuration)  # it is accepted as it is
    return tomllib.loads(configuration.read_text())["links"], capsys.readouterr().err


def test_a_broker_that_joins_is_discovered_as_the_one_that_invited(tmp_path, monkeypatch, capsys):
    links, warned = joined(tmp_path, monkeypatch, capsys)
    assert links["discover"] is True
    assert warned == ""


def test_where_the_one_that_invited_is_not_the_new_one_is_not(tmp_path, monkeypatch, capsys):
    links, warned = joined(tmp_path, monkeypatch, capsys, discover=False, package=False)
    assert "discover" not in links
    assert warned == ""


def test_a_missing_package_is_named(tmp_path, monkeypatch, capsys):
    links, warned = joined(tmp_path, monkeypatch, capsys, package=False)
    assert links["discover"] is True
    assert "pip install 'headwater[discovery]'" in warned


@pytest.mark.parametrize("asked", ["127.0.0.1", "::1"])
def test_on_loopback_alone_nobody_could_link_so_it_is_left_out(
    tmp_path, monkeypatch, capsys, asked
):
    """The configuration refuses both together, so the new broker would not start."""
    links, warned = joined(tmp_path, monkeypatch, capsys, asked=asked)
    assert "discover" not in links
    assert "--address" in warned


def test_a_grant_of_an_earlier_release_has_none():
    earlier = msgspec.msgpack.encode({"broker": "b0", "host": "", "port": 1889})
    assert not msgspec.msgpack.decode(earlier, type=Admission).discover
