"""One broker as a process: the core of `broker.core` and the input and output around it.

Owns sockets, files and the clock of a broker. Must not know the simulation or the command line.
Invariant: what a broker decides, `broker.core` decides; the rooms around it only carry it out.

    process ─▶ site ─▶ mqtt, http, links, bridge ─▶ driver ─▶ core (has engine and network)
                  config, rights, admission             └─▶ journal, store
"""
