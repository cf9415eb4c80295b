"""The links among brokers: what goes over each.

Problem: whoever looks at a network asks of each link what it carries, and of which kind. The answer
has to agree with what the links themselves count, to the event, and may not cost what carrying the
events costs.

Owns the counts of events by link, direction and type. Must not know what events say beside their
type, nor why they travel. Invariant: the counts of all types of a link and a direction add up to
the events of the frames that were sent or taken there; a neighbour cannot make them grow without
bound.

The way: a broker tells `traffic.LinkTraffic` of each frame of events that it sends or takes, once
for the frame; the types are read from its packed events by a decoder that skips all else. A table
of events that was built as they are sent was rejected: frames in transit are never unpacked.
"""
