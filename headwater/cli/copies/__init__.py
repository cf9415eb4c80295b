"""The commands that copy what a broker keeps, and put a copy in its place.

Owns their options and output. Must not know what is in a copy: `broker.backup` does. Invariant: a
copy that is refused changes nothing.

The way: `backup` asks a running broker over HTTP and writes what comes; `restore` asks nobody, as
it works where no broker runs.
"""
