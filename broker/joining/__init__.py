"""Other MQTT servers of the site that the broker joins as a client.

Owns the connections to them and what waits to be sent or acknowledged there. Must not know the
core: what comes in is handed on, what goes out was handed over. Invariant: what a joined server was
told to be taken is taken; everything else it keeps and sends again.
"""
