"""What a broker keeps of the events that enter at it, until every host that needs them has them.

Owns the log of an origin (`own`) and what is offered of it to a host that is behind (`offers`).
Must not know links, the router or the journal's form.

Invariant: an event stays until each host that is in need of it has told that it is durable there,
or the limit lets the oldest go, which is told; positions ascend by one within a life.

    admitted ─▶ a position ─▶ forwarded ─▶ a host's durable position passes it ─▶ let go
                                  ▲ offered again from a host's position, whatever broke
"""
