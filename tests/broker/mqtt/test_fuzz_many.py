"""Millions of spoilt packets, sharded by seed: a fault that one in a million meets shows here.

Each input is a good conversation with some bytes changed, cut or doubled, sent to a hub in pieces.
Nothing may be raised out of the hub, and a witness is heard afterwards.
"""

import random

import pytest

from broker.mqtt.codec import packets as p
from broker.mqtt.codec.decoder import encode
from tests.broker.mqtt.test_fuzz import Arena, Hostile

SHARDS = 100
INPUTS = 20_000  # of a shard: two million in all
PER_WORLD = 1_000


def conversations():
    """A CONNECT of each version, and what may follow it."""
    for version in (p.V311, p.V5):
        begin = encode(p.Connect(version, "c", True, 10, p.Will("will", b"x", 1)), version)
        following = (
            p.Publish("a/b", b"payload", 0),
            p.Publish("headwater/events/Temp/t", b'{"val": 1}', 1, packet_id=3),
            p.Publish("a", b"kept", 2, True, packet_id=4),
            p.Subscribe(1, (p.Filter("a/#", 2), p.Filter("$share/g/+", 1))),
            p.Unsubscribe(2, ("a/#",)),
            p.Pubrel(4),
            p.Puback(1),
            p.Pingreq(),
            p.Disconnect(),
        )
        yield version, begin, [encode(packet, version) for packet in following]


def spoilt(chance, data):
    """Some bytes changed, cut out or doubled; sometimes none."""
    made = bytearray(data)
    for _ in range(chance.randrange(4)):
        position = chance.randrange(len(made))
        act = chance.randrange(3)
        if act == 0:
            made[position] = chance.randrange(256)
        elif act == 1 and len(made) > 8:
            del made[position : position + chance.randrange(1, 5)]
        else:
            made[position:position] = made[position : position + chance.randrange(1, 9)]
    return bytes(made)


def shard(seed, inputs):
    """Send so many inputs; how many were sent."""
    chance = random.Random(seed)
    bases = list(conversations())
    sent = 0
    while sent < inputs:
        world = Arena()
        for _ in range(min(PER_WORLD, inputs - sent)):
            _, begin, following = chance.choice(bases)
            rest = b"".join(chance.choices(following, k=chance.randrange(1, 5)))
            data = begin + spoilt(chance, rest) if chance.random() < 0.8 else spoilt(chance, begin)
            hostile = Hostile(world)
            cut = chance.randrange(len(data) + 1)
            for piece in (data[:cut], data[cut:]):
                hostile.send(piece)
            hostile.leave()
            sent += 1
        world.check_witness()
    return sent


def test_thousands_of_spoilt_packets_break_nothing():
    """A taste of the long run on every commit."""
    assert shard(-1, 2_000) == 2_000


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(SHARDS))
def test_millions_of_spoilt_packets_break_nothing(seed):
    assert shard(seed, INPUTS) == INPUTS
