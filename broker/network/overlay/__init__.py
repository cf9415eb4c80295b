"""The network as every broker sees it: link state, graph, overlay tree, and what each link carries.

Problem: filter-split-forward needs one tree without cycles, and no broker may decide it. So each
derives it from the same link state. Whoever looks at a network asks of each link what it carries,
and of which kind; the answer has to agree with what the links themselves count, to the event.

Owns who is linked to whom, the one tree that all derive from it, and the counts of events by link,
direction and type. Must not know sockets, what events say beside their type, nor why they travel.
Invariant: brokers that know the same links derive the same tree (`topology`); the counts of all
types of a link and a direction add up to the events of the frames that were sent or taken there; a
neighbour cannot make them grow without bound.

The way of link state:

    topology = Topology("hall", epoch)
    effects = topology.handle(LinkUp("roof", fresh=True), now)   # Tell, TreeChanged, KnownChanged
    effects = topology.handle(StatesReceived("roof", data), now)  # data is that of a Tell
    topology.tree.neighbours, topology.tree.hops["cellar"], topology.tree.next_hops["cellar"]
    topology.wake_at                                                # when to tell Woken()

The way of a count: a broker tells `traffic.LinkTraffic` of the events of each frame that it sends
or takes, once for the frame: of those that it decodes itself by their types, else of their bytes,
of which a decoder reads the types and skips all else.
"""
