"""Who may link to a broker, and that nobody who may not learns or breaks anything."""

import asyncio
import logging
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from broker.config.links import LinksSection
from broker.links.securing import LinkConfigError, Security, load_security, own_secret
from broker.network.session.frames import (
    OLDEST,
    VERSION,
    Accept,
    Bye,
    Data,
    FrameReader,
    Hello,
    Ping,
    Proof,
    Welcome,
    decode,
    encode,
)
from tests.broker.links.faces import PATIENCE_S, QUICK, both_up, face, until
from tests.conftest import require_program
from tests.loops import RUNNERS

SECRET = "correct-horse-battery"


@pytest.fixture(params=sorted(RUNNERS))
def run(request):
    """Runs a coroutine function on each of the loops."""
    return lambda course: RUNNERS[request.param](course())


def secret(tmp_path, text=SECRET, name="secret"):
    path = tmp_path / name
    path.write_text(f"{text}\n")
    path.chmod(0o600)
    return str(path)


async def talk(port, *frames, raw=b""):
    """A stranger: what is answered until the connection is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"".join(map(encode, frames)) + raw)
        async with asyncio.timeout(PATIENCE_S):
            data = await reader.read()
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
    cutter = FrameReader(1 << 20)
    cutter.push(data)
    answers = []
    while (body := cutter.next()) is not None:
        answers.append(decode(body))
    return answers


def hello(name="stranger", version=VERSION, nonce=bytes(16), **more):
    return Hello(version, name, 1, nonce, 1, **{"secured": True, **more})


# --- the shared secret ------------------------------------------------------------------------


def test_brokers_with_the_same_secret_link_and_it_is_in_no_log(run, tmp_path, caplog):
    async def course():
        path = secret(tmp_path)
        async with face("a", secret_file=path) as a, face("b", [a], secret_file=path) as b:
            await both_up(a, b)
            assert SECRET not in str(a.status()) + repr(a.security) + str(a.security)

    with caplog.at_level(logging.DEBUG):
        run(course)
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ("wrong-horse-battery-x", "its shared secret is another one"),
        (None, "its shared secret is another one"),
    ],
)
def test_a_wrong_secret_is_refused_on_both_sides_with_the_reason(run, tmp_path, caplog, other, why):
    async def course():
        mine = secret(tmp_path)
        theirs = "" if other is None else secret(tmp_path, other, "other")
        async with face("a", secret_file=mine) as a, face("b", [a], secret_file=theirs) as b:
            await until(lambda: any(m.startswith("no link to a") for m in caplog.messages))
            assert b.status()["a"]["reason"] == f"it says: {why}"
            assert a.heard.news == b.heard.news == []
            assert a.links.refused["refused"] >= 1
        assert f"a connection with b was closed: {why}" in caplog.messages
        assert [m for m in caplog.messages if m.startswith("no link to a")] == [
            f"no link to a at 127.0.0.1:{a_port(b)}: it says: {why}"
        ]

    def a_port(b):
        return b.settings.peers["a"].rpartition(":")[2]

    run(course)
    assert SECRET not in caplog.text


def test_who_repeats_what_was_overheard_is_not_believed(tmp_path):
    """Each connection's proof holds for its own two hellos."""

    async def course():
        async with face("a", secret_file=secret(tmp_path)) as a:
            overheard, received = [], a.received
            a.received = lambda socket, data: (overheard.append(data), received(socket, data))
            async with face("b", [a], secret_file=secret(tmp_path)) as b:
                await both_up(a, b)
            answers = await talk(a.port, raw=b"".join(overheard))
            assert answers[-1] == Bye("its shared secret is another one")
            assert SECRET.encode() not in b"".join(overheard)

    asyncio.run(course())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("short", "16 characters or more"),
        ("", "16 characters or more"),
        ("x" * 2000, "16 characters or more"),
        (None, "cannot be read: no such file or directory"),
    ],
)
def test_a_secret_that_will_not_do_is_refused_without_showing_it(tmp_path, text, why):
    path = str(tmp_path / "absent") if text is None else secret(tmp_path, text)
    with pytest.raises(LinkConfigError, match=why) as caught:
        load_security(LinksSection(secret_file=path))
    assert not text or text not in str(caught.value).replace(path, "")


