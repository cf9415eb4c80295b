"""Other MQTT servers of the site that the broker joins as a client, and foreign topics as events.

Owns the connections to them, what waits to be sent or acknowledged there, and what a mapping makes
of a payload. Must not know the core: what comes in is handed on, what goes out was handed over.
Invariant: what a joined server was told to be taken is taken; everything else it keeps and sends
again.

    joined server ⇄ connection ⇄ join ─▶ inbound ─▶ joined ─▶ arrivals of the driver
                                  ▲        mapping, mapped_payload, sparkplug: topics to events
    outbox ─▶ supply ─▶ outbound ─┘

States of a join: connecting, connected, waiting before the next try (`backoff`), ended.
"""
