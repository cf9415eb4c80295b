"""The network as every broker sees it: link state, graph, overlay tree.

Owns who is linked to whom and the one tree that all derive from it. Must not know sockets, nor what
travels. Invariant: see `topology`. In short:

    topology = Topology("hall", epoch)
    effects = topology.handle(LinkUp("roof", fresh=True), now)   # Tell, TreeChanged, KnownChanged
    effects = topology.handle(StatesReceived("roof", data), now)  # data is that of a Tell
    topology.tree.neighbours, topology.tree.hops["cellar"], topology.tree.next_hops["cellar"]
    topology.next_wake()                                            # when to tell Woken()
"""

from broker.core.topology.limits import TopologyLimits
from broker.core.topology.state import LinkState
from broker.core.topology.told import (
    DiskClaimed,
    Effect,
    ForgetRequested,
    KnownChanged,
    LinkDown,
    LinkUp,
    NameTaken,
    Objected,
    StatesReceived,
    Tell,
    Told,
    TreeChanged,
    Woken,
)
from broker.core.topology.topology import Topology
from broker.core.topology.tree import Edge, Tree

__all__ = [
    "DiskClaimed",
    "Edge",
    "Effect",
    "ForgetRequested",
    "KnownChanged",
    "LinkDown",
    "LinkState",
    "LinkUp",
    "NameTaken",
    "Objected",
    "StatesReceived",
    "Tell",
    "Told",
    "Topology",
    "TopologyLimits",
    "Tree",
    "TreeChanged",
    "Woken",
]
