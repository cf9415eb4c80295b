"""A text in the place of another, where tasks run in cells.

A home that gets a changed text decides which of its subscriptions go on in the cell that runs them,
and which begin as new cells. It owns that choice and the book-keeping behind it. It must not know
what a task holds (`broker.engine.runtime.succession`), nor frames or hosts
(`broker.network.placement.revisions`).

Invariant: the choice is a function of the catalogue and the book alone, so that `submit --dry-run`
says beforehand what a submission does, and a journal that is read again comes to the same cells.

The way: `Installer` plans a text and asks `CellBeginnings.predecessors` for the tasks that
subscriptions may go on from; `preview.look_for_heirs` finds what goes on there; once all of it is
installed, `CellBeginnings.begin` writes into the book what goes on, and begins the rest.

    replaced, in one active cell, some task kept ──▶ a revision of that cell
    else                                         ──▶ a new cell, with nothing
"""
