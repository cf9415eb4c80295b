"""What an operator of one group is to those around it, whatever it finds.

Owns the promise between operators and their inboxes (`base`), what can be asked of what is still to
come (`asked`), several of them as one sequence (`sides`), candidates by end (`store`), what is
remembered of events that were spent (`memory`), and the atom, beneath which there is none (`leaf`).

Must not know any operator but the atom, nor what is made of what the topmost passes on.

Invariant: what a stage passes on depends on the events and on the order of time alone, never on how
they were batched. The states of one:

    idle ── an occurrence ──▶ open ── hold() passes its end ──▶ decided: passed on, or dropped
"""
