"""What a broker knows of each neighbour in the tree, and what it owes it.

Owns the sessions with them, what waits for the next message to each and what each link has carried
of late, which an answer need not carry again (`sessions`), which way origins are, what comes of
them and what is still to be claimed (`ways`), and the events that are kept back from a neighbour
until a partner comes (`kept_back`, with `certainty` and `partner_certainty`, which say
when that is safe, and `leads`, what is told of partners that do not come here). Must not know
tasks, journals or how a frame travels.

Whoever looks at a network asks of each link which events it carries; the answer has to agree with
what the links themselves count, to the event. So a broker counts (`sessions.LinkTraffic`) those of
each frame that it sends or takes, once for the frame: those that it decodes itself by their types,
the others by their bytes, of which a decoder reads the types and skips all else.

Invariant: a claim toward a neighbour says only what is true of all that was asked for on that way;
what is kept back travels or has no partner that is still to come; the counts of all types of a link
and a direction add up to the events of the frames that were sent or taken there, and a neighbour
cannot make them grow without bound.

    an event for a neighbour ─▶ partner here? ── yes ─▶ sent, with a claim
                                    │ no
                                    ▼
                                kept back ─▶ partner comes: sent
                                          └▶ none can come any more: claimed, never sent
"""
