"""Drives the core of a broker in a real process: messages in, effects out, time, and the disk.

Owns the carrying out of effects, the arrival of messages, when a snapshot is taken and when intake
is held. Must not decide what a broker decides, nor know how faces are put together (`site`).
Invariant: the core is only ever called from the event loop's thread, with a time that does not go
back; what rests on a record is carried out when the commit gate of the core lets it go.

    MQTT, HTTP, bridge → arrivals, requests ─▶ runner ─▶ the core ─▶ effects
                     gate: is intake held?        ▲                    │
                              clock: its wakes ───┘                    ▼
    durability (journal, outbox, snapshots) ◀─ records ── promises ─▶ delivery → MQTT, live results
                     └─ durable ─▶ the commit gate ───────▲

States of intake: open, or held for one of the gate's named reasons (a disk that is full or slow, a
recovery, a name that is taken); publishers wait meanwhile, and nothing is acknowledged.
"""
