"""What is said among brokers about interests: advertisements of sources and operators for them.

Owns these terms (`operator`), the router's messages that carry them (`messages`) and which sources
lie beyond which neighbour (`sources`). Must not know how an event is matched, nor links.

Invariant: an operator names a kind of content by its conditions alone; the same conditions give the
same key at every broker, whoever asked.

    a source ─▶ Advertisement ─▶ every broker keeps: it is that way
    a task's input ─▶ Operator ─▶ only that way, to the source
"""
