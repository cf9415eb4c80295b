"""The MQTT face of a broker: MQTT 3.1.1 and 5, QoS 0 and 1, spoken by the broker itself.

What a 3.1.1 client publishes at QoS 2 is taken, and goes on at QoS 1.

Owns the codec, the sessions, the router between ordinary MQTT clients and the listeners. Must not
know what an event is: topics under the application's prefix are handed up as they came.
Invariant: a QoS 1 publish is acknowledged only when the one who took it has said so, in order.

    socket → sockets → hub → sessions (a client's connection) → codec → packets
    packets → sessions or routing (who gets it) → queues of clients → effects → driver → socket
    what has to outlast the process → storage; Headwater's own topics → application

`server` is what a broker's process sees of all this, `hub` the one state machine without sockets,
`driver` what carries its effects out.
"""
