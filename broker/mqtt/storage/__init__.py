"""What the MQTT face keeps on a disk, so that a restarted broker keeps its promises to clients.

Owns the rows, the batches in which they go to the disk, and how a hub begins from them. Must not
know what clients said: it is told which row changed. Invariant: bytes that promise something leave
when the batch with what they promise is durable, and batches become durable in their order.

    a change of a session → batches (the batch that gathers) → writer → tables → durable
    durable → batches lets the bytes go that waited;   at a start: tables → restoration → hub

A batch gathers, is being written (one at a time), and is durable; one that failed gathers again,
with what came since, under the same number.
"""
