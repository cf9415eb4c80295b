"""The network as every broker sees it: link state, graph, overlay tree.

Owns who is linked to whom and the one tree that all derive from it. Must not know sockets, nor what
travels. Invariant: see `topology`. In short:

    topology = Topology("hall", epoch)
    effects = topology.handle(LinkUp("roof", fresh=True), now)   # Tell, TreeChanged, KnownChanged
    effects = topology.handle(StatesReceived("roof", data), now)  # data is that of a Tell
    topology.tree.neighbours, topology.tree.hops["cellar"], topology.tree.next_hops["cellar"]
    topology.next_wake()                                            # when to tell Woken()
"""
