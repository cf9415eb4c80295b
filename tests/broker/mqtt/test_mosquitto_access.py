"""Who comes in by password and by TLS: mosquitto's own clients against a broker process."""

import socket
import ssl
import warnings

import pytest

from broker.credentials import hash_password
from tests.broker.mqtt.programs import publish, run, subscriber
from tests.broker.mqtt.sockets import make_certificates
from tests.broker.running import CONFIG, RunningBroker
from tests.conftest import require_program

pytestmark = pytest.mark.program("mosquitto_pub", "mosquitto_sub", "openssl")
EVERY_VERSION = pytest.mark.parametrize("version", ["mqttv311", "mqttv5"])
GOOD, WRONG = "correct horse", "battery staple"
ANN = ("-u", "ann", "-P", GOOD)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Two authorities, of which the broker's certificate has one."""
    openssl = require_program("openssl")
    return [make_certificates(tmp_path_factory.mktemp(n), openssl) for n in ("good", "other")]


def guarded(folder, certificates, *flags):
    """A broker with one user, plain and TLS listeners, that tells all it has to tell."""
    config = CONFIG.replace(
        "[http]",
        f'tls_port = 0\ntls_cert = "{certificates[0]}/server.pem"\n'
        f'tls_key = "{certificates[0]}/server.key"\n'
        "[http]",
    ).replace("[log]", '[log]\nlevel = "debug"')
    config = config.replace("[broker]", '[broker]\nrights = "rights.toml"')
    ann = f'[users.ann]\nroles = ["administrate"]\npassword = "{hash_password(GOOD)}"\n'
    (folder / "rights.toml").write_text(ann)
    return RunningBroker(folder, config, "--set", f"broker.data_dir={folder}/data", *flags)


@pytest.fixture(scope="module")
def broker(tmp_path_factory, certificates):
    with guarded(
        *(tmp_path_factory.mktemp("broker"), certificates),
        *("--set", "mqtt_limits.login_failures_max=100"),
    ) as running:
        yield running
        assert running.process.poll() is None


@EVERY_VERSION
def test_the_right_password_opens(broker, version):
    speaks = ("-V", version, *ANN, "-t", "a", "-q", 1)
    with subscriber(broker.port(), *speaks) as sub:
        publish(broker.port(), *speaks, "-m", "x")
        assert sub.messages(1) == ["a|1|0|x"]


@pytest.mark.parametrize(
    ("login", "old", "new"),
    [
        (("-u", "ann", "-P", WRONG), 4, 0x86),
        (("-u", "ann"), 4, 0x86),
        (("-u", "bob", "-P", GOOD), 4, 0x86),
        (("-u", "", "-P", GOOD), 4, 0x86),
        ((), 5, 0x87),
    ],
    ids=["wrong password", "no password", "unknown user", "empty user", "no user"],
)
def test_anything_else_is_refused_with_its_code(broker, login, old, new):
    for version, code in (("mqttv311", old), ("mqttv5", new)):
        said = ("-V", version, "-d", "-t", "a", "-m", "x", "-q", 1)
        status, output, errors = run("mosquitto_pub", broker.port(), *said, *login)
        assert status != 0
        assert f"received CONNACK ({code})" in output
        assert "onnection" in errors


@EVERY_VERSION
def test_tls_works_with_the_right_authority_alone(broker, certificates, version):
    port = broker.port("mqtts")
    speaks = ("-V", version, *ANN, "-t", "tls", "-q", 1)
    good, other = (("--cafile", folder / "ca.pem") for folder in certificates)
    with subscriber(port, *speaks, *good) as sub:
        publish(port, *speaks, *good, "-m", "x" * 50_000)
        assert sub.messages(1) == ["tls|1|0|" + "x" * 50_000]
        for trust in (other, ()):
            status, _, errors = run("mosquitto_pub", port, *speaks, *trust, "-m", "never")
            assert status != 0
            assert errors
        status, _, _ = run("mosquitto_pub", broker.port(), *speaks, *good, "-m", "never")
        assert status != 0  # TLS to the plain port
        publish(port, *speaks, *good, "-m", "y")
        assert sub.messages(1) == ["tls|1|0|y"]


def test_an_old_protocol_of_tls_is_refused(broker, certificates):
    """By the broker: this client would have taken any."""
    context = ssl.create_default_context(cafile=certificates[0] / "ca.pem")
    context.set_ciphers("DEFAULT:@SECLEVEL=0")

    def speak(newest):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = newest
        where = ("127.0.0.1", broker.port("mqtts"))
        with (
            socket.create_connection(where, timeout=5) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
        ):
            return secure.version()

    with pytest.raises(ssl.SSLError):
        speak(ssl.TLSVersion.TLSv1_1)
    assert speak(ssl.TLSVersion.TLSv1_2) == "TLSv1.2"


def test_guessing_is_stopped_and_who_was_in_before_comes_in(tmp_path, certificates):
    with guarded(tmp_path, certificates, "--set", "mqtt_limits.login_failures_max=5") as broker:
        publish(broker.port(), *ANN, "-t", "a", "-m", "x", "-q", 1)
        seen = []
        for number in range(8):
            said = ("-V", "mqttv5", "-d", "-t", "a", "-m", "x", "-u", "ann", "-P", f"guess{number}")
            status, output, _ = run("mosquitto_pub", broker.port(), *said)
            assert status != 0
            seen.append(0x9F if "received CONNACK (159)" in output else 0x86)
        assert seen == [0x86] * 5 + [0x9F] * 3
        publish(broker.port(), *ANN, "-t", "a", "-m", "x", "-q", 1)
        stranger = ("-V", "mqttv311", "-d", "-t", "a", "-m", "x", "-u", "bob", "-P", GOOD)
        assert "received CONNACK (3)" in run("mosquitto_pub", broker.port(), *stranger)[1]


def test_no_secret_is_ever_logged_or_shown(tmp_path, certificates):
    """Whatever a client does with it: as a password, in a broken packet, as the will's text."""
    key = (certificates[0] / "server.key").read_text().splitlines()[1]
    with guarded(tmp_path, certificates) as broker:
        port = broker.port()
        publish(port, *ANN, "-t", "a", "-m", "x", "-q", 1)
        for version in ("mqttv311", "mqttv5"):
            run(
                "mosquitto_pub", port, "-V", version, "-t", "a", "-m", "x", "-u", "ann", "-P", WRONG
            )
            run("mosquitto_pub", port, "-V", version, "-t", "a", "-m", "x", "-u", "bob", "-P", GOOD)
        shown = [str(broker.get(path)) for path in ("/metrics", "/readyz", "/v1/status")]
        assert broker.end() == 0
        said = [*map(str, broker.lines), *shown]
        assert any("password" in line for line in said)  # that one was wrong is told
        for secret in (GOOD, WRONG, "scrypt$", key):
            assert not any(secret in line for line in said)
