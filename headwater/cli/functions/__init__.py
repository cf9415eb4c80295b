"""The commands for user functions that are given to a network.

Owns their options and output. Must not know how functions travel or run: the brokers do. Invariant:
a command that is refused has changed nothing, and what is confirmed is durable at the broker that
was asked.

The way: `add` sends a file as it stands and has the broker judge it; `ls` shows what each broker
makes of all files; `remove` takes one away. All three ask over HTTP.
"""
