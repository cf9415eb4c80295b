"""The way of a message between MQTT clients: who wants its topic, and what is retained of it.

Owns the tree of filters, retained messages, shared groups and what becomes of a PUBLISH. Must not
know sockets or packets' bytes, and of clients only that they take messages. Invariant: a message
goes once to each session with a filter that fits, to one member of each shared group, and its
publisher's reason code says what became of it.

    PUBLISH → publications → handed up to the application, or: router → filters that fit
                                      │ retained                  │
                       SUBSCRIBE → retained_replay      shared_groups → client queues

A retained message is not there, there, or replaced by the next of its topic; an empty one takes it
away. A route is in the cache until any subscription changes.
"""
