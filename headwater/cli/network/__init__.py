"""Commands with which a person sees a network of brokers, and mends it.

Problem: a broker answers for itself and its own links. Whoever runs a network asks about all of it:
what travels where and for whom, how fast, what is wrong, and what to type against it.

    contexts (names of networks: the addresses of their brokers, who asks)
        │
        ▼
    answers: every broker of a context is asked, side by side ──▶ picture: one network of them
        │                                                            │
        ▼                                                            ▼
    top, doctor                                     topology (tree, DOT, SVG), flows

Owns what these commands ask, put together and print. Must not know how a broker counts. Invariant:
nothing here changes a broker; a broker that does not answer stops no answer of another, and is
named; what both ends of a link tell is told once, by the end that sent it.
"""
