"""What a broker that runs tasks needs of origins, and how far it is with each.

Owns the operators of its tasks and whom they wait for (`needs`), the positions that have come
(`upstream`) and, at a header, the rows of panes that are not complete (`gathered`). Must not know
frames, ways or the tasks' state.

Invariant: what is counted as come has been given to the core, each event once; a gap stays a gap
until the origin offers it anew.

    a task ─▶ operators ─▶ asked of all ─▶ every broker has echoed ─▶ its inputs are complete
    a frame (after, upto] ─▶ after where we are? ─ yes ─▶ upto
                                   └ no ─▶ asked again from where we are
"""
