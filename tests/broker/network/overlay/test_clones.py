"""A broker on a copy of another's disk leaves the tree to that one, until that is gone for good."""

import itertools
from collections import deque

import msgspec
import pytest

from broker.network.overlay.limits import TopologyLimits
from broker.network.overlay.state import LinkState, decode, encode
from broker.network.overlay.told import DiskClaimed
from broker.network.replication.descent import DRAWN_MIN
from tests.broker.network.overlay.network import Network

DISK = DRAWN_MIN + 7
LINE = ("a", "b", "c", "d")  # `a` is the original, `d` begins on a copy of its disk


def linked(later="d"):
    network = Network(1, LINE)
    for name in LINE:
        network.all[name].identify(200 if name == later else 100, DISK if name in "ad" else 0)
    for one, other in itertools.pairwise(LINE):
        network.connect(one, other)
    network.settle()
    return network


def claims(network, name):
    return [told.by for told in network.told[name] if isinstance(told, DiskClaimed)]


def reached(network, name):
    return set(network.all[name].tree.hops)


@pytest.mark.parametrize(("later", "earlier"), ["da", "ad"])
def test_the_later_one_leaves_the_tree_and_no_other_is_concerned(later, earlier):
    network = linked(later)
    assert claims(network, later) == [earlier]
    assert reached(network, later) == {later}
    for name in {*LINE} - {later}:
        assert reached(network, name) == {*LINE} - {later}
        assert claims(network, name) == []


def test_it_comes_back_when_the_other_is_forgotten_and_not_before():
    network = linked()
    network.kill("a")
    network.settle()
    assert claims(network, "d") == ["a"]
    network.forget("b", "a")
    network.settle()
    assert claims(network, "d") == ["a", ""]
    assert reached(network, "b") == {"b", "c", "d"}


def test_the_other_may_restart_meanwhile():
    """Its new process is announced later than the copy, which tells of no disk any more."""
    network = linked()
    network.kill("a")
    network.settle()
    network.start("a")
    network.all["a"].identify(300, DISK)
    network.connect("a", "b")
    network.settle()
    assert (claims(network, "a"), claims(network, "d")) == ([], ["a"])
    assert reached(network, "c") == {"a", "b", "c"}


def test_a_disk_that_is_named_only_now_is_told_at_once():
    network = Network(1, LINE)
    for number, name in enumerate(LINE):
        network.all[name].identify(100 + number)
    for one, other in itertools.pairwise(LINE):
        network.connect(one, other)
    network.settle()
    for name in ("d", "a"):
        for effect in network.all[name].name_disk(DISK, network.now):
            network.queues.setdefault((name, effect.to), deque()).append(effect.data)
    network.settle()
    assert claims(network, "d") == ["a"]


class OlderState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the release before told of a broker."""

    origin: str
    epoch: int
    seq: int
    links: tuple[tuple[str, int], ...] = ()
    forgotten: bool = False
    run: int = 0


def test_releases_before_read_it_and_are_read():
    state = LinkState("a", 1, 2, (("b", 1),), run=5, disk=DISK)
    older = msgspec.msgpack.decode(encode([state]), type=list[OlderState])
    assert older == [OlderState("a", 1, 2, (("b", 1),), run=5)]
    limits = TopologyLimits()
    (read,) = decode(msgspec.msgpack.encode(older), limits)
    assert (read.run, read.disk) == (5, 0)
    with pytest.raises(ValueError, match="impossible number"):
        decode(encode([LinkState("a", 1, 2, disk=-1)]), limits)
