"""What one broker among others keeps through a crash: the core of a networked broker.

Owns the state that its journal and its snapshots hold besides that of a broker alone: how far each
origin was heard (`networked`), what hosts need of this broker and were promised (`local_origin`),
what is not active yet (`activation`), where tasks run (`home_cells`), which copies of results wait
for actors (`actor_delivery`), what a header has of split windows (`header`), and which tasks of a
changed text go on where they run (`cell_beginnings`): parts of one core, each of which is lent what
it works with. Must not know sessions, frames, the router or a clock: what comes by a link arrives
here as a message that is written down first.

Invariant: the same records give the same state. The choice of what goes on where a text takes
another's place is a function of the catalogue and the book alone, so `submit --dry-run` says
beforehand what a submission does, and a journal that is read again comes to the same cells.

The way of an event from elsewhere:

    NetworkTold(Forwarded) ─▶ networked: known? gap? ─▶ intake ─▶ matcher ─▶ results, positions

and of a text in the place of another:

    replaced, in one active cell, some task kept ──▶ a revision of that cell
    else                                         ──▶ a new cell, with nothing
"""