def test_a_secret_that_everybody_can_read_is_told(tmp_path):
    path = secret(tmp_path)
    (tmp_path / "secret").chmod(0o644)
    assert "chmod 600" in load_security(LinksSection(secret_file=path)).remark
    assert load_security(LinksSection(secret_file=path)).secrets == (SECRET.encode(),)
    assert repr(Security((b"x" * 16,))) == "Security(secret=set)"


def test_brokers_of_one_user_and_machine_share_a_secret_of_their_own(tmp_path):
    """Otherwise any local program joins, under a live neighbour's name, too."""
    environ = {"XDG_STATE_HOME": str(tmp_path / "state")}
    path = own_secret(environ)
    first = path.read_text()
    assert len(first.strip()) >= 32
    assert path.stat().st_mode & 0o777 == 0o600
    assert own_secret(environ) == path
    assert path.read_text() == first
    assert own_secret({"HOME": str(tmp_path)}).is_relative_to(tmp_path / ".local" / "state")
    assert list(path.parent.iterdir()) == [path], "no draft is left"
    path.chmod(0o644)
    with pytest.raises(LinkConfigError, match="chmod 600"):
        own_secret(environ)
    with pytest.raises(LinkConfigError, match="set XDG_STATE_HOME"):
        own_secret({})


def test_a_network_gets_another_secret_one_broker_at_a_time(run, tmp_path):
    """Old alone, both, and new alone: at no step is a link missing for longer than a dialling."""
    new = "another-horse-battery-staple"
    mine, theirs = secret(tmp_path), secret(tmp_path, name="other")
    (a_file, b_file) = (Path(mine), Path(theirs))

    def take_up(file, side, text):
        file.write_text(text)
        side.secure(load_security(side.settings))

    async def course():
        async with face("a", secret_file=mine) as a, face("b", [a], secret_file=theirs) as b:
            await both_up(a, b)
            steps = [(b_file, b, f"{new}\n{SECRET}"), (a_file, a, f"{new}\n{SECRET}")]
            for file, side, text in [*steps, (b_file, b, new), (a_file, a, new)]:
                take_up(file, side, text)
                await until(lambda: a.up("b") and b.up("a"))
            take_up(a_file, a, SECRET)
            await until(lambda: not (a.up("b") or b.up("a")))

    run(course)


# --- what strangers say -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            {"raw": b"GET / HTTP/1.1\r\n\r\n"},
            "this is no broker, or its frame has 1195725856 bytes",
        ),
        ({"raw": b"\x00\x00\x00\x00"}, "its frame has 0 bytes"),
        ({"raw": b"\x00\x00\x10\x01"}, "its frame has 4097 bytes, from 1 to 4096 are allowed"),
        ({"raw": b"\x00\x00\x00\x03abc"}, "a frame of it cannot be understood"),
        ({"frames": [Ping()]}, "it does not begin with a hello"),
        ({"frames": [hello(version=OLDEST - 1)]}, "version 0 of links is no longer spoken"),
        ({"raw": b"\x00\x00\x00\x04\x93\x00\x05\xc0"}, "one broker speaks version 5 of links"),
        ({"frames": [hello(nonce=b"short")]}, "its hello cannot be understood"),
        ({"frames": [hello(name="")]}, "its name is none that a broker can have"),
        ({"frames": [hello(name="x\ny")]}, "its name is none that a broker can have"),
        ({"frames": [hello(name="a")]}, 'both ends are called "a"'),
        ({"frames": [hello(), Data(1, False, 1, [b"x"])]}, "before it has proven who it is"),
        ({"frames": [hello(), Proof(bytes(32))]}, "its shared secret is another one"),
    ],
)
def test_a_stranger_is_closed_with_a_reason_and_others_go_on(said, why):
    async def course():
        async with face("a") as a, face("b", [a]) as b:
            await both_up(a, b)
            answers = await talk(a.port, *said.get("frames", ()), raw=said.get("raw", b""))
            assert isinstance(answers[-1], Bye)
            assert why in answers[-1].reason
            a.offer("b", [b"x"], events=1)
            await b.heard.until(lambda: b.heard.events == [b"x"])
            assert len(a.heard.news) == 1

    asyncio.run(course())


