"""Of two live processes of one name the one announced later leaves the name to the other."""

import pytest

from broker.network.overlay.told import LinkUp, NameTaken, StatesReceived, Tell
from broker.network.overlay.topology import Topology


def settled(first, second):
    """Two of one name, each linked to one broker of two that are linked; who left the name."""
    brokers = {"x": Topology("b", first[0]), "p": Topology("p", 1), "q": Topology("q", 1)}
    brokers["y"] = Topology("b", second[0])
    brokers["x"].identify(first[1])
    brokers["y"].identify(second[1])
    ends = {("x", "p"): "p", ("p", "b"): "x", ("p", "q"): "q"}
    ends |= {("y", "q"): "q", ("q", "b"): "y", ("q", "p"): "p"}
    waiting, left = [], []

    def tell(who, what):
        for effect in brokers[who].handle(what, 0):
            if isinstance(effect, Tell):
                waiting.append((ends[who, effect.to], brokers[who].me, effect.data))
            elif isinstance(effect, NameTaken) and effect.earlier:
                left.append(who)

    for who, peer in ends:
        tell(who, LinkUp(peer, fresh=True))
    for _ in range(200):
        if waiting:
            to, by, data = waiting.pop(0)
            tell(to, StatesReceived(by, data))
    assert not waiting
    return left, brokers


@pytest.mark.parametrize("clocks", [(100, 200), (200, 100), (100, 100)])
def test_the_later_one_leaves_whatever_its_clock_says_of_states(clocks):
    """`run` tells who was announced first; epochs are raised by whoever outdoes the other."""
    left, brokers = settled((clocks[0], 1_000), (clocks[1], 2_000))
    assert left == ["y"]
    for name in ("p", "q"):
        assert ("b", "p") in [(edge.low, edge.high) for edge in brokers[name].edges()]


def test_without_a_number_of_the_process_nobody_leaves():
    left, _ = settled((100, 0), (200, 0))
    assert left == []
