"""The most that an agent can hold, said before it runs.

Owns what each operator keeps at most and for how long (`hold`), and from that the statement for a
task: how many events and partial matches, of what kind it is, and why (`bounds`).

Must not know an agent at run time: text and rates go in, a statement comes out.

Invariant: an agent whose inputs keep to their rates never holds more than is said here; what has no
limit by its text is held to a named one, and says so.
"""
