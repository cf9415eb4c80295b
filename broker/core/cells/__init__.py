"""Tasks that another broker's users need and that run here, each in a cell with its own state.

Owns a cell and what is kept of it (`cell`, `cell_contents`), what it takes in, which are events or
what is folded of them where windows are split (`cell_inputs`), a cell's place among the neighbours
(`inside`) and what others see of cells (`cell_views`, `cell_origins`). Must not know the
coordinator that decided on them, nor sockets.

Invariant: a cell's results reach its home once, in their order, whichever broker it ran in: they
carry the term and its numbers, and what a former host says comes too late.

    placed ─▶ empty or from a snapshot ─▶ inputs asked for ─▶ runs ─▶ saved at its home ─▶ released
"""
