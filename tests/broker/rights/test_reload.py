"""Certificates that a running broker reads again: new clients see the new one, others go on."""

import shutil
import signal
import socket
import ssl
import subprocess
import sys

import pytest

from tests.broker.mqtt.sockets import make_certificates
from tests.broker.running import CONFIG, PATIENCE_S, ROOT, RunningBroker

CONNECT = b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x00\x00\x01a"
CONNACK, PINGREQ, PINGRESP = b"\x20\x02\x00\x00", b"\xc0\x00", b"\xd0\x00"


def connected(port):
    """A socket whose TLS handshake is done, and the certificate that it was shown."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
    secure = context.wrap_socket(plain)
    return secure, ssl.DER_cert_to_PEM_cert(secure.getpeercert(binary_form=True))


def shown(port):
    secure, certificate = connected(port)
    secure.close()
    return certificate


def certificate_in(folder):
    """The first certificate of a file, in the form in which Python writes one."""
    text = (folder / "server.pem").read_text()
    return ssl.DER_cert_to_PEM_cert(ssl.PEM_cert_to_DER_cert(text))


@pytest.mark.program("openssl")
@pytest.mark.parametrize("way", ["signal", "command"])
def test_a_certificate_is_swapped_under_a_connection_that_goes_on(way, tmp_path, find_program):
    folders = []
    for name in ("used", "next"):
        (tmp_path / name).mkdir()
        folders.append(make_certificates(tmp_path / name, find_program("openssl")))
    used, after = folders
    tls = [f"--set=mqtt.tls_cert={used}/server.pem", f"--set=mqtt.tls_key={used}/server.key"]
    with RunningBroker(tmp_path, CONFIG, *tls, "--set=mqtt.tls_port=0") as broker:

        def reload():
            if way == "signal":
                broker.process.send_signal(signal.SIGHUP)
                return None
            address = f"http://127.0.0.1:{broker.port('http')}"
            words = [sys.executable, "-m", "headwater.cli", "reload", "--broker", address]
            return subprocess.run(words, cwd=ROOT, check=False, capture_output=True).returncode

        port = broker.port("mqtts")
        before = certificate_in(used)
        standing, certificate = connected(port)
        assert certificate == before
        standing.sendall(CONNECT)
        assert standing.recv(4) == CONNACK
        # A certificate without its key is taken by nobody, and the one before stays.
        shutil.copy(after / "server.pem", used / "server.pem")
        assert reload() in {None, 2}  # faulty input
        assert "reason" in broker.line("reload_refused")
        assert shown(port) == before
        shutil.copy(after / "server.key", used / "server.key")
        assert reload() in {None, 0}
        broker.line("reloaded")
        assert shown(port) == certificate_in(after) != before
        standing.sendall(PINGREQ)
        assert standing.recv(2) == PINGRESP
        standing.close()
