"""The network as every broker sees it: link state, graph, overlay tree, and what each link carries.

Problem: filter-split-forward needs one tree without cycles, and no broker may decide it. So each
derives it from the same link state. Whoever looks at a network asks what its links carry, and of
which kind.

Owns who is linked to whom, the one tree that all derive from it, and the counts of bytes by link
and kind (`kinds`). Must not know sockets, what events say, nor why they travel. Invariant: brokers
that know the same links derive the same tree (`topology`); every byte of a message is of one kind.

The way of link state:

    topology = Topology("hall", epoch)
    effects = topology.handle(LinkUp("roof", fresh=True), now)   # Tell, TreeChanged, KnownChanged
    effects = topology.handle(StatesReceived("roof", data), now)  # data is that of a Tell
    topology.tree.neighbours, topology.tree.hops["cellar"], topology.tree.next_hops["cellar"]
    topology.wake_at                                                # when to tell Woken()
"""
