"""Links between brokers without their sockets: frames, handshake, sessions.

Owns what two neighbours say to each other to move messages exactly once and in order. Must not know
what messages mean. Invariant: see `session`.

`Links` is what a broker has; `LinkSession` is its session with one neighbour. In short:

    links = Links("hall", epoch)
    effects = links.handle(Opened(1, nonce, dialled=True, expected="roof"), now)   # a socket is up
    effects = links.handle(Received(1, data), now)                  # Write, Up, Delivered, Close …
    effects = links.handle(Offered("roof", [message], events=1), now)
    links.next_wake()                                               # when to tell Woken()
"""
