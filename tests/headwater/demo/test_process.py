"""The demonstration as somebody runs it: in any folder, stopped at any time, to its end."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from headwater.demo import process as processes
from headwater.demo.layout import NAMES
from headwater.demo.process import free_ports

ROOT = Path(__file__).parents[3]
PATIENCE_S = 15.0
FIRST_RESULT_S_MAX = 60.0  # what newcomers are promised; it takes about two


@pytest.fixture
def folder(tmp_path):
    """A folder of somebody's own, whose files are named like modules of the library."""
    (tmp_path / "work").mkdir()
    (tmp_path / "temporary").mkdir()
    for name in ("http.py", "random.py", "broker.py"):
        (tmp_path / "work" / name).write_text("raise SystemExit('not what was meant')\n")
    return tmp_path


@contextmanager
def demo(folder):
    """The command, with settings around that are meant for another broker."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "headwater.cli", "demo", "--json"],
        cwd=folder / "work",
        env=os.environ
        | {
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(folder / "temporary"),
            "HEADWATER__MQTT__PORT": "1",
            "HEADWATER__MQTT__PROT": "1",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def brokers_of(process) -> list[int]:
    """The process ids of the brokers that the demonstration has started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == len(NAMES)
    return [int(child) for child in children]


@pytest.mark.timeout(FIRST_RESULT_S_MAX + PATIENCE_S)
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)]
)
def test_stopped_in_the_middle_it_leaves_nothing_behind(folder, number):
    with demo(folder) as process:
        assert json.loads(process.stdout.readline())["subscription"]
        brokers = brokers_of(process)
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert errors == ""
    assert not any(Path(f"/proc/{broker}").exists() for broker in brokers)
    assert list((folder / "temporary").iterdir()) == []


@pytest.mark.timeout(FIRST_RESULT_S_MAX + PATIENCE_S)
@pytest.mark.parametrize("reader", ["enough", pytest.param("full", marks=pytest.mark.long)])
def test_it_ends_when_nobody_reads_its_results_any_more(folder, reader):
    """As in `headwater demo | head -3`, and on a full disk; it is not the broker that is lost."""
    words = {"enough": "| head -3", "full": "> /dev/full"}[reader]
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f'"$0" -P -m headwater.cli demo {words}', sys.executable],
        cwd=folder / "work",
        env=os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "temporary")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=FIRST_RESULT_S_MAX,
        check=False,
    )
    if reader == "enough":
        assert done.returncode == 0
        assert done.stdout.count("\n") == 3
        assert "headwater:" not in done.stderr
    else:
        assert done.returncode == 2
        assert done.stderr.endswith("headwater: cannot go on: no space left on device\n")
    assert list((folder / "temporary").iterdir()) == []


@pytest.mark.long
@pytest.mark.timeout(180)
def test_it_ends_with_status_0_and_results_of_every_subscription(folder):
    began_s = time.perf_counter()
    with demo(folder) as process:
        first = process.stdout.readline()
        assert time.perf_counter() - began_s < FIRST_RESULT_S_MAX
        rest, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    *results, summary = map(json.loads, [first, *rest.splitlines()])
    expected = json.loads((ROOT / "examples" / "expected.json").read_text())["weather"]
    counted = dict.fromkeys(expected, 0)
    for result in results:
        counted[result["subscription"]] += 1
    assert counted == expected
    assert all(counted.values())
    assert "subscription" not in summary
    assert list((folder / "temporary").iterdir()) == []


def test_ports_for_brokers_are_free_and_never_given_to_connections(monkeypatch):
    found = free_ports(20)
    assert len(set(found)) == 20
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert max(found) < first
    with socket.create_server((processes.HOST, found[0])):
        monkeypatch.setattr(processes, "FREE", (found[0],))
        with pytest.raises(OSError, match="fewer than 1 ports are free"):
            free_ports(1)
    assert free_ports(1) == found[:1]
