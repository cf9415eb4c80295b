"""What a broker knows of each neighbour in the tree, and what it owes it.

Owns the sessions with them, what waits for the next message to each and what each link has carried
of late, which an answer need not carry again (`sessions`), which way origins are, what comes of
them and what is still to be claimed (`ways`), and the events that are kept back from a neighbour
until a partner comes (`kept_back`, with `certainty` and `partner_certainty`, which say
when that is safe). Must not know tasks, journals or how a frame travels.

Invariant: a claim toward a neighbour says only what is true of all that was asked for on that way;
what is kept back travels or has no partner that is still to come.

    an event for a neighbour ─▶ partner here? ── yes ─▶ sent, with a claim
                                    │ no
                                    ▼
                                kept back ─▶ partner comes: sent
                                          └▶ none can come any more: claimed, never sent
"""
