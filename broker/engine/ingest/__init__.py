"""From payloads to events: decoded, typed, named, timed, and refused with a reason.

Owns the decoding of JSON and MessagePack, types and their schemas, what an advertisement supplies,
ids of events that bring none, the memory of repeats, and the clocks that say what is late and how
far the input of a task has come.

Must not know who wants an event, nor sockets or files: a payload comes in as bytes, and the current
time as an argument.

Invariant: every event that comes in leaves as an event or as a fault with a reason, once; an
event with the id and end of one seen is a repeat as long as the watermark has not passed it.

The way through it: `decode` → `normalise` (with `advertised` and `sources`) → `typed` (with the
`registry` of types) → `repeats` → `clocks`, which judge lateness and move the watermark.
"""
