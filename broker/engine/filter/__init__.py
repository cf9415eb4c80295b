"""Who wants an event: from the conditions of many filters to the few that a reading meets.

Owns conditions on single events, the index over them (a hash on the parts that are fixed, then
ranges), and the content filterer (paper 003, section 3.3.1).

Must not know what is done with an event that is wanted, nor tasks, windows or time.

Invariant: a filter gets an event exactly if its conditions hold for it. The index is only a way to
ask fewer of them: an event that no filter wants costs about the same among ten as among ten
thousand.

The way through it: the `filterer` sorts a batch by type, asks the hash of each type (`cells`),
then the ranges (`scale`, `candidates`, `cells`), then what is left of the conditions (`contents`,
`conditions`).
"""
