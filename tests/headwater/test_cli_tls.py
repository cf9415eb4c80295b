"""What a command says where TLS is spoken on one side alone, or by somebody unknown."""

import os
import subprocess
import sys

import pytest

from tests.broker.mqtt.sockets import make_certificates
from tests.broker.running import CONFIG, ROOT, RunningBroker

TEXT = "event Temp(val: float)\nsubscription Hot from me to alerts\ndetect Temp(val > 30)\n"


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "hot.hw"
    path.write_text(TEXT)
    return str(path)


def submitted(spec, address, **environ):
    """In a process of its own, as what paho leaves open is closed at its end."""
    return subprocess.run(
        [sys.executable, "-m", "headwater.cli", "submit", spec, "--broker", address],
        env=os.environ | environ,
        capture_output=True,
        text=True,
        check=False,
    )


def published(address, **environ):
    """The same of a program that publishes."""
    code = (
        "import headwater, sys; event = headwater.Event('Temp', source='t1', val=31.5);"
        "print('refused', headwater.Client(sys.argv[1]).publish([event]))"
    )
    return subprocess.run(
        [sys.executable, "-c", code, address],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environ,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("scheme", ["https", "mqtts"])
def test_who_answers_without_tls_is_told_so(scheme, spec, tmp_path):
    with RunningBroker(tmp_path, CONFIG, f"--set=broker.data_dir={tmp_path}/data") as broker:
        port = broker.port(scheme.removesuffix("s"))
        address = f"{scheme}://127.0.0.1:{port}"
        done = submitted(spec, address)
    assert done.returncode == 3
    assert done.stderr.startswith(
        f"headwater: cannot reach {address}: what answers there does not speak TLS; "
    )


@pytest.mark.program("openssl")
def test_a_certificate_that_is_not_trusted_is_told_with_a_way_out(spec, tmp_path, find_program):
    make_certificates(tmp_path, find_program("openssl"))
    tls = [
        f"--set=mqtt.tls_cert={tmp_path}/server.pem",
        f"--set=mqtt.tls_key={tmp_path}/server.key",
        "--set=mqtt.tls_port=0",
    ]
    with RunningBroker(tmp_path, CONFIG, *tls, f"--set=broker.data_dir={tmp_path}/data") as broker:
        address = f"mqtts://127.0.0.1:{broker.port('mqtts')}"
        refused = submitted(spec, address)
        assert refused.returncode == 3
        assert "its certificate is not trusted: " in refused.stderr
        assert "_ssl.c" not in refused.stderr
        taken = submitted(spec, address, SSL_CERT_FILE=str(tmp_path / "ca.pem"))
        assert (taken.returncode, taken.stdout) == (0, "installed: Hot\n")
        refused = published(address)
        assert (refused.stdout, refused.returncode) == ("", 1)
        assert "ClientError: cannot reach" in refused.stderr
        assert "its certificate is not trusted: " in refused.stderr
        taken = published(address, SSL_CERT_FILE=str(tmp_path / "ca.pem"))
        assert (taken.returncode, taken.stdout) == (0, "refused 0\n")
