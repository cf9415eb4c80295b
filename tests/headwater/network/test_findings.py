"""Planted faults in what brokers answer: each is found, with what mends it."""

import copy
import ipaddress
import socket

import pytest

from broker.links.multicast import MulticastSegment
from headwater.cli import main
from headwater.cli.network.answers import BrokerAnswers
from headwater.cli.network.findings import findings
from headwater.cli.output import CommandError
from headwater.cli.reach import broker_at

NOW_MS = 1_800_000_000_000
DAY_S = 86_400
STATUS = {
    "broker": "hall",
    "version": "1.0",
    "state": "ready",
    "healthy": True,
    "time_of_day": NOW_MS + 300,
    "process": {"cpu_s": 1.0, "memory_bytes": 80 << 20, "memory_bytes_max": 256 << 20},
    "clock": {"ahead_ms": 0, "gap_ms": 0, "jumps": 0},
    "journal": {"disk_free_bytes": 50 << 30, "disk_size_bytes": 100 << 30},
    "mqtt": {"connections": 900, "connections_max": 1000},
    "certificates": {"mqtt": NOW_MS // 1000 + 90 * DAY_S},
    "network": {"links": {"pi1": {"state": "up"}}, "away": {}, "unreachable": {}},
}
FROST = {"subscription": "Frost", "subscriber": "anna", "state": "active"}


def answers(change=None, *, missing=(), listed=(FROST,), error=None):
    """Two brokers' answers, of which the first has a fault."""
    rows = []
    for name in ("hall", "pi1"):
        status = copy.deepcopy(STATUS) | {"broker": name}
        faulty = name == "hall"
        if faulty and change:
            change(status)
        by_path = {
            "/v1/status": status,
            "/readyz": {"missing": list(missing) if faulty else []},
            "/v1/subscriptions": {"subscriptions": list(listed)},
        }
        broker = broker_at(f"http://{name}:8080", None, None, 1.0)
        failed = error if faulty else None
        rows.append(BrokerAnswers(broker, {} if failed else by_path, failed))
    return rows


def put(*path_and_value):
    """A change of a status: the value at a path."""
    *path, last, value = path_and_value

    def change(status):
        for key in path:
            status = status[key]
        status[last] = value

    return change


def link(reason):
    return put("network", "links", "pi1", {"state": "down", "reason": reason})


YEAR_MS = 365 * 86_400_000
FAULTS = {
    "it is not there": (
        answers(error=CommandError(3, "cannot reach http://hall:8080: connection refused")),
        "cannot reach http://hall:8080",
        "headwater broker --config FILE",
    ),
    "it met a fault": (answers(put("healthy", False)), "a fault of its own", "start it again"),
    "its connections are nearly taken": (
        answers(put("mqtt", "connections", 901)),
        "901 of 1,000 MQTT connections are taken",
        "raise connections_max under [mqtt_limits]",
    ),
    "its connections are taken": (
        answers(put("mqtt", "connections", 1000)),
        "1,000 of 1,000 MQTT connections are taken: further ones are closed",
        "close some, or raise connections_max under [mqtt_limits]",
    ),
    "a full card": (
        answers(missing=["the journal cannot be written: no space left on device"]),
        "it takes no events: the journal cannot be written",
        "make room on the disk",
    ),
    "two brokers of one name": (
        answers(missing=["another broker has the name hall"]),
        "another broker has the name",
        "another broker.name",
    ),
    "a joined server is away": (
        answers(missing=["the MQTT server mosquitto at 10.0.0.1:1883: connection refused"]),
        "the MQTT server mosquitto",
        "correct its address under [joins]",
    ),
    "a clock behind by a year": (
        answers(put("time_of_day", NOW_MS - YEAR_MS)),
        "its clock is 365 days behind",
        "timedatectl set-ntp true",
    ),
    "a clock that jumped": (
        answers(put("clock", "gap_ms", 7_200_000)),
        "its clock has jumped by 2 hours",
        "timedatectl set-ntp true",
    ),
    "memory at its limit": (
        answers(put("process", "memory_bytes", 250 << 20)),
        "it uses 250 of 256 MB of memory",
        "raise the limit",
    ),
    "a disk that fills up": (
        answers(put("journal", "disk_free_bytes", 1 << 30)),
        "has 1024 of 102400 MB left",
        "results_bytes_max",
    ),
    "a certificate that ends soon": (
        answers(put("certificates", "links", NOW_MS // 1000 + 12 * DAY_S)),
        "a certificate of links.tls_cert ends in 12 days",
        "headwater reload",
    ),
    "an authority that ended": (
        answers(put("certificates", "links_authority", NOW_MS // 1000 - 3 * DAY_S)),
        "a certificate of links.tls_ca ended 3 days ago",
        "renew the file of links.tls_ca",
    ),
    "another secret": (link("its shared secret is another one"), "no link to pi1", "secret_file"),
    "a certificate that is over": (
        link("its certificate is not trusted: certificate has expired"),
        "certificate has expired",
        "renew tls_cert",
    ),
    "nobody listens": (link("connection refused"), "connection refused", "[links.peers]"),
    "no multicast": (
        answers(
            put(
                "network",
                "discovery",
                {"found": 0, "others": 0, "reason": "multicast is not possible: no route to host"},
            )
        ),
        "segment cannot be discovered: multicast is not possible: no route to host",
        "multicast on",
    ),
    "somebody is waited for": (
        answers(put("network", "away", {"pi3": {"subscriptions": ["Frost"], "overdue": True}})),
        "Frost wait for pi3, which is away",
        "headwater forget pi3",
    ),
    "a broker that is cut off": (
        answers(put("network", "unreachable", {"pi4": 5})),
        "pi4 is known and cannot be reached",
        "headwater forget pi4",
    ),
    "a subscription is suspended": (
        answers(listed=[FROST | {"state": "suspended"}]),
        "Frost of anna is suspended",
        "headwater resume Frost",
    ),
    "different versions": (
        answers(put("version", "0.9")),
        "brokers of different versions: 0.9 at hall; 1.0 at pi1",
        "update the older ones",
    ),
}


def test_a_healthy_network_has_no_finding():
    assert findings(answers(), NOW_MS) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_named_with_what_mends_it(fault):
    planted, sentence, mend = FAULTS[fault]
    if callable(planted):
        planted = answers(planted)
    rows = findings(planted, NOW_MS)
    assert rows
    assert all(sentence in row.sentence and mend in row.mend for row in rows)


def test_a_promise_to_be_back_is_no_fault():
    away = {"pi3": {"subscriptions": ["Frost"], "overdue": False}}
    assert findings(answers(put("network", "away", away)), NOW_MS) == []


# --- a configuration, before a broker is started --------------------------------------------


def diagnosed(path, capsys):
    status = main(["doctor", "--config", str(path)])
    return status, capsys.readouterr().out


@pytest.fixture
def config(tmp_path):
    def write(text):
        path = tmp_path / "site.toml"
        path.write_text(text)
        return path

    return write


CALM = "[mqtt]\nport = 0\n[http]\nport = 0\n"


def test_nothing_is_wrong_with_a_good_configuration(config, tmp_path, capsys):
    path = config(f'[broker]\ndata_dir = "{tmp_path}/not/there/yet"\n{CALM}')
    assert diagnosed(path, capsys) == (0, f"nothing is wrong with {path}\n")
    assert not (tmp_path / "not").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[mqtt]\nprot = 1\n", "[mqtt] has no key `prot`"),
        ('[mqtt]\nhost = "0.0.0.0"\n', "mqtt.host"),
        (f'{CALM}[links]\nhost = "127.0.0.1"\nsecret_file = "gone"\n', "links.secret_file"),
        (f'[broker]\nrights = "gone.toml"\n{CALM}', "gone.toml"),
        (f'[broker]\ndata_dir = "site.toml/data"\n{CALM}', "cannot be written"),
    ],
)
def test_what_stops_a_broker_from_starting_is_found_before(text, says, config, capsys):
    """A listener wider than loopback without users, and a missing secret file, among others."""
    status, told = diagnosed(config(text), capsys)
    assert status == 1
    assert says in told
    assert told.splitlines()[1].startswith("  mend: ")


def test_a_port_that_is_taken_is_found(config, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        text = f"[mqtt]\nport = {port}\n[http]\nport = 0\n"
        status, told = diagnosed(config(text), capsys)
    assert status == 1
    assert f"mqtt cannot listen on 127.0.0.1:{port}: address already in use" in told
    assert "set mqtt.port" in told


def test_multicast_that_is_not_possible_is_found_before_the_start(
    config, tmp_path, capsys, monkeypatch
):
    secret = tmp_path / "links.secret"
    secret.write_text("correct-horse-battery\n")
    secret.chmod(0o600)
    path = config(
        f'[broker]\ndata_dir = "{tmp_path}/data"\n{CALM}'
        f'[links]\nhost = "0.0.0.0"\nport = 0\nsecret_file = "{secret}"\ndiscover = true\n'
    )
    monkeypatch.setattr("broker.links.multicast._fault", lambda _: "")
    address = ipaddress.ip_interface("10.0.0.2/24")
    monkeypatch.setattr(MulticastSegment, "interfaces", lambda _: [address])
    assert diagnosed(path, capsys)[0] == 0
    monkeypatch.setattr("broker.links.multicast._fault", lambda _: "network is unreachable")
    status, output = diagnosed(path, capsys)
    assert status == 1
    assert "multicast is not possible: network is unreachable" in output
    assert "mend: " in output
    assert "multicast on" in output
    monkeypatch.setattr(MulticastSegment, "interfaces", lambda _: [])
    assert "no address but loopback" in diagnosed(path, capsys)[1]
