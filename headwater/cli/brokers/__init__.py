"""Commands about brokers of a running network: to ask how one is, to empty one, to give one up.

Owns their options and output. Must not know where tasks go or who waits for whom: the brokers
decide that. Invariant: status 0 means that the broker that was asked has done it.

The way: `headwater.cli.frame` imports the module of a command by the command's name; each asks one
broker over HTTP, but for `discover`, which listens on the segment.
"""
