"""The commands about subscriptions of running brokers: submit, list, follow, end, begin anew.

Owns their options and output. Must not know how a broker keeps or finds anything. Invariant: what
is printed as done was confirmed by the broker, and nothing is repeated that may have been done.

The way: each command parses its options, asks one broker over HTTP or MQTT (`reach`), and prints
rows for people or JSON for programs; `results` is a result on one line.
"""
