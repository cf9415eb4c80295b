"""The machine of a broker among others: it owns the parts of the network and lets them speak.

Owns the order in which a message's parts are told (`network_broker`), what is said of sources here
and answered to hosts (`origin`), how claims and events go on from neighbour to neighbour
(`event_relay`), how an origin folds panes for a header (`folding`) and the coordinator's place in
it (`planning`). Must not know sockets or clocks; a frame is bytes to be
brought to a neighbour. The parts themselves are in `broker.network`, what outlasts a crash in
`broker.core.networked`.

Invariant: a host's position at an origin is passed only by a message that carries all that the host
needs up to the new one.

    frame ─▶ session ─▶ written down (NetworkTold) ─▶ core ─▶ relay ─▶ outlet ─▶ SendFrame
"""
