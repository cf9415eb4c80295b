"""Clients: their connections, what is kept of them beyond these, and how both end.

Owns the protocol of an open connection, sessions with their queues, and who is slowed or barred.
Must not know sockets, a clock or SQL, nor who else gets a message (`routing`). Invariant: a session
has at most one connection; what was granted or queued at QoS 1 is confirmed, or ends with its
session, which says so.

    CONNECT → handshake → connection ⇄ session → client_queue → PUBLISH
                              │  SUBSCRIBE → subscriptions     │ not read: backpressure
                              └─ PUBLISH → routing             └ DISCONNECT, lost → departures

States of a connection: new, being judged (a login that is checked elsewhere), open, closed. Of a
session: with a connection, without one and expiring, ended. `rights` judges what is open once more
when the rights have changed.
"""
