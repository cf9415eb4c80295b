"""Links to other brokers on real sockets: listening, dialling, TLS, the shared secret.

Owns the sockets around `broker.network.session`. Must not know what messages mean. Invariant:
whatever one neighbour or stranger does, the links to others go on.

The way: `face` listens, and dials by `dialling` whom the configuration names and whom `seeds` finds
at addresses: those that are configured and those of `discovery`, which keeps announcements in the
form of `announcement` from a segment, as `multicast` has it; `trials` says which of these are asked
again. `securing` reads what both ends prove themselves by.
"""