def test_a_stranger_who_says_nothing_is_closed_in_time():
    async def course():
        limits = QUICK | {"handshake_ms": 50}
        async with face("a", limits=limits) as a:
            assert await talk(a.port) == [Bye("it was not agreed on within 50 ms")]

    asyncio.run(course())


def test_so_many_strangers_at_a_time_and_no_more():
    async def course():
        async with face("a", limits=QUICK | {"strangers_max": 3}) as a:
            waiting = [await asyncio.open_connection("127.0.0.1", a.port) for _ in range(3)]
            await until(lambda: len(a._sockets) == 3)
            assert await talk(a.port) == []
            assert a.links.refused == {"too_many_strangers": 1}
            for _, writer in waiting:
                writer.close()
                await writer.wait_closed()

    asyncio.run(course())


def test_a_frame_of_a_neighbour_that_is_too_long_closes_that_link_alone(run):
    async def course():
        small = QUICK | {"message_bytes_max": 10_000, "batch_bytes": 10_000}
        async with face("a", limits=small) as a, face("c", [a]) as c, face("b", [a]) as b:
            await both_up(a, b)
            await both_up(a, c)
            b.offer("a", [bytes(100_000)], events=1)
            await b.heard.until(lambda: any("its frame has" in w for w in reasons(b)))
            c.offer("a", [b"x"], events=1)
            await a.heard.until(lambda: a.heard.events == [b"x"])
            assert reasons(c) == []

    run(course)


def reasons(one):
    return [news.reason for news in one.heard.news if hasattr(news, "reason")]


def test_a_neighbour_that_breaks_the_order_is_closed_with_a_reason():
    async def course():
        async with face("m") as m:
            reader, writer = await asyncio.open_connection("127.0.0.1", m.port)
            cutter = FrameReader(1 << 20)

            async def next_frame():
                async with asyncio.timeout(PATIENCE_S):
                    while (body := cutter.next()) is None:
                        cutter.push(await reader.read(65536))
                return decode(body)

            await _shake("z", next_frame, writer)
            assert isinstance(await next_frame(), Welcome)
            writer.write(encode(Accept(False, 1, 0)) + encode(Data(7, False, 1, [b"x"])))
            while not isinstance(frame := await next_frame(), Bye):
                pass
            assert frame.reason == "frame 7 came after frame 0"
            writer.close()
            await writer.wait_closed()
            assert m.heard.events == []

    asyncio.run(course())


async def _shake(name, next_frame, writer):
    """The dialler's part of a handshake with this user's own secret, by a hand of its own."""
    import hashlib
    import hmac

    key = own_secret().read_text().strip().encode()

    mine = encode(hello(name))
    writer.write(mine)
    theirs = encode(await next_frame())
    text = hashlib.sha256(mine[4:]).digest() + hashlib.sha256(theirs[4:]).digest()
    proof = hmac.digest(key, b"headwater link 1 dialler " + text, "sha256")
    writer.write(encode(Proof(proof)))
    expected = hmac.digest(key, b"headwater link 1 listener " + text, "sha256")
    assert await next_frame() == Proof(expected)


