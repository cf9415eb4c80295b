"""One broker with all its faces, put together in a process, and what it tells of itself.

    configuration ─▶ site ─┬─▶ driver (the core), networking (links), bridge (joined servers)
                           ├─▶ MQTT face, HTTP face ◀── facade: what they may ask
                           └─▶ reload: rights, certificates, secrets read again
    links.face ── state, address, what waits ─┐
    network: topology, router, ways, traffic ─┼─▶ network_view ──▶ GET /v1/network
    the process and its control group ────────┴─▶ usage ─────────▶ GET /v1/status

Owns the order of starting and stopping, the data directory's claim, and the shapes that people and
programs see, as plain data. Must not know what an event is or how results are found. Invariant:
what cannot start leaves nothing open and says why; what is shown is read at one moment, between two
messages of the core, and what has no bound of its own is cut at a named limit, which is told.

States of a site: starting (what was kept is taken up, intake held), ready, stopping (clients told,
listeners closed, the last records on the disk).
"""
