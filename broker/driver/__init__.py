"""The process of a broker: what is told of it to those who look.

Problem: what a person wants to see of a broker lies in many rooms, each with its own words: links,
the overlay tree, operators, tasks, the process. A page that has it all in one would know all rooms.

    links.face ── state, address, what waits ─┐
    network: topology, router, ways, traffic ─┼─▶ network_view ──▶ GET /v1/network
    the process and its control group ────────┴─▶ usage ─────────▶ GET /v1/status

Owns the shapes that people and programs see, as plain data. Must not know HTTP or the command line,
and changes nothing. Invariant: everything is read at one moment, between two messages of the core;
what has no bound of its own is cut at a named limit, and the cut is told.

The way: the facade of the HTTP face asks one function of this room for each route.
"""
