"""Links to other brokers on real sockets: listening, dialling, TLS, the shared secret.

Owns the sockets around `broker.core.links`. Must not know what messages mean. Invariant: whatever
one neighbour or stranger does, the links to others go on.
"""