# --- TLS --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Two authorities; of the first, certificates for brokers a and b."""
    folder = tmp_path_factory.mktemp("links")
    openssl = require_program("openssl")

    def run(*arguments):
        subprocess.run([openssl, *arguments], cwd=folder, check=True, capture_output=True)

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for ca in ("ca", "other"):
        run(
            *("req", "-x509", *curve, "-keyout", f"{ca}.key", "-out", f"{ca}.pem"),
            *("-days", "2", "-subj", f"/CN={ca}"),
            *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
        )
    for name, ca in (("a", "ca"), ("b", "ca"), ("foreign", "other")):
        subject = "/CN=b" if name == "foreign" else f"/CN={name}"
        run("req", *curve, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", subject)
        run(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key"),
            *("-CAcreateserial", "-days", "2", "-out", f"{name}.pem"),
        )
    return folder


def tls(folder, name, ca="ca", **more):
    own = {"tls_cert": f"{folder}/{name}.pem", "tls_key": f"{folder}/{name}.key"} if name else {}
    return own | {"tls_ca": f"{folder}/{ca}.pem"} | more


@pytest.mark.program("openssl")
def test_with_certificates_of_both_sides_links_are_encrypted_and_named(run, certificates):
    async def course():
        own, other = tls(certificates, "a"), tls(certificates, "b")
        async with face("a", **own) as a, face("b", [a], **other) as b:
            await both_up(a, b)
            (socket,) = b._sockets.values()
            assert socket.transport.get_extra_info("cipher") is not None
            a.offer("b", [bytes(500_000)] * 20, events=20)
            await b.heard.until(lambda: len(b.heard.events) == 20)

    run(course)


@pytest.mark.program("openssl")
@pytest.mark.parametrize(
    ("name", "of", "why"),
    [
        ("c", {"name": "b"}, '"c" shows a certificate of "b"'),
        ("b", {"name": "foreign"}, "may not take the certificate"),
        ("b", {"name": None}, "or ask for one"),
        ("b", {"name": "b", "ca": "other"}, "its certificate is not one of ours"),
    ],
)
def test_who_has_no_fitting_certificate_is_refused(run, certificates, name, of, why):
    async def course():
        async with face("a", **tls(certificates, "a")) as a:
            own = tls(certificates, of["name"], of.get("ca", "ca"))
            host = "127.0.0.1" if of["name"] else ""
            async with face(name, [a], host=host, **own) as b:
                await until(lambda: why in b.status()["a"]["reason"])
                assert a.heard.news == b.heard.news == []

    run(course)


@pytest.mark.program("openssl")
@pytest.mark.parametrize("dialler_has_it", [False, True])
def test_where_one_side_alone_has_tls_that_is_told(run, certificates, dialler_has_it):
    async def course():
        mine, theirs = {}, tls(certificates, "a")
        why = "it may ask for TLS"
        if dialler_has_it:
            mine, theirs, why = tls(certificates, "b"), {}, "it does not speak TLS"
        async with face("a", **theirs) as a, face("b", [a], **mine) as b:
            await until(lambda: why in b.status()["a"]["reason"])

    run(course)


@pytest.mark.program("openssl")
def test_a_peer_that_is_another_than_the_one_dialled_is_refused(run, certificates):
    async def course():
        async with face("a", **tls(certificates, "a")) as a:
            there = {"z": f"127.0.0.1:{a.port}"}
            async with face("b", addresses=there, **tls(certificates, "b")) as b:
                why = 'the broker there is "a", not "z"'
                await until(lambda: b.status()["z"]["reason"] == why)

    run(course)


@pytest.mark.program("openssl")
def test_without_client_certificates_the_secret_is_asked_for(run, certificates, tmp_path):
    async def course():
        optional = {"tls_client_certificates": "optional", "secret_file": secret(tmp_path)}
        async with face("a", **tls(certificates, "a"), **optional) as a:
            dialling = tls(certificates, None, secret_file=secret(tmp_path))
            async with face("b", [a], host="", **dialling) as b:
                await both_up(a, b)
            async with face("d", [a], host="", **tls(certificates, None)) as d:
                await until(lambda: "shared secret" in d.status()["a"]["reason"])

    run(course)


@pytest.mark.program("openssl")
@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"tls_ca": "absent.pem"}, "absent.pem"),
        ({"tls_cert": "absent.pem"}, "absent.pem: cannot be read"),
        ({"tls_key": "b.key"}, "cannot be used"),
        ({"tls_ca": "a.key"}, "a.key"),
    ],
)
def test_files_of_tls_that_will_not_do_are_told_in_a_sentence(certificates, changed, why):
    changed = {key: f"{certificates}/{name}" for key, name in changed.items()}
    with pytest.raises(LinkConfigError, match=why):
        load_security(LinksSection(**(tls(certificates, "a") | changed)))
