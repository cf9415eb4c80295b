"""Many clients, few of them sane: nothing is raised, nothing wrong is said, and nothing grows.

The seed is in each test's name; `python -m tests.conformance.storm --seed N` runs any other.
"""

import logging
import random
import resource
import socket
import time

import pytest

from broker.mqtt.driver import TOLD_MAX
from broker.mqtt.hub import Hub
from broker.mqtt.routing.router import TopicRouter
from broker.mqtt.sessions.client_queue import ClientQueue
from tests.conformance import wire as w
from tests.conformance.clients import Scene
from tests.conformance.corpus import Corpus
from tests.conformance.peers import Ours
from tests.conformance.storm import LIMITS, Storm

ROUNDS = 4
# Of 60 topics that are remembered, with the queues of sessions that were on their way: about 50 kB.
LEFT_BYTES_MAX = 90_000


def rounds(seed, packets, **kind):
    """A storm with calms between, each of which leaves no more than the caches may hold."""
    storm = Storm(seed, **kind)
    for _ in range(ROUNDS):
        left_bytes = storm.run(packets // ROUNDS).calm()
        assert left_bytes <= LEFT_BYTES_MAX, f"seed {seed}: {left_bytes} bytes are left"
    return storm


@pytest.mark.parametrize("kind", [{}, {"users": True}])
def test_a_storm_leaves_nothing_behind(kind):
    storm = rounds(8, 10_000, **kind)
    counters = storm.hub.counters
    assert storm.packets >= 10_000
    assert len(counters.closed) > 10  # for as many different reasons
    assert min(counters.sent, counters.resent, counters.confirmed, counters.handed_up) > 0


def test_a_storm_with_a_disk_and_crashes_leaves_nothing_behind():
    """What is promised waits for the disk; the process dies now and then, and another goes on."""
    assert rounds(4, 8_000, disk=True).crashes > 2


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1_000, 1_020))
def test_a_long_storm_leaves_nothing_behind(seed):
    """Twenty times 50,000 packets; the process does not grow either."""
    storm = rounds(seed, 10_000, users=seed % 4 == 1, disk=seed % 4 > 1)
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(4):
        assert storm.run(10_000).calm() <= LEFT_BYTES_MAX
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    assert grown_kib < 20_000


# --- that a storm can tell --------------------------------------------------------------------


def forget_to_unsubscribe(monkeypatch):
    monkeypatch.setattr(TopicRouter, "unsubscribe", lambda *_: False)


def give_an_identifier_twice(monkeypatch):
    monkeypatch.setattr(ClientQueue, "_next_id", lambda _self: 1)


def raise_on_the_rare(monkeypatch):
    true = TopicRouter.replay

    def replay(self, subscription):
        if subscription.filter.topic_filter == "+/+/#":
            raise KeyError(subscription.filter.topic_filter)
        true(self, subscription)

    monkeypatch.setattr(TopicRouter, "replay", replay)


def keep_what_is_gone(monkeypatch):
    kept, true = [], Hub.lost

    def lost(self, connection, now_ms):
        self.kept = kept
        kept.append(bytes(100))
        true(self, connection, now_ms)

    monkeypatch.setattr(Hub, "lost", lost)


@pytest.mark.parametrize(
    "plant", [forget_to_unsubscribe, give_an_identifier_twice, raise_on_the_rare, keep_what_is_gone]
)
def test_a_storm_sees_a_planted_fault(plant, monkeypatch):
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        rounds(5, 10_000)


def test_a_storm_follows_from_its_seed():
    one, two = (Storm(3).run(2_000).hub.counters.as_dict() for _ in range(2))
    assert one == two


# --- over sockets -----------------------------------------------------------------------------

SOCKETS = 20


def blow(port, chance, packets):
    """Send packets over many sockets, some cut off in the middle; read when there is something."""
    corpus = Corpus(chance, LIMITS)
    lines = {}
    for _ in range(packets):
        place = chance.randrange(SOCKETS)
        line = lines.get(place)
        if line is None:
            login = corpus.login()
            line = lines[place] = [socket.create_connection(("127.0.0.1", port)), login.version]
            line[0].setblocking(False)
            data = login.encode()
        elif chance.random() < 0.93:
            data = corpus.good(line[1])[0]
        else:
            data = corpus.bad(line[1])[: chance.choice((3, 10_000))]
        try:
            line[0].send(data)
            ended = line[0].recv(65_536) == b""
        except BlockingIOError:
            ended = False
        except OSError:
            ended = True
        if ended or chance.random() < 0.02:
            lines.pop(place)[0].close()
    for line, _ in lines.values():
        line.close()


def storm_over_sockets(seed, packets, caplog):
    with caplog.at_level(logging.WARNING, logger="broker.mqtt"), Ours(limits=LIMITS) as peer:
        scene = Scene(peer)
        witness = scene.listen(w.V5, "witness", client_id="witness", qos=1)
        chance = random.Random(seed)
        for part in range(4):
            blow(peer.port, chance, packets // 4)
            witness.publish("witness", b"%d" % part, 1)
            got = [one.payload for one in witness.messages() if one.topic == "witness"]
            assert got == [b"%d" % part], f"seed {seed}"
        until = time.monotonic() + 5
        while peer.counters()["connections"] > 1 and time.monotonic() < until:
            peer.settle()
        scene.close()
        peer.settle()
        peer.pass_time(2 * 86_400)
        counters = peer.counters()
    assert "internal_error" not in counters["closed"], f"seed {seed}"
    assert len(counters["closed"]) > 5
    for name in ("connections", "sessions", "subscriptions", "queued_bytes", "pending_bytes"):
        assert counters[name] == 0, f"seed {seed}: {name}"
    ours = [one for one in caplog.records if one.name.startswith("broker")]
    said = [record.getMessage() for record in ours]
    assert len(said) == len(set(said)) <= TOLD_MAX
    # One line for each client that lost messages; of all else one for each kind.
    assert len([line for line in said if "its queue was full" not in line]) < 30


def test_a_storm_over_sockets(caplog):
    storm_over_sockets(21, 4_000, caplog)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(2_000, 2_004))
def test_a_long_storm_over_sockets(seed, caplog):
    storm_over_sockets(seed, 50_000, caplog)
