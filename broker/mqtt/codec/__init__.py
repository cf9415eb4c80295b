"""MQTT 3.1.1 and 5 on the wire: bytes to packets as typed values, and back.

Owns the layout of every packet, MQTT 5 properties, reason codes, and the grammar of topic names and
filters. Must not know sessions, rights, or what a topic is for. Invariant: what `encoder` writes,
`decoder` reads as the same values, and bytes that the standard does not allow are a `ProtocolError`
with the reason code that the standard names.

    bytes → decoder (framing, the short ways) → bodies → properties, topics → wire
    packet → encoder → properties → wire

A decoder has two states: within a packet, whose bytes so far it holds, and between packets, with
nothing held. An error is its end, as nobody knows where the next packet begins.
"""
