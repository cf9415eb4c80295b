"""Brokers with nothing but `links.discover` and a secret, on a real segment: multicast and all.

Each has a network namespace, and these are joined by a bridge in one more; nothing of the machine's
own network is touched.
"""

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from itertools import combinations

import networkx as nx
import pytest

from tests.broker.network.fleet import FleetBroker
from tests.conftest import require_program

PATIENCE_S = 40.0  # for what takes some seconds, on a machine that does other things as well
CONFIG = """
[broker]
name = "{name}"
data_dir = "{folder}/data"
[intake]
lateness_ms = 0
[links]
host = "0.0.0.0"
discover = true
secret_file = "{secret}"
reconnect_ms_max = 300
[log]
format = "json"
"""
ASK = (
    "import sys, urllib.request as r;"
    "sys.stdout.write(r.urlopen('http://127.0.0.1:8080/v1/status', timeout=15).read().decode())"
)


def command(*words):
    subprocess.run(words, check=True, capture_output=True, timeout=15)


class Segment:
    """Places on one bridge, each a network namespace with one address."""

    def __init__(self, count):
        self.bridge = f"headwater-{os.getpid()}"
        self.places = [f"{self.bridge}-{n}" for n in range(1, count + 1)]

    def __enter__(self):
        with ExitStack() as undo:
            self._make(undo)
            self._undo = undo.pop_all()  # or, where something failed, it is all undone now
        return self

    def __exit__(self, *_):
        self._undo.close()

    def _make(self, undo):
        for place in (self.bridge, *self.places):
            command("ip", "netns", "add", place)
            undo.callback(command, "ip", "netns", "del", place)
        within = ("ip", "-n", self.bridge)
        command(*within, "link", "add", "bridge", "type", "bridge")
        command(*within, "link", "set", "bridge", "up")
        for n, place in enumerate(self.places, 1):
            end = f"end{n}"
            command(*within, "link", "add", end, "type", "veth", "peer", "eth0", "netns", place)
            command(*within, "link", "set", end, "master", "bridge", "up")
            command("ip", "-n", place, "address", "add", f"10.77.0.{n}/24", "dev", "eth0")
            for device in ("eth0", "lo"):
                command("ip", "-n", place, "link", "set", device, "up")


class Town:
    """Brokers on a segment, by name."""

    def __init__(self, folder, segment):
        self.folder = folder
        self.free = [("ip", "netns", "exec", place) for place in segment.places]
        self.within = {}
        self.brokers = {}

    def begin(self, name, secret):
        folder = self.folder / name
        folder.mkdir()
        file = self.folder / secret
        file.write_text(f"{secret}\n")
        file.chmod(0o600)
        config = CONFIG.format(name=name, folder=folder, secret=file)
        self.within[name] = self.free.pop(0)
        self.brokers[name] = FleetBroker(folder, config, within=self.within[name])

    def ready(self):
        for broker in self.brokers.values():
            if not broker.where:
                broker.__enter__()

    def end(self, name):
        broker = self.brokers.pop(name)
        broker.process.kill()
        broker.__exit__()

    def network(self, name):
        words = [*self.within[name], sys.executable, "-c", ASK]
        done = subprocess.run(words, check=True, capture_output=True, timeout=15)
        return json.loads(done.stdout)["network"]

    def linked(self, *names):
        """Whether each of these has a link to each other one."""
        made = nx.Graph()
        for name in names:
            links = self.network(name)["links"]
            made.add_edges_from((name, to) for to, link in links.items() if link["state"] == "up")
        return all(made.has_edge(*pair) for pair in combinations(names, 2))

    def until_linked(self, *names):
        deadline = time.monotonic() + PATIENCE_S
        while not self.linked(*names):
            assert time.monotonic() < deadline, {name: self.network(name) for name in names}
            time.sleep(0.3)


@pytest.fixture
def town(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root may make network namespaces")
    require_program("ip")
    made = Segment(5)
    try:
        segment = made.__enter__()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"network namespaces cannot be made here: {error.stderr.decode()}")
    town = Town(tmp_path, segment)
    yield town
    for name in list(town.brokers):
        town.end(name)
    made.__exit__()


SECRET, OTHER = "correct-horse-battery", "a-neighbours-own-secret"


@pytest.mark.timeout(150)
def test_brokers_that_have_nothing_but_a_secret_in_common_find_each_other(town):
    for name in "abc":
        town.begin(name, SECRET)
    town.begin("stranger", OTHER)
    town.ready()
    town.until_linked("a", "b", "c")
    network = town.network("stranger")
    assert network["links"] == {}
    assert network["discovery"] == {"found": 0, "others": 3, "reason": ""}
    town.end("b")
    town.begin("d", SECRET)
    town.ready()
    town.until_linked("a", "c", "d")
    assert town.network("stranger")["links"] == {}
    status = town.brokers["a"].end()
    assert status == 0
    lines = json.dumps(town.brokers["a"].lines)
    assert "stranger" not in lines
    assert "a connection with" not in lines, "nobody was turned away"
