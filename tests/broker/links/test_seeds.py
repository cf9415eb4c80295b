"""Seed addresses: whom a broker dials of those that it finds there, in a ring and as processes."""

import time
from itertools import combinations

import networkx as nx
import pytest

from broker.links.seeds import DIALLED, behind
from headwater.cli import main
from headwater.demo.process import free_ports
from tests.broker.network.fleet import FleetBroker
from tests.broker.running import CONFIG, RunningBroker

PATIENCE_S = 45.0  # several looks, on a machine that does other things as well
LINKED = """
[intake]
lateness_ms = 0
[links]
host = "127.0.0.1"
port = {port}
seeds = "{seeds}"
reconnect_ms_max = 300
"""


def graph(addresses):
    """The links that brokers at these addresses make."""
    made = nx.Graph()
    made.add_nodes_from(addresses)
    for one in addresses:
        made.add_edges_from((one, other) for other in behind(addresses, one)[:DIALLED])
    return made


@pytest.mark.parametrize("count", range(1, 13))
def test_any_number_is_linked_and_stays_so_without_any_two(count):
    """Who is gone answers nobody; until the others look again no two that go together cut them."""
    addresses = [(f"172.18.0.{n}", 1889) for n in range(2, 2 + count)]
    made = graph(addresses)
    assert nx.is_connected(made)
    for gone in combinations(addresses, min(2, count - 1)):
        left = made.copy()
        left.remove_nodes_from(gone)
        assert nx.is_connected(left)
    assert max(degree for _, degree in made.degree) <= 2 * DIALLED


def test_addresses_are_in_the_order_of_numbers_not_of_letters():
    """All brokers have to find the same ring."""
    ring = [("9.0.0.1", 1), ("10.0.0.1", 1), ("10.0.0.1", 2), ("fd00::1", 1)]
    assert behind(ring, ("10.0.0.1", 1)) == [ring[2], ring[3], ring[0]]
    assert behind(ring, ("9.0.0.2", 1)) == [*ring[1:], ring[0]]


class Town:
    """Brokers that know nothing but the addresses of all, and get their names by themselves."""

    def __init__(self, folder, count):
        self.folder = folder
        self.ports = free_ports(count)
        seeds = ", ".join(f"127.0.0.1:{port}" for port in self.ports)
        self.configs = [
            CONFIG.replace('"site-1"', f'"{chr(97 + n)}"\ndata_dir = "{folder}/{n}/data"')
            + LINKED.format(port=port, seeds=seeds)
            for n, port in enumerate(self.ports)
        ]
        self.brokers = {}

    def begin(self, n):
        folder = self.folder / str(n)
        folder.mkdir(exist_ok=True)
        self.brokers[n] = FleetBroker(folder, self.configs[n]).__enter__()

    def end(self, n):
        broker = self.brokers.pop(n)
        broker.process.kill()
        broker.process.wait(15)
        broker.__exit__()

    def linked(self):
        """Whether links lead from any broker to any other, and to none besides."""
        made = nx.Graph()
        for n, broker in self.brokers.items():
            links = broker.get("/v1/status")[1]["network"]["links"]
            made.add_node(chr(97 + n))
            made.add_edges_from(
                (chr(97 + n), to) for to, one in links.items() if one["state"] == "up"
            )
        return sorted(made) == [chr(97 + n) for n in sorted(self.brokers)] and nx.is_connected(made)

    def until_linked(self):
        deadline = time.monotonic() + PATIENCE_S
        while not self.linked():
            assert time.monotonic() < deadline, [one.lines for one in self.brokers.values()]
            time.sleep(0.1)


@pytest.fixture
def town(tmp_path):
    made = Town(tmp_path, 4)
    yield made
    for n in list(made.brokers):
        made.end(n)


@pytest.mark.timeout(150)
def test_brokers_that_know_seeds_alone_are_one_network(town):
    """Names, links and who takes the place of one that is gone: nobody has configured them."""
    for n in range(4):
        town.begin(n)
    town.until_linked()
    town.end(2)
    town.until_linked()
    town.begin(2)
    town.until_linked()


@pytest.mark.timeout(60)
def test_health_is_a_status_and_a_sentence(tmp_path, capsys):
    """A container's health check knows 0 and 1 alone."""
    with RunningBroker(tmp_path, CONFIG, "--set", f"broker.data_dir={tmp_path}/data") as broker:
        url = f"http://127.0.0.1:{broker.port('http')}"
        assert main(["health", "--broker", url]) == 0
        assert capsys.readouterr().out == "it takes events\n"
    assert main(["health", "--broker", url]) == 1
    assert "cannot reach" in capsys.readouterr().err
